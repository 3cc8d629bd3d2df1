"""Names of labels that are numbers, as Hugging Face's files of features say them."""

from __future__ import annotations

import json
from pathlib import Path

from sslbench.engine.errors import UserError

#: files beside the data
_FILES = ("dataset_infos.json", "dataset_info.json", "features.json")


def names_beside(file: Path, key: str) -> list[str]:
    """Return the names of the labels under a key, as a file beside the data says them; or []."""
    for name in _FILES:
        path = file.parent / name
        if path.is_file():
            try:
                return class_names(path.read_bytes(), key)
            except (ValueError, RecursionError):
                raise UserError("is not JSON", file=path) from None
    return []


def class_names(text: bytes, key: str) -> list[str]:
    """Return the first list ``names`` below a key of features in JSON; [] = there is none.

    ValueError for text that is no JSON.
    """
    return _below(json.loads(text), key)


def _below(tree: object, key: str) -> list[str]:
    if isinstance(tree, dict):
        if key in tree and (names := _first_names(tree[key])):
            return names
        return next(filter(None, (_below(value, key) for value in tree.values())), [])
    return []


def _first_names(tree: object) -> list[str]:
    if not isinstance(tree, dict):
        return []
    names = tree.get("names")
    if isinstance(names, dict):  # "0": "O", "1": "B-PER", as cards of datasets write it
        return [str(names[number]) for number in sorted(names, key=int)]
    if isinstance(names, list):
        return list(map(str, names))
    return next(filter(None, map(_first_names, tree.values())), [])
