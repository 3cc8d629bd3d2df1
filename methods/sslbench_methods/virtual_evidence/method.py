"""Labels propagated on a graph as virtual evidence in CRF training.

Zeng et al. (2013). Label distributions of labeled trigrams spread once over a
similarity graph (equation 4, unnormalized: their mass decays with the distance); they become
factors beside the labels of unlabeled text (equation 6); the CRF is trained to agree with them
(equation 5). Prediction is that of the plain CRF.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np

from sslbench import CRFMethod, GraphCRFParams, Problem, RunContext, SearchAxis
from sslbench.crf import ChainCRF, EncodedCorpus, EncodedProblem, LogPartition, TrainingResult
from sslbench.graph.propagation.sparse import propagate_unnormalized
from sslbench.method import GraphSimilarity, Neighbors, Symmetry
from sslbench.types import F64, I32
from sslbench_methods.shared import KEEP_AXIS, FeaturePruning, Keep

from .evidence import EStep, Part, VirtualEvidence


class VirtualEvidenceTraining(CRFMethod):
    """CRF trained to agree with distributions propagated on a graph."""

    order_invariant = True

    class Params(GraphCRFParams, frozen=True, kw_only=True):
        """Parameters of virtual evidence; sigma2 is the paper's delta squared."""

        similarity: GraphSimilarity = "zeng2013"
        neighbors: Neighbors = 5
        symmetry: Symmetry = "union"
        mu: Annotated[float, msgspec.Meta(ge=0, description="weight of the edges")] = 0.5
        lam: Annotated[
            float, msgspec.Meta(gt=0, description="weight of the penalty (lambda in the paper)")
        ] = 0.3
        penalty: Annotated[
            Literal["l2sq", "l1sq", "l1"],
            msgspec.Meta(description="on a vertex: squared l2 norm, squared l1 norm, or l1 norm"),
        ] = "l2sq"
        edge_count: Annotated[
            Literal["once", "twice"], msgspec.Meta(description="how often an edge counts")
        ] = "twice"
        normalize: Annotated[
            bool, msgspec.Meta(description="scale every propagated distribution to sum to 1")
        ] = False
        alpha: Annotated[float, msgspec.Meta(ge=0, description="scale of the evidence")] = 0.7
        omega: Annotated[
            float, msgspec.Meta(ge=0, description="weight of an unlabeled sentence (labeled: 1)")
        ] = 1.0
        solver: Annotated[
            Literal["em", "direct"],
            msgspec.Meta(description="em: the paper's rounds; direct: L-BFGS on the objective"),
        ] = "em"
        rounds: Annotated[int, msgspec.Meta(ge=1, description="most rounds of EM")] = 10
        m_iterations: Annotated[int, msgspec.Meta(ge=1, description="of L-BFGS in one M-step")] = 20
        tolerance: Annotated[
            float, msgspec.Meta(ge=0, description="EM stops at this relative gain in a round")
        ] = 1e-4
        feature_pruning: FeaturePruning = "posterior"
        keep: Keep = "last"
        min_type_count: Annotated[
            int, msgspec.Meta(ge=1, description="n-grams with fewer occurrences are no vertices")
        ] = 1
        search: ClassVar[tuple[SearchAxis, ...]] = (
            SearchAxis("alpha", low=0, high=1.5),
            SearchAxis("mu", low=0.05, high=5, log=True),
            SearchAxis("lam", low=0.05, high=5, log=True),
            SearchAxis("rounds", low=1, high=30, log=True, integer=True),
            KEEP_AXIS,
        )

    def fit(self, problem: Problem, params: Params, run: RunContext) -> ChainCRF:
        """Propagate once, train on the labeled sentences, then on the evidence too."""
        graph = problem.graph(params, run, min_count=params.min_type_count)
        vertices = graph.text
        with run.phase("propagation"):
            q = propagate_unnormalized(
                graph.W,
                vertices.distribution,
                vertices.labeled,
                params.mu,
                params.lam,
                params.penalty,
                edge_count=params.edge_count,
            )
        if params.normalize:
            q = normalized(q)
        with run.phase("features"):
            crf = problem.crf(params, features_from="labeled+unlabeled")
            text = problem.encode(crf)
            parts = evidence_parts(text.unlabeled, params, q, vertices.unlabeled)
        return EvidenceTrainer(crf, text, parts, params, run).train()


def evidence_parts(
    unlabeled: list[EncodedCorpus],
    params: VirtualEvidenceTraining.Params,
    q: F64,
    vertex_of: I32,
) -> list[Part]:
    """The unlabeled corpora with their evidence; q: float64[V, L]; vertex_of: int32[N_u]."""
    parts, lo = [], 0
    for data in unlabeled:
        hi = lo + int(data.offsets[-1])
        parts.append((data, VirtualEvidence(q, vertex_of[lo:hi], params.alpha, params.omega)))
        lo = hi
    return parts


def normalized(q: F64) -> F64:
    """Rows scaled to sum to 1; rows of zeros stay: float64[V, L]."""
    total = q.sum(axis=1, keepdims=True)
    rows: F64 = np.divide(q, total, out=np.zeros_like(q), where=total > 0)
    return rows


@dataclass
class EvidenceTrainer:
    """Maximizes F = labeled log-likelihood - prior + sum of the evidence terms.

    F is a difference of concave functions: the optimum that is reached depends on the start, the
    supervised optimum.
    """

    crf: ChainCRF
    text: EncodedProblem
    parts: list[Part]
    params: VirtualEvidenceTraining.Params
    run: RunContext

    def train(self) -> ChainCRF:
        """Supervised optimum, then the chosen solver."""
        params, run = self.params, self.run
        with run.phase("train"):
            run.record(self.crf.train([self.text.labeled], params), "supervised")
        rounds = run.rounds(params.rounds if params.solver == "em" else 1)
        tokens = sum(len(term.vertex_of) for _, term in self.parts)
        informed = sum(term.informed() for _, term in self.parts)
        run.trace["evidence_tokens"] = informed / max(1, tokens)
        if params.omega == 0 or not informed:  # F is the supervised objective: this is its optimum
            rounds.stop("nothing_to_do")
            return self.crf
        if params.feature_pruning == "posterior":
            self.prune()
        expected = self.expect()
        before = self.report(expected)
        run.trace["start"] = before
        rounds.candidate(before.get("dev_accuracy"), self.crf)
        for _ in rounds:
            result = self.m_step(expected) if params.solver == "em" else self.direct()
            expected = self.expect()
            entry = {**result.record(), **self.report(expected)}
            rounds.record(f"F {entry['F']:.3f}, {result.status}", **entry)
            rounds.candidate(entry.get("dev_accuracy"), self.crf)
            solved = params.solver == "direct" and result.converged
            if solved or entry["F"] - before["F"] < params.tolerance * abs(entry["F"]):
                rounds.stop("converged")
            before = entry
        if params.keep == "best":
            rounds.restore_best(self.crf)
        return self.crf

    def prune(self) -> None:
        """Keep the weights of plausible (attribute, label) pairs: labeled sentences under the CRF,
        unlabeled ones under the clamped model.
        """
        gold = self.text.labeled[0]
        clamped = (
            (data, np.concatenate([term.clamp(p).posterior().node for p in crf.potentials(data)]))
            for crf in [self.crf]
            for data, term in self.parts
        )
        marginals = chain([(gold, self.crf.marginals(gold))], clamped)
        self.crf, self.text = self.text.pruned(self.crf, marginals)
        terms = [term for _, term in self.parts]
        self.parts = list(zip(self.text.unlabeled, terms, strict=True))
        self.run.trace["pruned_weights"] = self.crf.layout.size

    def expect(self) -> EStep:
        """The E-step under the current weights."""
        with self.run.phase("e_step"):
            return EStep.under(self.crf, self.parts)

    def m_step(self, expected: EStep) -> TrainingResult:
        """Maximize the expected log-likelihood under fixed posteriors, from the current weights."""
        free = [(data, LogPartition(term.weight)) for data, term in self.parts]
        # No ftol: each round changes the objective little, so that a relative test ends at once.
        options = self.params.options(max_iterations=self.params.m_iterations, ftol=0.0)
        with self.run.phase("train"):
            return self.crf.train(
                [self.text.labeled, *free],
                self.params,
                options=options,
                expected_counts=expected.counts,
            )

    def direct(self) -> TrainingResult:
        """L-BFGS on F itself, from the current weights."""
        with self.run.phase("train"):
            return self.crf.train([self.text.labeled, *self.parts], self.params)

    def report(self, expected: EStep) -> dict[str, Any]:
        """F and what the free and the clamped model say of the unlabeled text."""
        value = self.crf.objective([self.text.labeled], self.params) + expected.value
        accuracy = self.text.dev_accuracy(self.crf, record_only=self.params.keep == "last")
        return {"F": value, **expected.record(), **accuracy}
