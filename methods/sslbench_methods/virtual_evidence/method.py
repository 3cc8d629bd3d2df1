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

from sslbench import (
    CRFMethod,
    Problem,
    RunContext,
    Tagger,
)
from sslbench.engine.crf import (
    VirtualEvidence,
    split_tokens,
)
from sslbench.engine.types import F64
from sslbench.method import TextVertices
from sslbench_methods.shared import (
    encoded,
)
from sslbench_methods.virtual_evidence.em import EvidenceTrainer
from sslbench_methods.virtual_evidence.params import VirtualEvidenceParams
from sslbench_methods.virtual_evidence.propagation import (
    above_base_rates,
    normalized,
    propagate_unnormalized,
)


class VirtualEvidenceTraining(CRFMethod):
    """CRF trained to agree with distributions propagated on a graph."""

    order_invariant = True

    Params = VirtualEvidenceParams

    def fit(self, problem: Problem, params: VirtualEvidenceParams, run: RunContext) -> Tagger:
        """Propagate once, train on the labeled sentences, then on the evidence too."""
        q, vertices = self.propagated(problem, params, run)
        crf, text = encoded(problem, params, run)
        terms = [
            VirtualEvidence(q, vertex_of, params.alpha, params.omega)
            for vertex_of in split_tokens(vertices.unlabeled, text.unlabeled)
        ]
        return EvidenceTrainer(crf, text, terms, params, run).train()

    def propagated(
        self, problem: Problem, params: VirtualEvidenceParams, run: RunContext
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
