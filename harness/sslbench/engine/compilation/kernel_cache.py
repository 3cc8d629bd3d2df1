"""Machine code of compiled functions in files: checked when read, compiled again when damaged.

numba's own cache has an index and numbered files of machine code per function. A damaged file
raises at each call, or crashes, and two processes that compile different signatures of a function
at the same time may give both the same number: one then runs the code of the other. Here each
signature has a file of its own, written atomically, with a digest. Its content is a pickle, as in
numba's cache: the folder must be one that nobody else can write to.

numba has no public interface for this. What is used of `numba.core`, the same from numba 0.61 to
0.68: a dispatcher asks the object in its attribute ``_cache``, which has the methods of
``caching.NullCache``; ``CompileResult._reduce`` and ``_rebuild`` turn a compiled function into what
``serialize.dumps`` can write, and back. Where one of these is missing, functions are compiled by
each process, and a line on standard error says so. No function of numba is replaced.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

from sslbench.engine.files import derived
from sslbench.engine.files.folders import tell_once

_Base: Any
_Result: Any
_dumps: Callable[[object], bytes]
try:
    from numba.core.caching import NullCache as _Base
    from numba.core.compiler import CompileResult as _Result
    from numba.core.serialize import dumps as _dumps

    _KNOWN = hasattr(_Result, "_reduce") and hasattr(_Result, "_rebuild")
except ImportError:
    _Base, _KNOWN = object, False


class KernelCache(_Base):  # type: ignore[misc]
    """The machine code of one function, as its dispatcher asks for it.

    Parameters
    ----------
    folder: of the machine code of the function's package. Its name has a hash of the sources.
    options: of the compiler, as text.
    """

    def __init__(self, folder: Path, function: Callable[..., Any], options: str) -> None:
        self._folder = folder
        name = "".join(c for c in function.__qualname__ if c not in "<>")
        self._stem = f"{name}-{function.__code__.co_firstlineno}"
        self._origin = f"{folder.name} {function.__module__} {self._stem} {options}"
        self._module = folder / function.__module__

    @property
    def cache_path(self) -> str:
        """The folder of the files."""
        return str(self._module)

    def flush(self) -> None:
        """Remove the machine code of all signatures."""
        for path in self._module.glob(f"{self._stem}.*.nbc"):
            derived.drop(path)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled function; None if there is none, or none that can be used."""
        key = self._key(sig)
        path = self._path(key)
        content = derived.find(path, key)
        if content is not None:
            try:
                target_context.refresh()
                stored, payload = pickle.loads(content)  # noqa: S301 - a folder of this user alone
                if stored == sig:
                    return _Result._rebuild(target_context, *payload)
            except Exception:  # of a type that is no longer there
                derived.drop(path)
        tell_once(f"compiling, once: machine code is kept in {self._folder.parent}", "compiling")
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write the machine code of a compiled function."""
        try:
            if not data.library.has_dynamic_globals:  # addresses of this process
                key = self._key(sig)
                derived.keep(self._path(key), key, _dumps((sig, data._reduce())))
        except Exception as error:
            _tell(f"{type(error).__name__}: {error}")

    def _key(self, sig: Any) -> bytes:
        return f"{sig!r} {self._origin}".encode()

    def _path(self, key: bytes) -> Path:
        digest = hashlib.sha256(key).hexdigest()[:16]
        return self._module / f"{self._stem}.{digest}.nbc"


def keep_machine_code(
    dispatcher: Any, folder: Path, function: Callable[..., Any], options: str
) -> None:
    """Give a function's dispatcher a `KernelCache`, unless the function has variables of another.

    Their values would have to be part of the key.
    """
    if function.__closure__ is not None:
        return
    if _KNOWN and hasattr(dispatcher, "_cache"):
        dispatcher._cache = KernelCache(folder, function, options)
    else:
        _tell("it has another interface")


def _tell(problem: str) -> None:
    tell_once(f"numba {numba.__version__}: machine code cannot be kept ({problem})", "kept-code")
