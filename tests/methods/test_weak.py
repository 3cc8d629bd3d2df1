"""Methods for weak labels: label models and terms by enumeration, true and random sources."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from sslbench.engine.corpus import Column, Vocabulary
from sslbench.engine.crf import ChainCRF, PartialLabels
from sslbench.engine.types import F64, I32
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.data import Dataset
from sslbench.experiment.data.weak import ABSTAINS, PREFIX, UNREAD, without_weak
from sslbench.testing.cases import FittedCase, method_case, predicted_labels
from sslbench.testing.toys import toy_dataset, with_weak_sources
from sslbench_methods.supervised import Supervised
from sslbench_methods.weak.label_models import LabelModel, dawid_skene, hidden_markov
from sslbench_methods.weak.outcomes import Outcomes, majority, normalized
from sslbench_methods.weak.trust import LEARNERS as CLASSES

LEARNERS = ("weak_vote", "fuzzy_crf", "noisy_channel", "weak_soft")
METHODS = (*LEARNERS, "weak_trust")
EXACT = {"ftol": 1e-9}
OFFSETS = np.array([0, 3, 4, 8])
#: two sources of eight tokens: labels 0 and 1, 2 = silent, -1 = not read
CODES = np.array([[0, 1, 2, 1, -1, -1, -1, -1], [0, 0, 1, 2, 1, 1, 0, 0]], np.int32)
GOLD = np.array([0, 1, 1, -1, -1, -1, -1, -1], np.int32)


def paths(model: LabelModel, outcomes: Outcomes, gold: I32) -> Iterator[tuple[slice, Any, float]]:
    """Every labeling of every sentence, with its probability and that of what the sources say."""
    for first, last in pairwise(OFFSETS.tolist()):
        for labels in product(range(2), repeat=last - first):
            p, before = 1.0, 2
            for t, y in zip(range(first, last), labels, strict=True):
                p *= model.transitions[before, y] * (gold[t] in (-1, y))
                for k, codes in enumerate(outcomes.codes):
                    p *= 1.0 if codes[t] < 0 else model.confusion[k, y, codes[t]]
                before = y
            yield slice(first, last), labels, p


@pytest.mark.parametrize("fit", [dawid_skene, hidden_markov])
def test_label_models_by_enumeration(fit: Any) -> None:
    outcomes = Outcomes(CODES, 2)
    model = fit(outcomes, GOLD, OFFSETS, rounds=4)
    expected, total = np.zeros((8, 2)), dict.fromkeys(OFFSETS[:-1].tolist(), 0.0)
    for sentence, labels, p in paths(model, outcomes, GOLD):
        total[sentence.start] += p
        expected[np.arange(sentence.start, sentence.stop), labels] += p
    expected /= expected.sum(axis=1, keepdims=True)
    assert np.allclose(model.labels, expected)
    assert model.log_likelihoods[-1] == pytest.approx(sum(map(np.log, total.values())))
    assert np.array_equal(model.labels[:3], np.eye(2)[GOLD[:3]])
    same = np.allclose(model.transitions, model.transitions[0])
    assert same == (fit is dawid_skene)


def test_label_models_learn_who_is_right() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 600)
    good = np.where(rng.random(600) < 0.9, truth, rng.integers(0, 3, 600))
    bad = rng.integers(0, 3, (2, 600))
    codes = np.vstack([good, bad]).astype(np.int32)
    gold = np.where(np.arange(600) < 60, truth, -1).astype(np.int32)
    outcomes, offsets = Outcomes(codes, 3), np.arange(0, 601, 6)
    for fit in (dawid_skene, hidden_markov):
        model = fit(outcomes, gold, offsets)
        assert (model.labels.argmax(axis=1) == truth)[60:].mean() > 0.9
        assert np.diagonal(model.confusion[0]).min() > 0.8
    assert (majority(outcomes, ("a", "b", "c")) == truth).mean() < 0.8


def test_counts_votes_and_evidence_by_loops() -> None:
    outcomes, labels = Outcomes(CODES, 2), np.random.default_rng(1).random((8, 2))
    counts, evidence = np.zeros((2, 2, 3)), np.zeros((8, 2))
    for k, t, y in product(range(2), range(8), range(2)):
        if CODES[k, t] >= 0:
            counts[k, y, CODES[k, t]] += labels[t, y]
    assert np.allclose(outcomes.counts(labels), counts)
    confusion = normalized(counts)
    assert np.allclose(confusion.sum(axis=-1), 1)
    for k, t, y in product(range(2), range(8), range(2)):
        if CODES[k, t] >= 0:
            evidence[t, y] += np.log(confusion[k, y, CODES[k, t]])
    assert np.allclose(outcomes.evidence(confusion), evidence)
    assert majority(outcomes, ("A", "O")).tolist() == [0, 0, 1, 1, 1, 1, 0, 0]  # A before O
    assert outcomes.between(3, 4).read.tolist() == [True]


def test_the_noisy_channel_by_enumeration() -> None:
    """log sum_y p(y | x) prod_t C(w_t | y_t) of every sentence."""
    case = method_case("supervised", None, ()).fit(toy_dataset())
    labeled = without_weak(case.problem.labeled)
    corpus = labeled.select(np.flatnonzero(labeled.lengths < 5))
    crf, rng = case.own_tagger, np.random.default_rng(2)
    assert isinstance(crf, ChainCRF)
    assert corpus.n_sentences
    data, evidence = crf.encode(corpus), np.log(rng.random((corpus.n_tokens, len(crf.labels))))
    term = PartialLabels(np.ones(evidence.shape, np.bool_), evidence)
    values = crf.evaluate([(data, term)])
    everything = crf.n_best(data, len(crf.labels) ** 4)
    for i, (value, paths) in enumerate(zip(values, everything, strict=True)):
        own = evidence[corpus.offsets[i] : corpus.offsets[i + 1]]
        says = [own[np.arange(len(own)), labels].sum() for labels in paths.labels]
        assert value == pytest.approx(np.log(np.exp(paths.log_probability + says).sum()))


def with_source(dataset: Dataset, codes: F64 | I32, labels: list[str]) -> Dataset:
    """The dataset with one weak source of train. codes: numbers into the labels."""
    train = dataset.splits["train"]
    words = Vocabulary(labels)
    train = train.with_column(f"{PREFIX}one", Column(words, codes.astype(np.int32)))
    return replace(dataset, splits={**dataset.splits, "train": train})


def fitted(method: str, dataset: Dataset, **params: Any) -> FittedCase:
    return method_case(method, {**EXACT, **params}, ()).fit(dataset, labeled=12)


def accuracy(case: FittedCase) -> float:
    test = case.dataset.splits["test"]
    right = [
        a == b for a, b in zip(case.predicted(test), test.column("label").strings(), strict=True)
    ]
    return float(np.mean(right))


@pytest.mark.parametrize("method", METHODS)
def test_a_source_that_is_the_truth_gives_the_supervised_score(method: str) -> None:
    data = toy_dataset(train=60, test=60)
    gold = data.splits["train"].column("label")
    labels = gold.vocabulary.strings
    whole = method_case("supervised", {**EXACT, "sigma2": 1.0}, ()).fit(data, labeled="all")
    # each sentence weighs as much as a labeled one
    more = {"label_model": "vote"} if method == "weak_soft" else {}
    weak = fitted(method, with_source(data, gold.codes, labels), weight=4.0, **more)
    if method in ("weak_vote", "fuzzy_crf"):  # the same objective
        test = data.splits["test"]
        assert weak.predicted(test) == whole.predicted(test)
    assert accuracy(weak) == pytest.approx(accuracy(whole), abs=0.01)


def test_noise_costs_less_than_a_point() -> None:
    cost: dict[str, list[float]] = {"noisy_channel": [], "weak_soft": [], "weak_vote": []}
    for seed in range(3):
        data = toy_dataset(train=300, test=200, seed=seed)
        n = data.splits["train"].n_tokens
        noise = np.random.default_rng(seed).integers(0, 4, n)
        noisy = with_source(data, noise, ["N", "V", "D", "P"])
        plain = accuracy(fitted("supervised", data, sigma2=1.0))
        for method, costs in cost.items():
            costs.append(plain - accuracy(fitted(method, noisy)))
    assert np.mean(cost["noisy_channel"]) < 0.01
    assert np.mean(cost["weak_soft"]) < 0.01
    assert np.mean(cost["weak_vote"]) > 0.05


@pytest.mark.parametrize("method", METHODS)
def test_without_weak_labels_it_is_supervised(method: str) -> None:
    data = toy_dataset()
    plain = method_case("supervised", {**EXACT, "sigma2": 1.0}, ()).fit(data)
    unread = with_source(data, np.zeros(data.splits["train"].n_tokens), [UNREAD])
    test = data.splits["test"]
    for each in (data, unread):
        assert fitted(method, each).predicted(test) == plain.predicted(test)


@pytest.mark.parametrize("method", LEARNERS)
def test_labels_that_no_labeled_sentence_has_are_learned(method: str) -> None:
    data = toy_dataset(train=40)
    train = data.splits["train"]
    new = ["NEW" if word[0] == "b" else ABSTAINS for word in train.column("word").strings()]
    words = Vocabulary(["NEW", ABSTAINS])
    case = fitted(method, with_source(data, words.encode(new), words.strings))
    assert "NEW" in case.own_tagger.labels
    assert case.trained.run.trace["weak_sources"]["one"]["unseen_labels"] == ["NEW"]


def test_the_figures_of_sources_are_noted() -> None:
    case = fitted("weak_vote", with_weak_sources(toy_dataset()))
    figures = case.trained.run.trace["weak_sources"]
    assert figures["careful"]["accuracy"] > 0.5
    assert set(figures) == {"careful", "hasty"}


TRUSTED = {"sigma2": 1.0, "folds": 3}


def test_the_choice_is_the_best_on_held_out_gold_sentences() -> None:
    """By hand: each learner on two thirds of the gold sentences, scored on the others together."""
    data = with_weak_sources(toy_dataset(train=60, test=60))
    chosen = method_case("weak_trust", {**EXACT, **TRUSTED}, ()).fit(data, labeled=12)
    problem, trace = chosen.problem, chosen.trained.run.trace["trust"]
    right = dict.fromkeys(trace["scores"], 0)
    for fold in range(3):
        rows = np.arange(problem.labeled.n_sentences)
        rest = problem.labeled.select(rows[rows % 3 != fold])
        test = problem.labeled.select(rows[rows % 3 == fold])
        gold = test.column("label").strings()
        for name in right:
            method = CLASSES.get(name, Supervised)
            params = method.Params(ftol=1e-9, sigma2=1.0)
            tagger = method().fit(replace(problem, labeled=rest), params, RunContext())
            guesses = predicted_labels(tagger, test)
            right[name] += sum(a == b for a, b in zip(guesses, gold, strict=True))
    n = problem.labeled.n_tokens
    assert trace["scores"] == pytest.approx({name: count / n for name, count in right.items()})
    assert right[trace["chosen"]] == max(right.values())
    best = "supervised" if trace["chosen"] == "gold" else trace["chosen"]
    again = method_case(best, {**EXACT, "sigma2": 1.0}, ()).fit(data, labeled=12)
    assert chosen.predicted(data.splits["test"]) == again.predicted(data.splits["test"])


def test_a_source_is_trusted_if_it_is_right_and_not_if_it_is_noise() -> None:
    data = toy_dataset(train=200, test=60)
    gold = data.splits["train"].column("label")
    labels = gold.vocabulary.strings
    noise = np.random.default_rng(0).integers(0, len(labels), data.splits["train"].n_tokens)
    right = fitted("weak_trust", with_source(data, gold.codes, labels), **TRUSTED)
    wrong = fitted("weak_trust", with_source(data, noise, labels), **TRUSTED)
    scores = wrong.trained.run.trace["trust"]["scores"]
    assert right.trained.run.trace["trust"]["chosen"] != "gold"
    assert wrong.trained.run.trace["trust"]["chosen"] != "weak_vote"
    assert scores["weak_vote"] < scores["gold"]
