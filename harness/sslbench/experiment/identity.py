"""Where a result comes from: version of the code, hash of the text, machine and libraries."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from sslbench.corpus import Corpus
from sslbench.experiment.sources import CORE, sources_hash

_LIBRARIES = ("numpy", "scipy", "numba", "llvmlite", "msgspec")


def code_version(targets: Iterable[str]) -> str:
    """Version of sslbench plus a hash of the sources that a run with these plugins depends on.

    Parameters
    ----------
    targets: ``"module:attribute"`` of each plugin of the run.
    """
    return f"{_version(CORE)}+{sources_hash(targets)[:12]}"


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
    """Sha256 of the text of all columns; it does not depend on the codes of the vocabularies."""
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
