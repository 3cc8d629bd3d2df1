"""Theta, the embedded hidden Markov models, and its EM step on unlabeled text.

A model is a Markov chain of the labels and what it emits: that of a state template has emissions
b(y, o), that of an edge template emits from the transition, b(y', y, o); a bag emits each of its
words.  The constant template and the bare transition are both the chain alone.

    p_j(x, y; theta_j) = prod_s a_j(y_{s-1}, y_s) b_j(y_s, x_js)

Source: Suzuki & Isozaki (2008), section 2.2; docs/specs/jess_cm.md, sections 3.2, 4.3 and 4.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from sslbench.engine.checked import Saved, joined, part_of
from sslbench.engine.corpus import Corpus, CorpusShards
from sslbench.engine.corpus.units import TextPass, TextUnits
from sslbench.engine.crf import ChainCRF
from sslbench.engine.crf.encoded_corpus import VARYING_CELLS
from sslbench.engine.spread import over
from sslbench.engine.types import F64, Arrays
from sslbench_methods.jess_cm import kernels
from sslbench_methods.jess_cm.counts import RowCounts, SymbolCounts
from sslbench_methods.jess_cm.factors import BoundModels
from sslbench_methods.jess_cm.tables import ModelTables

#: the logarithm of a zero probability stops here, so that one unseen event cannot forbid a label
LOG_FLOOR = float(np.log(1e-12))
#: tokens per piece of text in memory at a time
PIECE = 65_536

MStep = Literal["plain", "lambda"]


class EmbeddedModels(ModelTables):
    """J models: their factor features, and their EM step."""

    def bind(self, corpus: Corpus) -> BoundModels:
        """Return these models as factor features of a corpus."""
        text = self.streams.encode(corpus)
        rows = self.state_rows.of(text), self.arc_rows.of(text)
        return BoundModels(self, *rows, self.state, self.arc)

    def expected_counts(
        self,
        crf: ChainCRF,
        text: Iterable[Corpus] | TextUnits,
        *,
        batch_tokens: int | None = None,
        piece_tokens: int = PIECE,
        begin: int = 0,
        after_unit: Callable[[int], None] = lambda units: None,
    ) -> SymbolCounts:
        """Return posterior counts under a CRF that has these factor features: the E-step.

        The counts of each unit of the text are added up in order.  They are also `self.counts`.
        begin: units that these have already.  after_unit: called with the number of units done.
        """
        if begin == 0:
            self.forget_counts()
        work = CountPass(crf, self, piece_tokens, batch_tokens)
        done = begin
        for counts in over(work, TextUnits.of(text), begin):
            if done == 0:
                self.counts = counts
            else:
                self.counts.add(counts)
            del counts  # before those of the next unit
            done += 1
            after_unit(done)
        return self.counts

    def update(self, counts: SymbolCounts, eta: float, weights: F64, m_step: MStep) -> float:
        """Make one M-step; return the mean L1 change of a row (docs/specs/jess_cm.md, section 4.5).

        eta: Dirichlet pseudo-count; theta_k = (c_k + eta) / (sum c + K eta), with c scaled by the
        model's weight for m_step "lambda".  A row without any mass keeps its value.
        """
        L = self.n_labels
        factor = weights if m_step == "lambda" else np.ones(self.n_models)
        moved = 0.0
        for j in range(self.n_models):
            old = np.exp(self.chain[j]).reshape(L + 1, L)
            new = _smoothed(factor[j] * counts.chain.reshape(L + 1, L), eta, old)
            self.chain[j] = _log(new).reshape(-1)
            moved += float(np.abs(new - old).sum())
        moved += self.renew("state", counts.state, factor, eta)
        moved += self.renew("arc", counts.arc, factor, eta)
        self.uniform = False
        # emission rows of the constant template are 1 and never move, nor do those of the bare arc
        emissions = sum((L + 1) * L if t.edge else L for t in self.templates)
        return moved / (self.n_models * (L + 1) + emissions + self.bare_chain * (L + 1) * L)

    def renew(
        self, kind: Literal["state", "arc"], counts: RowCounts, factors: F64, eta: float
    ) -> float:
        """Renew emissions b from counts; return the sum of the absolute changes.

        Per model j and column: b = (factors[j] c + eta) / (factors[j] sum c + V eta), its logarithm
        at least LOG_FLOOR.  A column without any mass keeps its values.
        """
        rows = self.state_rows if kind == "state" else self.arc_rows
        values, moved = self.tables[kind], 0.0
        for j, (lo, hi) in zip(rows.tables, pairwise(rows.borders.tolist()), strict=True):
            sums = np.empty((-(-(hi - lo) // kernels.ROWS), values.shape[1]))
            kernels.column_sums(counts, lo, hi, sums)
            total = factors[j] * sums.sum(axis=0) + (hi - lo) * eta
            change = np.empty(len(sums))
            scaling = float(factors[j]), eta, LOG_FLOOR
            kernels.renew_rows(counts, lo, hi, scaling, total, values, change)
            moved += float(change.sum())
        return moved


def _smoothed(counts: F64, eta: float, old: F64) -> F64:
    """Return Dirichlet-smoothed rows of transition probabilities."""
    mass = counts + eta
    total = mass.sum(axis=1, keepdims=True)
    return np.where(total > 0.0, mass / np.where(total > 0.0, total, 1.0), old)


def _log(theta: F64) -> F64:
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(theta), LOG_FLOOR)


@dataclass(frozen=True)
class CountPass(TextPass[SymbolCounts]):
    """The expected counts of units of text, see `EmbeddedModels.expected_counts`.

    A unit is bound piece by piece: memory does not grow with it.
    """

    crf: ChainCRF
    models: EmbeddedModels
    piece_tokens: int = PIECE
    batch_tokens: int | None = None

    def run(self, unit: Corpus) -> SymbolCounts:
        crf, models, counts = self.crf, self.models, self.models.no_counts()
        batch_tokens = self.batch_tokens or max(1, VARYING_CELLS // models.n_labels**2)
        for piece in CorpusShards(unit, self.piece_tokens):
            bound = models.bind(piece)
            data = crf.encode(piece, bound)
            posteriors = crf.each(
                lambda potentials: potentials.posterior(), data, batch_tokens=batch_tokens
            )
            for posterior in posteriors:
                bound.count(posterior.batch, posterior.node, posterior.edge, counts)
                counts.total += posterior.log_scale.sum()
        return counts

    def packed(self) -> Saved | None:
        if self.crf.index.dense is not None:
            return None
        arrays, facts = joined(crf=self.crf.arrays(), models=self.models.arrays())
        return arrays, {**facts, "pieces": self.piece_tokens, "batches": self.batch_tokens}

    @classmethod
    def unpacked(cls, arrays: Arrays, facts: dict[str, Any]) -> CountPass:
        crf = ChainCRF.from_arrays(*part_of(arrays, facts, "crf"))
        models = EmbeddedModels.from_arrays(*part_of(arrays, facts, "models"), len(crf.labels))
        return cls(crf, models, facts["pieces"], facts["batches"])

    def pack_result(self, result: SymbolCounts) -> Arrays:
        return result.packed()

    def unpack_result(self, arrays: Arrays) -> SymbolCounts:
        return self.models.no_counts().unpack(arrays)
