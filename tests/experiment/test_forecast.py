"""The forecast: does what a method teaches agree with labels that it has not seen?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from sslbench import Problem, RunContext, TrainingParams
from sslbench.cli.messages import forecast_lines
from sslbench.engine.types import F64
from sslbench.experiment.checks import forecast
from sslbench.experiment.checks.forecast import (
    Fold,
    HeldOut,
    fold_problem,
    foresee,
    held_out,
    recorded_forecast,
    summary,
)
from sslbench.experiment.inputs.folding import folds
from sslbench.experiment.inputs.problem import without_labels
from sslbench.experiment.records.record import ProtocolSpec, RunSpec
from sslbench.experiment.run.fitting import LocalMethod, Training
from sslbench.experiment.run.runner import execute
from sslbench.plugins import registry
from sslbench_methods.graph_lift.method import GraphLift
from sslbench_methods.self_training import SelfTraining
from support.graph_problems import problem_of, random_problem, sentences
from support.run_fakes import Majority, install, task

pytestmark = pytest.mark.usefixtures("own_cache")


def distributions(rng: np.random.Generator, n: int, n_labels: int = 4) -> F64:
    return rng.dirichlet(np.full(n_labels, 0.7), n)


def drawn(rng: np.random.Generator, p: F64) -> np.ndarray:
    """A label of each row, by its probabilities."""
    return (p.cumsum(axis=1) > rng.random((len(p), 1))).argmax(axis=1).astype(np.int32)


# --- the number ----------------------------------------------------------------------------------


def test_the_agreement_is_a_cosine_over_all_folds() -> None:
    rng = np.random.default_rng(0)
    parts = []
    for n in (30, 50):
        model, taught = distributions(rng, n), distributions(rng, n)
        parts.append(HeldOut(rng.integers(0, 4, n).astype(np.int32), model, taught))
    gold = np.concatenate([np.eye(4)[part.gold] - part.model for part in parts]).ravel()
    change = np.concatenate([part.taught - part.model for part in parts]).ravel()
    expected = gold @ change / np.linalg.norm(gold) / np.linalg.norm(change)
    found = summary(parts)
    assert found["agreement"] == pytest.approx(expected)
    rows = (gold * change).reshape(-1, 4).sum(axis=1)
    error = np.sqrt((rows**2).sum()) / np.linalg.norm(gold) / np.linalg.norm(change)
    assert found["error"] == pytest.approx(error)
    assert (found["tokens"], found["folds"]) == (80, 2)
    right = np.concatenate([part.taught.argmax(axis=1) == part.gold for part in parts])
    assert found["taught_right"] == pytest.approx(right.mean())


def test_gold_labels_agree_and_wrong_ones_do_not() -> None:
    rng = np.random.default_rng(1)
    model = distributions(rng, 2000)
    gold = drawn(rng, model)
    assert summary([HeldOut(gold, model, np.eye(4)[gold])])["agreement"] == pytest.approx(1.0)
    wrong = np.eye(4)[(gold + 1) % 4]
    assert summary([HeldOut(gold, model, wrong)])["agreement"] < -0.2
    assert summary([HeldOut(gold, model, model.copy())])["agreement"] == 0.0
    assert summary([]) == {}


def test_what_a_calibrated_model_can_find_itself_counts_for_nothing() -> None:
    """Its own best labels, and its posteriors made surer; a model that is too sure harms."""
    rng = np.random.default_rng(2)
    model = distributions(rng, 40_000)
    gold = drawn(rng, model)
    surer = model**2 / (model**2).sum(axis=1, keepdims=True)
    for own in (np.eye(4)[model.argmax(axis=1)], surer, distributions(rng, len(model))):
        assert abs(summary([HeldOut(gold, model, own)])["agreement"]) < 0.02
    even = surer**2 / (surer**2).sum(axis=1, keepdims=True)
    assert summary([HeldOut(gold, surer, even)])["agreement"] < -0.05


def test_the_error_is_the_spread_over_samples() -> None:
    """Of evidence with some knowledge, over samples of tokens."""
    rng, found = np.random.default_rng(3), []
    for _ in range(300):
        model = distributions(rng, 200)
        gold = drawn(rng, model)
        taught = 0.7 * np.eye(4)[np.where(rng.random(200) < 0.1, gold, rng.integers(0, 4, 200))]
        found.append(summary([HeldOut(gold, model, taught + 0.3 * model)]))
    agreements = [each["agreement"] for each in found]
    assert np.mean([each["error"] for each in found]) == pytest.approx(np.std(agreements), rel=0.2)


def test_what_is_not_clear_is_called_so() -> None:
    known = {"model_right": 0.5, "taught_right": 0.5, "error": 0.05}
    for agreement, words in (
        (0.2, "a gain"),
        (0.09, "neither"),
        (-0.09, "neither"),
        (-0.2, "harm"),
    ):
        (line,) = forecast_lines({"forecast": {**known, "agreement": agreement}}, "mine")
        assert f": {words}" in line


def test_labels_that_are_less_often_right_are_harm_whatever_their_agreement() -> None:
    known = {"agreement": 0.1, "error": 0.02, "model_right": 0.8}
    for taught, value in ((0.9, 0.1), (0.8, 0.1), (0.7, -0.5), (0.1, -1.0)):
        found = recorded_forecast({"forecast": {**known, "taught_right": taught}})
        assert found is not None
        assert found.value == pytest.approx(value)
    worse = recorded_forecast({"forecast": {**known, "agreement": -0.9, "taught_right": 0.7}})
    assert worse is not None
    assert worse.value == -0.9
    assert recorded_forecast({"forecast": "of another kind"}) is None
    assert recorded_forecast({}) is None


def test_the_line_of_a_forecast_has_both_shares() -> None:
    recorded = {"agreement": 0.17, "error": 0.04, "taught_right": 0.792, "model_right": 0.761}
    (line,) = forecast_lines({"forecast": recorded}, "graph_lift")
    shares = "right on held-out tokens: 79.2 %, supervised 76.1 %"
    assert line == f"forecast: graph_lift +0.17 +- 0.04 (-1 to 1; {shares}): a gain is expected"
    assert forecast_lines({"forecast": recorded, "guard": {}}, "graph_lift") == []


# --- the folds -----------------------------------------------------------------------------------


class Oracle:
    """Knows all labels of a problem by its sentences."""

    Params = TrainingParams

    def __init__(self, problem: Problem, shift: int = 0) -> None:
        self.shift = shift
        codes = np.split(problem.label_codes(problem.labeled), problem.labeled.offsets[1:-1])
        self.labels = dict(zip(coded(problem.labeled), codes, strict=True))
        self.parts: list[Problem] = []

    def evidence(self, fold: Fold, params: Any, run: RunContext) -> F64:
        problem, held_out = fold.problem, fold.held_out
        self.parts.append(problem)
        run.rng.random()
        found = np.concatenate([self.labels[s] for s in coded(next(iter(problem.unlabeled)))])
        assert len(found) == held_out.offsets[-1]
        return np.eye(len(problem.labels))[(found + self.shift) % len(problem.labels)]


def coded(corpus: Any) -> list[tuple[int, ...]]:
    return [tuple(part) for part in np.split(corpus.column("word").codes, corpus.offsets[1:-1])]


def distinct(problem: Problem) -> Problem:
    """Each labeled sentence once, so that an oracle can tell them apart."""
    first = {sentence: i for i, sentence in reversed(list(enumerate(coded(problem.labeled))))}
    return replace(problem, labeled=problem.labeled.select(np.sort(list(first.values()))))


def test_gold_evidence_is_a_gain_and_shifted_labels_are_harm() -> None:
    text = sentences(3, 60)
    gold = ["ABC"[len(word) % 3] for sentence in text for word in sentence]
    problem, run = distinct(problem_of(text, gold, sentences(4, 20))), RunContext()
    before = run.rng.bit_generator.state
    for shift, words in ((0, "a gain is expected"), (1, "harm is expected")):
        foresee(Oracle(problem, shift), problem, TrainingParams(), run)
        found = run.trace["forecast"]["agreement"]
        assert found == pytest.approx(1.0) if shift == 0 else found < -0.3
        (line,) = forecast_lines(run.trace, "mine")
        assert line.endswith(words)
    assert run.rng.bit_generator.state == before
    assert set(run.trace) == {"forecast"}
    assert run.timing["forecast"] > 0


def test_a_fold_holds_no_label_of_its_held_out_sentences() -> None:
    problem = replace(distinct(random_problem(4)), dev=random_problem(5).labeled)
    oracle = Oracle(problem)
    parts = list(held_out(oracle, problem, TrainingParams(), RunContext()))
    cut = folds(problem.labeled.n_sentences, 5)
    assert len(parts) == len(oracle.parts) == 5
    for (train, test), part in zip(cut, oracle.parts, strict=True):
        assert coded(part.labeled) == [coded(problem.labeled)[i] for i in train]
        shards = list(part.unlabeled)
        assert coded(shards[0]) == [coded(problem.labeled)[i] for i in test]
        assert all("label" not in shard.columns for shard in shards)
        assert part.unlabeled.n_sentences == len(test) + problem.unlabeled.n_sentences
        assert part.dev is None
    assert not problem.dev_labels.seen
    gold = np.concatenate([part.gold for part in parts])
    assert len(gold) == problem.labeled.n_tokens


def test_folds_end_when_enough_is_held_out(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = distinct(random_problem(4))
    monkeypatch.setattr(forecast, "ENOUGH", 1)
    monkeypatch.setattr(forecast, "MOST_TEXT", 7)
    oracle = Oracle(problem)
    assert len(list(held_out(oracle, problem, TrainingParams(), RunContext()))) == 1
    first = next(iter(oracle.parts[0].unlabeled)).n_sentences
    assert oracle.parts[0].unlabeled.n_sentences == first + 7


def test_the_graph_of_a_fold_is_that_of_its_own_text() -> None:
    """Up to the numbers of the vertices: built from the whole text, and from the fold's."""
    problem, run = random_problem(6), RunContext()
    params = GraphLift.Params(neighbors=4)
    train, test = folds(problem.labeled.n_sentences, 5)[1]
    part = fold_problem(problem, train, test, {})
    plain = Problem(**{name: vars(part)[name] for name in Problem.__match_args__[:10]})
    ours, theirs = part.graph(params, run), plain.graph(params, run)
    to = np.full(theirs.text.n_vertices, -1)
    inside = ours.text.vertex_of >= 0
    assert np.array_equal(inside, theirs.text.vertex_of >= 0)
    to[theirs.text.vertex_of[inside]] = ours.text.vertex_of[inside]
    assert sorted(to) == list(range(ours.text.n_vertices))
    moved = ours.W.toarray()[np.ix_(to, to)]
    assert np.allclose(moved, theirs.W.toarray())
    assert np.allclose(ours.text.distribution[to], theirs.text.distribution)
    assert np.array_equal(ours.text.labeled[to], theirs.text.labeled)
    assert ours.text.n_labeled == part.labeled.n_tokens


# --- runs ----------------------------------------------------------------------------------------


class Foreseen(Majority):
    """The same with evidence."""

    def evidence(self, fold: Fold, *rest: Any) -> F64:
        words = next(iter(fold.problem.unlabeled)).column("word").codes
        return np.eye(2)[words % 2]


class Failing(Majority):
    """Its evidence fails."""

    def evidence(self, *rest: Any) -> F64:
        raise ValueError("no evidence\nover two lines")


def test_a_forecast_changes_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch)
    run_task = task(labeled=30, model="crf1")
    plain = execute(run_task)
    assert plain.status == "ok"
    assert "forecast" not in plain.trace
    monkeypatch.setattr("support.run_fakes.Majority", Foreseen)
    found = execute(run_task)
    assert found.trace["forecast"]["agreement"] > 0.2
    assert found.predictions_sha256 == plain.predictions_sha256
    assert found.trace["draw"] == plain.trace["draw"]
    monkeypatch.setattr("support.run_fakes.Majority", Failing)
    failed = execute(run_task)
    assert failed.status == "ok"
    assert "forecast" not in failed.trace
    assert failed.predictions_sha256 == plain.predictions_sha256
    assert any(line.startswith("no forecast: ValueError: no evidence") for line in failed.warnings)


def test_trials_and_folds_have_no_forecast(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch)
    calls: list[Any] = []
    monkeypatch.setattr("sslbench.experiment.run.fitting.foresee", lambda *rest: calls.append(rest))
    execute(task(labeled=30, tune=2))
    assert len(calls) == 1
    assert execute(task(labeled="all", folds=3)).status == "ok"
    assert len(calls) == 1


def test_without_text_or_with_one_sentence_there_is_none() -> None:
    problem = random_problem(8)
    spec = RunSpec("self_training", "toy", "basic", "crf1", {}, ProtocolSpec())
    method = LocalMethod(spec, registry())
    one = replace(problem, labeled=problem.labeled.select(np.arange(1)))
    for part in (one, replace(problem, unlabeled=type(problem.unlabeled)(empty(problem)))):
        run = RunContext()
        method.fit(Training(part, {}, forecast=True), run)
        assert "forecast" not in run.trace


def empty(problem: Problem) -> Any:
    return without_labels(problem.labeled).select(np.empty(0, np.int64))


def test_the_trace_is_plain() -> None:
    run = RunContext()
    foresee(SelfTraining(), random_problem(9), SelfTraining.Params(), run)
    assert msgspec.json.decode(msgspec.json.encode(run.trace)) == run.trace
