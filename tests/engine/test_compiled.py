"""Machine code is found by the content of the sources, not by their path."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import sslbench
from sslbench.engine.compilation import compiled
from sslbench.engine.features.kernels import unresolved
from sslbench.engine.files import derived
from sslbench.engine.files.folders import temporary_folder

PACKAGE = "kernels_of_a_test"
HELPER = """
from sslbench.engine.compilation.compiled import njit
FACTOR = 2.0
@njit(cache=True, inline="always")
def scaled(x):
    return FACTOR * x
"""
KERNEL = """
from sslbench.engine.compilation.compiled import njit
from kernels_of_a_test.inner.helper import scaled
@njit(cache=True)
def kernel(x):
    return scaled(x) + 1.0
"""
CALLED = """
from sslbench.engine.compilation.compiled import njit
@njit(cache=True)
def scaled(x):
    if x < 0.0:
        raise ValueError("below zero")
    return 2.0 * x
"""
ENVIRONMENT = dict(os.environ)  # as it is outside of the tests
COMMON = {"__init__.py": "", "inner/__init__.py": "", "inner/helper.py": HELPER, "own.py": KERNEL}


class Call(NamedTuple):
    value: float
    hits: int  # machine code that was found
    misses: int  # compilations


def write(folder: Path, changes: dict[str, str] | None = None) -> Path:
    """Make the package below a folder."""
    for name, text in {**COMMON, **(changes or {})}.items():
        path = folder / PACKAGE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def call(folder: Path, module: str = "own") -> Call:
    """Import the package of a folder as a new process would, and call its kernel."""
    forget()
    sys.path.insert(0, str(folder))
    try:
        kernel = import_module(f"{PACKAGE}.{module}").kernel
    finally:
        sys.path.remove(str(folder))
    value = kernel(3.0)
    return Call(
        value, sum(kernel.stats.cache_hits.values()), sum(kernel.stats.cache_misses.values())
    )


def forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]
    invalidate_caches()
    compiled.package_folder.cache_clear()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder for derived data."""
    monkeypatch.setattr(compiled.config, "CACHE_DIR", "")
    monkeypatch.setenv("SSLBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # sources change within a second here
    yield tmp_path / "cache"
    forget()
    temporary_folder.cache_clear()


def test_a_copy_at_another_path_is_not_compiled(tmp_path: Path, cache: Path) -> None:
    assert call(write(tmp_path / "a")) == Call(7.0, 0, 1)
    assert call(write(tmp_path / "b")) == Call(7.0, 1, 0)
    assert [path.name for path in cache.iterdir()] == ["kernels"]
    assert not list(tmp_path.rglob("__pycache__"))


def test_a_change_in_an_inlined_function_of_another_file(tmp_path: Path) -> None:
    assert call(write(tmp_path)) == Call(7.0, 0, 1)
    changed = {"inner/helper.py": HELPER.replace("2.0", "5.0")}
    assert call(write(tmp_path, changed)) == Call(16.0, 0, 1)
    assert call(write(tmp_path)) == Call(7.0, 1, 0)


def test_a_function_that_was_compiled_for_a_kernel(tmp_path: Path) -> None:
    """Its machine code serves other kernels and Python; errors pass through, from files, too."""
    other = KERNEL.replace("+ 1.0", "+ 2.0")
    folder = write(tmp_path, {"inner/helper.py": CALLED, "other.py": other})
    assert call(folder) == Call(7.0, 0, 1)
    for misses in (1, 0):
        assert call(folder, "other") == Call(8.0, 1 - misses, misses)
        scaled = sys.modules[f"{PACKAGE}.inner.helper"].scaled
        assert scaled(3.0) == 6.0
        assert not scaled.stats.cache_misses
        for function in (scaled, sys.modules[f"{PACKAGE}.other"].kernel):
            with pytest.raises(ValueError, match="below zero"):
                function(-1.0)


CLOSURE = """
from sslbench.engine.compilation.compiled import njit
def make(factor):
    @njit(cache=True)
    def scaled(x):
        return factor * x
    return scaled
make(2.0)(3.0)
kernel = make(5.0)
"""


def test_a_function_with_variables_of_another_is_not_kept(tmp_path: Path) -> None:
    """Their values are part of its machine code."""
    folder = write(tmp_path, {"own.py": CLOSURE})
    for _ in range(2):
        assert call(folder) == Call(15.0, 0, 1)


def test_a_change_in_the_engines_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = tmp_path / "engine_of_a_test"
    engine.mkdir()
    (engine / "__init__.py").write_text("from numba import njit\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(compiled, "ENGINE", engine.name)
    import_module(engine.name)
    assert call(write(tmp_path)) == Call(7.0, 0, 1)
    (engine / "other.py").write_text("LIGHT = True\n")  # imports no compiler: concerns no kernel
    assert call(write(tmp_path)) == Call(7.0, 1, 0)
    (engine / "__init__.py").write_text("from numba import prange\n")
    assert call(write(tmp_path)) == Call(7.0, 0, 1)


@pytest.mark.parametrize("name", ["CPU_NAME", "CPU_FEATURES"])
def test_another_processor_is_asked_for(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    before = compiled._key(compiled.ENGINE)
    monkeypatch.setattr(compiled.config, name, "generic")
    assert compiled._key(compiled.ENGINE) != before


@pytest.mark.parametrize("library", ["numba", "llvmlite", "numpy"])
def test_another_version_of_a_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    before = compiled._key(compiled.ENGINE)
    true = compiled.version
    monkeypatch.setattr(compiled, "version", lambda name: true(name) + "x" * (name == library))
    assert compiled._key(compiled.ENGINE) != before


@pytest.fixture
def no_cache(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of a cache that cannot be a folder; temporary files are in ``tmp``."""
    cache.write_text("a file")
    temporary(tmp_path / "tmp", monkeypatch)
    return cache


def test_a_folder_that_cannot_be_written(
    tmp_path: Path, no_cache: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The user's temporary folder is used, and one line says so."""
    assert call(write(tmp_path)) == Call(7.0, 0, 1)
    assert call(write(tmp_path)) == Call(7.0, 1, 0)
    (folder,) = (tmp_path / "tmp").glob(f"sslbench-*/kernels/{PACKAGE}-*")
    (line,) = capfd.readouterr().err.splitlines()
    kernels = no_cache / "kernels"
    assert line.startswith(f"sslbench: {kernels}: Not a directory; compiled code is in ")
    assert str(folder) in line


@pytest.mark.usefixtures("no_cache")
def test_no_folder_can_be_written(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Nothing is kept, and everything runs."""
    shutil.rmtree(tmp_path / "tmp")
    for _ in range(2):
        assert call(write(tmp_path)) == Call(7.0, 0, 1)
    (tmp_path / "tmp").mkdir()
    (line,) = capfd.readouterr().err.splitlines()
    assert "compiled code is not kept" in line


@pytest.mark.parametrize("part", ["", "kernels", f"kernels/{PACKAGE}-KEY"])
def test_a_folder_that_others_can_write_to(
    tmp_path: Path,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    part: str,
) -> None:
    """Machine code is not read from there: somebody else could have put it there."""
    temporary(tmp_path / "tmp", monkeypatch)
    assert call(write(tmp_path)) == Call(7.0, 0, 1)
    (made,) = (cache / "kernels").iterdir()
    (cache / part.replace(f"{PACKAGE}-KEY", made.name)).chmod(0o777)
    assert call(write(tmp_path)) == Call(7.0, 0, 1)
    (line,) = capfd.readouterr().err.splitlines()
    assert "other users can write to" in line


def temporary(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this the temporary folder of the system, for a process that has said nothing yet."""
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("SSLBENCH_TOLD", "compiling")
    temporary_folder.cache_clear()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-100]),
    "random": lambda path: path.write_bytes(np.random.default_rng(0).bytes(1000)),
    "a byte": lambda path: path.write_bytes(path.read_bytes()[:-900] + b"x" * 900),
    "missing": lambda path: path.unlink(),
    "folder": lambda path: (path.unlink(), (path / "x").mkdir(parents=True)),
    "dangling": lambda path: (path.unlink(), path.symlink_to("nowhere")),
    "another": lambda path: path.write_bytes(
        next(p for p in path.parents[2].rglob("*.nbc") if p != path).read_bytes()
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_machine_code_is_compiled_again(tmp_path: Path, cache: Path, name: str) -> None:
    changed = {"inner/helper.py": HELPER.replace("2.0", "5.0")}
    assert call(write(tmp_path, changed)) == Call(16.0, 0, 1)
    before = set(cache.rglob("*.nbc"))
    assert call(write(tmp_path)) == Call(7.0, 0, 1)
    (path,) = set(cache.rglob("*.nbc")) - before
    DAMAGES[name](path)
    assert call(write(tmp_path)) == Call(7.0, 0, 1)
    assert call(write(tmp_path)) == Call(7.0, 1, 0)


def test_machine_code_cannot_be_written(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk: the function is compiled, and its code is not kept."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(derived, "write_atomically", full)
    for _ in range(2):
        assert call(write(tmp_path)) == Call(7.0, 0, 1)


def test_cold_starts_at_once(tmp_path: Path, cache: Path) -> None:
    """Processes that find an empty cache and compile the same functions, each for two types."""
    code = "from kernels_of_a_test.own import kernel; print(kernel(3.0), kernel(3))"
    paths = os.pathsep.join([str(write(tmp_path)), ENVIRONMENT.get("PYTHONPATH", "")])
    variables = {**ENVIRONMENT, "SSLBENCH_CACHE": str(cache), "PYTHONPATH": paths}
    variables.pop("NUMBA_CACHE_DIR", None)
    started = [
        subprocess.Popen([sys.executable, "-c", code], env=variables, stdout=subprocess.PIPE)
        for _ in range(int(os.environ.get("SSLBENCH_COLD_STARTS", "4")))
    ]
    assert {process.communicate()[0] for process in started} == {b"7.0 7.0\n"}
    assert [process.returncode for process in started] == [0] * len(started)
    assert len(list(cache.rglob("*.nbc"))) == 2
    assert not list(cache.rglob("*.tmp"))
    assert call(tmp_path) == Call(7.0, 1, 0)


def test_two_signatures_at_once(tmp_path: Path, cache: Path) -> None:
    """Two processes that compile a function for different types keep both."""
    forget()
    sys.path.insert(0, str(write(tmp_path)))
    first = import_module(f"{PACKAGE}.own").kernel
    forget()
    second = import_module(f"{PACKAGE}.own").kernel
    sys.path.remove(str(tmp_path))
    assert first(3.0) == 7.0
    assert second(3) == 7.0
    assert call(tmp_path).hits == 1
    assert len(list(cache.rglob("*.nbc"))) == 2


def test_numbas_variable_moves_the_folder(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled.config, "CACHE_DIR", str(tmp_path / "elsewhere"))
    assert call(write(tmp_path)) == Call(7.0, 0, 1)
    assert list(tmp_path.glob(f"elsewhere/kernels/{PACKAGE}-*/{PACKAGE}.own/*.nbc"))
    assert not cache.exists()


def test_other_decorators_keep_numbas_folder(tmp_path: Path, cache: Path) -> None:
    """A plugin's own kernels, decorated by numba."""
    plain = KERNEL.replace("from sslbench.engine.compilation.compiled", "from numba")
    assert call(write(tmp_path, {"own.py": plain})) == Call(7.0, 0, 1)
    assert list(tmp_path.glob(f"{PACKAGE}/__pycache__/own.kernel-*.nbi"))
    assert not list(cache.rglob("own.kernel*"))


def old_folders(cache: Path) -> list[str]:
    """Make 8 folders of earlier versions; return their names, the newest first."""
    names = [f"{PACKAGE}-{age:016x}" for age in range(8)]
    for age, name in enumerate(names):
        old = cache / "kernels" / name
        old.mkdir(parents=True)
        (old / "code").touch()
        os.utime(old, (1e9 - age, 1e9 - age))
    return names


def test_old_folders_are_removed(tmp_path: Path, cache: Path) -> None:
    names = old_folders(cache)
    others = {"another-0123456789abcdef", f"{PACKAGE}-thesis", f"{PACKAGE}-0123456789abcdefx"}
    for name in others:
        (cache / "kernels" / name).mkdir()
    call(write(tmp_path))
    kept = {path.name for path in (cache / "kernels").iterdir()}
    assert {*others, *names[:4]} < kept
    assert len(kept) == len(others) + compiled.KEPT


def test_nothing_is_removed_through_a_link(tmp_path: Path, cache: Path) -> None:
    """The folder of all machine code, or one below it, lies elsewhere."""
    names = old_folders(tmp_path / "user")
    cache.mkdir()
    (cache / "kernels").symlink_to(tmp_path / "user" / "kernels")
    call(write(tmp_path))
    assert {path.name for path in (cache / "kernels").iterdir()} > set(names)
    (cache / "kernels").unlink()
    old_folders(cache)
    for name in names:
        shutil.rmtree(cache / "kernels" / name)
        (cache / "kernels" / name).symlink_to(tmp_path / "user" / "kernels" / name)
    call(write(tmp_path))
    assert len(list((tmp_path / "user").rglob("code"))) == 8


def test_a_copy_of_this_package(tmp_path: Path) -> None:
    """A kernel of the engine, compiled for this process, is found by one with other paths."""
    assert unresolved(np.array([1, 0], "i4"), np.full(2, -2, "i4")).tolist() == [1, 0]
    skip = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(sslbench.__file__).parent, tmp_path / "sslbench", ignore=skip)
    code = """if 1:
        import sys, numpy as np, sslbench
        from sslbench.engine.features.kernels import unresolved as kernel
        assert sslbench.__file__.startswith(sys.argv[1]), sslbench.__file__
        found = kernel(np.array([1, 0], "i4"), np.full(2, -2, "i4")).tolist()
        print(found, len(kernel.stats.cache_hits))
    """
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env={**ENVIRONMENT, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[1, 0] 1\n"
