"""Where a result comes from: data, files, versions of code, the machine and its libraries."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from sslbench.engine.corpus import Corpus
from sslbench.engine.errors import UserError
from sslbench.engine.files import derived
from sslbench.engine.version import VERSION as ENGINE_VERSION
from sslbench.experiment.data.dataset import Dataset
from sslbench.experiment.data.template_file import FILE_PREFIX

if TYPE_CHECKING:
    from sslbench.experiment.records.record import RunRecord, RunSpec
    from sslbench.plugins import Registry
    from sslbench.plugins.registrations import Registration

#: widest first, by LLVM's names
_VECTORS = ("avx512f", "avx2", "avx", "sse2", "sve", "neon")
_LIBRARIES = ("numpy", "scipy", "numba", "llvmlite", "msgspec")


def input_hashes(params: Mapping[str, Any], files: Iterable[str]) -> dict[str, str]:
    """Sha256 of the files that parameters name, by path; files: the names of these parameters.

    Of a folder, all files in it count but those with a dot before their name. UserError for a file
    that cannot be read.
    """
    hashes = {}
    named = sorted(str(params[name]) for name in files if params[name])
    for path in (each for name in named for each in _files(name)):
        try:
            with open(path, "rb") as file:
                hashes[path] = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise UserError(f"cannot be read: {error.strerror}", file=path) from None
    return hashes


def _files(path: str) -> list[str]:
    """The path, or those of the files in a folder."""
    if not os.path.isdir(path):
        return [path]
    try:
        entries = sorted(os.scandir(path), key=lambda entry: entry.name)
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", file=path) from None
    return [entry.path for entry in entries if entry.is_file() and entry.name[0] != "."]


def fingerprint(dataset: Dataset, external: str = "") -> str:
    """Hash of everything in a loaded dataset that methods and scorer can see.

    It depends on texts, labels and the way they are scored, not on the files or the program that
    they come from, nor on metadata.

    external: the hash of the external text, for protocols that use it.
    """
    digest = hashlib.sha256()
    content: dict[str, object] = {
        "task": dataset.task,
        "metric": dataset.metric,
        "encoding": dataset.encoding,
        "adaptation": dataset.adaptation,
        "joined": dataset.joined,
        "transductive": dataset.transductive,
        "codec": dataset.codec is not None,
        "splits": {name: corpus_hash(corpus) for name, corpus in dataset.splits.items()},
        "external": external,
    }
    if dataset.label_constraint is not None:
        rule = dataset.label_constraint
        content["constraint"] = [rule.column, "".join(sorted(rule.characters)), rule.label]
    digest.update(json.dumps(content, sort_keys=True).encode())
    for name in sorted(dataset.alternatives):
        spans = dataset.alternatives[name]
        order = np.lexsort((spans.last, spans.first))
        digest.update(name.encode())
        digest.update(np.stack([spans.first[order], spans.last[order]]).astype("<i8").tobytes())
    return digest.hexdigest()[:32]


def external_hash(
    dataset: Dataset, known_as: Mapping[str, object] | None, cache: Path, *, make: bool = True
) -> str | None:
    """Return the hash of the external text of a dataset; "" without one.

    known_as: everything that the text depends on, JSON-able: the hash is stored in the cache under
        it, since the text may have millions of sentences. None: computed every time.
    make: False = return None where the text would have to be made.
    """
    if dataset.external is None:
        return ""
    if known_as is None:
        return _text_hash(dataset) if make else None
    key = json.dumps(known_as, sort_keys=True).encode()
    path = cache / "text-hashes" / hashlib.sha256(key).hexdigest()[:32]
    digest = derived.find(path, key)
    if digest is None:
        if not make:
            return None
        digest = _text_hash(dataset).encode()
        derived.keep(path, key, digest)
    return digest.decode()


def _text_hash(dataset: Dataset) -> str:
    digest = hashlib.sha256()
    for shard in dataset.external() if dataset.external is not None else ():
        digest.update(corpus_hash(shard).encode())
    return digest.hexdigest()


def environment(threads: int) -> dict[str, Any]:
    """The machine, the libraries and the distributions with plugins of a run."""
    from sslbench.plugins import registry

    return {
        "host": platform.node(),
        "system": platform.platform(),
        "machine": platform.machine(),
        "cpu": _cpu_name(),
        "processor": processor(),
        "cpus": os.cpu_count(),
        "threads": threads,
        "python": platform.python_version(),
        "sslbench": _version("sslbench"),
        "libraries": {name: _version(name) for name in _LIBRARIES},
        "plugins": dict(registry().loaded),
    }


@cache
def processor() -> str:
    """The kind of processor that machine code is made for, and its widest vectors: "znver3 avx2".

    Results have the same bits on processors of one kind.
    """
    # Imported late: it takes longer than the rest of this module.
    from llvmlite import binding as llvm  # type: ignore[import-untyped]

    features = llvm.get_host_cpu_features()
    vectors = next((name for name in _VECTORS if features.get(name)), "")
    # Of numba, which compiles for another processor if they are set.
    kind = os.environ.get("NUMBA_CPU_NAME") or llvm.get_host_cpu_name()
    return f"{kind} {os.environ.get('NUMBA_CPU_FEATURES') or vectors}".strip()


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
        names = json.dumps([name, *(strings[i] for i in order)], ensure_ascii=True)
        digest.update(names.encode())
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


#: of all in `sslbench` outside of the engine: draws, folds, tuning, the guard, scoring
BENCH_VERSION = 1


def code_versions(spec: RunSpec, plugins: Registry) -> dict[str, str]:
    """Return the versions of the code that can change the result of a run, by component.

    The components are "engine", "bench" and the plugins of the run: "method", "dataset",
    "featurizer", "model", "similarity", "guard" (the method that it may keep instead) and
    "with NAME" for each text feature, "weak NAME" for each weak source.

    Raises
    ------
    UserError: a plugin of the run is not installed.
    """
    versions = {"engine": ENGINE_VERSION, "bench": BENCH_VERSION}
    versions |= {name: each.version for name, each in _registrations(spec, plugins).items()}
    return {name: str(version) for name, version in versions.items()}


def _registrations(spec: RunSpec, plugins: Registry) -> dict[str, Registration]:
    """The plugins of a run by component; a user's templates and data are in its identity."""
    used: dict[str, Registration] = {
        "method": plugins.method(spec.method),
        "model": plugins.model(spec.model),
    }
    if spec.data.columns is None:
        used["dataset"] = plugins.dataset(spec.dataset)
    if not spec.featurizer.startswith(FILE_PREFIX):
        used["featurizer"] = plugins.featurizer(spec.featurizer)
    similarity = spec.params.get("similarity")
    if similarity in plugins.similarities:
        used["similarity"] = plugins.similarity(similarity)
    if spec.guard is not msgspec.UNSET:
        used["guard"] = plugins.method(spec.guard.method)
    used |= {f"weak {name}": plugins.weak_source(name) for name in spec.weak_sources}
    return used | {f"with {name}": plugins.learner(name) for name in spec.learned}


def is_current(spec: RunSpec, code: Mapping[str, str], plugins: Registry) -> bool:
    """Return whether all versions of a record are today's; otherwise it is stale.

    spec, code: those of the record. A record is stale if one of its plugins is not installed.
    """
    try:
        today = code_versions(spec, plugins)
    except UserError:
        return False
    return _of_versions(code, today) == today


def stale_runs(records: Iterable[RunRecord], plugins: Registry) -> frozenset[str]:
    """Return the run ids of the stale ones among records."""
    return frozenset(
        record.run_id for record in records if not is_current(record.spec, record.code, plugins)
    )


# Records from before versions have digests in their place. The last code with digests gave their
# predictions again, in replays of the cheapest record of each kind, so they count as version 1 of
# everything. Those of the dataset with this digest, conll03_months, were never replayed. Delete
# this function with its constants when all records have been made again.
_DIGEST = re.compile(r"[0-9a-f]{16}")
_NEVER_REPLAYED = "0d5373f3bd0d1072"


def _of_versions(code: Mapping[str, str], today: Mapping[str, str]) -> Mapping[str, str]:
    if not code or not all(_DIGEST.fullmatch(digest) for digest in code.values()):
        return code
    return {} if _NEVER_REPLAYED in code.values() else dict.fromkeys(today, "1")
