"""Training and counting have the same bits whatever the number of threads."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from sslbench.engine.compilation.threads import using_threads
from sslbench.engine.corpus import Corpus
from sslbench.engine.crf import (
    BatchPotentials,
    ChainModel,
    HardLabels,
    LogPartition,
    Options,
    PotentialGradient,
    TrainingParams,
)
from sslbench.engine.features import TemplateFeaturizer
from sslbench.engine.types import F64, I32
from support.synth_text import TEMPLATES, synth_text
from support.threads import THREADS
from support.waiting import HANG


def text() -> tuple[Corpus, I32, tuple[str, ...]]:
    corpus = synth_text(300, seed=1)
    column = corpus.column("label")
    return corpus, column.codes.astype(np.int32), tuple(column.vocabulary.strings)


def trained(support: str) -> F64:
    corpus, codes, labels = text()
    crf = ChainModel().prepare(
        TemplateFeaturizer(TEMPLATES), corpus, codes, labels, state_support=support
    )
    crf.train(
        [(crf.encode(corpus), HardLabels(codes))],
        TrainingParams(sigma2=1.0),
        options=Options(max_iterations=12),
    )
    return crf.weights


@pytest.mark.parametrize("support", ["all", "observed"])
def test_training(support: str) -> None:
    with using_threads(1):
        expected = trained(support)
    for threads in THREADS[1:]:
        with using_threads(threads):
            np.testing.assert_array_equal(trained(support), expected)


class Recorded:
    """log Z; records which batch was evaluated by which thread."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seen: list[tuple[int, int]] = []
        self.seconds = seconds
        self.met = threading.Event()

    def evaluate(self, potentials: BatchPotentials) -> PotentialGradient:
        self.seen.append((potentials.batch.lo, threading.get_ident()))
        self.let_others_come()
        return LogPartition().evaluate(potentials)

    def let_others_come(self) -> None:
        time.sleep(self.seconds)

    def n_tokens(self, lengths: F64) -> float:
        return float(lengths.sum())


class Stateless(Recorded):
    """The same, which allows several threads. The first one waits until there is another."""

    stateless = True

    def let_others_come(self) -> None:
        if len({thread for _, thread in self.seen}) > 1:
            self.met.set()
        assert self.seconds == 0.0 or self.met.wait(HANG)


@pytest.mark.parametrize("kind", [Recorded, Stateless])
def test_a_term_that_adds_up_sees_its_batches_in_order_in_one_thread(kind: type[Recorded]) -> None:
    corpus, codes, labels = text()
    crf = ChainModel().prepare(TemplateFeaturizer(TEMPLATES), corpus, codes, labels)
    data = crf.encode(corpus)
    assert len(data.batches) > 3
    term = kind(0.02)
    with using_threads(3):
        crf.expect([(data, term)])
    places = [lo for lo, _ in term.seen]
    assert sorted(places) == [batch.lo for batch in data.batches]
    alone = {thread for _, thread in term.seen} == {threading.get_ident()}
    assert (alone and places == sorted(places)) is (kind is Recorded)
