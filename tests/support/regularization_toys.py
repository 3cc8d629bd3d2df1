"""The toys of docs/specs/graph_pr.md, section 11."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from sslbench.engine.corpus import Corpus, Vocabulary
from sslbench.engine.crf import STRICT, ChainCRF, Options
from sslbench.engine.types import F64, I32
from sslbench.experiment.context.context import RunContext
from sslbench_methods.graph_pr.e_step import Backtracking, Posterior, RegularizedPosterior
from sslbench_methods.graph_pr.em import RegularizedEM
from sslbench_methods.graph_pr.method import GraphPR
from sslbench_methods.graph_pr.penalties import GraphLaplacian
from support.graph_toys import UNLABELED, Y, corpus, crf_over, encoded, pairs, symmetric, toy

#: no end but the fixed point
SOLVED = Backtracking(most_steps=2000, tolerance=1e-14, residual=1e-11)

# -- toy A: node scores of five tokens in two sentences, their vertices, a graph over four ---------
A = np.array([[0.5, -0.3], [-0.2, 0.4]])
SCORES = np.array([[0.3, -0.2], [0.1, 0.4], [-0.5, 0.2], [0.0, 0.6], [0.7, -0.1]])
SENTENCES = (slice(0, 3), slice(3, 5))
VERTICES = np.array([0, 2, 3, 2, -1], np.int32)
KNOWN = np.array([0, 1], np.int32)
W_A = symmetric(4, {(0, 1): 0.2, (0, 2): 0.9, (1, 3): 0.5, (2, 3): 0.4})
SYMBOLS = Vocabulary(list("012345"))


def text_a(*sentences: list[int]) -> Corpus:
    return corpus(*(sentences or ([1, 2, 3], [4, 5])), vocabulary=SYMBOLS)


def crf_a(scores: F64 = SCORES, transitions: F64 = A) -> ChainCRF:
    """A CRF over symbol 0, of the labeled text, and one symbol for each token."""
    crf = crf_over(text_a([0]), np.zeros(1, np.int32), text_a())
    crf.weights[:] = np.concatenate([[0, 0], scores.ravel(), transitions.ravel()])
    return crf


def laplacian(
    W: F64 = W_A, known: I32 = KNOWN, labels: I32 = Y, free: I32 = VERTICES
) -> GraphLaplacian:
    return GraphLaplacian.build(csr_array(W), known, labels, free, 2)


def problem_a(lam: float = 1.0, W: F64 = W_A) -> RegularizedPosterior:
    crf = crf_a()
    return RegularizedPosterior(crf, [crf.encode(text_a())], laplacian(W), lam)


def all_sequences(length: int) -> list[tuple[int, ...]]:
    return list(product((0, 1), repeat=length))


def sequence_scores(scores: F64 = SCORES, transitions: F64 = A) -> list[F64]:
    """Score of every sequence of both sentences, in lexicographic order."""
    found = []
    for where in SENTENCES:
        u = scores[where]
        found.append(
            np.array(
                [
                    sum(u[t, b] for t, b in enumerate(y))
                    + sum(transitions[a, b] for a, b in pairwise(y))
                    for y in all_sequences(len(u))
                ]
            )
        )
    return found


def token_marginals(q: list[F64]) -> F64:
    """float64[5, 2] of distributions over the sequences of both sentences."""
    rows = []
    for p in q:
        paths = np.array(all_sequences(int(np.log2(len(p)))))
        one = p @ paths
        rows.append(np.stack([1 - one, one], axis=1))
    return np.concatenate(rows)


def means(marginals: F64, W: F64 = W_A) -> F64:
    """Mean marginals of vertices, token by token, labeled ones with them."""
    sums, n = np.zeros((len(W), 2)), np.zeros(len(W))
    tokens = [*zip(KNOWN, np.eye(2)[Y], strict=True), *zip(VERTICES, marginals, strict=True)]
    for vertex, row in tokens:
        if vertex >= 0:
            sums[vertex] += row
            n[vertex] += 1
    return sums / np.maximum(n, 1)[:, None]


# -- toy B: observations with weights, EM ----------------------------------------------------------
VERTICES_B = np.array([2, 0, 3, 1, -1], np.int32)
W_B = symmetric(4, {(0, 2): 0.6, (1, 3): 0.8, (0, 3): 0.1})
SUPERVISED_B = np.array(
    [
        *pairs(0.5024384604, -0.5024384604, 0, 0),
        -0.3479038165,
        0.8503422770,
        -0.1545346439,
        -0.3479038165,
    ]
)


class Params(GraphPR.Params, frozen=True, kw_only=True):
    """Strict trainings and E-steps, the prior of the toy."""

    sigma2: float = 4.0
    lam: float = 1.0
    em_iters: int = 20

    m_iterations: int = STRICT.max_iterations
    m_ftol: float = STRICT.ftol

    def options(self, **changes: Any) -> Options:
        return replace(STRICT, **changes)


def em_b(
    params: GraphPR.Params | None = None,
    W: F64 = W_B,
    text: Corpus = UNLABELED,
    vertices: I32 = VERTICES_B,
) -> RegularizedEM:
    params = Params() if params is None else params
    crf = toy()
    penalty = laplacian(W, KNOWN, Y, vertices)
    encoded_text = encoded(crf, [text])
    problem = RegularizedPosterior(crf, encoded_text.unlabeled, penalty, params.lam)
    return RegularizedEM(problem, encoded_text, params, RunContext(), SOLVED)


A_OPTIMUM = [-0.3652647989, 0.5763683551, 0.1521927879, -0.1502243331]
L_A = np.diag(W_A.sum(axis=0)) - W_A


def dense_h(m: F64, L: F64 = L_A) -> float:
    return float(np.einsum("ak,ab,bk->", m, L, m))


def stepped(problem: RegularizedPosterior, *etas: float) -> tuple[Posterior, Posterior]:
    """q after steps of these lengths from the model, and the model."""
    model = problem.model(problem.crf.weights)
    q = model
    for eta in etas:
        q = problem.step(q, model, eta)
    return q, model


def enumerated(etas: list[float], lam: float = 1.0) -> tuple[list[F64], float, float]:
    """Exponentiated gradient on all label sequences: q, KL, h."""
    p = [np.exp(s) / np.exp(s).sum() for s in sequence_scores()]
    q = p
    n = np.array([2, 1, 2, 1])
    for eta in etas:
        G = np.vstack([2 * L_A @ means(token_marginals(q)) / n[:, None], np.zeros((1, 2))])
        moved = []
        for where, now, prior in zip(SENTENCES, q, p, strict=True):
            slope = [
                sum(G[v, b] for v, b in zip(VERTICES[where], y, strict=True))
                for y in all_sequences(len(VERTICES[where]))
            ]
            new = now * np.exp(-eta * (np.log(now) + 1 - np.log(prior) + lam * np.array(slope)))
            moved.append(new / new.sum())
        q = moved
    kl = sum(float(now @ np.log(now / prior)) for now, prior in zip(q, p, strict=True))
    return q, kl, dense_h(means(token_marginals(q)))
