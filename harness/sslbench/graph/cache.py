"""Arrays kept under the hash of all that they depend on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

from sslbench.atomic import replacing
from sslbench.types import AnyArray

Arrays = Mapping[str, AnyArray]


def cached(
    folder: Path | None, kind: str, key: Mapping[str, object], make: Callable[[], Arrays]
) -> Arrays:
    """The arrays that `make` gives, read back if they are in the folder, else made and put there.

    The file is an uncompressed npz, `folder/kind/hash.npz`, written atomically. One that cannot be
    read is made anew, one that cannot be written is no error: a cache must not stop a run.

    Parameters
    ----------
    folder: None keeps nothing.
    key: everything that the content depends on, JSON-able.
    """
    if folder is None:
        return make()
    text = json.dumps(key, sort_keys=True, ensure_ascii=True)
    path = folder / kind / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.npz"
    found = _read(path)
    if found is not None:
        return found
    arrays = make()
    with suppress(OSError), replacing(path) as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
    return arrays


def _read(path: Path) -> Arrays | None:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except Exception:  # a damaged zip file may raise nearly anything
        return None
