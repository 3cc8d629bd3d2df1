"""Labels propagated on a graph as virtual evidence in CRF training.

Zeng et al. (2013). The label distributions r of labeled trigrams spread once over a similarity
graph. The result q is not normalized: its mass decays with the distance (equation 4,
`propagation`). It becomes virtual evidence v beside the labels of unlabeled text (equation 6):

    p(y, v | x; Lambda) ~ exp( sum_t Lambda f(y_{t-1}, y_t, x, t) + alpha sum_t s(y_t, v_t) )

with s(y_t, v_t) = q_u(y_t) for the trigram u around token t. The CRF is trained on the labeled
sentences and the evidence (equation 5, `em`). Prediction is that of the plain CRF
(docs/specs/virtual_evidence.md, sections 4 and 5).
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np

from sslbench import (
    Count,
    CRFMethod,
    GraphCRFParams,
    Iterations,
    Positive,
    Problem,
    Rounds,
    RunContext,
    SearchAxis,
    Tolerance,
    Weight,
    doc,
)
from sslbench.engine.crf import (
    ChainCRF,
    VirtualEvidence,
    split_tokens,
)
from sslbench.engine.types import F64
from sslbench.method import Fold, GraphSimilarity, Neighbors, Symmetry, TextVertices
from sslbench_methods.shared import (
    KEEP_AXIS,
    EdgeCounts,
    FeaturePruning,
    Keep,
    Presets,
    encoded,
)
from sslbench_methods.virtual_evidence.em import EvidenceTrainer
from sslbench_methods.virtual_evidence.propagation import (
    above_base_rates,
    normalized,
    propagate_unnormalized,
)


class VirtualEvidenceTraining(CRFMethod):
    """CRF trained to agree with distributions propagated on a graph."""

    order_invariant = True

    class Params(GraphCRFParams, frozen=True, kw_only=True):
        """Parameters of virtual evidence; sigma2 is the paper's delta squared."""

        similarity: GraphSimilarity = "zeng2013"
        neighbors: Neighbors = 5
        symmetry: Symmetry = "union"
        mu: Annotated[Weight, doc("weight of the edges")] = 0.5
        lam: Annotated[Positive, doc("weight of the penalty (lambda in the paper)")] = 0.3
        penalty: Annotated[
            Literal["l2sq", "l1sq", "l1"],
            doc("on a vertex: squared l2 norm, squared l1 norm, or l1 norm"),
        ] = "l2sq"
        edge_count: EdgeCounts = "twice"
        normalize: Annotated[bool, doc("scale every propagated distribution to sum to 1")] = False
        base_rates: Annotated[
            Literal["kept", "removed"],
            doc(
                "removed: evidence is what a distribution says beyond the mean over the"
                " text; kept: the distribution itself, which also pulls to frequent labels"
            ),
        ] = "removed"
        alpha: Annotated[Weight, doc("scale of the evidence")] = 0.7
        omega: Annotated[Weight, doc("weight of an unlabeled sentence (labeled: 1)")] = 1.0
        solver: Annotated[
            Literal["em", "direct"], doc("em: the paper's rounds; direct: L-BFGS on the objective")
        ] = "em"
        rounds: Annotated[Rounds, doc("most rounds of EM")] = 10
        m_iterations: Annotated[Iterations, doc("of L-BFGS in one M-step")] = 20
        tolerance: Annotated[Tolerance, doc("EM stops at this relative gain in a round")] = 1e-4
        feature_pruning: FeaturePruning = "posterior"
        keep: Keep = "last"
        min_type_count: Annotated[Count, doc("n-grams with fewer occurrences are no vertices")] = 1
        least_mass: Annotated[Weight, doc("vertices of less propagated mass are ignored")] = 0.0
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

    def evidence(self, fold: Fold, params: Params, run: RunContext) -> F64:
        """Return the posteriors under the evidence, to which the first M-step fits the CRF."""
        q, vertices = self.propagated(fold.problem, params, run)
        at = vertices.unlabeled[: int(fold.held_out.offsets[-1])]
        term, text = VirtualEvidence(q, at, params.alpha), fold.crf.potentials(fold.held_out)
        return np.concatenate([term.clamp(p).posterior().node for p in text])

    def propagated(
        self, problem: Problem, params: Params, run: RunContext
    ) -> tuple[F64, TextVertices]:
        """Return q, float64[V, L], less its base rates, and the vertices of tokens."""
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
