"""Labels as the user gives them: texts, numbers, truth values, members of an enumeration."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sslbench.engine.corpus.tokens import listed
from sslbench.engine.errors import UserError

#: what scikit-learn gives to a sample without a label
UNLABELED = -1


@dataclass(frozen=True)
class LabelNames:
    """The text of each label.

    given: the label that the user gave, by its text.
    """

    given: dict[str, Any]

    @classmethod
    def of(cls, rows: Sequence[Sequence[Any] | None], like: LabelNames | None = None) -> LabelNames:
        """Return the names of all labels; None = an unlabeled sentence.

        like: those of a training, with labels of the same kind.

        UserError, with the numbers of sentence and token from 1, for a missing label, one that has
        no fixed value, and labels of several kinds.
        """
        given: dict[str, Any] = {}
        known = list(like.given.values())[:1] if like else []
        kinds = {_kind(label, ""): f"in training {label!r}" for label in known}
        for number, row in enumerate(rows, 1):
            for place, label in enumerate(row or (), 1):
                if type(label) is str and label in given:
                    continue
                where = f"sentence {number}, token {place}"
                kind = _kind(label, where)
                kinds.setdefault(kind, f"{where}: {label!r}")
                given.setdefault(_text(label), label)
        if len(kinds) > 1:
            raise UserError(f"labels of several kinds: {'; '.join(kinds.values())}")
        return cls(given)

    @property
    def are_texts(self) -> bool:
        """Whether all labels are texts."""
        return all(isinstance(label, str) for label in self.given.values())

    def texts(self, row: Iterable[Any]) -> list[str]:
        """Return the texts of labels, also of new ones."""
        return list(map(_text, row))

    def labels(self, texts: Iterable[str]) -> list[Any]:
        """Return the labels of texts; one that was never given is its text."""
        return [self.given.get(text, text) for text in texts]


def label_rows(y: Any, lengths: Sequence[int]) -> list[list[Any] | None]:
    """Return the labels of each sentence; None for a sentence without labels.

    y: for each sentence of X its labels, or None, or -1; its labels may also all be None or -1.
    lengths: numbers of tokens of the sentences of X.

    UserError, with the number of the sentence from 1, where the lengths differ, and for a sentence
    with labels of some tokens only.
    """
    if y is None:
        raise UserError("y is None: no sentence has labels")
    rows = listed(y, "y")
    if len(rows) != len(lengths):
        numbers = f"{len(lengths)} sentences, {len(rows)} rows of labels"
        raise UserError(f"X and y differ: {numbers}")
    return [
        None if _is_missing(row) else _row(listed(row, f"y of sentence {n}"), n, length)
        for n, (row, length) in enumerate(zip(rows, lengths, strict=True), 1)
    ]


def _row(row: list[Any], number: int, length: int) -> list[Any] | None:
    if len(row) != length:
        raise UserError(f"X and y differ: sentence {number} has {length} tokens, {len(row)} labels")
    missing = [place for place, label in enumerate(row, 1) if _is_missing(label)]
    if not missing:
        return row
    if len(missing) < length:
        hint = "label all tokens of a sentence, or none; None and -1 mean that there is no label"
        raise UserError(f"sentence {number}, token {missing[0]} has no label", hint=hint)
    return None


def _is_missing(label: Any) -> bool:
    """Whether a label is None, NaN or the number -1."""
    if type(label) is str:
        return False
    if isinstance(label, float | np.floating):
        return math.isnan(label) or label == UNLABELED
    whole = isinstance(label, int | np.integer) and not isinstance(label, bool)
    return label is None or type(label).__name__ == "NAType" or (whole and label == UNLABELED)


def _kind(label: Any, where: str) -> type:
    """Return the type of a label, that of Python for those of numpy."""
    if isinstance(label, bytes):
        raise UserError(f"{where}: {label!r} is bytes", hint="decode it to a text")
    if isinstance(label, float | np.floating) and not math.isfinite(label):
        raise UserError(f"{where}: {label!r} is no label")
    try:
        hash(label)
    except TypeError:
        raise UserError(f"{where}: a {type(label).__name__} is no label") from None
    for kind, others in ((str, str), (bool, bool | np.bool_), (float, float | np.floating)):
        if isinstance(label, others):
            return kind
    return int if isinstance(label, int | np.integer) else type(label)


def _text(label: Any) -> str:
    return str.__str__(label) if isinstance(label, str) else str(label)
