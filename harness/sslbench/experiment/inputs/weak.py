"""The weak labels of a problem as codes into its labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sslbench.engine.corpus import Column, Corpus, Vocabulary
from sslbench.engine.dev_labels import unseen
from sslbench.engine.errors import UserError
from sslbench.engine.types import I32, Bool
from sslbench.experiment.data.weak import (
    ABSTAINS,
    PREFIX,
    UNREAD,
    source_names,
    tokens_with,
    unread,
)

if TYPE_CHECKING:
    from sslbench.experiment.inputs.problem import Problem


@dataclass(frozen=True)
class WeakSource:
    """The labels of a weak source for the N tokens of the labeled, then of the unlabeled text.

    codes: int32[N], numbers into the labels of the problem; -1 where the source says nothing, or
        gives a label that the problem lacks (see `with_weak_labels`).
    read: bool[N], False in sentences that the source has not seen.
    """

    name: str
    codes: I32
    read: Bool


def weak_sources(problem: Problem) -> tuple[WeakSource, ...]:
    """Return the weak sources of a problem, see `Problem.weak`.

    UserError for a problem whose labels are those of a codec: weak labels are tags.
    """
    names = source_names(problem.labeled.columns)
    if names and problem.tags is not None:
        hint = "leave out the columns of weak labels"
        raise UserError("weak labels are tags; models of this dataset have other labels", hint=hint)
    parts = [problem.labeled, *problem.unlabeled] if names else []
    return tuple(_source(name, parts, problem.labels) for name in names)


def _source(name: str, parts: Sequence[Corpus], labels: Sequence[str]) -> WeakSource:
    columns = [_column(part, name) for part in parts]
    codes = np.concatenate([_codes(column, labels) for column in columns])
    read = np.concatenate([~tokens_with(column, UNREAD) for column in columns])
    return WeakSource(name, codes, read)


def _column(part: Corpus, name: str) -> Column:
    """The weak labels of a source; it has not read a text without such a column."""
    column = part.columns.get(PREFIX + name)
    return unread(part.n_tokens, Vocabulary()) if column is None else column


def _codes(column: Column, labels: Sequence[str]) -> I32:
    number = {label: code for code, label in enumerate(labels)}
    table = np.array([number.get(each, -1) for each in column.vocabulary.strings], np.int32)
    return table[column.codes] if len(table) else np.empty(0, np.int32)


def with_weak_labels(problem: Problem) -> Problem:
    """Return the problem with the labels of its weak sources among its labels.

    A labeled sample may lack a label that a source gives.
    """
    from sslbench.experiment.inputs.problem import relabeled

    more = {
        column.vocabulary.strings[code]
        for part in (problem.labeled, *problem.unlabeled)
        for column in (part.column(PREFIX + name) for name in source_names(part.columns))
        for code in np.unique(column.codes)
    }
    if more <= {*problem.labels, ABSTAINS, UNREAD}:
        return problem
    labels = tuple(sorted({*problem.labels, *more} - {ABSTAINS, UNREAD}))
    dev: Corpus | None = unseen(problem)
    return replace(
        problem,
        labels=labels,
        labeled=relabeled(problem.labeled, labels),
        dev=None if dev is None else relabeled(dev, labels),
    )
