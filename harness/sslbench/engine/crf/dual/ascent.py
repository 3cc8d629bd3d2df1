"""A start for a supervised training: exponentiated gradient, an ascent on its dual by blocks.

With one distribution u_i over the labelings of each sentence, w(u) = V sum_i (f(y_i) - E_{u_i}[f])
for the prior variances V, and D(u) = sum_i H(u_i) - w' V^-1 w / 2, the maximum of D is the minimum
of the loss -F.  A visit of some sentences moves their u towards the posterior under w(u), by the
step that a quadratic model of D calls for; one that lowers D is undone and tried again with a
shorter step.  D is never above the loss, so their difference certifies how close both are.

A few passes over the text in random order come closer than several times as many iterations of
L-BFGS, as long as the prior is not too weak.  The passes run in one thread.

Source: M. Collins, A. Globerson, T. Koo, X. Carreras, P. L. Bartlett: Exponentiated gradient
algorithms for conditional random fields and max-margin Markov networks, JMLR 9 (2008), section 5.
The choice of the step is our own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sslbench.engine.checked import check_array
from sslbench.engine.crf.data import Batch, batches
from sslbench.engine.crf.dual.passes import DualLive, DualVariables, ascend
from sslbench.engine.crf.dual.posterior import DualText, Space
from sslbench.engine.crf.dual.weights import DualRows, DualTransitions
from sslbench.engine.crf.encoded_corpus import EncodedCorpus
from sslbench.engine.crf.first_order import scaled
from sslbench.engine.crf.objective import Objective
from sslbench.engine.crf.optim.lbfgs import Options
from sslbench.engine.crf.simd import rows
from sslbench.engine.crf.terms import HardLabels
from sslbench.engine.crf.weights.layout import Layout
from sslbench.engine.crf.weights.occurrences import Occurrences
from sslbench.engine.crf.weights.rowtable import RowTable, stride
from sslbench.engine.types import F64, I32, Bool

#: least tokens of a block: blocks of one sentence need fewer passes, but more time and memory for
#: their transitions
BLOCK_TOKENS = 60
#: shorter texts are trained by L-BFGS alone: a first run need not wait for the kernels to compile
FEWEST_TOKENS = 2_000
#: the same for a model that also has weights of factor features, which the text lacks: trainings on
#: shorter texts keep the bits of their records
FEWEST_WITH_FACTORS = 20_000
#: most bytes of the dual variables of transitions by position: 8 for each token and live transition
MOST_LIVE_BYTES = 1 << 28
#: a first visit adds to the score of the gold labels the log of prior variance times sentences, and
#: this: too much costs a pass, too little many
MORE_PEAK = 1.0
FIRST_STEP = 0.3
#: a training of fewer iterations is left to L-BFGS: the loss is large after the first passes
FEWEST_PASSES = 50
#: the gap is an estimate, so it must be this share of the tolerance, but not below CLOSEST, where
#: L-BFGS is the better one
CERTAIN, CLOSEST = 0.5, 1e-7
#: the ascent ends when the estimated gap, relative to D, stays above this share of what it was
#: WINDOW passes ago: L-BFGS is faster then
SLOWEST, WINDOW = 0.65, 8


class DualPoint(NamedTuple):
    """Flat weights, a lower bound of the loss -F, and how many passes it took.

    settled: they are likely to be good enough.
    """

    weights: F64
    bound: float
    passes: int
    settled: bool = False


def suits(objective: Objective, options: Options) -> bool:
    """Return whether the ascent can maximize the objective.

    It can if the objective is the log-likelihood of gold labels under a first-order chain with
    independent Gaussian priors, the text has no dense columns and factor features, it is to be
    maximized to the end, and the dual variables fit into their share of memory.
    """
    if len(objective.parts) != 1 or objective.expected_counts is not None or objective.tags:
        return False  # with weights of tags, the prior of the weights of labels is not diagonal
    (data, term), layout = objective.parts[0], objective.layout
    plain = isinstance(term, HardLabels) and term.weights is None
    first_order = layout.order == 1 and data.dense is None and data.factors is None
    whole = options.share == 0.0 and options.max_iterations >= FEWEST_PASSES
    tokens = int(data.offsets[-1])
    small = not data.varying or 8 * tokens * layout.inner_transitions <= MOST_LIVE_BYTES
    fewest = FEWEST_WITH_FACTORS if layout.n_factors else FEWEST_TOKENS
    return plain and first_order and whole and small and tokens >= fewest


def start(objective: Objective, options: Options) -> DualPoint | None:
    """Return a start for L-BFGS in place of weights of 0; None if the ascent does not suit.

    Where the bound says that the weights are good enough, L-BFGS has nothing to do.
    """
    if not suits(objective, options):
        return None
    tolerance = max(CERTAIN * options.ftol, CLOSEST)
    return maximize(objective, tolerance, options.max_iterations)


def maximize(objective: Objective, tolerance: float, limit: int) -> DualPoint | None:
    """Ascend until the gap is about `tolerance` times the loss, progress is slow, or after `limit`
    passes.

    Returns None if a sentence cannot be scaled.
    """
    ascent, gaps = Ascent.build(objective), [math.inf]
    n = len(ascent.text.offsets) - 1
    peak = max(1.0, math.log(objective.sigma2 * n) + MORE_PEAK)
    while len(gaps) <= limit:
        if ascent.one_pass(len(gaps) - 1, peak) != scaled.OK:
            return None
        # the first visits say nothing about the gap
        gaps.append(math.inf if peak else ascent.missing / abs(ascent.value))
        slow = len(gaps) > WINDOW + 1 and gaps[-1] > SLOWEST * gaps[-1 - WINDOW]
        if gaps[-1] <= tolerance or slow:
            break
        peak = 0.0
    settled = gaps[-1] <= tolerance
    return DualPoint(ascent.flat_weights(), ascent.value, len(gaps) - 1, settled)


@dataclass
class Ascent:
    """State of the ascent.

    value: D; missing: an estimate of what the last pass had to raise it by.
    """

    layout: Layout
    text: DualText
    states: DualRows
    transitions: DualTransitions
    live: DualLive | None
    dual: DualVariables
    value: float = 0.0
    missing: float = math.inf

    @classmethod
    def build(cls, objective: Objective) -> Ascent:
        """Start where each u is certain of the gold labels, and all weights are 0."""
        ((data, term),) = objective.parts
        layout, L = objective.layout, objective.layout.n_labels
        assert isinstance(term, HardLabels)
        N, labels = int(data.offsets[-1]), term.labels
        check_array(labels, "labels", np.int32, (N,), (0, L))
        cut = list(batches(data.offsets, BLOCK_TOKENS))
        text, states = _text(objective, data, cut, labels), _states(objective, data)
        transitions = DualTransitions(
            np.zeros((L + 1, L)), np.zeros(L), objective.sigma2, layout.use_start, layout.use_stop
        )
        live = _live(objective, data, labels) if data.varying and len(layout.transitions) else None
        return cls(layout, text, states, transitions, live, _variables(cut, data.first, labels, L))

    def one_pass(self, number: int, peak: float) -> int:
        """Visit all blocks in the random order of this pass; return a status as in `scaled`.

        peak: the bonus of gold labels in the first pass, 0 in later ones.
        """
        gains = np.zeros(3)
        order = np.random.default_rng(number).permutation(len(self.dual.entropy))
        space = Space.of(self.text, self.layout.n_labels)
        live_space = None if self.live is None else self.live.space(self.text.largest)
        own = self.text, self.states, self.transitions, self.live, self.dual
        status = ascend(order, peak, *own, space, live_space, gains)
        self.value += float(gains[0])
        self.missing = float(gains[1])
        return status

    def flat_weights(self) -> F64:
        """Return w(u), float64[layout.size]."""
        layout, own, L = self.layout, self.transitions, self.layout.n_labels
        flat = np.zeros(layout.size)
        _pack(layout.states, self.states, L, layout.part(flat, "state"))
        inner = layout.part(flat, "transitions").reshape(-1, L)
        inner[:] = own.inner[: len(inner)]
        if layout.use_stop:
            layout.part(flat, "stop")[:] = own.stop
        if self.live is not None:
            width = len(layout.transitions)
            _pack(layout.edges, self.live.own, width, layout.part(flat, "edges"))
        return flat


def _text(objective: Objective, data: EncodedCorpus, cut: list[Batch], labels: I32) -> DualText:
    mask, L = objective.transition_mask, objective.layout.n_labels
    sentence = np.array([0, *(batch.sentence_hi for batch in cut)], np.int64)
    forced = np.empty(0, np.int32) if data.forced_labels is None else data.forced_labels
    forbidden = np.zeros((L + 1, L))
    if mask is not None:
        forbidden[~mask] = -np.inf
    limited = len(forced) > 0 or mask is not None
    return DualText(sentence, data.offsets, labels, forced, forbidden, limited)


def _variables(cut: list[Batch], first: Bool, labels: I32, L: int) -> DualVariables:
    mu = np.zeros((len(labels), L), np.float32)
    mu[np.arange(len(labels)), labels] = 1.0
    block = np.repeat(np.arange(len(cut)), [batch.n_tokens for batch in cut])
    at = np.flatnonzero(~first)
    cell = (block[at] * L + labels[at - 1]) * L + labels[at]
    xi = np.bincount(cell, minlength=len(cut) * L * L).astype(np.float64).reshape(-1, L, L)
    steps = np.full(len(cut), FIRST_STEP)
    return DualVariables(np.zeros_like(mu), mu, np.zeros_like(xi), xi, np.zeros(len(cut)), steps)


def _states(objective: Objective, data: EncodedCorpus) -> DualRows:
    layout, L, table = objective.layout, objective.layout.n_labels, objective.layout.states
    copies = layout.part(objective.weight_copies.astype(np.float64), "state")
    entries = Occurrences.build(data.attributes.node, data.number, table, spelled=True, shares=1)
    return _rows(entries, table, objective.sigma2 * copies, L)


def _live(objective: Objective, data: EncodedCorpus, labels: I32) -> DualLive:
    layout, L, table = objective.layout, objective.layout.n_labels, objective.layout.edges
    inner, codes = layout.inner_transitions, layout.transitions
    edge = data.attributes.edge
    entries = Occurrences.build(edge, table.code, table, spelled=True, shares=1)
    variances = np.full(len(layout.transition_code), objective.sigma2)
    own = _rows(entries, table, variances, len(codes))
    left, right = (x.astype(np.int32) for x in np.divmod(codes[:inner], L))
    xi = np.zeros((len(labels), inner), np.float32)
    at = np.delete(np.arange(len(labels)), data.offsets[:-1])
    gold = labels[at - 1] * L + labels[at]
    column = np.minimum(np.searchsorted(codes[:inner], gold), inner - 1)
    is_live = codes[column] == gold
    xi[at[is_live], column[is_live]] = 1.0
    return DualLive(own, left, right, codes[inner:] - L * L, np.zeros_like(xi), xi)


def _rows(entries: Occurrences, table: RowTable | None, variances: F64, width: int) -> DualRows:
    """Return rows of weights of 0; variances: prior variances of the flat weights."""
    if table is None:  # every attribute has a row
        row_variance, lists = variances[::width].copy(), np.empty(0)
        present = np.ones((len(row_variance), width), np.bool_)
    else:
        per_cell, lists = table.unpack(variances)
        row_variance, present = per_cell.max(axis=1, initial=0.0), per_cell > 0.0
    kept = np.packbits(present, axis=1, bitorder="little")
    zeros = rows.aligned(len(present), _padded(width))
    return DualRows(entries, zeros, np.zeros(len(lists)), row_variance, lists, kept)


def _padded(width: int) -> int:
    """Return the width of padded rows; short rows are not padded: the table stays small."""
    return width if width <= rows.WIDTH // 2 else -(-width // rows.WIDTH) * rows.WIDTH


def _pack(table: RowTable | None, own: DualRows, width: int, flat: F64) -> None:
    """Write weights to their part of the flat ones."""
    if table is None:
        flat[:] = own.table[:, :width].reshape(-1)
    else:
        table.pack(np.ascontiguousarray(own.table[:, : stride(width)]), own.lists, flat)
