"""What every family checks: the options it was given, the sizes of what it read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from sslbench.corpus import Corpus
from sslbench.errors import UserError

COPY_AGAIN = "copy or download it again"

Counts = tuple[int, ...]
Options = TypeVar("Options", bound=msgspec.Struct)


def chosen(dataset: str, options: Mapping[str, object], kind: type[Options]) -> Options:
    """The options of a data set as its struct; UserError names the one that does not fit."""
    try:
        return msgspec.convert(dict(options), kind)
    except msgspec.ValidationError as problem:
        raise UserError(f"dataset {dataset}: {problem}", hint=f"sslbench show {dataset}") from None


def check_sizes(
    splits: Mapping[str, Corpus],
    sizes: Mapping[str, tuple[int, int]],
    paths: Mapping[str, Path],
    hint: str = COPY_AGAIN,
) -> None:
    """UserError when a split has not the (sentences, tokens) that it is known to have."""
    found = {split: (splits[split].n_sentences, splits[split].n_tokens) for split in sizes}
    check_counts("(sentences, tokens)", found, sizes, paths, hint)


def check_counts(
    what: str,
    found: Mapping[str, Counts],
    known: Mapping[str, Counts],
    paths: Mapping[str, Path],
    hint: str = COPY_AGAIN,
) -> None:
    """UserError when a part has not the counts that it is known to have; `what` names them."""
    for part, expected in known.items():
        if found[part] != expected:
            message = f"{part} has {what} = {found[part]}, should have {expected}"
            raise UserError(message, file=paths[part], hint=hint)
