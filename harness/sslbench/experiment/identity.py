"""Which code a result comes from, and where: hashes of sources, facts about the machine."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from sslbench.corpus import Corpus

CORE = "sslbench"
# These floors of the core cannot change a result; editing them must not make runs stale.
_NO_INFLUENCE = ("report", "cli")
_LIBRARIES = ("numpy", "scipy", "numba", "llvmlite", "msgspec")


def code_version(targets: Iterable[str]) -> str:
    """Version of the core plus a hash over the sources of the core and of the plugins used.

    Parameters
    ----------
    targets: ``"module:attribute"`` of each plugin that takes part in the run.
    """
    packages = {CORE, *(target.split(":")[0].split(".")[0] for target in targets)}
    digest = hashlib.sha256()
    for package in sorted(packages):
        digest.update(f"{package}={_package_hash(package)}\n".encode())
    return f"{_version(CORE)}+{digest.hexdigest()[:12]}"


@cache
def _package_hash(package: str) -> str:
    """Sha256 over names and bytes of the package's .py files; "" when there are no sources."""
    digest = hashlib.sha256()
    for root, path in _sources(package):
        digest.update(f"{path.relative_to(root).as_posix()}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _sources(package: str) -> Iterator[tuple[Path, Path]]:
    # For a top-level name find_spec() does not import anything.
    spec = find_spec(package)
    if spec is None:
        return
    if spec.submodule_search_locations is None:
        if spec.origin and spec.origin.endswith(".py"):
            yield Path(spec.origin).parent, Path(spec.origin)
        return
    for folder in spec.submodule_search_locations:
        root = Path(folder)
        for path in sorted(root.rglob("*.py")):
            first = path.relative_to(root).parts[0]
            if package != CORE or first not in _NO_INFLUENCE:
                yield root, path


def environment(threads: int) -> dict[str, Any]:
    """The machine and the libraries of a run."""
    return {
        "host": platform.node(),
        "system": platform.platform(),
        "machine": platform.machine(),
        "cpu": _cpu_name(),
        "cpus": os.cpu_count(),
        "threads": threads,
        "python": platform.python_version(),
        "sslbench": _version(CORE),
        "libraries": {name: _version(name) for name in _LIBRARIES},
    }


def corpus_hash(corpus: Corpus) -> str:
    """Sha256 of a corpus's text, whatever codes its vocabularies gave to the strings."""
    digest = hashlib.sha256(np.ascontiguousarray(corpus.offsets, dtype="<i8").tobytes())
    for name in sorted(corpus.columns):
        column = corpus.column(name)
        used, codes = np.unique(column.codes, return_inverse=True)
        strings = [column.vocabulary.strings[code] for code in used]
        order = sorted(range(len(strings)), key=strings.__getitem__)
        rank = np.empty(len(order), dtype="<i8")
        rank[order] = np.arange(len(order))
        digest.update("\0".join([name, *(strings[i] for i in order)]).encode())
        digest.update(rank[codes].tobytes())
    return digest.hexdigest()


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "unknown"


@cache
def _cpu_name() -> str:
    if sys.platform == "linux":
        try:
            for line in Path("/proc/cpuinfo").read_text().splitlines():
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
        except OSError:
            pass
    return platform.processor()
