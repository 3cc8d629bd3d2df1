"""Second-order decoding beside one evaluation with its gradient: decoding.py LABELS ...

CPU seconds of one thread on 400 sentences of the WSJ sample with random labels, best of four.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import peer_features

from sslbench.engine.crf import HardLabels, Objective
from sslbench.engine.crf.chain_model import SecondOrderModel


def seconds(work: Callable[[], object]) -> float:
    """The best of four, after one that compiles."""
    work()
    found = []
    for _ in range(4):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return min(found)


def main() -> None:
    """A line for each number of labels."""
    text, featurizer = peer_features.problem("wsj_sample:400:pos_window")
    rng = np.random.default_rng(0)
    for L in map(int, sys.argv[1:]):
        codes = rng.integers(0, L, text.n_tokens).astype(np.int32)
        codes[:L] = np.arange(L)
        names = tuple(f"L{i:03}" for i in range(L))
        crf = SecondOrderModel().prepare(featurizer, text, codes, names, state_support="observed")
        crf.weights = rng.normal(0, 0.1, len(crf.weights))
        data, gradient = crf.encode(text), np.empty(len(crf.weights))
        objective = Objective(crf.layout, [(data, HardLabels(codes))], 10.0)
        weights = crf.weights
        once = seconds(partial(objective.value_and_gradient, weights, gradient))
        decoded = seconds(partial(crf.decode, data))
        print(f"| {L} | {once:.3f} | {decoded:.3f} | {decoded / once:.2f} |", flush=True)


if __name__ == "__main__":
    main()
