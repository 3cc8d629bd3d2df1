"""Theta, the embedded hidden Markov models, and its EM step on unlabeled text.

A model is a Markov chain of the labels and what it emits: that of a state template has emissions
b(y, o), that of an edge template emits from the transition, b(y', y, o); a bag emits each of its
words.  The constant template and the bare transition are both the chain alone.

    p_j(x, y; theta_j) = prod_s a_j(y_{s-1}, y_s) b_j(y_s, x_js)

Source: Suzuki & Isozaki (2008), section 2.2; docs/specs/jess_cm.md, sections 3.2, 4.3 and 4.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, Self

import numpy as np

from sslbench.engine.checked import Saved, joined, part_of, table
from sslbench.engine.corpus import Corpus, CorpusShards
from sslbench.engine.corpus.units import TextPass, TextUnits
from sslbench.engine.crf import ChainCRF
from sslbench.engine.crf.objective import VARYING_CELLS
from sslbench.engine.features import Streams, SymbolRows, Template
from sslbench.engine.spread import over
from sslbench.engine.types import F64, AnyArray, Arrays
from sslbench_methods.jess_cm import kernels
from sslbench_methods.jess_cm.counts import RowCounts, SymbolCounts
from sslbench_methods.jess_cm.factors import BoundModels

#: the logarithm of a zero probability stops here, so that one unseen event cannot forbid a label
LOG_FLOOR = float(np.log(1e-12))
#: tokens per piece of text in memory at a time
PIECE = 65_536
#: rows of symbols with more occurrences are counted in float64 (see `RowCounts`)
FREQUENT = 4096

MStep = Literal["plain", "lambda"]


@dataclass
class EmbeddedModels:
    """J models over the symbols of templates, uniform at first: a = 1/L, b = 1/V.

    All models share the label set as states. Rows of a and (per state or arc) of b sum to one over
    all labels and all symbols, <UNK> included, also under a label transition_mask. The paper counts
    the bare transition [y_{s-1:s}] as a template too (its model equals the constant template's).

    templates: model j < len(templates) belongs to templates[j].
    unknown: 1 = rare and unseen symbols share the symbol <UNK>, row 0 of a table; 0 = they say
        nothing about the label.
    bare_chain: one more model, the chain of the bare transition.
    chain: float64[J, (L+1) L], log a, previous label major, START last.
    state, arc: log b, rows of `state_rows` and `arc_rows`: [R, L] and [R, (L+1) L] of `dtype`,
        which is also that of the counts of rare symbols.
    uniform: whether no EM step has been made.
    """

    templates: tuple[Template, ...]
    streams: Streams
    n_labels: int
    dtype: Any = np.float32
    unknown: int = 1
    bare_chain: bool = True
    uniform: bool = field(init=False, default=True)
    chain: F64 = field(init=False)
    state: AnyArray = field(init=False)
    arc: AnyArray = field(init=False)

    def __post_init__(self) -> None:
        L = self.n_labels
        self.chain = np.full((self.n_models, (L + 1) * L), -np.log(L))
        self.state = self._uniform(self.state_rows, L)
        self.arc = self._uniform(self.arc_rows, (L + 1) * L)

    @classmethod
    def build(
        cls,
        templates: Iterable[Template],
        n_labels: int,
        text: Iterable[Corpus] | TextUnits,
        min_count: int,
        **options: Any,
    ) -> Self:
        """Collect the symbols of unlabeled text; those rarer than min_count are unknown."""
        templates = tuple(templates)
        return cls(templates, Streams.fit(templates, text, min_count), n_labels, **options)

    @property
    def n_models(self) -> int:
        """J."""
        return len(self.templates) + self.bare_chain

    @property
    def tables(self) -> Arrays:
        """All that is estimated, by name."""
        return {"chain": self.chain, "state": self.state, "arc": self.arc}

    @cached_property
    def state_rows(self) -> SymbolRows:
        """Rows of the emissions of state templates."""
        picked = [(j, t) for j, t in enumerate(self.templates) if t.atoms and not t.edge]
        return SymbolRows.build(self.streams, picked, self.unknown)

    @cached_property
    def arc_rows(self) -> SymbolRows:
        """Rows of the emissions of edge templates."""
        picked = [(j, t) for j, t in enumerate(self.templates) if t.edge]
        return SymbolRows.build(self.streams, picked, self.unknown)

    def _uniform(self, rows: SymbolRows, width: int) -> AnyArray:
        values = np.empty((int(rows.borders[-1]), width), self.dtype)
        for lo, hi in pairwise(rows.borders):
            values[lo:hi] = -np.log(max(hi - lo, 1))
        return values

    @cached_property
    def counts(self) -> SymbolCounts:
        """Counts of the E-step in progress, or of the last one."""
        return self.no_counts()

    def no_counts(self) -> SymbolCounts:
        """Return counts of zero."""
        L, width = self.n_labels, (self.n_labels + 1) * self.n_labels
        state, arc = self._no_counts(self.state_rows, L), self._no_counts(self.arc_rows, width)
        return SymbolCounts(np.zeros(1), np.zeros(width), state, arc)

    def forget_counts(self) -> None:
        """Free `counts`, which are as large as the tables: a training needs the memory."""
        self.__dict__.pop("counts", None)

    def _no_counts(self, rows: SymbolRows, width: int) -> RowCounts:
        frequent = rows.frequent(self.streams, FREQUENT)
        place = np.full(int(rows.borders[-1]), -1, np.int32)
        place[frequent] = np.arange(len(frequent))
        rare = np.zeros((len(place), width), self.dtype)
        return RowCounts(place, rare, np.zeros((len(frequent), width)))

    def bind(self, corpus: Corpus) -> BoundModels:
        """Return these models as factor features of a corpus."""
        text = self.streams.encode(corpus)
        return BoundModels(self, self.state_rows.of(text), self.arc_rows.of(text))

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

    def arrays(self) -> Saved:
        """Return arrays and JSON-able facts that `from_arrays` restores the models from."""
        arrays, facts = joined(streams=self.streams.arrays())
        return arrays | self.tables, facts | {
            "templates": [str(t) for t in self.templates],
            "unknown": self.unknown,
            "bare_chain": self.bare_chain,
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays, facts: dict[str, Any], n_labels: int) -> Self:
        """Restore the models; ValueError when arrays and facts do not fit together."""
        dtype, unknown = arrays["state"].dtype, facts["unknown"]
        if dtype not in (np.float32, np.float64) or unknown not in (0, 1):
            raise ValueError(f"tables of {dtype}, unknown = {unknown}")
        streams = Streams.from_arrays(*part_of(arrays, facts, "streams"))
        templates = tuple(Template.parse(t) for t in facts["templates"])
        models = cls(templates, streams, n_labels, dtype, unknown, facts["bare_chain"])
        for name, uniform in models.tables.items():
            values = table(arrays, name, uniform.dtype, uniform.shape)
            if np.isnan(values).any():
                raise ValueError(f"table {name} has entries that are not numbers")
            setattr(models, name, values)
        return models


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
