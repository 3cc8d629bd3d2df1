"""Structural correspondence learning: `aso_semi` with words that two kinds of text share.

Blitzer et al. (2006), for labeled sentences of one kind of text and unlabeled ones of another. The
words to predict, *pivots*, are frequent in both; their predictors are of both texts. Attributes
that predict the same pivots have a similar part in Theta, so that a weight learned for attributes
of the labeled text is that of attributes that it does not have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Annotated

import numpy as np

from sslbench import Count, Problem, doc
from sslbench.engine.corpus import Corpus
from sslbench_methods.aso_semi.method import AsoCRF, AsoSemi
from sslbench_methods.aso_semi.subspace import Subspace

PivotCount = Annotated[Count, doc("occurrences of a pivot in either text, at least")]


class PivotSubspace(Subspace):
    """The subspace of predictors of pivots."""

    prefix = "scl"


class Correspondence(AsoSemi):
    """The subspace of predictors of words that are frequent in both texts."""

    columns = PivotSubspace

    class Params(AsoSemi.Params, frozen=True, forbid_unknown_fields=True, kw_only=True):
        """Those of the auxiliary problems, and which words are pivots."""

        pivot_count: PivotCount = 2

    def text(self, problem: Problem, params: AsoSemi.Params) -> list[Corpus]:
        """Return the labeled sentences without their labels, and the unlabeled text."""
        unlabeled = super().text(problem, params)
        if not unlabeled:
            return []
        labeled = problem.labeled
        columns = {name: labeled.column(name) for name in unlabeled[0].columns}
        return [Corpus(columns, labeled.offsets), *unlabeled]

    def words(self, problem: Problem, params: AsoSemi.Params) -> list[str]:
        """Return the pivots: by their relative frequency in the text where they are rarer."""
        assert isinstance(params, Correspondence.Params)
        texts: tuple[Iterable[Corpus], ...] = [problem.labeled], problem.unlabeled
        counts = [occurrences(text, params.aso_column) for text in texts]
        shared = counts[0].keys() & counts[1].keys()
        totals = [max(1, each.total()) for each in counts]
        often = [
            word for word in shared if min(each[word] for each in counts) >= params.pivot_count
        ]
        share = {
            word: min(each[word] / total for each, total in zip(counts, totals, strict=True))
            for word in often
        }
        return sorted(often, key=lambda word: (-share[word], word))[: params.aso_words]


def occurrences(text: Iterable[Corpus], column: str) -> Counter[str]:
    """Return how often each value of a column occurs."""
    total: Counter[str] = Counter()
    for part in text:
        values = part.column(column)
        strings, counts = values.vocabulary.strings, np.bincount(values.codes)
        total.update({strings[code]: int(counts[code]) for code in np.flatnonzero(counts)})
    return total


class CorrespondenceCRF(AsoCRF):
    """A supervised CRF that reads the columns."""

    name = "structural_correspondence"
    learner = Correspondence

    class Params(AsoCRF.Params, frozen=True, kw_only=True):
        """Those of the training and of the auxiliary problems, and which words are pivots."""

        pivot_count: PivotCount = 2
