"""The toy of docs/specs/graph_self_training.md: five vertices."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from sslbench.engine.corpus import Corpus
from sslbench.engine.crf import ChainCRF
from sslbench.engine.types import F64, I32
from sslbench.experiment.context.context import RunContext
from sslbench.method import Sigma2, TextVertices
from sslbench_methods.graph_self_training.algorithm import TypeTrainer
from sslbench_methods.graph_self_training.method import TypeParams
from sslbench_methods.self_labeled import WeightScale
from sslbench_methods.shared import FeaturePruning
from support.graph_toys import Strict, corpus, crf_over, encoded, jacobi, symmetric

WEIGHTS = [[0.5, -0.5], [-0.5, 0.5], [0, 0], [0, 0], [-0.3, 0.8], [-0.2, -0.3]]
GRAPH = symmetric(5, {(0, 2): 0.6, (1, 3): 0.8, (0, 3): 0.1, (3, 4): 0.5})
R = np.array([[1.0, 0], [0, 1], [0, 0], [0, 0], [0, 0]])
IN_LABELED = np.array([True, True, False, False, False])
VERTEX_OF = np.array([0, 1, 2, 0, 3, 1, 4], np.int32)
GUESS = np.array([0, 0, 1, 0, 1], np.int32)


class Params(Strict, TypeParams, frozen=True, kw_only=True):
    """The paper's parameters, with strict trainings."""

    eta_scale: WeightScale = "sentence"
    sigma2: Sigma2 = 50.0
    omega: float = 1.0
    feature_pruning: FeaturePruning = "none"
    retraining: int = 100_000


def smoothing(W: F64, steps: int = 10) -> Callable[[F64], F64]:
    return lambda q: jacobi(W, q, R, IN_LABELED, steps=steps)


def vertices(vertex_of: I32, n: int = 5) -> TextVertices:
    """n vertices; their labels are not read."""
    return TextVertices(vertex_of, n, 0, R, IN_LABELED)


def trainer(crf: ChainCRF, unlabeled: list[Corpus], **options: Any) -> TypeTrainer:
    smooth = options.pop("smooth", smoothing(GRAPH))
    vertex_of = options.pop("vertex_of", VERTEX_OF)
    text = encoded(crf, unlabeled)
    params = Params(**options)
    known = vertices(vertex_of)
    return TypeTrainer(crf, text, known, smooth, params.label, params, RunContext())


def three_tokens(transitions: object, n_labels: int = 2) -> tuple[ChainCRF, Any]:
    text = corpus([0, 1, 2])
    crf = crf_over(text, np.zeros(3, np.int32), n_labels=n_labels)
    crf.weights[-(n_labels**2) :] = np.ravel(transitions)
    return crf, crf.encode(text)


def score(mixed: F64, A: F64, y: tuple[int, ...], omega: float = 1.0) -> float:
    arcs = sum(A[a, b] for a, b in pairwise(y))
    return float(np.log([mixed[t, b] for t, b in enumerate(y)]).sum() + omega * arcs)
