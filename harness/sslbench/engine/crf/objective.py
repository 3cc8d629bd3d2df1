"""The regularized objective: a sum of terms over corpora, as one function of the flat weights.

    F(lambda) = sum_terms sum_i value_i(lambda) - |lambda|^2 / (2 sigma^2)   [- c1 |lambda|_1]

Sums, not means; the optimizer sees -F / N, N = tokens that carry a target: its tolerances do not
depend on the size of the corpus (docs/specs/crf_engine.md, section 9).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain

import numpy as np

from sslbench.engine.checked import check_array
from sslbench.engine.compilation.threads import in_order
from sslbench.engine.crf import fused
from sslbench.engine.crf.bundle_sums import BundleSums
from sslbench.engine.crf.chain_potentials import force_labels
from sslbench.engine.crf.data import Batch
from sslbench.engine.crf.encoded_corpus import EncodedCorpus
from sslbench.engine.crf.first_order.batch import BatchPotentials
from sslbench.engine.crf.first_order.live import LivePotentials, LiveTransitions
from sslbench.engine.crf.optim.gap import gap
from sslbench.engine.crf.optim.lbfgs import Result
from sslbench.engine.crf.optim.vectors import combine, dot, subtract_prior
from sslbench.engine.crf.second_order.batch import SecondOrderPotentials
from sslbench.engine.crf.terms import PotentialGradient, Term
from sslbench.engine.crf.weights import scores
from sslbench.engine.crf.weights.backoff import BackOff
from sslbench.engine.crf.weights.layout import Layout
from sslbench.engine.crf.weights.scores import EdgeTokens
from sslbench.engine.crf.weights.tables import WeightTables
from sslbench.engine.crf.work import tell_of_work
from sslbench.engine.lazy import lazy
from sslbench.engine.types import F32, F64, I64, Bool


def batch_potentials(
    tables: WeightTables,
    data: EncodedCorpus,
    batch: Batch,
    transition_mask: Bool | None = None,
    sums: BundleSums | None = None,
    live: LiveTransitions | None = None,
) -> BatchPotentials:
    """Return the log-potentials of a batch under the given weights.

    transition_mask: bool[L+1, L], the allowed transitions (row L is START); None: all.
    sums: `BundleSums.of_weights`, the same for all batches; None: compute them here.
    live: those of the data, for `LivePotentials`.
    """
    L = tables.layout.n_labels
    data.check_layout(tables.layout)
    sums = sums or BundleSums.of_weights(tables, data)
    node = np.empty((batch.n_tokens, L))
    entries = data.states.tokens
    scores.node_scores(entries, batch.lo, tables.table, tables.lists, sums.node, node)
    if data.dense is not None:
        scores.column_scores(data.dense[batch.tokens], tables.columns, node)
    w = tables.allowed_transitions(transition_mask)
    node[batch.offsets[:-1]] += w[L]
    node[batch.offsets[1:] - 1] += tables.stop
    edge = np.ascontiguousarray(w[None, :L])
    tokens = EdgeTokens(data.edges.tokens, batch.lo, batch.first, tables.edges, sums.edge)
    if live is not None:
        by_position = np.empty((batch.n_tokens, len(tables.edges.transitions)))
        scores.live_scores(tokens, node, by_position)
    elif data.varying:
        edge = np.empty((batch.n_tokens, L, L))
        scores.edge_scores(tokens, w[:L], node, edge)
    if data.factors is not None:
        data.factors.add_scores(tables.factors, batch, node, edge)
    if tables.second is not None:
        node[batch.offsets[:-1]] += tables.second.first()
        node[batch.single] += tables.second.e2[L]
    if data.forced_labels is not None:
        force_labels(data.forced_labels[batch.tokens], node)
    if live is not None:
        return LivePotentials(batch, node, edge, live, by_position)
    if tables.second is None:
        return BatchPotentials(batch, node, edge)
    return SecondOrderPotentials(batch, node, edge, tables.second.potentials())


def add_gradient(
    gradient: WeightTables,
    data: EncodedCorpus,
    batch: Batch,
    by_potential: PotentialGradient,
    sums: BundleSums,
) -> None:
    """Add to the gradient of the weights: the sum over factors c of omega_c f(c).

    by_potential: omega, the derivative of a term with respect to the potentials of a batch.
    sums: receives the slopes of bundles, which `BundleSums.spread` distributes after the last
        batch.
    """
    layout, L = gradient.layout, gradient.layout.n_labels
    by_potential.check(batch.n_tokens, L, len(layout.transitions) if data.varying else None)
    node, edge, lo = by_potential.node, by_potential.edge, batch.lo
    entries = data.states.tokens
    scores.node_gradient(entries, lo, node, gradient.table, gradient.lists, sums.node)
    if data.dense is not None:
        scores.column_gradient(data.dense[batch.tokens], node, gradient.columns)
    gradient.transitions[:L] += by_potential.edge.sum(axis=0)
    gradient.transitions[L] += by_potential.node[batch.offsets[:-1]].sum(axis=0)
    gradient.stop[:] += by_potential.node[batch.offsets[1:] - 1].sum(axis=0)
    if gradient.second is not None and by_potential.triples is not None:
        first = by_potential.node[batch.offsets[:-1]].sum(axis=0)
        single = by_potential.node[batch.single].sum(axis=0)
        gradient.second.add(by_potential.triples, first, single)
    if data.varying and layout.n_edge:
        tokens = EdgeTokens(data.edges.tokens, lo, batch.first, gradient.edges, sums.edge)
        if by_potential.live is None:
            scores.edge_gradient(tokens, node, edge)
        else:
            first, inner = batch.offsets[:-1, None], layout.inner_transitions
            begun = layout.transitions[inner:] - L * L  # labels that START transitions lead to
            by_potential.live[first, np.arange(inner, inner + len(begun))] = node[first, begun]
            scores.live_gradient(tokens, by_potential.live)
    if data.factors is not None:
        expected = data.factors.expectation(batch, by_potential.node, by_potential.edge)
        check_array(expected, "expectations of factor features", np.float64, (layout.n_factors,))
        gradient.factors[:] += expected


def _evaluate(
    tables: WeightTables,
    data: EncodedCorpus,
    term: Term,
    transition_mask: Bool | None,
    sums: BundleSums,
    live: LiveTransitions | None,
    batch: Batch,
) -> PotentialGradient:
    """Evaluate a term on one batch; several threads do so at once if the term is stateless."""
    return term.evaluate(batch_potentials(tables, data, batch, transition_mask, sums, live))


def evaluate_terms(
    layout: Layout,
    weights: F64,
    parts: Sequence[tuple[EncodedCorpus, Term]],
    transition_mask: Bool | None,
    gradient: WeightTables,
) -> list[F64]:
    """Return the values of the terms in order, float64[s] for each batch, or for a whole text.

    gradient: receives the derivative of their sum by every weight.
    """
    tables, values = WeightTables.unpack(layout, weights), []
    for data, term in parts:
        if hasattr(term, "survey"):
            options = transition_mask, BundleSums.of_weights(tables, data)
            term.survey(batch_potentials(tables, data, b, *options) for b in data.batches)
    for data, term in parts:
        sums = BundleSums.of_weights(tables, data)
        slopes = BundleSums.zeros(gradient, data)
        live = data.live if getattr(term, "live", False) else None
        evaluate = partial(_evaluate, tables, data, term, transition_mask, sums, live)
        batches = data.batches if live is None else data.live_batches
        whole: F64 | None = None
        if live is not None and data.suits_fused and hasattr(term, "labeled"):
            labeled, mask = term.labeled(len(data.offsets) - 1), transition_mask
            whole, redo = fused.log_likelihood(data, labeled, tables, sums, mask, gradient, slopes)
            batches = [data.sentence(i) for i in redo.tolist()]
            values.append(whole)
        each = in_order if getattr(term, "stateless", False) else map
        for batch, by_potential in zip(batches, each(evaluate, batches), strict=True):
            add_gradient(gradient, data, batch, by_potential, slopes)
            if whole is None:
                values.append(by_potential.value)
            else:
                whole[batch.sentences] = by_potential.value
        slopes.spread(gradient, data)
    return values


@dataclass
class Objective:
    """Sum of (corpus, term) parts minus the Gaussian prior.

    Attributes
    ----------
    sigma2: prior variance of the weights.
    transition_mask: bool[L+1, L], the allowed transitions (row L = START); None = all.
    copies: float32 per weight, how many identical attributes share it (`deduplicate`); None: one.
    expected_counts: float64 per weight; adds expected_counts . weights to F, as the M-step of EM
        does with the counts of its E-step.
    tags: the tag of each label, if tags have weights beside those of labels (`BackOff`).
    zero: indices of weights that stay 0; their derivative is 0.
    settled: the first evaluation is likely the last one: bundles are made for a second one.
    """

    layout: Layout
    parts: list[tuple[EncodedCorpus, Term]]
    sigma2: float
    transition_mask: Bool | None = None
    copies: F32 | None = None
    expected_counts: F64 | None = None
    tags: Sequence[str] | None = None
    zero: I64 | None = None
    settled: bool = False
    evaluations: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        counts, size = self.expected_counts, self.layout.size
        if counts is not None:
            check_array(counts, "expected counts", np.float64, (size,))
        lengths = [data.lengths for data, _ in self.parts]
        tell_of_work(np.concatenate([np.empty(0), *lengths]), self.layout, self.transition_mask)

    @lazy
    def n_tokens(self) -> float:
        return max(1.0, sum(term.n_tokens(data.lengths) for data, term in self.parts))

    def value_and_gradient(self, weights: F64, gradient: F64) -> float:
        """Return F(weights); gradient float64[n] is overwritten with its derivative."""
        self.evaluations += 1
        accumulator, parts = WeightTables.gradient(self.layout, gradient), self.parts
        if self.settled and self.evaluations == 1:
            parts = [(replace(data, reused=False), term) for data, term in parts]
        values = evaluate_terms(self.layout, weights, parts, self.transition_mask, accumulator)
        accumulator.pack(gradient)
        prior = subtract_prior(1.0 / self.sigma2, self.weight_copies, weights, gradient)
        value = math.fsum(chain.from_iterable(values)) - prior
        if self.backoff is not None:
            state = self.layout.span("state")
            precision = 1.0 / self.sigma2 / self.weight_copies[state].astype(np.float64)
            value += self.backoff.add(precision, weights[state], gradient[state])
        if self.expected_counts is not None:
            combine(1.0, gradient, 1.0, self.expected_counts, gradient)
            value += dot(self.expected_counts, weights)
        if self.zero is not None:
            gradient[self.zero] = 0.0
        return value

    @lazy
    def backoff(self) -> BackOff | None:
        return None if self.tags is None else BackOff.build(self.layout, self.tags)

    @lazy
    def weight_copies(self) -> F32:
        """`copies` as an array: ones where it is None."""
        return np.ones(self.layout.size, np.float32) if self.copies is None else self.copies

    def gap(self, optimum: Result, bound: float) -> float:
        """Return how far `scaled_loss` at the end of a search may be above its minimum, see `gap`.

        bound: a number that the loss is not below.
        """
        factor = 1.0 if self.backoff is None else float(self.backoff.size.max(initial=1.0))
        variance = factor * self.sigma2 * self.n_tokens
        return gap(optimum, variance, self.weight_copies, bound / self.n_tokens)

    def scaled_loss(self, weights: F64, gradient: F64) -> float:
        """Return -F / n_tokens and write its gradient: what the optimizer minimizes."""
        value = self.value_and_gradient(weights, gradient)
        combine(-1.0 / self.n_tokens, gradient, 0.0, gradient, gradient)
        return -value / self.n_tokens
