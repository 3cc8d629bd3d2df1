"""The decorators of compiled kernels. Machine code is kept between runs by the content of sources.

numba's own cache knows a function by the path and the content of the one file that it is in. A
second copy of the package compiles everything again, and a change in a function that is inlined
from another file goes unnoticed: the old machine code is used. Here the code of a package is kept
in ``<cache>/kernels/<package>-<key>``. The key is a hash of all kernel sources of the package and
of the engine, and of the versions and the processor that machine code depends on.

``<cache>`` is ``$NUMBA_CACHE_DIR``, ``$SSLBENCH_CACHE`` or the user's cache folder. Where it cannot
be written, and for versions of numba that do not know ``NUMBA_CACHE_LOCATOR_CLASSES``, numba's own
cache is used. Only functions with these decorators are concerned.

With ``SSLBENCH_BOUNDSCHECK=1`` every access to an array is checked: IndexError beyond its ends, in
the operations of ``crf.simd.lanes``, too. Kernels then run in one thread, since numba loses
exceptions of parallel loops. It is for tests: kernels take several times as long.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numba
from llvmlite import binding  # type: ignore[import-untyped]

from sslbench.folders import cache_folder

P = ParamSpec("P")
R = TypeVar("R")

config: Any = numba.config
ENGINE = "sslbench"
#: of all kernels
OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
#: are accesses to arrays checked?
BOUNDS = os.environ.get("SSLBENCH_BOUNDSCHECK", "") == "1"
KEPT = 5  # folders of one package: the newest
_IS_KERNEL_SOURCE = re.compile(
    rb"^\s*(from|import) (numba|sslbench\.compiled)\b|^# read by kernels$", re.MULTILINE
)


def njit(**options: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Compile a function as ``numba.njit`` does, with the same options."""
    if BOUNDS:
        options = {**options, "boundscheck": True, "parallel": False}

    def compiled(function: Callable[P, R]) -> Callable[P, R]:
        with _locator_of_kernels():
            kernel: Callable[P, R] = numba.njit(**options)(function)
        return kernel

    return compiled


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that runs in the thread of its caller, without the interpreter lock.

    `fastmath` stays off: it reorders sums and ignores -inf and NaN, while results must have the
    same bits for any number of threads.
    """
    return njit(**OPTIONS)(function)


def inline_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """As `kernel`; kernels that call the function get a copy of its body."""
    return njit(**OPTIONS, inline="always")(function)


def parallel_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """As `kernel`; the rounds of its `prange` loops are shared out among threads.

    A named tuple that such a loop reads must be an argument or be built in the same function.
    Arrays of a named tuple that the loop writes to must be unpacked before the loop: numba takes
    stores into ``out.array`` inside the loop for dead code and removes them.
    """
    return njit(**OPTIONS, parallel=True)(function)


@contextmanager
def _locator_of_kernels() -> Iterator[None]:
    """Let numba ask KernelLocator first, for functions that are decorated meanwhile.

    numba has the variable NUMBA_CACHE_LOCATOR_CLASSES for that; a value set by the user stays. The
    interface of the classes is undocumented: it follows `numba.core.caching` of numba 0.68.1.
    """
    before = getattr(config, "CACHE_LOCATOR_CLASSES", "")
    own = f"{__name__}.{KernelLocator.__name__}"
    others = "UserProvidedCacheLocator,InTreeCacheLocator,UserWideCacheLocator,ZipCacheLocator"
    config.CACHE_LOCATOR_CLASSES = before or f"{own},{others}"
    try:
        yield
    finally:
        config.CACHE_LOCATOR_CLASSES = before


class KernelLocator:
    """Says where the machine code of a function is kept and whether it is out of date.

    The interface of ``numba.core.caching`` for classes in NUMBA_CACHE_LOCATOR_CLASSES.
    """

    def __init__(self, folder: Path, function: Callable[..., Any], file: str) -> None:
        self._py_file = file  # numba names it in warnings
        self._folder = folder
        self._line = function.__code__.co_firstlineno

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> KernelLocator | None:
        """Return None if numba's next locator is to be asked."""
        module = function.__module__
        folder = _package_folder(module.partition(".")[0])
        return None if folder is None else cls(folder / module, function, file)

    def ensure_cache_path(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        """Nothing: the folder's name has the content of the sources already."""
        return ""

    def get_disambiguator(self) -> str:
        return str(self._line)


@cache
def _package_folder(package: str) -> Path | None:
    """Return the folder of a package's machine code, None if there can be none."""
    try:
        parent = Path(config.CACHE_DIR or cache_folder()) / "kernels"
        folder = parent / f"{package}-{_key(package)}"
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)  # the time of its last use
        tempfile.TemporaryFile(dir=folder).close()
        used = sorted(parent.glob(f"{package}-*"), key=lambda path: path.stat().st_mtime)
    except (OSError, LookupError, TypeError):  # not writable; a package without a folder
        return None
    for old in used[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    return folder


def _key(package: str) -> str:
    digest = hashlib.sha256(b"checked" if BOUNDS else b"")
    for name in sorted({ENGINE, package}):
        for file, content in _kernel_sources(name):
            digest.update(f"{name}/{file}\0{len(content)}\0".encode() + content)
    libraries = [f"{name} {version(name)}" for name in ("numba", "llvmlite", "numpy")]
    processor = [binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()]
    digest.update("\0".join([*libraries, platform.python_version(), *processor]).encode())
    return digest.hexdigest()[:16]


def _kernel_sources(package: str) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of each source file of a package that imports numba or this.

    Also of those with the line ``# read by kernels``: they define types of arguments.
    """
    root = Path(inspect.getfile(sys.modules[package])).parent
    for path in sorted(root.rglob("*.py")):
        content = path.read_bytes()
        if _IS_KERNEL_SOURCE.search(content):
            yield path.relative_to(root).as_posix(), content
