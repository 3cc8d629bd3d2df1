"""Labels propagated on a graph as virtual evidence in CRF training.

Zeng et al. (2013). Label distributions of labeled trigrams spread once over a similarity graph
(equation 4, unnormalized: their mass decays with the distance); they become factors beside the
labels of unlabeled text (equation 6); the CRF is trained to agree with them (equation 5).
Prediction is that of the plain CRF (docs/specs/virtual_evidence.md, sections 4 and 5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np

from sslbench import CRFMethod, GraphCRFParams, Problem, RunContext, SearchAxis
from sslbench.engine.crf import (
    BatchPotentials,
    ChainCRF,
    EncodedCorpus,
    EncodedProblem,
    LogPartition,
    Observed,
    Parts,
    PotentialGradient,
    TrainingResult,
    VirtualEvidence,
    split_tokens,
)
from sslbench.engine.graph.propagation.sparse import propagate_unnormalized
from sslbench.engine.types import F64, I32, I64
from sslbench.method import GraphSimilarity, Neighbors, Symmetry, TextVertices
from sslbench_methods.shared import (
    KEEP_AXIS,
    EdgeCounts,
    FeaturePruning,
    Keep,
    Presets,
    encoded,
    train_supervised,
)


class VirtualEvidenceTraining(CRFMethod):
    """CRF trained to agree with distributions propagated on a graph."""

    order_invariant = True

    class Params(GraphCRFParams, frozen=True, kw_only=True):
        """Parameters of virtual evidence; sigma2 is the paper's delta squared."""

        similarity: GraphSimilarity = "zeng2013"
        neighbors: Neighbors = 5
        symmetry: Symmetry = "union"
        mu: Annotated[float, msgspec.Meta(ge=0, le=1e9, description="weight of the edges")] = 0.5
        lam: Annotated[
            float,
            msgspec.Meta(gt=0, le=1e9, description="weight of the penalty (lambda in the paper)"),
        ] = 0.3
        penalty: Annotated[
            Literal["l2sq", "l1sq", "l1"],
            msgspec.Meta(description="on a vertex: squared l2 norm, squared l1 norm, or l1 norm"),
        ] = "l2sq"
        edge_count: EdgeCounts = "twice"
        normalize: Annotated[
            bool, msgspec.Meta(description="scale every propagated distribution to sum to 1")
        ] = False
        base_rates: Annotated[
            Literal["kept", "removed"],
            msgspec.Meta(
                description="removed: evidence is what a distribution says beyond the mean over the"
                " text; kept: the distribution itself, which also pulls to frequent labels"
            ),
        ] = "removed"
        alpha: Annotated[float, msgspec.Meta(ge=0, le=1e9, description="scale of the evidence")] = (
            0.7
        )
        omega: Annotated[
            float,
            msgspec.Meta(ge=0, le=1e9, description="weight of an unlabeled sentence (labeled: 1)"),
        ] = 1.0
        solver: Annotated[
            Literal["em", "direct"],
            msgspec.Meta(description="em: the paper's rounds; direct: L-BFGS on the objective"),
        ] = "em"
        rounds: Annotated[int, msgspec.Meta(ge=1, le=100_000, description="most rounds of EM")] = 10
        m_iterations: Annotated[
            int, msgspec.Meta(ge=1, le=1_000_000, description="of L-BFGS in one M-step")
        ] = 20
        tolerance: Annotated[
            float,
            msgspec.Meta(ge=0, le=1e9, description="EM stops at this relative gain in a round"),
        ] = 1e-4
        feature_pruning: FeaturePruning = "posterior"
        keep: Keep = "last"
        min_type_count: Annotated[
            int,
            msgspec.Meta(
                ge=1, le=10**9, description="n-grams with fewer occurrences are no vertices"
            ),
        ] = 1
        least_mass: Annotated[
            float,
            msgspec.Meta(ge=0, le=1e9, description="vertices of less propagated mass are ignored"),
        ] = 0.0
        presets: ClassVar[Presets] = {
            "paper": {
                "neighbors": 5,
                "mu": 0.5,
                "lam": 0.3,
                "alpha": 0.7,
                "omega": 1.0,
                "base_rates": "kept",
            }
        }
        search: ClassVar[tuple[SearchAxis, ...]] = (
            SearchAxis("alpha", low=0, high=1.5),
            SearchAxis("mu", low=0.05, high=5, log=True),
            SearchAxis("lam", low=0.05, high=5, log=True),
            SearchAxis("rounds", low=1, high=30, log=True, integer=True),
            KEEP_AXIS,
        )

    def fit(self, problem: Problem, params: Params, run: RunContext) -> ChainCRF:
        """Propagate once, train on the labeled sentences, then on the evidence too."""
        q, vertices = self.propagated(problem, params, run)
        crf, text = encoded(problem, params, run)
        terms = [
            VirtualEvidence(q, vertex_of, params.alpha, params.omega)
            for vertex_of in split_tokens(vertices.unlabeled, text.unlabeled)
        ]
        return EvidenceTrainer(crf, text, terms, params, run).train()

    def evidence(
        self,
        problem: Problem,
        crf: ChainCRF,
        held_out: EncodedCorpus,
        params: Params,
        run: RunContext,
    ) -> F64:
        """The posteriors under the evidence, to which the first M-step fits the CRF."""
        q, vertices = self.propagated(problem, params, run)
        at = vertices.unlabeled[: int(held_out.offsets[-1])]
        term = VirtualEvidence(q, at, params.alpha)
        return np.concatenate([term.clamp(p).posterior().node for p in crf.potentials(held_out)])

    def propagated(
        self, problem: Problem, params: Params, run: RunContext
    ) -> tuple[F64, TextVertices]:
        """What the graph says of each vertex, float64[V, L], and the vertices of tokens."""
        graph = problem.graph(params, run, min_count=params.min_type_count)
        gold = graph.text.distribution, graph.text.labeled
        with run.phase("propagation"):
            q = propagate_unnormalized(
                graph.W, *gold, params.mu, params.lam, params.penalty, params.edge_count
            )
        q[q.sum(axis=1) < params.least_mass] = 0.0
        if params.normalize:
            q = normalized(q)
        if params.base_rates == "removed":
            q = above_base_rates(q, graph.text.unlabeled)
        return q, graph.text


def normalized(q: F64) -> F64:
    """Rows scaled to sum to 1; rows of zeros stay: float64[V, L]."""
    total = q.sum(axis=1, keepdims=True)
    rows: F64 = np.divide(q, total, out=np.zeros_like(q), where=total > 0)
    return rows


def above_base_rates(q: F64, vertex_of: I32) -> F64:
    """Rows less as much of the mean row as has the same sum: float64[V, L], rows sum to 0.

    q: float64[V, L] >= 0.  vertex_of: int32[N], of the tokens that the mean is over; -1 = none.
    """
    total = np.bincount(vertex_of[vertex_of >= 0], minlength=len(q)) @ q
    rates = total / max(total.sum(), np.finfo(float).tiny)
    excess: F64 = q - q.sum(axis=1, keepdims=True) * rates
    return excess


@dataclass
class EvidenceTrainer:
    """Maximizes F = labeled log-likelihood - prior + sum of the evidence terms.

    F is a difference of concave functions: the optimum that is reached depends on the start, the
    supervised optimum. terms: the evidence of each unlabeled corpus.
    """

    crf: ChainCRF
    text: EncodedProblem
    terms: list[VirtualEvidence]
    params: VirtualEvidenceTraining.Params
    run: RunContext

    @property
    def parts(self) -> list[tuple[EncodedCorpus, VirtualEvidence]]:
        """The unlabeled corpora with their evidence."""
        return list(zip(self.text.unlabeled, self.terms, strict=True))

    def train(self) -> ChainCRF:
        """Supervised optimum, then the chosen solver."""
        params, run = self.params, self.run
        train_supervised(self.crf, self.text, params, run)
        em = params.solver == "em"
        rounds = run.rounds(params.rounds if em else 1)
        tokens = sum(len(term.vertex_of) for term in self.terms)
        informed = sum(term.informed() for term in self.terms)
        run.trace["evidence_tokens"] = informed / max(1, tokens)
        if params.omega == 0 or not informed:  # F is the supervised objective: this is its optimum
            rounds.stop("nothing_to_do")
            return self.crf
        if params.feature_pruning == "posterior":
            self.prune()
        expected = self.expect()
        run.trace["start"] = before = self.report(expected)
        rounds.candidate(before.get("dev_accuracy"), self.crf)
        for _ in rounds:
            result = self.m_step(expected) if em else self.direct()
            expected = self.expect()
            entry = {**result.record(), **self.report(expected)}
            rounds.record(f"F {entry['F']:.3f}, {result.status}", **entry)
            rounds.candidate(entry.get("dev_accuracy"), self.crf)
            gain, before = entry["F"] - before["F"], entry
            if (not em and result.converged) or gain < params.tolerance * abs(entry["F"]):
                rounds.stop("converged")
        if params.keep == "best":
            rounds.restore_best(self.crf)
        return self.crf

    def prune(self) -> None:
        """Keep the weights of plausible (attribute, label) pairs: labeled sentences under the CRF,
        unlabeled ones under the clamped model.
        """
        crf, gold = self.crf, self.text.labeled[0]
        clamped = (
            (data, np.concatenate([term.clamp(p).posterior().node for p in crf.potentials(data)]))
            for data, term in self.parts
        )
        marginals = chain([(gold, crf.marginals(gold))], clamped)
        self.crf, self.text = self.text.pruned(crf, marginals)
        self.run.trace["pruned_weights"] = self.crf.layout.size

    def expect(self) -> EStep:
        """The E-step under the current weights."""
        with self.run.phase("e_step"):
            return EStep.under(self.crf, self.parts)

    def m_step(self, expected: EStep) -> TrainingResult:
        """Maximize the expected log-likelihood under fixed posteriors, from the current weights."""
        free = [(data, LogPartition(term.weight)) for data, term in self.parts]
        parts: Parts = [self.text.labeled, *free]
        # No ftol: each round changes the objective little, so that a relative test ends at once.
        options = self.params.options(max_iterations=self.params.m_iterations, ftol=0.0)
        with self.run.phase("train"):
            counts = expected.counts
            return self.run.train(
                self.crf, parts, self.params, options=options, expected_counts=counts
            )

    def direct(self) -> TrainingResult:
        """L-BFGS on F itself, from the current weights."""
        with self.run.phase("train"):
            return self.run.train(self.crf, [self.text.labeled, *self.parts], self.params)

    def report(self, expected: EStep) -> dict[str, Any]:
        """F and what the free and the clamped model say of the unlabeled text."""
        value = self.crf.objective([self.text.labeled], self.params) + expected.value
        accuracy = self.text.dev_accuracy(self.crf, record_only=self.params.keep == "last")
        return {"F": value, **expected.record(), **accuracy}


@dataclass(frozen=True)
class EStep:
    """Expectations under one model, summed over the unlabeled text.

    counts: float64 per weight, expected features under the clamped model, times the terms' weight;
    value: sum of the evidence terms; entropy: float64[2] of the node marginals, free and clamped,
    nats per token; labels: int64[L], how often each label is the likeliest of the free model.
    """

    counts: F64
    value: float
    entropy: F64
    labels: I64

    @classmethod
    def under(cls, crf: ChainCRF, parts: Sequence[tuple[EncodedCorpus, VirtualEvidence]]) -> EStep:
        """Forward-backward over every part, with the evidence and without."""
        terms = [Observed(term, partial(clamped, term)) for _, term in parts]
        texts = [data for data, _ in parts]
        counts = crf.expect(list(zip(texts, terms, strict=True))).counts
        tokens = max(1, sum(int(data.offsets[-1]) for data in texts))
        return cls(
            counts,
            Observed.total(terms, "value"),
            (np.zeros(2) + Observed.total(terms, "entropy")) / tokens,
            np.zeros(len(crf.labels), np.int64) + Observed.total(terms, "labels"),
        )

    def record(self) -> dict[str, Any]:
        """For the run record; entropies in nats per token."""
        free, clamped = self.entropy.tolist()
        return {"free_entropy": free, "clamped_entropy": clamped, "labels": self.labels.tolist()}


def clamped(
    term: VirtualEvidence, potentials: BatchPotentials
) -> tuple[PotentialGradient, dict[str, Any]]:
    """Evaluate the weighted log-partition with the evidence on a batch, with the sums of `EStep`
    over its tokens.
    """
    bound, free = term.posteriors(potentials)
    statistics = {
        "value": term.weight * float((bound.log_z() - free.log_z()).sum()),
        "entropy": np.array([_entropy(free.node), _entropy(bound.node)]),
        "labels": np.bincount(free.node.argmax(axis=1), minlength=free.node.shape[1]),
    }
    return PotentialGradient.of_log_z(bound, term.weight), statistics


def _entropy(p: F64) -> float:
    return -float((p * np.log(np.maximum(p, np.finfo(float).tiny))).sum())
