"""Tri-training: its conditions as printed, what is added, and what three equal taggers do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sslbench import RunContext
from sslbench.engine.crf import HardLabels, PartialLabels
from sslbench.testing.cases import method_case
from sslbench.testing.toys import toy_dataset
from sslbench_methods.tri_training.method import (
    THREE,
    Trainer,
    TriTraining,
    allowed_size,
    count,
    subsample,
)
from sslbench_methods.tri_training.tagger import ThreeTaggers


def fitted(**params: Any) -> Any:
    return method_case(TriTraining, params, ()).fit(toy_dataset())


def trainer_of(**params: Any) -> Trainer:
    problem = fitted(rounds=1, max_iterations=2).problem
    values = TriTraining.Params(**params)
    crf = problem.crf(values)
    return Trainer([replace(crf) for _ in THREE], problem.encode(crf), values, RunContext())


@pytest.mark.parametrize(
    ("error", "last_error", "last_size", "size", "expected"),
    [
        # the first round: l' = floor(e / (e' - e) + 1)
        (0.1, 0.5, 0, 1, 0),  # l' = 1 is not below 1
        (0.1, 0.5, 0, 2, 2),  # 0.2 < 0.5
        (0.1, 0.5, 0, 100, 4),  # 10 > 0.5, and 1 > 0.25: ceil(0.5 / 0.1 - 1)
        (0.2, 0.3, 10, 12, 12),  # 2.4 < 3
        (0.2, 0.3, 10, 20, 14),  # 4 > 3, and 10 > 2: ceil(3 / 0.2 - 1)
        (0.2, 0.3, 2, 20, 0),  # 2 is not above 2
        (0.0, 0.5, 0, 1000, 1000),  # nothing is wrong: all of them
    ],
)
def test_conditions_as_printed(
    error: float, last_error: float, last_size: int, size: int, expected: int
) -> None:
    assert allowed_size(error, last_error, last_size, size) == expected
    if expected > 0:  # the error bound that they are for
        least = last_size or int(error / (last_error - error) + 1)
        assert error * expected < last_error * least


@pytest.mark.parametrize("unit", ["sentence", "token"])
def test_three_equal_taggers_add_nothing_under_disagreement(unit: str) -> None:
    trainer = trainer_of(unit=unit, disagreement=True, conditions="none")
    trainer.crfs[0].train([trainer.text.labeled], trainer.params)
    trainer.crfs = [replace(trainer.crfs[0]) for _ in THREE]
    assert trainer.choose() == [None] * 3
    trainer.params = TriTraining.Params(unit=unit, conditions="none")
    everything = trainer.choose()
    sizes = [
        data.offsets[-1] if unit == "token" else len(data.lengths)
        for data in trainer.text.unlabeled
    ]
    assert [count(each or []) for each in everything] == [sum(sizes)] * 3


@pytest.mark.parametrize("unit", ["sentence", "token"])
@pytest.mark.parametrize("disagreement", [False, True])
def test_examples_are_those_on_which_the_other_two_agree(unit: str, disagreement: bool) -> None:
    trainer = trainer_of(unit=unit, disagreement=disagreement, conditions="none")
    trainer.bootstrap()
    chosen = trainer.choose()
    for i in THREE:
        j, k = (other for other in THREE if other != i)
        for s, data in enumerate(trainer.text.unlabeled):
            third, one, two = (trainer.labels[t][s].tolist() for t in (i, j, k))
            if unit == "sentence":
                cut = [slice(a, b) for a, b in zip(data.offsets, data.offsets[1:], strict=False)]
                third, one, two = ([x[c] for c in cut] for x in (third, one, two))
            expected = [
                b == c and not (disagreement and a == b)
                for a, b, c in zip(third, one, two, strict=True)
            ]
            found = chosen[i]
            assert (found[s].tolist() if found is not None else [False] * len(expected)) == expected


@pytest.mark.parametrize("i", THREE)
def test_a_tagger_is_retrained_on_its_own_examples_alone(i: int) -> None:
    trainer = trainer_of(conditions="none", weight=0.5, weight_scale="sentence")
    trainer.bootstrap()
    found = trainer.choose()[i]
    assert found is not None
    before = [crf.weights.copy() for crf in trainer.crfs]
    one, two = (labels for k, labels in enumerate(trainer.labels) if k != i)
    parts = [trainer.text.labeled]
    for data, a, b, examples in zip(trainer.text.unlabeled, one, two, found, strict=True):
        taken = np.repeat(examples, data.lengths.astype(int))
        assert (a[taken] == b[taken]).all()
        labels = np.where(taken, a, 0).astype(np.int32)
        parts.append((data, HardLabels(labels, 0.5 * examples)))
    expected = replace(trainer.crfs[i], weights=before[i].copy())
    options = trainer.params.options(share=trainer.params.share)
    expected.train(parts, trainer.params, options=options)
    trainer.retrain([found if k == i else None for k in THREE])
    for k in THREE:
        after = expected.weights if k == i else before[k]
        assert trainer.crfs[k].weights == pytest.approx(after, abs=1e-9)
    assert np.abs(trainer.crfs[i].weights - before[i]).max() > 0.01


def test_tokens_that_are_no_examples_are_summed_over() -> None:
    trainer = trainer_of(unit="token", conditions="none", weight=0.5, weight_scale="sentence")
    data = trainer.text.unlabeled[0]
    labels = np.zeros(data.offsets[-1], np.int32)
    examples = np.zeros(len(labels), np.bool_)
    examples[1] = True
    term = trainer._term(data, labels, examples)
    assert isinstance(term, PartialLabels)
    L = len(trainer.crfs[0].labels)
    assert term.allowed.sum(axis=1)[:3].tolist() == [L, 1, L]
    assert term.weights is not None
    assert term.weights.tolist() == [0.5] + [0.0] * (len(data.lengths) - 1)


def test_added_sentences_have_a_weight_beside_all_labeled_ones() -> None:
    trainer = trainer_of(weight=0.3, weight_scale="ratio")
    data = trainer.text.unlabeled[0]
    labels, examples = np.zeros(data.offsets[-1], np.int32), np.ones(len(data.lengths), np.bool_)
    term = trainer._term(data, labels, examples)
    labeled, *unlabeled = (len(part.lengths) for part in trainer.text.corpora)
    assert isinstance(term, HardLabels)
    assert term.weights == pytest.approx(np.full(len(examples), 0.3 * labeled / sum(unlabeled)))


def test_subsample() -> None:
    chosen = [np.array([True, False, True]), np.array([True] * 4)]
    found = subsample(chosen, 3, np.random.default_rng(1))
    assert count(found) == 3
    assert all((part & ~whole).sum() == 0 for part, whole in zip(found, chosen, strict=True))
    assert subsample(chosen, 9, np.random.default_rng(1)) is chosen


@pytest.mark.parametrize("combine", ["mean", "majority"])
def test_three_equal_taggers_are_one(combine: str) -> None:
    tagger, test = fitted().own_tagger, toy_dataset().splits["test"]
    one = tagger.crf
    three = ThreeTaggers(one, (one.weights, one.weights), combine)
    assert np.allclose(three.predict_marginals(test), one.predict_marginals(test))
    expected = one.predict(test)
    if combine == "mean":
        expected = one.predict_marginals(test).argmax(axis=1)
    assert three.predict(test).tolist() == expected.tolist()


def test_without_text_the_taggers_are_those_of_the_bootstrap() -> None:
    trainer = trainer_of()
    trainer.run.rng = np.random.default_rng(2)
    trainer.bootstrap()
    n = len(trainer.text.labeled[0].lengths)
    rng = np.random.default_rng(2)
    for crf in trainer.crfs:
        drawn = rng.integers(0, n, n)
        other = replace(crf, weights=np.zeros_like(crf.weights))
        data, gold = trainer.text.labeled
        times = np.bincount(drawn, minlength=n).astype(float)
        other.train([(data, type(gold)(gold.labels, times))], trainer.params)
        assert other.weights.tolist() == crf.weights.tolist()


def test_the_record_says_what_was_added() -> None:
    run: RunContext = fitted(conditions="none").trained.run
    entries = run.trace["rounds"]
    assert all(len(entry["added"]) == 3 for entry in entries)
