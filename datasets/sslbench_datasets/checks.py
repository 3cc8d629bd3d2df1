"""What every family checks: the options it was given, the sizes of what it read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from sslbench.corpus import Corpus
from sslbench.errors import UserError

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
    hint: str = "copy or download it again",
) -> None:
    """UserError when a split has not the (sentences, tokens) that it is known to have."""
    for split, expected in sizes.items():
        found = (splits[split].n_sentences, splits[split].n_tokens)
        if found != expected:
            message = f"{split} has (sentences, tokens) = {found}, should have {expected}"
            raise UserError(message, file=paths[split], hint=hint)
