"""Algorithm 1 of Subramanya, Petrov & Pereira (2010).

D_l are the labeled sentences, D_u the unlabeled ones; a type is an n-gram, a vertex of the graph;
r are the label distributions of types in D_l, W the weights of the graph:

     1  Lambda <- supervised CRF                                                     (equation 1)
     3  repeat
     4      p  <- posteriors of all tokens of D_l and D_u under Lambda
     5      q0 <- means of p over the tokens of each type
     6      q  <- ten propagation steps from q0                                     (equation 3)
     7      p^ <- alpha p + (1 - alpha) q[type of the token], on D_u                (equation 4)
     8      y* <- Viterbi on log p^ and the transitions of Lambda
    10      Lambda <- CRF of D_l with its labels and of D_u with y*, of weight eta  (equation 5)
    12  until few labels change

Lines are numbered as in docs/specs/graph_self_training.md, section 4.  `TypeTrainer` is the loop;
what lines 6 to 8 do is given to it, since the paper's self-trained CRF has no line 6 and
`graph_lift` decodes otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from scipy.sparse import csr_array

from sslbench import Iterations, Rounds, RunContext, SearchAxis, Share, TrainingParams, Weight, doc
from sslbench.engine.crf import (
    BatchPotentials,
    EncodedProblem,
    EncodedText,
    SequenceModel,
    TrainingResult,
    split_tokens,
)
from sslbench.engine.graph.propagation.solver import (
    COUNTS,
    EdgeCount,
    Edges,
    as_rows,
    inverse,
    on_lines,
)
from sslbench.engine.graph.tokens import type_means
from sslbench.engine.types import F64, I32, Bool
from sslbench.method import GraphColumn, TextVertices
from sslbench_methods import shared
from sslbench_methods.graph_self_training.kernels import jacobi_step
from sslbench_methods.self_labeled import WeightScale, sentence_weight

#: number of propagation steps in the paper
STEPS = 10
#: mixed posteriors are raised to this before the logarithm of the Viterbi step
FLOOR = 1e-12
AXES = (
    SearchAxis("eta", low=1e-4, high=10, log=True),
    SearchAxis("rounds", low=1, high=30, log=True, integer=True),
    shared.KEEP_AXIS,
)
#: line 6: from the means of the posteriors of types, float64[V, L], to what `Label` reads
Smooth = Callable[[F64], F64]
#: lines 7 and 8: labels of a text, int32[N], from the CRF, the text, its posteriors float64[N, L],
#: what `Smooth` gave, and the vertex of each token (-1 = none) int32[N]
Label = Callable[[SequenceModel, EncodedText, F64, F64, I32], I32]


class RelabelingParams(TrainingParams, frozen=True, kw_only=True):
    """Parameters of the rounds."""

    eta: Annotated[Weight, doc("weight of self-labeled sentences")] = 0.001
    eta_scale: WeightScale = "ratio"
    rounds: Annotated[Rounds, doc("most rounds of relabeling")] = 10
    retraining: Annotated[Iterations, doc("most iterations of L-BFGS in one round")] = 50
    tolerance: Annotated[Share, doc("stop when a smaller share of labels changes")] = 1e-3
    column: GraphColumn = "word"
    feature_pruning: shared.FeaturePruning = "posterior"
    keep: shared.Keep = "last"


@dataclass
class TypeTrainer:
    """The supervised CRF, then rounds.

    smooth: float64[V, L] -> float64[V, L], from means of the posteriors of the types to what
    `label` gets of them.
    """

    crf: SequenceModel
    text: EncodedProblem
    vertices: TextVertices
    smooth: Smooth
    label: Label
    params: RelabelingParams
    run: RunContext
    guesses: list[I32] = field(default_factory=list)

    def train(self) -> SequenceModel:
        """Train the supervised CRF, then do rounds until the labels settle."""
        params, run = self.params, self.run
        last = params.keep == "last"
        accuracy = shared.train_supervised(self.crf, self.text, params, run, decides=not last)
        rounds = run.rounds(params.rounds)
        if not self.text.unlabeled:
            rounds.stop("nothing_to_do")
        elif params.feature_pruning == "posterior":
            marginals = zip(self.text.corpora, self.marginals(), strict=True)
            self.crf, self.text = self.text.pruned(self.crf, marginals)
            run.trace["pruned_weights"] = len(self.crf.parameters)
        rounds.candidate(accuracy.get("dev_accuracy"), self.crf)
        for _ in rounds:
            changed = self.relabel()
            result = self.fit()
            entry = {**result.record(), **self.text.dev_accuracy(self.crf, record_only=last)}
            labels = np.bincount(np.concatenate(self.guesses), minlength=len(self.crf.labels))
            message = f"{changed:.2%} of the labels changed, {result.status}"
            rounds.record(message, changed=changed, labels=labels.tolist(), **entry)
            rounds.candidate(entry.get("dev_accuracy"), self.crf)
            if changed < params.tolerance:
                rounds.stop("converged")
        if params.keep == "best":
            rounds.restore_best(self.crf)
        return self.crf

    def relabel(self) -> float:
        """Label the unlabeled text anew (lines 4 to 9); return the changed share, 1 at first."""
        parts, vertex_of = self.marginals(), self.vertices.vertex_of
        with self.run.phase("types"):
            means, _ = type_means(vertex_of, np.concatenate(parts), self.vertices.n_vertices)
            types = self.smooth(means)
        vertices = split_tokens(vertex_of, self.text.corpora)
        old = self.guesses
        with self.run.phase("decode"):
            self.guesses = [
                self.label(self.crf, data, p, types, at)
                for data, p, at in zip(self.text.unlabeled, parts[1:], vertices[1:], strict=True)
            ]
        return shared.changed_share(old, self.guesses)

    def marginals(self) -> list[F64]:
        """Return posteriors of the labeled corpus and of each unlabeled one, float64[N, L] each."""
        with self.run.phase("marginals"):
            return [self.crf.marginals(data) for data in self.text.corpora]

    def fit(self) -> TrainingResult:
        """Retrain on both texts, from the current weights (line 10)."""
        weight = sentence_weight(self.params.eta, self.params.eta_scale, self.text)
        targets = [
            (data, shared.hard_targets(guess, data.lengths, weight))
            for data, guess in zip(self.text.unlabeled, self.guesses, strict=True)
        ]
        # a warm start, and the next round changes the labels: need not converge
        most = min(self.params.options().max_iterations, self.params.retraining)
        options = self.params.options(max_iterations=most)
        with self.run.phase("train"):
            parts = [self.text.labeled, *targets]
            return self.run.train(self.crf, parts, self.params, options=options)


def propagate(
    W: csr_array,
    start: F64,
    r: F64,
    labeled: Bool,
    mu: float,
    nu: float,
    steps: int = STEPS,
    edge_count: EdgeCount = "once",
) -> F64:
    """Make `steps` steps of equation 3 from `start`: float64[V, K] (line 6).

        q_u <- (r_u [u labeled] + c mu sum_v w_uv q_v + nu U) / ([u labeled] + nu + c mu sum_v w_uv)

    with U = 1/K.  The paper's update lacks mu before the sum over neighbors; with it, rows keep
    their sum and the objective (equation 2) never rises (docs/specs/graph.md, section 7.1).

    A small number of steps is part of the method: the optimum does not depend on the start. m steps
    carry labels over m edges. Labeled vertices are not reset to r. A vertex without label, edge and
    prior (nu = 0) keeps its start.

    Parameters
    ----------
    W: symmetric csr[V, V] with zero diagonal. start: float64[V, K].
    r: float64[V, K], read where bool[V] `labeled`.
    edge_count: c, "once" or "twice".

    Raises
    ------
    ValueError: shapes that do not match.
    """
    V = len(labeled)
    q, r = as_rows(start, V, "start"), as_rows(r, V, "r")
    if q.shape != r.shape:
        raise ValueError(f"start has {q.shape[1]} labels, r has {r.shape[1]}")
    edges, coupling = Edges.from_matrix(W, V), COUNTS[edge_count] * mu
    scale = inverse(labeled + nu + coupling * edges.degree)
    prior = nu / q.shape[1]
    K, (q, other, r) = q.shape[1], map(on_lines, (q, q, r))
    for _ in range(steps):
        jacobi_step(*edges.csr, q, r, labeled, coupling, prior, scale, other)
        q, other = other, q
    return np.ascontiguousarray(q[:, :K])


def mix(marginals: F64, types: F64, vertex_of: I32, alpha: float) -> F64:
    """Return alpha p + (1 - alpha) q[vertex], float64[N, L]; p outside the graph (equation 4)."""
    inside = (vertex_of >= 0)[:, None]
    return np.where(inside, alpha * marginals + (1 - alpha) * types[vertex_of], marginals)


def decode(
    crf: SequenceModel, data: EncodedText, mixed: F64, omega: float = 1.0, centered: bool = False
) -> I32:
    """Return argmax_y sum_t log mixed_t(y_t) + omega (transition scores of the CRF): int32[N].

    mixed: float64[N, L]. Unless `centered`, the result depends on how the CRF divides its scores
    between labels and transitions (docs/specs/graph_self_training.md, erratum 10).
    """
    paths = [np.empty(0, np.int32)]
    for potentials in crf.transition_potentials(data, centered=centered):
        node = _times(omega, potentials.node)
        node += np.log(np.maximum(mixed[potentials.batch.tokens], FLOOR))
        edge = _times(omega, potentials.edge)
        paths.append(BatchPotentials(potentials.batch, node, edge).viterbi())
    return np.concatenate(paths)


def _times(omega: float, scores: F64) -> F64:
    """Return omega * scores; -inf stays -inf, also at omega = 0."""
    return np.multiply(omega, scores, out=scores.copy(), where=np.isfinite(scores))
