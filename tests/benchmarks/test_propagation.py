"""A step of label propagation against the time that its bytes need to come from memory."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from problem import ROUNDS, SENTENCES, Figure, five_nearest

from sslbench_methods.graph_self_training.algorithm import propagate

VERTICES = 2_000 if SENTENCES else 400_000  # a plain run of the tests takes a small graph
STEPS = 10


def bandwidth() -> float:
    """Bytes per second that one thread reads and writes when it copies a long vector."""
    source, target = np.ones(2**24), np.empty(2**24)
    best = np.inf
    for _ in range(5):
        begin = time.perf_counter()
        np.copyto(target, source)
        best = min(best, time.perf_counter() - begin)
    return 2 * source.nbytes / best


@pytest.mark.parametrize("labels", [12, 44])
def test_edges_per_second(benchmark: Any, figure: Figure, labels: int) -> None:
    W, rng = five_nearest(VERTICES), np.random.default_rng(1)
    start = rng.dirichlet(np.ones(labels), VERTICES)
    labeled = rng.random(VERTICES) < 0.1

    def work() -> object:
        return propagate(W, start, start, labeled, 0.5, 0.01, STEPS)

    benchmark.pedantic(work, rounds=ROUNDS, iterations=1, warmup_rounds=1)
    if not benchmark.enabled:
        return
    seconds = float(benchmark.stats.stats.median) / STEPS
    # all rows from memory, none twice
    per_edge = W.indices.itemsize + W.data.itemsize + start.itemsize * labels
    bound, pace = bandwidth() / per_edge, W.nnz / seconds
    name = f"propagation, {W.nnz / 2e6:.1f} M edges, {labels} labels"
    figure(f"{name}, a step", "s", ours=seconds)
    figure(f"{name}, pace", "edges/s", ours=pace, memory_bound=bound, share=pace / bound)
