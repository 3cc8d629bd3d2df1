"""Derived data: what a restricted process writes is read by restricted ones alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sslbench.engine.compilation import compiled
from sslbench.engine.files import derived
from sslbench.engine.files.folders import cache_folder
from sslbench.engine.graph.cache import cached
from sslbench.experiment.run.fitting import LocalMethod
from sslbench.isolation.process import MethodProcess
from sslbench.isolation.restrict import Restrictions, Watch, restrict
from sslbench.isolation.start import _cache, compiling
from sslbench.plugins import registry
from sslbench.processes import call_apart
from support.run_fakes import task
from support.waiting import HANG

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks and Landlock are of Linux")

KERNEL = """
from sslbench.engine.compilation.compiled import njit
@njit(cache=True)
def kernel(x):
    return x + 1.0
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache, and a package with a kernel on the path."""
    package = tmp_path / "site" / "kernel_of_a_plugin"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(KERNEL)
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.setattr(compiled.config, "CACHE_DIR", "")
    monkeypatch.setenv("SSLBENCH_CACHE", str(tmp_path / "cache"))
    compiled.package_folder.cache_clear()
    yield tmp_path / "cache"
    compiled.package_folder.cache_clear()


def compilations() -> int:
    kernel = import_module("kernel_of_a_plugin").kernel
    assert kernel(1.0) == 2.0
    return sum(kernel.stats.cache_misses.values())


def arrays() -> int:
    """How often an array is made, which each process asks for."""
    made: list[int] = []

    def make() -> dict[str, Any]:
        made.append(1)
        return {"x": np.arange(3)}

    cached(cache_folder(), "graphs", {"key": 1}, make)
    return len(made)


def digests() -> int:
    path = cache_folder() / "sha256" / "x"
    if derived.find(path, b"key") is not None:
        return 0
    derived.keep(path, b"key", b"digest")
    return 1


def process(call: Callable[[], int], own: Path | None = None) -> int:
    """What a call returns in a new process. own: where a restricted one may write."""

    def answer() -> bytes:
        if own is not None:
            own.mkdir(parents=True, exist_ok=True)
            assert restrict(Restrictions([], [own], [], own, own, own, None, None), Watch())
        return str(call()).encode()

    return int(call_apart(answer, HANG))


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("call", [compilations, arrays, digests])
def test_no_other_process_reads_what_a_restricted_one_writes(
    cache: Path, call: Callable[[], int]
) -> None:
    first, second = cache / "plugins" / "first", cache / "plugins" / "second"
    assert process(call, first) == 1
    assert process(call, first) == 0  # nothing is made twice
    assert process(call, second) == 1
    assert files(cache) == files(cache / "plugins")
    assert process(call) == 1


@pytest.mark.parametrize("call", [compilations, arrays, digests])
def test_restricted_processes_read_the_cache(cache: Path, call: Callable[[], int]) -> None:
    assert process(call) == 1
    before = files(cache)
    own = cache / "plugins" / "own"
    assert process(call, own) == 0
    assert files(cache) - files(own) == before


def test_folders_are_those_of_distributions(cache: Path, fake_plugin: None) -> None:
    """Code of sslbench's own reads nothing that code of others wrote, whatever names it."""
    built_in = task("supervised", dataset="synth", featurizer="basic", model="crf1")
    assert _cache(built_in, registry()) == cache / "plugins" / "sslbench"
    foreign = _cache(task(), registry())
    assert foreign is not None
    assert foreign.parent == cache / "plugins"
    assert foreign.name != "sslbench"
    (name, *_) = [name for kind, name in registry().origins if name == task().spec.method]
    as_parameter = task("supervised", dataset="synth", params={"similarity": name})
    assert _cache(as_parameter, registry()) == foreign


def test_warmup_compiles_for_all_processes(cache: Path, fake_plugin: None, tmp_path: Path) -> None:
    """Code of sslbench's own is not restricted there, code of others is."""
    built_in = task("supervised", dataset="synth", featurizer="basic", model="crf1")
    assert isinstance(compiling(built_in, registry(), tmp_path, None), LocalMethod)
    foreign = compiling(task(), registry(), tmp_path, None)
    assert isinstance(foreign, MethodProcess)
    foreign.close()
