"""E-steps and M-steps of posterior regularization against the multiply-adds they need.

A pass over a token takes 3 L^2 multiply-adds in a first-order chain and 3 L^3 in a second-order one
(forward, backward, expected transitions), and two for every weight of its attributes. The bound is
what a product of large dense matrices makes of that many, in the same process on one thread. Times
are of the CPU, since machines are shared.
"""

from __future__ import annotations

import time
import tracemalloc
from typing import Any

import numpy as np
import pytest
from problem import OUT, ROUNDS, Figure, five_nearest

from sslbench.engine.corpus import Column, Corpus, Vocabulary
from sslbench.engine.crf import ChainModel, LogPartition, Objective
from sslbench.engine.features import TemplateFeaturizer
from sslbench.engine.types import I32
from sslbench_methods.graph_pr.e_step import RegularizedPosterior
from sslbench_methods.graph_pr.penalties import GraphLaplacian

TOKENS, LENGTH, SLOTS = (39_996, 12, 16) if OUT else (480, 12, 3)


def multiply_adds_per_second() -> float:
    n = 600 if OUT else 60
    a, b = np.ones((n, n)), np.ones((n, n))
    best = np.inf
    for _ in range(5):
        begin = time.process_time()
        a @ b
        best = min(best, time.process_time() - begin)
    return n**3 / best


def generated(labels: int) -> tuple[Corpus, I32]:
    """Sentences of random words, SLOTS columns each."""
    rng, columns = np.random.default_rng(0), {}
    for slot in range(SLOTS):
        words = Vocabulary(f"{slot}-{i}" for i in range(4000))
        codes = np.minimum(rng.geometric(2e-3, TOKENS) - 1, 3999).astype(np.int32)
        columns[f"c{slot}"] = Column(words, codes)
    text = Corpus(columns, np.arange(0, TOKENS + 1, LENGTH))
    return text, rng.integers(0, labels, text.n_tokens).astype(np.int32)


def seconds(work: Any) -> float:
    best = np.inf
    for _ in range(3 * ROUNDS if OUT else 1):
        begin = time.process_time()
        work()
        best = min(best, time.process_time() - begin)
    return best


def peak_bytes(work: Any) -> int:
    """What numpy asks for, at most, besides what is there before."""
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("labels", [12, 26])
def test_passes(figure: Figure, labels: int, order: int) -> None:
    text, codes = generated(labels)
    featurizer = TemplateFeaturizer([f"c{slot}[0]" for slot in range(SLOTS)])
    crf = ChainModel(order).prepare(featurizer, text, codes, [str(i) for i in range(labels)])
    crf.weights = np.random.default_rng(1).normal(0, 0.1, crf.layout.size)
    data, V, n = crf.encode(text), 1 + text.n_tokens // 2, text.n_tokens
    vertex = np.random.default_rng(2).integers(0, V, n).astype(np.int32)
    nobody = np.empty(0, np.int32)
    penalty = GraphLaplacian.build(five_nearest(V), nobody, nobody, vertex, labels)
    problem = RegularizedPosterior(crf, [data], penalty, 1.0)
    model = problem.model(crf.weights)
    gradient = np.empty_like(crf.weights)
    text_alone = Objective(crf.layout, [(data, LogPartition())], 1e4)
    steps = {
        "E-step": lambda: problem.step(model, model, 0.5),
        "M-step": lambda: text_alone.value_and_gradient(crf.weights, gradient),
    }
    pace = multiply_adds_per_second()
    for name, work in steps.items():
        chain, features = 3 * labels ** (order + 1), SLOTS * labels * (1 if name == "E-step" else 2)
        work()
        took = seconds(work)
        figure(
            f"{name}, {labels} labels, order {order}",
            "CPU us/token",
            ours=1e6 * took / n,
            bound=1e6 * (chain + features) / pace,
            share=(chain + features) / pace / (took / n),
            bytes_per_token=peak_bytes(work) / n,
        )
