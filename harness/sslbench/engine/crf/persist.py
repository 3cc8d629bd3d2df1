"""Saved models: one .npz file of plain arrays with a JSON header as bytes; never a pickle."""

from __future__ import annotations

import json
import os
import stat
import zipfile
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from sslbench.engine.checked import Saved
from sslbench.engine.errors import UserError
from sslbench.engine.files.atomic import replacing
from sslbench.engine.types import Arrays

FORMAT = "sslbench-model"
VERSION = 2
#: version 1 has the metadata under the name "facts"
METADATA = {1: "facts", VERSION: "metadata"}
HEADER = "header.json"


class SavedModel(ABC):
    """What can be written to one file.

    kind: name of the method whose ``restore(arrays, metadata)`` reads it.
    """

    kind: str

    @abstractmethod
    def arrays(self) -> Saved:
        """Return arrays, and JSON-able metadata, that the model is restored from."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file (npz and JSON, no pickle)."""
        write_model(path, self.kind, *self.arrays())


def write_model(
    path: str | os.PathLike[str], kind: str, arrays: Arrays, metadata: dict[str, Any]
) -> None:
    """Write a file atomically: after a crash it is the old one or the new one.

    kind: name of the reader that understands the arrays; metadata: JSON-able.
    """
    header = {
        "format": FORMAT,
        "version": VERSION,
        "kind": kind,
        METADATA[VERSION]: metadata,
        "arrays": list(arrays),
    }
    encoded = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with replacing(path) as file:
        np.savez(file, **{HEADER: encoded}, **arrays)  # type: ignore[arg-type]


def add_facts(path: str | os.PathLike[str], metadata: dict[str, Any]) -> None:
    """Add JSON-able metadata of the training, such as its dataset, to a saved model."""
    kind, arrays, present = read_model(path)
    write_model(path, kind, arrays, {**present, **metadata})


def read_model(path: str | os.PathLike[str]) -> tuple[str, Arrays, dict[str, Any]]:
    """(kind, arrays, metadata) of a saved model.

    Raises UserError if the file is none, or has a format version that is not in `METADATA`.
    """
    try:
        refuse_packed(path)
        with np.load(path, allow_pickle=False) as archive:
            header = json.loads(bytes(archive[HEADER]))
            if header["format"] != FORMAT:
                raise ValueError(header["format"])
            if header["version"] not in METADATA:
                raise UserError(
                    f"model of format version {header['version']};"
                    f" this program reads {VERSION} and older",
                    file=path,
                    hint="train it again",
                )
            kind, metadata = str(header["kind"]), dict(header[METADATA[header["version"]]])
            return kind, {name: archive[name] for name in header["arrays"]}, metadata
    except UserError:
        raise
    except FileNotFoundError:
        raise UserError("there is no such file", file=path) from None
    except Exception as error:  # zip, npy and JSON parsers raise anything on a damaged file
        raise UserError("this is not a saved sslbench model", file=path) from error


def refuse_packed(path: str | os.PathLike[str]) -> None:
    """ValueError for compressed or overlapping members, which `write_model` never writes.

    Without them the arrays together are no larger than the file, whatever its header says.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):  # a device may have no end
        raise ValueError("no regular file")
    with zipfile.ZipFile(path) as archive:
        if sum(member.file_size for member in archive.infolist()) > os.path.getsize(path):
            raise ValueError("members overlap")
        for member in archive.infolist():
            if member.compress_type != zipfile.ZIP_STORED:
                raise ValueError(f"{member.filename} is compressed")
