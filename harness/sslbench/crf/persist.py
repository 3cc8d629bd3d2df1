"""Saved models: one .npz of plain arrays, with a JSON header as bytes.  No pickle, ever."""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import UserError

FORMAT = "sslbench-model"
VERSION = 1
HEADER = "header.json"

Arrays = dict[str, NDArray[Any]]


def write_model(
    path: str | os.PathLike[str], kind: str, arrays: Arrays, facts: dict[str, Any]
) -> None:
    """Write atomically: a crash leaves the old file or the new one, never half of one.

    kind: which reader understands the arrays.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    header = {"format": FORMAT, "version": VERSION, "kind": kind, "facts": facts}
    encoded = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".saving-", delete=False) as file:
        try:
            np.savez(file, **{HEADER: encoded}, **arrays)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            os.unlink(file.name)
            raise
    os.replace(file.name, target)


def read_model(path: str | os.PathLike[str]) -> tuple[str, Arrays, dict[str, Any]]:
    """(kind, arrays, facts); UserError when the file is no saved model of this version."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            header = json.loads(bytes(archive[HEADER]))
            arrays = {name: archive[name] for name in archive.files if name != HEADER}
    except FileNotFoundError:
        raise UserError("there is no such file", file=path) from None
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise UserError("this is not a saved sslbench model", file=path) from error
    if header.get("format") != FORMAT or header.get("version") != VERSION:
        raise UserError(
            f"model of format version {header.get('version')}; this program reads {VERSION}",
            file=path, hint="train it again",
        )  # fmt: skip
    return header["kind"], arrays, header["facts"]
