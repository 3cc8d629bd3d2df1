"""The entropy of unlabeled text beside its likelihood, and beside the nested dynamic program.

Terms alone, on generated potentials; and whole evaluations (weights to gradient) on the text of the
other benchmarks.  Exponents are slopes of log time over log size, sizes doubling.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from ours import label_codes
from problem import OUT, ROUNDS, Figure, Text

from sslbench.engine.crf import ChainModel, HardLabels, LogPartition, Objective, Term
from sslbench.engine.crf.data import Batch
from sslbench.engine.crf.entropy import Entropy
from sslbench.engine.crf.first_order.batch import BatchPotentials
from sslbench.plugins import registry
from support.nested_entropy import NestedEntropy

TOKENS = 2_000 if OUT else 48
REPEAT = 5 * ROUNDS if OUT else 1
LABELS = [3, 22, 60]
LENGTHS, SIZES = ([25, 50, 100, 200], [10, 20, 40, 80]) if OUT else ([2, 4], [2, 4])


def batch(length: int, tokens: int) -> Batch:
    """Sentences of one length."""
    offsets = np.arange(0, max(length, tokens) + 1, length)
    return Batch(0, int(offsets[-1]), 0, len(offsets) - 1, offsets)


def potentials(own: Batch, labels: int, per_position: bool) -> Callable[[], BatchPotentials]:
    """Makes fresh ones: inference consumes scores per position."""
    rng = np.random.default_rng(0)
    node = rng.normal(size=(own.n_tokens, labels))
    edge = rng.normal(size=(own.n_tokens if per_position else 1, labels, labels))
    return lambda: BatchPotentials(own, node, edge.copy())


def fastest(work: Callable[[Any], object], make: Callable[[], Any]) -> float:
    """Seconds of CPU (of all threads) of work(make()), the making not measured, nor a first round:
    other work on the machine does not count.
    """
    seconds = []
    for _ in range(REPEAT + 1):
        given = make()
        begin = time.process_time()
        work(given)
        seconds.append(time.process_time() - begin)
    return min(seconds[1:])


@pytest.mark.parametrize("per_position", [False, True], ids=["shared", "own"])
@pytest.mark.parametrize("labels", LABELS)
def test_the_term_alone(figure: Figure, labels: int, per_position: bool) -> None:
    tokens = min(TOKENS, 256) if per_position else TOKENS
    make = potentials(batch(24, tokens), labels, per_position)
    plain, result = LogPartition().evaluate(make()), Entropy().evaluate(make())
    assert result.node.shape == plain.node.shape
    assert result.edge.shape == plain.edge.shape
    times = [fastest(term.evaluate, make) for term in (LogPartition(), Entropy())]
    n, kind = make().batch.n_tokens, "transitions per position" if per_position else "transitions"
    figure(
        f"entropy, {labels} labels, {kind}",
        "us/token",
        ours=1e6 * times[1] / n,
        log_partition=1e6 * times[0] / n,
        ratio=times[1] / times[0],
    )


@pytest.mark.parametrize("name", ["chunk39", "basic", "gene2005"])
def test_a_whole_evaluation(text: Text, figure: Figure, name: str) -> None:
    """Weights to gradient: with transitions that depend on the words, and with one matrix."""
    featurizer = registry().featurizer(name).load()()
    labels, codes = label_codes(text.train)
    crf = ChainModel().prepare(featurizer, text.train, codes, labels)
    crf.weights = np.random.default_rng(0).normal(0, 0.1, crf.layout.size)
    data, gradient, seconds = crf.encode(text.train), np.empty_like(crf.weights), []
    for term in (HardLabels(codes), Entropy()):
        objective = Objective(crf.layout, [(data, term)], 10.0)
        work = partial(objective.value_and_gradient, gradient=gradient)
        seconds.append(fastest(work, lambda: crf.weights))
    figure(
        f"entropy: value and gradient, {name}",
        "s",
        ours=seconds[1],
        likelihood=seconds[0],
        ratio=seconds[1] / seconds[0],
    )


@pytest.mark.parametrize("nested", [False, True], ids=["dual numbers", "nested"])
def test_growth(figure: Figure, nested: bool) -> None:
    """Milliseconds of a sentence by its length and by the number of labels, and the exponents."""
    term, tokens = (NestedEntropy(), 1) if nested else (Entropy(), TOKENS)
    name = f"entropy by {'the nested program' if nested else 'dual numbers'}"
    by_length = {T: per_sentence(term, T, SIZES[0], tokens) for T in LENGTHS}
    by_labels = {L: per_sentence(term, LENGTHS[0], L, tokens) for L in SIZES}
    figure(f"{name}: tokens, {SIZES[0]} labels", "ms/sentence", **points(by_length))
    figure(f"{name}: labels, {LENGTHS[0]} tokens", "ms/sentence", **points(by_labels))


def per_sentence(term: Term, length: int, labels: int, tokens: int) -> float:
    own = batch(length, tokens)
    seconds = fastest(term.evaluate, potentials(own, labels, per_position=False))
    return seconds / (own.sentence_hi - own.sentence_lo)


def points(seconds: dict[int, float]) -> dict[str, float]:
    """Milliseconds by size, and the slope of the least-squares line through the logarithms."""
    slope = np.polyfit(np.log(list(seconds)), np.log(list(seconds.values())), 1)[0]
    return {**{str(n): 1e3 * x for n, x in seconds.items()}, "exponent": float(slope)}
