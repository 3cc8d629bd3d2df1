"""The toy of docs/specs/entropy_regularization.md, section 12, and its tiny problems."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from sslbench.engine.corpus import Column, Corpus, CorpusShards, Vocabulary
from sslbench.engine.crf import STRICT, ChainCRF, ChainModel, EncodedCorpus, HardLabels, Objective
from sslbench.engine.crf.entropy import Entropy
from sslbench.engine.crf.optim import lbfgs
from sslbench.engine.crf.terms import Term
from sslbench.engine.crf.weights.layout import Layout
from sslbench.engine.features import Attributes, TemplateFeaturizer
from sslbench.engine.types import F64
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.inputs.problem import Problem
from sslbench_methods.entropy_regularization.method import EntropyRegularization, EntropyTrainer
from support.graph_toys import Strict, corpus, encoded, pairs

SYMBOLS = Vocabulary(["0", "1", "2"])
LABELED = corpus([0, 1, 2], [1, 0], vocabulary=SYMBOLS)
Y = np.array([0, 1, 1, 1, 0], np.int32)
TEXT = corpus([2, 2, 0, 1], [1], [0, 2], vocabulary=SYMBOLS)
#: state weights symbol by symbol, transitions from 0, 1 and START, stop
LAMBDA = np.array([0.3, -0.2, 0.1, 0.4, -0.5, 0.25, 0.2, -0.1, -0.3, 0.15, 0.05, -0.05, 0.1, -0.1])
FOR_2201 = np.array(
    [
        *pairs(0.0500729102, -0.0133263699, -0.3200847538),
        -0.0804605801,
        -0.1895512635,
        -0.0396613292,
        0.3096731728,
        *pairs(-0.1632163043, -0.0133263699),
    ]
)
SLOPE = [
    *pairs(0.1662012172, -0.0133263699, -0.4094794055),
    -0.0695245286,
    -0.0843590081,
    -0.1399920324,
    0.2938755690,
    *pairs(-0.0470879973, -0.1027210216),
]
Parts = list[tuple[EncodedCorpus, Term]]


class Params(Strict, EntropyRegularization.Params, frozen=True, kw_only=True):
    """Parameters with strict trainings, and the paper's prior and scale."""

    sigma2: float = 1.0
    gamma_scale: str = "sum"
    joint_iterations: int = 5000
    restarts: int = 0


def close(actual: object, wanted: object, atol: float = 1e-9) -> None:
    np.testing.assert_allclose(actual, wanted, rtol=0, atol=atol)


def toy(weights: F64 | None = None) -> ChainCRF:
    crf = ChainModel().prepare(TemplateFeaturizer(["x[0]"]), LABELED, Y, "ab")
    assert crf.layout.size == 14
    if weights is not None:
        crf.weights[:] = weights
    return crf


def trainer(text: Sequence[Corpus] = (TEXT,), **options: Any) -> EntropyTrainer:
    crf = toy()
    return EntropyTrainer(crf, encoded(crf, text, LABELED, Y), Params(**options), RunContext())


def evaluate(parts: Parts, weights: F64, sigma2: float = np.inf) -> tuple[float, F64]:
    gradient = np.empty_like(weights)
    objective = Objective(parts[0][0].layout, parts, sigma2)
    return objective.value_and_gradient(weights, gradient), gradient


def entropy_at(weights: F64, text: Corpus = TEXT, term: Term | None = None) -> tuple[float, F64]:
    """-sum H and its gradient; term: what computes them (None = the engine's)."""
    return evaluate([(toy().encode(text), term or Entropy())], weights)


def objective_at(weights: F64, gamma: float, text: Corpus = TEXT) -> tuple[float, F64]:
    crf = toy()
    parts: Parts = [(crf.encode(LABELED), HardLabels(Y)), (crf.encode(text), Entropy(gamma))]
    return evaluate(parts, weights, 1.0)


class Sequences:
    """All label sequences of a sentence: features float64[P, 14] and probabilities."""

    def __init__(self, symbols: Sequence[int], weights: F64) -> None:
        self.f = np.array(
            [self._features(symbols, y) for y in product((0, 1), repeat=len(symbols))]
        )
        score = self.f @ weights
        self.log_z = float(np.log(np.exp(score).sum()))
        self.p = np.exp(score - self.log_z)
        self.mean = self.p @ self.f
        centered = self.f - self.mean
        self.covariance = (centered * self.p[:, None]).T @ centered
        self.same_position = self._same_position(symbols)

    def _same_position(self, symbols: Sequence[int]) -> F64:
        """float64[14, 14]: the part of E[f f'] of which both features belong to one edge."""
        total = np.zeros((14, 14))
        for p, y in zip(self.p, product((0, 1), repeat=len(symbols)), strict=True):
            before = np.zeros(14)
            for t in range(len(symbols)):
                # the stop feature belongs to the edge into the last position
                stop = t == len(symbols) - 1
                until = self._features(symbols[: t + 1], y[: t + 1], stop=stop)
                total += p * np.outer(until - before, until - before)
                before = until
        return total

    @staticmethod
    def _features(symbols: Sequence[int], y: Sequence[int], *, stop: bool = True) -> F64:
        f, previous = np.zeros(14), 2
        for x, b in zip(symbols, y, strict=True):
            f[2 * x + b] += 1
            f[6 + 2 * previous + b] += 1
            previous = b
        f[12 + y[-1]] += stop
        return f


def toy_optimum() -> F64:
    one = trainer(gamma=0.0)
    one.train()
    return one.crf.weights


def toy_problem() -> Problem:
    labels = Vocabulary(["a", "b"])
    labeled = LABELED.with_column("label", Column(labels, Y))
    return Problem(
        "tagging",
        None,
        ("a", "b"),
        labeled,
        CorpusShards(TEXT),
        None,
        TemplateFeaturizer(["x[0]"]),
        ChainModel(),
    )


def tokens(*rows: Sequence[int]) -> Attributes:
    """One-token sentences; rows: the attributes of each slot, -1 = none."""
    node = np.array(rows, np.int32)
    n = node.shape[1]
    return Attributes(node, np.empty((0, n), np.int32), None, np.arange(n + 1))


def one_bias() -> Layout:
    """One weight: an attribute on every token with label 1."""
    return Layout(
        2,
        1,
        0,
        0,
        np.array([0, 1]),
        np.array([1], np.int32),
        np.zeros(1, np.int64),
        np.zeros(0, np.int32),
        use_start=False,
        use_stop=False,
    )


def maximum(parts: Parts, sigma2: float, start: F64) -> tuple[float, F64]:
    objective = Objective(parts[0][0].layout, parts, sigma2)
    actual = lbfgs.minimize(objective.scaled_loss, start, STRICT)
    return -actual.value * objective.n_tokens, actual.weights
