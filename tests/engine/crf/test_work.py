"""The estimated time of an evaluation: what is counted, and when it is told."""

from __future__ import annotations

import time
from itertools import pairwise, product

import numpy as np
import pytest

from sslbench.engine.corpus import Column, Corpus, Vocabulary
from sslbench.engine.crf import HardLabels, TrainingParams, work
from sslbench.engine.crf.chain_model import ChainModel, SecondOrderModel
from sslbench.engine.crf.memory import most_memory
from sslbench.engine.crf.objective import Objective
from sslbench.engine.features import TemplateFeaturizer


@pytest.mark.parametrize("order", [1, 2])
def test_allowed_combinations_are_counted(order: int) -> None:
    mask = np.random.default_rng(order).random((6, 5)) < 0.5
    allowed = sum(
        all(mask[a, b] for a, b in pairwise(labels))
        for labels in product(range(5), repeat=order + 1)
    )
    assert work.combinations(5, order, mask) == allowed
    assert work.combinations(5, order, None) == 5 ** (order + 1)


def toy(n_labels: int, n_sentences: int, model: ChainModel) -> tuple[Objective, np.ndarray]:
    rng, n = np.random.default_rng(0), 10 * n_sentences
    words = Column(Vocabulary([f"w{i}" for i in range(20)]), rng.integers(0, 20, n))
    corpus = Corpus({"word": words}, np.arange(0, n + 1, 10))
    gold = rng.integers(0, n_labels, n).astype(np.int32)
    labels = [f"L{i}" for i in range(n_labels)]
    crf = model.prepare(TemplateFeaturizer(["word[0]"]), corpus, gold, labels)
    parts = [(crf.encode(corpus), HardLabels(gold))]
    crf.train(parts, TrainingParams(max_iterations=1))
    return Objective(crf.layout, parts, 10.0), crf.weights


@pytest.mark.parametrize("model", [ChainModel(), SecondOrderModel()])
def test_a_long_evaluation_is_told_once(
    model: ChainModel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SSLBENCH_TOLD", "")
    toy(3, 4, model)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(work, "TOLD_FROM", 1e-9)
    toy(3, 4, model)
    toy(3, 5, model)
    (line,) = capsys.readouterr().err.splitlines()
    kind = "9 pairs of labels" if model.order == 1 else "27 triples of labels"
    assert "CPU seconds (40 tokens" in line
    assert kind in line
    assert ("--model crf1" in line) == (model.order == 2)


def test_the_estimate_has_the_right_size() -> None:
    """Within a factor of 30, on any machine: minutes are told from days."""
    objective, weights = toy(60, 100, SecondOrderModel())
    objective.value_and_gradient(weights, np.empty_like(weights))  # compiles the kernels
    measured = np.inf  # the shortest of three
    for _ in range(3):
        began = time.process_time()
        objective.value_and_gradient(weights, np.empty_like(weights))
        measured = min(measured, time.process_time() - began)
    estimated = work.evaluation_seconds(objective.parts[0][0].lengths, 60, 2, 60**3)
    assert estimated / 30 < measured < estimated * 30


def test_memory_is_what_the_process_may_allocate(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    true = resource.getrlimit

    def limited(what: int) -> tuple[int, int]:
        return (2**20, 2**20) if what == resource.RLIMIT_DATA else true(what)

    assert most_memory() > 2**20
    monkeypatch.setattr(resource, "getrlimit", limited)
    assert most_memory() == 2**20
