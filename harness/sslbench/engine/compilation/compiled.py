"""The decorators of compiled kernels. Machine code is kept between runs by the content of sources.

numba's own cache knows a function by the path and the content of the one file that it is in. A
second copy of the package compiles everything again, and a change in a function that is inlined
from another file goes unnoticed: the old machine code is used. Here the code of a package is kept
in ``<cache>/kernels/<package>-<key>``. The key is a hash of all kernel sources of the package and
of the engine, and of the versions and the processor that machine code depends on.

``<cache>`` is ``$NUMBA_CACHE_DIR``, ``$SSLBENCH_CACHE`` or the user's cache folder. Where it cannot
be written, or can be written by other users, it is the user's temporary folder, or nothing is kept;
a line on standard error says so. Only functions with these decorators are concerned. A process that
runs code of plugins reads this folder, and writes to another one (`write_instead`).

With ``SSLBENCH_BOUNDSCHECK=1`` every access to an array is checked: IndexError beyond its ends, in
the operations of ``crf.simd.lanes``, too. It is for tests: kernels take several times as long.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, wraps
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import numba
from llvmlite import binding  # type: ignore[import-untyped]

from sslbench.engine.compilation.compile_time import start_clock
from sslbench.engine.compilation.kernel_cache import keep_machine_code
from sslbench.engine.compilation.threads import share_out
from sslbench.engine.files import derived
from sslbench.engine.files.folders import (
    cache_folder,
    others_can_write,
    remove_folders,
    tell_once,
    temporary_folder,
)

P = ParamSpec("P")
R = TypeVar("R")

start_clock()
config: Any = numba.config
#: the packages of the kernels that those of every package may call
ENGINE, ENGINE_OF = "sslbench.engine", "sslbench"
#: of all kernels
OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
#: are accesses to arrays checked?
BOUNDS = os.environ.get("SSLBENCH_BOUNDSCHECK", "") == "1"
KEPT = 5  # folders of one package: the newest
_read_only: list[Path] = []  # folders of machine code, see `write_instead`
_IS_KERNEL_SOURCE = re.compile(
    rb"^\s*(from|import) (numba|sslbench\.engine\.compilation\.compiled)\b|^# read by kernels$",
    re.MULTILINE,
)


def njit(*, cache: bool = False, **options: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Compile a function as ``numba.njit`` does, with the same options."""
    options = {"no_cfunc_wrapper": True, **options}  # for callers in C, of which there are none
    if BOUNDS:
        options = {**options, "boundscheck": True}

    def compiled(function: Callable[P, R]) -> Callable[P, R]:
        kernel: Any = numba.njit(**options)(function)
        folder = package_folder(function.__module__.partition(".")[0]) if cache else None
        if folder is not None and not config.DISABLE_JIT:
            keep_machine_code(kernel, folder, function, repr(sorted(options.items())))
        result: Callable[P, R] = kernel
        return result

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


def parallel_kernel(
    tasks: Callable[..., int],
) -> Callable[[Callable[Concatenate[int, int, P], None]], Callable[P, None]]:
    """As `kernel`, for a function of many tasks, which are shared out among threads.

    Its first two arguments, begin and end, say which tasks to do: those from begin up to end. A
    caller leaves them out.

    Parameters
    ----------
    tasks: their number, of the arguments after begin and end.
    """

    def decorate(function: Callable[Concatenate[int, int, P], None]) -> Callable[P, None]:
        compiled = kernel(function)

        @wraps(function)
        def shared(*arguments: Any) -> None:
            share_out(compiled, tasks(*arguments), *arguments)

        return cast("Callable[P, None]", shared)

    return decorate


def chunks(length: int, size: int) -> int:
    """How many chunks of this size make up the length; the last one may be shorter."""
    return -(-length // size)


@cache
def package_folder(package: str) -> Path | None:
    """Return the folder of a package's machine code, None if there can be none.

    It reads all sources of the package once. package: a top-level one, which is not imported.
    """
    try:
        name = f"{package}-{_key(package)}"
    except (OSError, ImportError, ValueError):  # no source files
        return None
    chosen = _chosen()
    if _read_only:
        return _readable(chosen / name)
    try:
        return _ready(chosen, name)
    except OSError as error:
        problem = f"{chosen}: {error.strerror or error}"
    try:
        folder = _ready(temporary_folder() / "kernels", name)
    except OSError:
        tell_once(f"{problem}; compiled code is not kept (SSLBENCH_CACHE names another folder)")
        return None
    tell_once(f"{problem}; compiled code is in {folder} (SSLBENCH_CACHE names another folder)")
    return folder


def _chosen() -> Path:
    """Return the folder of all machine code."""
    return _read_only[0] if _read_only else Path(config.CACHE_DIR or cache_folder()) / "kernels"


def write_instead(own: Path) -> None:
    """Write machine code to this folder from now on; what other processes wrote is only read.

    numba's cache, which kernels of a plugin may use, is below it, too.
    """
    _read_only[:] = [_chosen(), temporary_folder() / "kernels"]
    for folder in _read_only:
        derived.write_instead(own / "kernels", folder)
    config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"] = str(own / "numba")


def _readable(folder: Path) -> Path:
    """Return the folder, or the one that takes its place if others can write to it."""
    with suppress(OSError):
        if others_can_write(folder) is None:
            return folder
    return _read_only[-1] / folder.name


def _ready(parent: Path, name: str) -> Path:
    """Make the folder of this name, of this user alone; OSError if that is not possible."""
    folder = parent / name
    parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    other = others_can_write(folder)
    if other is not None:
        raise PermissionError(0, f"other users can write to {other}")
    os.utime(folder)  # the time of its last use
    tempfile.TemporaryFile(dir=folder).close()
    package = re.escape(name.rpartition("-")[0])
    remove_folders(parent, re.compile(f"{package}-[0-9a-f]{{16}}"), KEPT)
    return folder


def _key(package: str) -> str:
    digest = hashlib.sha256(b"checked" if BOUNDS else b"")
    for name in sorted({ENGINE, ENGINE if package == ENGINE_OF else package}):
        for file, content in _kernel_sources(name):
            digest.update(f"{name}/{file}\0{len(content)}\0".encode() + content)
    libraries = [f"{name} {version(name)}" for name in ("numba", "llvmlite", "numpy")]
    processor = [binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()]
    asked = [f"{config.CPU_NAME} {config.CPU_FEATURES} {config.ENABLE_AVX} {config.OPT}"]
    parts = [*libraries, platform.python_version(), *processor, *asked]
    digest.update("\0".join(parts).encode())
    return digest.hexdigest()[:16]


def _kernel_sources(package: str) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of each source file of a package that imports numba or this.

    Also of those with the line ``# read by kernels``: they define types of arguments.
    """
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ImportError(f"{package} has no source files")
    root = Path(spec.origin).parent
    files = sorted(root.rglob("*.py")) if spec.submodule_search_locations else [Path(spec.origin)]
    for path in files:
        content = path.read_bytes()
        if _IS_KERNEL_SOURCE.search(content):
            yield path.relative_to(root).as_posix(), content


@kernel
def _nothing() -> None:
    """A kernel that takes no time to compile."""


def prepare() -> None:
    """Fill numba's tables of types and functions now, which the first kernel would do."""
    _nothing()
