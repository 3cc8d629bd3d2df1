"""Machine code of compiled functions in files: checked when read, compiled again when damaged.

numba's own cache has an index and numbered files of machine code per function, both pickles. A
damaged one raises at each call, or crashes, and two processes that compile different signatures of
a function at the same time may give both the same number. Here each signature has a file of its
own, written atomically, with a digest. Its content is a pickle, as in numba's cache: the folder
must be one that nobody else can write to.

The interface of caches is undocumented: it follows `numba.core.caching` of numba 0.68.1.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core import caching, compiler, serialize

from sslbench.engine.compilation.compile_time import nesting
from sslbench.engine.compilation.inner_kernels import KIND
from sslbench.engine.files import derived

FunctionCache: Any = caching.FunctionCache
CompileResult: Any = compiler.CompileResult
dumps: Callable[[object], bytes] = serialize.dumps


class KernelCache(FunctionCache):  # type: ignore[misc]
    """The machine code of one function, as `numba.core.dispatcher` asks for it.

    Parameters
    ----------
    folder: of the machine code of the function's package. Its name has a hash of the sources.
    options: of the compiler, as text.

    Attributes
    ----------
    folder: of all packages.
    """

    def __init__(self, folder: Path, function: Callable[..., Any], options: str) -> None:
        # Not that of the base class, which looks for a folder.
        self._py_func = function
        self.folder = folder.parent
        self._cache_path = str(folder / function.__module__)
        name = "".join(c for c in function.__qualname__ if c not in "<>")
        self._stem = f"{name}-{function.__code__.co_firstlineno}"
        self._origin = f"{folder.name} {function.__module__} {self._stem} {options}"
        self.enable()

    def flush(self) -> None:
        """Forget the machine code of all signatures."""
        for path in Path(self._cache_path).glob(f"{self._stem}.*.nbc"):
            derived.drop(path)

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function; None if it is not there or cannot be used."""
        key = self._key(sig, target_context.codegen())
        path = self._path(key)
        content = derived.find(path, repr(key).encode())
        if not self._enabled or content is None:
            return None
        try:
            known, payload = pickle.loads(content)  # noqa: S301 - in a folder of this user alone
            # An inner kernel has no machine code: it serves kernels that are being compiled.
            usable = payload[0][1] != KIND or nesting() > 0
            if known == key and usable:
                return CompileResult._rebuild(target_context, *payload)
        except Exception:  # of a type that is no longer there, or another version of numba
            derived.drop(path)
        return None

    def _save_overload(self, sig: Any, data: Any) -> None:
        if not self._enabled or data.lifted or data.library.has_dynamic_globals:
            return
        key = self._key(sig, data.codegen)
        derived.keep(self._path(key), repr(key).encode(), dumps((key, data._reduce())))

    def _key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return (super()._index_key(sig, codegen), self._origin)

    def _path(self, key: tuple[Any, ...]) -> Path:
        digest = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        return Path(self._cache_path, f"{self._stem}.{digest}.nbc")
