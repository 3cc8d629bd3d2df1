"""Tuning of runs: folds, what is stored, what the record tells."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from msgspec import UNSET
from msgspec.structs import replace as replace_struct

from sslbench.engine.compilation.threads import using_threads
from sslbench.engine.corpus import Column
from sslbench.engine.errors import UserError
from sslbench.experiment.data import Dataset
from sslbench.experiment.inputs.protocol import Sample
from sslbench.experiment.planning.plan import plan
from sslbench.experiment.records.record import DataSpec, ProtocolSpec
from sslbench.experiment.request.request import RunRequest
from sslbench.experiment.run.fitting import Session
from sslbench.experiment.run.runner import execute
from sslbench.experiment.run.training import train
from sslbench.experiment.run.trials import Trials
from sslbench.experiment.run.tuning import UNTUNED
from support import run_fakes
from support.run_fakes import opened_run, task, toy_splits

pytestmark = pytest.mark.usefixtures("fake_plugin")


def opened(*, dev: bool = False, **changes: object) -> tuple[Session, Sample]:
    data = Dataset("toy", "tagging", "accuracy", None, toy_splits(dev=dev))
    return opened_run(data, **changes)


@pytest.mark.parametrize("weight", [0.01, 1.0, 100.0])
def test_a_trial_scores_the_pooled_counts_of_the_folds(weight: float) -> None:
    session, sample = opened(labeled=23, tune=4)
    trial = Trials(session, sample)({"weight": weight})
    # Independent: each sentence is tagged by tables counted on the sentences of the other folds.
    train = sample.dataset.splits["train"]
    words, gold = train.column("word").codes, train.column("label").codes
    order = np.random.default_rng([0, 0x6C61626C]).permutation(train.n_sentences)[:23]
    right = total = 0
    for fold in range(5):
        counts = np.zeros((20, 3))
        for position, sentence in enumerate(order):
            where = slice(train.offsets[sentence], train.offsets[sentence + 1])
            if position % 5 != fold:
                np.add.at(counts, (words[where], gold[where]), 1)
        table = (counts + weight * counts.sum(axis=0) / counts.sum()).argmax(axis=1)
        for sentence in order[fold::5]:
            where = slice(train.offsets[sentence], train.offsets[sentence + 1])
            right += int((table[words[where]] == gold[where]).sum())
            total += len(words[where])
    assert trial.score == right / total
    assert (trial.params, trial.metric, trial.error) == ({"weight": weight}, "accuracy", None)


def test_a_development_split_is_scored_with_one_training() -> None:
    session, sample = opened(dev=True, labeled=23, tune=4)
    trials = Trials(session, sample)
    assert [len(part.sentences) for part in trials.parts] == [23]
    assert trials.parts[0].held_out is sample.dataset.splits["dev"]
    best = train(session, sample)
    assert trials({"weight": best.fitted.params["weight"]}).score == max(
        trial.score for trial in best.tuning.trials
    )


def test_the_record_tells_what_tuning_was_and_took(tmp_path: Path) -> None:
    record = execute(task(store=tmp_path, labeled=20, tune=5))
    assert record.protocol["dev"] == "folds"
    assert record.tuning[0]["params"] == {"weight": 1.0}
    assert len(record.tuning) == 5
    best = max(trial["score"] for trial in record.tuning)
    first = next(trial for trial in record.tuning if trial["score"] == best)
    assert record.params["weight"] == first["params"]["weight"]
    assert record.data["sentences"]["labeled"] == 20
    assert (record.tuned.status, record.tuned.searched) == ("tuned", ["weight"])
    assert record.tuned.trials == 5
    assert record.tuned.cpu_s == pytest.approx(sum(trial["cpu_s"] for trial in record.tuning))


def test_trials_survive_in_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = execute(task(store=tmp_path, labeled=20, tune=4))
    fits = []
    honest = run_fakes.Majority.fit

    def counted(self: object, problem: object, params: object, run: object) -> object:
        fits.append(params)
        return honest(self, problem, params, run)

    monkeypatch.setattr(run_fakes.Majority, "fit", counted)
    second = execute(task(store=tmp_path, labeled=20, tune=4))
    assert second.tuning == first.tuning
    assert len(fits) == 1  # the final training alone
    assert second.timing["tune_stored"] == pytest.approx(first.tuned.seconds)
    execute(task(store=tmp_path, labeled=20, tune=4, unlabeled=3))
    assert len(fits) == 1 + 4 * 5 + 1


def test_a_cpu_budget_alone_tunes(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(10**6))
    monkeypatch.setattr("sslbench.experiment.run.fitting.cpu_seconds", lambda: float(next(clock)))
    # each of the five trainings of a trial takes one second of this clock
    record = execute(task(labeled=20, tune_cpu=11.0))
    assert [trial["cpu_s"] for trial in record.tuning] == [5.0, 5.0, 5.0]
    assert (record.tuned.trials, record.tuned.cpu_s, record.fit_cpu_s) == (3, 15.0, 1.0)


def test_what_cannot_be_tuned_is_marked() -> None:
    for record in (
        execute(task(labeled=20, tune=5, params={"weight": 3.0})),
        execute(task("peeking", labeled=20, tune=5)),
    ):
        assert (record.tuning, record.tuned.status) == ([], "untuned")
        assert record.warnings[0] == UNTUNED
    record = execute(task(labeled=20))
    assert (record.tuned.status, UNTUNED in record.warnings) == ("off", False)


def test_a_choice_at_an_edge_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    session, sample = opened(labeled=20, tune=2)
    narrow = replace(run_fakes.Majority.Params.search[0], low=1.0, high=1.1)
    monkeypatch.setattr(run_fakes.Majority.Params, "search", (narrow,))
    assert train(session, sample).warnings == (
        "weight=1 was chosen at the low edge of its space, 1 to 1.1, log scale",
    )


@pytest.mark.parametrize("method", ["supervised", "type_self_training"])
def test_the_same_trials_for_any_number_of_threads(method: str) -> None:
    found = []
    for threads in (1, 2):
        common = {"dataset": "synth", "featurizer": "basic", "model": "crf1", "labeled": 12}
        options = DataSpec(options={"train": 40, "dev": 0, "test": 20})
        asked = replace_struct(task(method, tune=5, data=options, **common), threads=threads)
        with using_threads(threads):
            record = execute(asked)
        assert record.status == "ok", record.traceback
        found.append([(trial["params"], trial["score"]) for trial in record.tuning])
    assert found[0] == found[1]
    assert len(found[0]) == 5


@pytest.mark.parametrize("method", ["type_self_training", "virtual_evidence"])
def test_the_best_round_on_dev_is_a_use_of_its_labels(method: str) -> None:
    common = {"dataset": "synth", "featurizer": "basic", "model": "crf1", "labeled": 12}
    options = DataSpec(options={"train": 40, "dev": 20, "test": 20})
    for keep, used in (("last", None), ("best", "used by the method")):
        record = execute(task(method, data=options, params={"keep": keep, "rounds": 2}, **common))
        assert record.status == "ok", record.traceback
        assert record.audit.get("dev_labels") == used


def test_development_labels_that_the_method_reads_are_noted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = Dataset("toy", "tagging", "accuracy", None, toy_splits(dev=True))
    monkeypatch.setattr(run_fakes, "load", lambda home, **options: data)
    assert "dev_labels" not in execute(task(labeled=20, tune=2)).audit
    read = execute(task("peeking", labeled=20))
    assert read.audit["dev_labels"] == "used by the method"
    left = execute(task("peeking", labeled=20, params={"peek": False}))
    assert "dev_labels" not in left.audit


def test_a_tuning_seed_shares_the_trials_of_its_draw(tmp_path: Path) -> None:
    own = execute(task(store=tmp_path, labeled=20, tune=4, seed=0))
    expected = [(trial["params"], trial["score"]) for trial in own.tuning]
    for store in (tmp_path, None):  # from the store, or made again
        for seed in (0, 3):
            record = execute(task(store=store, labeled=20, tune=4, seed=seed, tune_seed=0))
            assert [(trial["params"], trial["score"]) for trial in record.tuning] == expected
            assert record.params == own.params
            assert ("tune_stored" in record.timing) == (store is not None)
    plain = execute(task(labeled=20, seed=3, params={"weight": own.params["weight"]}))
    assert record.predictions == plain.predictions  # the draw of the run is its own
    assert record.trace["draw"] == plain.trace["draw"]
    assert record.spec.protocol.tuning() == "4 tuning trials on draw 0"


def test_a_tuning_seed_of_a_dataset_with_draws_loads_its_draw() -> None:
    data = DataSpec(first_draw="first", fingerprint="")
    own = execute(task(dataset="drawn", labeled=10, tune=4, seed=0))
    record = execute(task(dataset="drawn", labeled=10, tune=4, seed=1, tune_seed=0, data=data))
    assert [t["score"] for t in record.tuning] == [t["score"] for t in own.tuning]


def test_identities_without_a_tuning_seed_are_those_of_before() -> None:
    assert task(tune=4).spec.run_id == "ee2676f2ce038b9c"


def with_dev(monkeypatch: pytest.MonkeyPatch, scramble: int | None = None) -> None:
    """Let the toy have a development split; scramble: with other labels in it and in test."""
    splits = toy_splits(dev=True)
    if scramble is not None:
        rng = np.random.default_rng(scramble)
        for name in ("dev", "test"):
            column = splits[name].column("label")
            other = Column(column.vocabulary, rng.permutation(column.codes))
            splits[name] = splits[name].with_column("label", other)
    data = Dataset("toy", "tagging", "accuracy", None, splits)
    monkeypatch.setattr(run_fakes, "load", lambda home, **options: data)


@pytest.mark.parametrize("by", ["cv", "cv-full"])
def test_cross_validation_reads_the_labeled_sample_alone(
    by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for scramble in (None, 1, 2):
        with_dev(monkeypatch, scramble)
        record = execute(task(labeled=20, tune=8, tune_by=by))
        assert record.protocol["dev"] == "folds"
        tried = [(trial["params"], trial["score"]) for trial in record.tuning]
        found.append((tried, record.params))
    assert found[0] == found[1] == found[2]
    chosen = execute(task(labeled=20, tune=8)).tuning
    assert [trial["score"] for trial in chosen] != [score for _, score in found[0][0]]


def test_cross_validation_hides_the_development_split_from_the_method(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with_dev(monkeypatch)
    assert execute(task("peeking", labeled=20)).trace["dev"] == 20
    record = execute(task("peeking", labeled=20, tune=2, tune_by="cv"))
    assert "dev" not in record.trace
    assert "dev_labels" not in record.audit
    assert record.metrics["dev"]  # it is scored all the same


def test_cross_validation_is_what_a_dataset_without_development_split_gets() -> None:
    plain, full = (execute(task(labeled=23, tune=6, tune_by=by)) for by in (UNSET, "cv-full"))
    assert [t["score"] for t in plain.tuning] == [t["score"] for t in full.tuning]
    assert plain.predictions == full.predictions
    assert plain.run_id != full.run_id


def test_a_race_saves_trainings_and_chooses_among_those_that_finish(tmp_path: Path) -> None:
    full = execute(task(store=tmp_path, labeled=40, tune=8, tune_by="cv-full"))
    stored = len(list((tmp_path / "trials").iterdir()))
    raced = execute(task(store=tmp_path, labeled=40, tune=8, tune_by="cv"))
    assert stored == 8 * 5
    dropped = [trial for trial in raced.tuning if "dropped_after" in trial]
    assert 0 < len(dropped) == raced.tuned.dropped
    assert all(1 <= trial["dropped_after"] < 5 for trial in dropped)
    assert sum(trial.get("dropped_after", 5) for trial in raced.tuning) < stored
    finished = [trial for trial in raced.tuning if "dropped_after" not in trial]
    assert len(finished) == 2
    by_params = {repr(trial["params"]): trial["score"] for trial in full.tuning}
    for trial in finished:
        assert by_params.get(repr(trial["params"]), trial["score"]) == trial["score"]
    best = max(finished, key=lambda trial: trial["score"])
    assert raced.params["weight"] == best["params"]["weight"]


def test_each_draw_is_tuned_on_its_own_folds() -> None:
    records = [execute(task(labeled=20, tune=4, tune_by="cv", seed=seed)) for seed in (0, 1)]
    first, second = ([trial["score"] for trial in record.tuning] for record in records)
    assert first[0] != second[0]  # the default on the folds of each


def test_cross_validation_needs_trials_and_two_sentences() -> None:
    request = RunRequest(["majority"], ["toy"], labeled=20, tune_by="cv")
    with pytest.raises(UserError, match="without trials"):
        plan(request, store=None, notice=lambda text: None)
    record = execute(task(labeled=1, tune=2, tune_by="cv"))
    assert (record.status, record.error_kind) == ("failed", "input")
    assert "at least 2 labeled sentences" in (record.error or "")
    with pytest.raises(UserError, match="tune_by 'test'"):
        RunRequest(["majority"], ["toy"], tune_by="test")  # type: ignore[arg-type]


def test_words_of_a_protocol_say_how_it_is_tuned() -> None:
    raced = ProtocolSpec(labeled=100, tune=8, tune_by="cv")
    assert raced.tuning() == "8 tuning trials by raced cross-validation"
    assert raced.without_tuning() == ProtocolSpec(labeled=100)
