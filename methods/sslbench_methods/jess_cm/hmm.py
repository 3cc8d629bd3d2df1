"""The hidden Markov models that JESS-CM embeds in its CRF: one per template.

Suzuki & Isozaki (2008), section 2; docs/specs/jess_cm.md, sections 3.2, 4.3 and 4.4.  All models
share the label set as states; START is state L.  A state template's model has emissions b(y, o),
an arc template's model emits from the transition, b(y', y, o); a bag emits each of its words.  The
constant template and the bare transition are both the Markov chain alone.  Rows of a and (per state
or arc) of b sum to one over all labels and all symbols, <UNK> included, also under a label
transition_mask.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numba import get_num_threads
from numpy.typing import NDArray

from sslbench.corpus import Corpus
from sslbench.crf.data import Batch
from sslbench.features import Streams, Template
from sslbench.types import F64, I8, I32, I64
from sslbench_methods.jess_cm import kernels

#: the logarithm of a zero probability stops here, so that one unseen event cannot forbid a label
LOG_FLOOR = float(np.log(1e-12))

MStep = Literal["plain", "lambda"]


@dataclass(frozen=True)
class Slots:
    """The table slots of one kind (state or arc): where each reads its symbol, whose it is.

    One slot per template, one per position for a bag.  start: first table row of the slot's model.
    """

    stream: I32
    offset: I32
    bag: I8
    owner: I32  # model number, for its weight
    start: I64
    first: I32  # int32[G + 1] first slot of each model, and their number
    models: tuple[int, ...]  # models that have a table of this kind, in table order
    borders: I64  # table rows of those models, int64[len(models) + 1]

    def shares(self, threads: int) -> I32:
        """Cut the slots into a run for each thread, between models: int32[threads + 1]."""
        wanted = len(self.stream) * np.arange(threads + 1) / threads
        nearest: I32 = self.first[np.abs(self.first[:, None] - wanted).argmin(axis=0)]
        return nearest


def _slots(streams: Streams, models: Sequence[tuple[int, Template]], unknown: int) -> Slots:
    stream: list[int] = []
    offset: list[int] = []
    bag: list[bool] = []
    owner: list[int] = []
    start: list[int] = []
    starts = [0]
    borders = [0]
    for j, template in models:
        p, first = streams.pattern_of(template)
        starts.append(len(stream) + len(template.offsets))
        for i in range(len(template.offsets)):
            stream.append(p)
            offset.append(first + i)
            bag.append(template.bag is not None)
            owner.append(j)
            start.append(borders[-1])
        borders.append(borders[-1] + streams.n_symbols[p] + unknown)
    return Slots(
        np.array(stream, np.int32),
        np.array(offset, np.int32),
        np.array(bag, np.int8),
        np.array(owner, np.int32),
        np.array(start, np.int64),
        np.array(starts, np.int32),
        tuple(j for j, _ in models),
        np.array(borders, np.int64),
    )


@dataclass(frozen=True)
class Counts:
    """Expected counts over unlabeled text: chain float64[(L+1) L], state [R, L], arc [R, (L+1) L],
    log_g: sum over sentences of log sum_y g (the data part of L2).
    """

    chain: F64
    state: F64
    arc: F64
    log_g: F64  # float64[1], so that it can be added to in place


@dataclass
class EmbeddedModels:
    """Theta: log tables of all models, their dictionaries, and the operations of EM.

    templates: model j < len(templates) belongs to templates[j].
    unknown: 1 = rare and unseen symbols share the symbol <UNK> (row 0 of a table); 0 = they say
    nothing about the label ("neutral").
    bare_chain: one more model, the bare transition [y_{s-1:s}], which the paper counts as a
    template too (it equals the model of the constant template).
    chain: float64[J, (L+1) L] log a of each model; state, arc: log emission tables.
    """

    templates: tuple[Template, ...]
    streams: Streams
    n_labels: int
    dtype: Any = np.float32
    unknown: int = 1
    bare_chain: bool = True
    chain: F64 = field(init=False)
    state: NDArray[Any] = field(init=False)
    arc: NDArray[Any] = field(init=False)
    uniform: bool = field(init=False, default=True)

    def __post_init__(self) -> None:
        """Uniform tables: a = 1/L, b = 1/V (docs/specs/jess_cm.md, section 4.1)."""
        L = self.n_labels
        self.chain = np.full((self.n_models, (L + 1) * L), -np.log(L))
        self.state = self._uniform(self.state_slots, L)
        self.arc = self._uniform(self.arc_slots, (L + 1) * L)

    @classmethod
    def build(
        cls,
        templates: Iterable[Template],
        n_labels: int,
        shards: Iterable[Corpus],
        min_count: int,
        **options: Any,
    ) -> EmbeddedModels:
        """Collect the symbols of unlabeled text; those rarer than min_count are unknown."""
        templates = tuple(templates)
        return cls(templates, Streams.fit(templates, shards, min_count), n_labels, **options)

    @property
    def n_models(self) -> int:
        """J, the number of templates as the paper counts them."""
        return len(self.templates) + self.bare_chain

    @cached_property
    def state_slots(self) -> Slots:
        picked = [(j, t) for j, t in enumerate(self.templates) if t.atoms and not t.edge]
        return _slots(self.streams, picked, self.unknown)

    @cached_property
    def arc_slots(self) -> Slots:
        picked = [(j, t) for j, t in enumerate(self.templates) if t.edge]
        return _slots(self.streams, picked, self.unknown)

    def _uniform(self, slots: Slots, width: int) -> NDArray[Any]:
        sizes = np.diff(slots.borders)
        rows = np.repeat(-np.log(np.maximum(sizes, 1)), sizes)
        return np.repeat(rows[:, None], width, axis=1).astype(self.dtype)

    def bind(self, corpus: Corpus) -> BoundModels:
        """These models as factor features of a corpus."""
        return BoundModels.build(self, corpus)

    def zero_counts(self) -> Counts:
        L = self.n_labels
        return Counts(
            np.zeros((L + 1) * L), np.zeros(self.state.shape), np.zeros(self.arc.shape), np.zeros(1)
        )

    # -- M-step --------------------------------------------------------------------------------
    def update(self, counts: Counts, eta: float, weights: F64, m_step: MStep) -> float:
        """One M-step; returns the mean L1 change of a row (docs/specs/jess_cm.md, section 4.5).

        eta: Dirichlet pseudo-count; theta_k = (c_k + eta) / (sum c + K eta), with c scaled by the
        model's weight for m_step "lambda".  A row without any mass keeps its value.
        """
        L = self.n_labels
        factor = weights if m_step == "lambda" else np.ones(self.n_models)
        moved, rows = 0.0, 0
        for j in range(self.n_models):
            old = np.exp(self.chain[j]).reshape(L + 1, L)
            new = _smoothed(factor[j] * counts.chain.reshape(L + 1, L), eta, old, axis=1)
            self.chain[j] = _log(new).reshape(-1)
            moved += float(np.abs(new - old).sum())
            rows += (L + 1) + (L if j in self._plain_state else 0)
        for slots, table, count in (
            (self.state_slots, self.state, counts.state),
            (self.arc_slots, self.arc, counts.arc),
        ):
            for i, j in enumerate(slots.models):
                part = slice(slots.borders[i], slots.borders[i + 1])
                old = np.exp(table[part].astype(np.float64))
                new = _smoothed(factor[j] * count[part], eta, old, axis=0)
                table[part] = _log(new)
                moved += float(np.abs(new - old).sum())
                rows += table.shape[1]
        self.uniform = False
        return moved / (rows + ((L + 1) * L if self.bare_chain else 0))

    @cached_property
    def _plain_state(self) -> set[int]:
        """Models of the constant template: emission rows that are 1 and never move."""
        return {j for j, t in enumerate(self.templates) if not t.atoms}

    def log_prior(self, eta: float, weights: F64 | None = None) -> float:
        """eta * sum of log theta over all rows (times the model's weight if given: tempered)."""
        factor = np.ones(self.n_models) if weights is None else weights
        total = float((factor[:, None] * self.chain).sum())
        for slots, table in ((self.state_slots, self.state), (self.arc_slots, self.arc)):
            for i, j in enumerate(slots.models):
                total += float(factor[j] * table[slots.borders[i] : slots.borders[i + 1]].sum())
        return eta * total


def _smoothed(counts: F64, eta: float, old: F64, axis: int) -> F64:
    """Dirichlet-smoothed conditional distributions along an axis."""
    mass = counts + eta
    total = mass.sum(axis=axis, keepdims=True)
    return np.where(total > 0.0, mass / np.where(total > 0.0, total, 1.0), old)


def _log(theta: F64) -> F64:
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(theta), LOG_FLOOR)


@dataclass(frozen=True)
class BoundModels:
    """The models on one corpus: `sslbench.crf.FactorFeatures` with one weight per model."""

    models: EmbeddedModels
    state_rows: I32  # int32[N, S] table row of every slot at every token, -1 = none
    arc_rows: I32

    @classmethod
    def build(cls, models: EmbeddedModels, corpus: Corpus) -> BoundModels:
        streams = models.streams.encode(corpus)
        lengths = np.diff(streams.offsets)
        left = np.arange(corpus.n_tokens) - np.repeat(streams.offsets[:-1], lengths)
        right = np.repeat(lengths, lengths) - 1 - left
        inside = np.stack([left, right], axis=1).astype(np.int32)
        rows = []
        for slots in (models.state_slots, models.arc_slots):
            found = np.empty((corpus.n_tokens, len(slots.stream)), np.int32)
            kernels.slot_rows(
                streams.codes,
                streams.position,
                inside,
                slots.stream,
                slots.offset,
                slots.bag,
                slots.start,
                models.unknown,
                found,
            )
            rows.append(found)
        return cls(models, *rows)

    @property
    def n_weights(self) -> int:
        return self.models.n_models

    @property
    def on_edges(self) -> bool:
        return True

    @property
    def preconditioner(self) -> float:
        """Logarithms of probabilities differ by several nats between labels: 10^2 was the best of
        1, 10, ..., 10^5 in steps until convergence, with 100, 500 and 2,000 labeled sentences."""
        return 0.01

    def add_scores(self, weights: F64, batch: Batch, node: F64, edge: F64) -> None:
        """phi += sum_j lambda_j (log a_j + log b_j) (docs/specs/jess_cm.md, section 4.3)."""
        m = self.models
        chain = weights @ m.chain
        kernels.add_state_scores(
            self.state_rows, m.state_slots.owner, weights, m.state, batch.lo, node
        )
        kernels.add_arc_scores(
            self.arc_rows,
            m.arc_slots.owner,
            weights,
            m.arc,
            batch.lo,
            batch.first,
            chain,
            node,
            edge,
        )

    def expectation(self, batch: Batch, node: F64, edge: F64) -> F64:
        """sum of omega * (log a_j + log b_j) per model: the derivative for lambda_{I+j}."""
        m = self.models
        flow = np.concatenate([edge.sum(axis=0).reshape(-1), node[batch.offsets[:-1]].sum(axis=0)])
        out: F64 = m.chain @ flow
        chunks = (batch.n_tokens + kernels.CHUNK - 1) // kernels.CHUNK
        partial = np.empty((chunks, self.state_rows.shape[1]))
        kernels.state_expectation(self.state_rows, m.state, batch.lo, node, partial)
        np.add.at(out, m.state_slots.owner, partial.sum(axis=0))
        partial = np.empty((chunks, self.arc_rows.shape[1]))
        kernels.arc_expectation(self.arc_rows, m.arc, batch.lo, batch.first, node, edge, partial)
        np.add.at(out, m.arc_slots.owner, partial.sum(axis=0))
        return out

    def count(self, batch: Batch, node: F64, edge: F64, counts: Counts) -> None:
        """Add the expected counts of a batch, given mu float64[n, L] and xi float64[n, L, L]."""
        m = self.models
        K = m.n_labels**2
        counts.chain[:K] += edge.sum(axis=0).reshape(-1)
        counts.chain[K:] += node[batch.offsets[:-1]].sum(axis=0)
        threads = get_num_threads()
        kernels.count_states(
            self.state_rows, m.state_slots.shares(threads), batch.lo, node, counts.state
        )
        kernels.count_arcs(
            self.arc_rows,
            m.arc_slots.shares(threads),
            batch.lo,
            batch.first,
            node,
            edge,
            counts.arc,
        )
