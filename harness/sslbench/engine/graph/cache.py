"""Arrays in files named by the hash of everything that they depend on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import numpy as np

from sslbench.engine.files import derived
from sslbench.engine.files.atomic import replacing
from sslbench.engine.types import AnyArray

CachedArrays: TypeAlias = Mapping[str, AnyArray]


def cached(
    folder: Path | None, kind: str, key: Mapping[str, object], make: Callable[[], CachedArrays]
) -> CachedArrays:
    """The arrays that `make` returns, read from the folder if an earlier call stored them there.

    The file is an uncompressed npz, `folder/kind/hash.npz`, written atomically, with a digest of
    the key and the arrays. A file that is damaged, or has the content of another key, is replaced;
    one that cannot be written is not an error, since a cache must not stop a run.

    Parameters
    ----------
    folder: None = call `make` and store nothing.
    key: everything that the content depends on, JSON-able.
    """
    if folder is None:
        return make()
    text = json.dumps(key, sort_keys=True, ensure_ascii=True)
    path = folder / kind / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.npz"
    places = derived.places(path)
    stored = next((found for each in places if (found := _read(each, text)) is not None), None)
    if stored is not None:
        return stored
    arrays = make()
    with suppress(OSError), replacing(places[-1]) as file:
        np.savez(file, **{_DIGEST: _digest(text, arrays)}, **arrays)  # type: ignore[arg-type]
    return arrays


_DIGEST = "digest of key and arrays"


def _read(path: Path, key: str) -> CachedArrays | None:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        if np.array_equal(arrays.pop(_DIGEST), _digest(key, arrays)):
            return arrays
    except FileNotFoundError:
        return None
    except Exception:  # a damaged zip file may raise nearly anything
        pass
    derived.drop(path)
    return None


def _digest(key: str, arrays: CachedArrays) -> AnyArray:
    digest = hashlib.sha256(key.encode())
    for name in sorted(arrays):
        array = np.asarray(arrays[name], order="C")
        digest.update(f"\0{name} {array.dtype.str} {array.shape}\0".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return np.frombuffer(digest.digest(), np.uint8)
