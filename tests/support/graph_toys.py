"""Toys of the methods over a graph: four observations, two labels, one matrix of weights.

Source: docs/specs/graph_self_training.md, section 8; docs/specs/graph_pr.md, section 11.

Weights are node weights row by row, then transitions row by row: no start, no stop.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from sslbench.engine.corpus import Column, Corpus, Vocabulary
from sslbench.engine.crf import STRICT, ChainCRF, ChainModel, EncodedProblem, HardLabels, Options
from sslbench.engine.features import TemplateFeaturizer
from sslbench.engine.types import F64, I32, Bool

VOCABULARY = Vocabulary(["0", "1", "2", "3"])


def corpus(*sentences: list[int], vocabulary: Vocabulary = VOCABULARY) -> Corpus:
    codes = np.array([x for s in sentences for x in s], np.int32)
    offsets = np.cumsum([0, *map(len, sentences)]).astype(np.int64)
    return Corpus({"x": Column(vocabulary, codes)}, offsets)


LABELED, Y = corpus([0, 1]), np.array([0, 1], np.int32)
UNLABELED = corpus([2, 0, 3], [1, 3])


def crf_over(
    labeled: Corpus, labels: I32, *text: Corpus, template: str = "x[0]", n_labels: int = 2
) -> ChainCRF:
    """A CRF with zero weights over the symbols, in order of first occurrence."""
    return ChainModel().prepare(
        TemplateFeaturizer([template]),
        labeled,
        labels,
        "abcdefgh"[:n_labels],
        use_start=False,
        use_stop=False,
        text=text,
    )


def toy(weights: object = None) -> ChainCRF:
    crf = crf_over(LABELED, Y, UNLABELED)
    if weights is not None:
        crf.weights[:] = np.ravel(weights)
    return crf


def encoded(
    crf: ChainCRF, text: Iterable[Corpus], labeled: Corpus = LABELED, labels: I32 = Y
) -> EncodedProblem:
    """The toy's labeled sentences and some text, as a CRF reads them."""
    gold = crf.encode(labeled), HardLabels(labels)
    return EncodedProblem(gold, [crf.encode(part) for part in text])


def pairs(*a: float) -> list[float]:
    """(a, -a) for each: how docs/specs prints symmetric rows."""
    return [x for value in a for x in (value, -value)]


def symmetric(n: int, edges: dict[tuple[int, int], float]) -> F64:
    W = np.zeros((n, n))
    for (u, v), weight in edges.items():
        W[u, v] = W[v, u] = weight
    return W


def jacobi(
    W: F64, q: F64, r: F64, labeled: Bool, mu: float = 0.5, nu: float = 0.01, steps: int = 10
) -> F64:
    """The propagation of docs/specs/graph.md, section 7.1, dense."""
    delta = labeled[:, None].astype(float)
    for _ in range(steps):
        q = (delta * r + mu * W @ q + nu / q.shape[1]) / (
            delta + nu + mu * W.sum(axis=1, keepdims=True)
        )
    return q


class Strict:
    """Mix in before a method's parameters: trainings run to the optimum."""

    def options(self, **changes: Any) -> Options:
        return replace(STRICT, **changes)
