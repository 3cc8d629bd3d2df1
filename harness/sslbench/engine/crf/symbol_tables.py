"""Tables of log-probabilities by label and symbol: factor features with one weight per table.

A table is a Markov chain of the labels and what it emits.  That of a state template has emissions
b(y, o), that of an edge template emits from the transition, b(y', y, o); a bag emits each of its
words.  The constant template and the bare transition are both the chain alone.
Source: docs/specs/jess_cm.md, sections 3.2 and 4.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, Self

import numpy as np

from sslbench.engine.checked import Saved, check_array, joined, part_of, table
from sslbench.engine.compilation.threads import number_of_threads
from sslbench.engine.corpus import Corpus, CorpusShards
from sslbench.engine.corpus.units import TextPass, TextUnits
from sslbench.engine.crf import symbol_kernels as kernels
from sslbench.engine.crf.data import Batch
from sslbench.engine.crf.model import ChainCRF
from sslbench.engine.crf.objective import VARYING_CELLS
from sslbench.engine.crf.symbol_counts import SymbolCounts
from sslbench.engine.crf.symbol_kernels import ROWS, RowCounts
from sslbench.engine.features import Streams, SymbolRows, Template
from sslbench.engine.spread import over
from sslbench.engine.types import F64, I32, AnyArray, Arrays, Bool

#: tokens per piece of text in memory at a time
PIECE = 65_536
#: rows of symbols with more occurrences are counted in float64 (see `RowCounts`)
FREQUENT = 4096


@dataclass
class SymbolTables:
    """J tables over the symbols of templates, uniform at first: a = 1/L, b = 1/V.

    templates: table j < len(templates) belongs to templates[j].
    unknown: 1 = rare and unseen symbols share the symbol <UNK>, row 0 of a table; 0 = they say
        nothing about the label.
    bare_chain: one more table, the chain of the bare transition.
    chain: float64[J, (L+1) L], log a, previous label major, START last.
    state, arc: log b, rows of `state_rows` and `arc_rows`: [R, L] and [R, (L+1) L] of `dtype`,
        which is also that of the counts of rare symbols.
    """

    templates: tuple[Template, ...]
    streams: Streams
    n_labels: int
    dtype: Any = np.float32
    unknown: int = 1
    bare_chain: bool = True
    chain: F64 = field(init=False)
    state: AnyArray = field(init=False)
    arc: AnyArray = field(init=False)

    def __post_init__(self) -> None:
        L = self.n_labels
        self.chain = np.full((self.n_tables, (L + 1) * L), -np.log(L))
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
    def n_tables(self) -> int:
        """J."""
        return len(self.templates) + self.bare_chain

    @property
    def tables(self) -> Arrays:
        """All that is estimated, by name."""
        return {"chain": self.chain, "state": self.state, "arc": self.arc}

    @cached_property
    def state_rows(self) -> SymbolRows:
        picked = [(j, t) for j, t in enumerate(self.templates) if t.atoms and not t.edge]
        return SymbolRows.build(self.streams, picked, self.unknown)

    @cached_property
    def arc_rows(self) -> SymbolRows:
        picked = [(j, t) for j, t in enumerate(self.templates) if t.edge]
        return SymbolRows.build(self.streams, picked, self.unknown)

    def _uniform(self, rows: SymbolRows, width: int) -> AnyArray:
        table = np.empty((int(rows.borders[-1]), width), self.dtype)
        for lo, hi in pairwise(rows.borders):
            table[lo:hi] = -np.log(max(hi - lo, 1))
        return table

    @cached_property
    def counts(self) -> SymbolCounts:
        """Of the pass in progress, or the last one."""
        return self.no_counts()

    def no_counts(self) -> SymbolCounts:
        """Zeros."""
        L, width = self.n_labels, (self.n_labels + 1) * self.n_labels
        state, arc = self._no_counts(self.state_rows, L), self._no_counts(self.arc_rows, width)
        return SymbolCounts(np.zeros(width), state, arc)

    def forget_counts(self) -> None:
        """They are as large as the tables: between two passes the memory is for a training."""
        self.__dict__.pop("counts", None)

    def _no_counts(self, rows: SymbolRows, width: int) -> RowCounts:
        frequent = rows.frequent(self.streams, FREQUENT)
        place = np.full(int(rows.borders[-1]), -1, np.int32)
        place[frequent] = np.arange(len(frequent))
        rare = np.zeros((len(place), width), self.dtype)
        return RowCounts(place, rare, np.zeros((len(frequent), width)))

    def bind(self, corpus: Corpus) -> BoundTables:
        """These tables as factor features of a corpus."""
        text = self.streams.encode(corpus)
        return BoundTables(self, self.state_rows.of(text), self.arc_rows.of(text))

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
        """Posterior counts under a CRF that has these factor features: the E-step of EM.

        The counts of each unit of the text are added up in order.  They are also `self.counts`.
        begin: units that these have already.  after_unit: called with the number of units done.
        """
        if begin == 0:
            self.forget_counts()
        work = CountPass(crf, self, piece_tokens, batch_tokens)
        done = begin
        for found in over(work, TextUnits.of(text), begin):
            if done == 0:
                self.counts = found
            else:
                self.counts.add(found)
            del found  # before those of the next unit
            done += 1
            after_unit(done)
        return self.counts

    def renew(
        self,
        kind: Literal["state", "arc"],
        counts: RowCounts,
        factors: F64,
        eta: float,
        floor: float,
    ) -> float:
        """Dirichlet-smoothed emissions from counts; returns the sum of the absolute changes.

        Per table j and column: b = (factors[j] c + eta) / (factors[j] sum c + V eta), its logarithm
        at least floor.  A column without any mass keeps its values.
        """
        rows, table = (
            (self.state_rows, self.state) if kind == "state" else (self.arc_rows, self.arc)
        )
        moved = 0.0
        for j, (lo, hi) in zip(rows.tables, pairwise(rows.borders.tolist()), strict=True):
            sums = np.empty((-(-(hi - lo) // ROWS), table.shape[1]))
            kernels.column_sums(counts, lo, hi, sums)
            total = factors[j] * sums.sum(axis=0) + (hi - lo) * eta
            change = np.empty(len(sums))
            scaling = float(factors[j]), eta, floor
            kernels.renew_rows(counts, lo, hi, scaling, total, table, change)
            moved += float(change.sum())
        return moved

    def arrays(self) -> Saved:
        """Arrays and JSON-able facts that `from_arrays` restores the tables from."""
        arrays, facts = joined(streams=self.streams.arrays())
        return arrays | self.tables, facts | {
            "templates": [str(t) for t in self.templates],
            "unknown": self.unknown,
            "bare_chain": self.bare_chain,
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays, facts: dict[str, Any], n_labels: int) -> Self:
        """Restore; ValueError when arrays and facts do not fit together."""
        dtype, unknown = arrays["state"].dtype, facts["unknown"]
        if dtype not in (np.float32, np.float64) or unknown not in (0, 1):
            raise ValueError(f"tables of {dtype}, unknown = {unknown}")
        streams = Streams.from_arrays(*part_of(arrays, facts, "streams"))
        templates = tuple(Template.parse(t) for t in facts["templates"])
        tables = cls(templates, streams, n_labels, dtype, unknown, facts["bare_chain"])
        for name in ("chain", "state", "arc"):
            expected = getattr(tables, name)
            found = table(arrays, name, expected.dtype, expected.shape)
            if np.isnan(found).any():
                raise ValueError(f"table {name} holds what is no number")
            setattr(tables, name, found)
        return tables


@dataclass(frozen=True)
class CountPass(TextPass[SymbolCounts]):
    """The expected counts of units of text, see `SymbolTables.expected_counts`.

    A unit is bound piece by piece: memory does not grow with it.
    """

    crf: ChainCRF
    tables: SymbolTables
    piece_tokens: int = PIECE
    batch_tokens: int | None = None
    name = "counts"

    def run(self, unit: Corpus) -> SymbolCounts:
        crf, tables, counts = self.crf, self.tables, self.tables.no_counts()
        batch_tokens = self.batch_tokens or max(1, VARYING_CELLS // tables.n_labels**2)
        for piece in CorpusShards(unit, self.piece_tokens):
            bound = tables.bind(piece)
            data = crf.encode(piece, bound)
            posteriors = crf.each(
                lambda potentials: potentials.posterior(), data, batch_tokens=batch_tokens
            )
            for posterior in posteriors:
                bound.count(posterior.batch, posterior.node, posterior.edge, counts)
                counts.log_z += float(posterior.log_scale.sum())
        return counts

    def packed(self) -> Saved | None:
        if self.crf.index.dense is not None:
            return None
        arrays, facts = joined(crf=self.crf.arrays(), tables=self.tables.arrays())
        return arrays, {**facts, "pieces": self.piece_tokens, "batches": self.batch_tokens}

    @classmethod
    def unpacked(cls, arrays: Arrays, facts: dict[str, Any]) -> CountPass:
        crf = ChainCRF.from_arrays(*part_of(arrays, facts, "crf"))
        tables = SymbolTables.from_arrays(*part_of(arrays, facts, "tables"), len(crf.labels))
        return cls(crf, tables, facts["pieces"], facts["batches"])

    def pack_result(self, result: SymbolCounts) -> Arrays:
        return result.packed()

    def unpack_result(self, arrays: Arrays) -> SymbolCounts:
        return self.tables.no_counts().unpack(arrays)


@dataclass(frozen=True)
class BoundTables:
    """Tables on one corpus: `sslbench.engine.crf.FactorFeatures` with one weight per table.

    state, arc: int32[N, G], the row of every slot at every token, -1 = none.
    """

    tables: SymbolTables
    state: I32
    arc: I32

    def __post_init__(self) -> None:
        t = self.tables
        rows = (("state", self.state, t.state, t.state_rows), ("arc", self.arc, t.arc, t.arc_rows))
        for name, found, values, slots in rows:
            shape = len(self.state), len(slots.owner)
            check_array(found, f"{name} rows", np.int32, shape, (-1, len(values)))

    def _check(self, batch: Batch, node: F64) -> None:
        """ValueError for a batch of another corpus or other labels; kernels do not check it."""
        if batch.hi > len(self.state) or node.shape != (batch.n_tokens, self.tables.n_labels):
            raise ValueError(f"tables of {len(self.state)} tokens, of another corpus or model")

    @property
    def n_weights(self) -> int:
        return self.tables.n_tables

    @property
    def on_edges(self) -> bool:
        return True

    @property
    def preconditioner(self) -> float:
        """Logarithms of probabilities differ by several nats between labels: 10^2 was the best of
        1, 10, ..., 10^5 in steps until convergence, with 100, 500 and 2,000 labeled sentences."""
        return 0.01

    def add_scores(self, weights: F64, batch: Batch, node: F64, edge: F64) -> None:
        """phi += sum_j weight_j (log a_j + log b_j)."""
        self._check(batch, node)
        t, lo = self.tables, batch.lo
        chain, owner = weights @ t.chain, t.arc_rows.owner
        every, zeros, nothing = _without_transitions(node)
        states = self.state, t.state_rows.owner, weights, t.state, lo
        kernels.add_scores(*states, every, zeros, node, nothing)
        arcs = self.arc, owner, weights, t.arc, lo
        kernels.add_scores(*arcs, batch.first, chain, node, edge)

    def expectation(self, batch: Batch, node: F64, edge: F64) -> F64:
        """sum of omega * (log a_j + log b_j) per table: the derivative for its weight."""
        self._check(batch, node)
        t, lo = self.tables, batch.lo
        flow = np.concatenate([edge.sum(axis=0).reshape(-1), node[batch.offsets[:-1]].sum(axis=0)])
        out: F64 = t.chain @ flow
        chunks = (batch.n_tokens + kernels.CHUNK - 1) // kernels.CHUNK
        partial = np.empty((chunks, self.state.shape[1]))
        every, _, nothing = _without_transitions(node)
        kernels.expectation(self.state, t.state, lo, every, node, nothing, partial)
        np.add.at(out, t.state_rows.owner, partial.sum(axis=0))
        partial = np.empty((chunks, self.arc.shape[1]))
        kernels.expectation(self.arc, t.arc, lo, batch.first, node, edge, partial)
        np.add.at(out, t.arc_rows.owner, partial.sum(axis=0))
        return out

    def count(self, batch: Batch, node: F64, edge: F64, counts: SymbolCounts) -> None:
        """Add the expected counts of a batch, given mu float64[n, L] and xi float64[n, L, L]."""
        self._check(batch, node)
        t, lo, threads = self.tables, batch.lo, number_of_threads()
        K = t.n_labels**2
        counts.chain[:K] += edge.sum(axis=0).reshape(-1)
        counts.chain[K:] += node[batch.offsets[:-1]].sum(axis=0)
        states, arcs = t.state_rows.shares(threads), t.arc_rows.shares(threads)
        kernels.count_states(self.state, states, lo, node, counts.state)
        kernels.count_arcs(self.arc, arcs, lo, batch.first, node, edge, counts.arc)


def _without_transitions(node: F64) -> tuple[Bool, F64, F64]:
    """What kernels read of states: all tokens are first ones; an empty chain; empty edges."""
    n, L = node.shape
    return np.ones(n, bool), np.zeros(L), np.empty((n, 0, 0))
