"""The guard: held-out labeled sentences decide whether the method's tagger is kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from sslbench import Column, Corpus, Dataset, Problem, RunContext, Vocabulary
from sslbench.engine.corpus import PreviousType
from sslbench.engine.types import I32
from sslbench.experiment.checks.guard import METRICS, guard_line, is_better
from sslbench.experiment.identity import code_versions
from sslbench.experiment.inputs.problem import Tagger
from sslbench.experiment.planning.plan import plan
from sslbench.experiment.planning.task import RunTask
from sslbench.experiment.records.record import GuardSpec
from sslbench.experiment.request.request import RunRequest
from sslbench.experiment.run.runner import execute
from sslbench.plugins import registry
from sslbench.plugins.registrations import TASKS
from sslbench.report.rows import row_key, row_names
from support.board_records import record
from support.run_fakes import Majority, MajorityFit, install, opened_run, task, toy_splits

SPEC = GuardSpec("other", {}, 5)


@pytest.fixture(autouse=True)
def fakes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(tmp_path, monkeypatch)


def toy_problem(n: int = 50) -> Problem:
    data = Dataset("toy", "tagging", "accuracy", None, toy_splits())
    session, sample = opened_run(data, labeled=n)
    return session.problem(sample, sample.drawn.labeled)


def table(problem: Problem, run: RunContext) -> Tagger:
    """Counts of words: right nine times of ten."""
    return Majority().fit(problem, Majority.Params(), run)


def constant(problem: Problem, run: RunContext) -> Tagger:
    """One label for all words: right half of the time."""
    return MajorityFit(problem.labels, np.zeros(20, dtype=np.int64))


@pytest.mark.parametrize("better_first", [True, False])
def test_the_better_one_is_kept(better_first: bool) -> None:
    problem, run = toy_problem(), RunContext()
    first, second = (table, constant) if better_first else (constant, table)
    assert is_better(problem, SPEC, first, second, run) == better_first
    found = run.trace["guard"]
    assert (found["method_score"] > 0.8, found["baseline_score"] < 0.7) == (better_first,) * 2
    assert found["kept"] == ("method" if better_first else "baseline")
    line = guard_line(run.trace, "mine")
    assert line is not None
    assert line.endswith(f"the {'mine' if better_first else 'other'} tagger is kept")


def test_documents_are_held_out_as_a_whole() -> None:
    problem = toy_problem()
    documents = np.arange(50, dtype=np.int32) // 5
    problem = replace(problem, labeled=replace(problem.labeled, documents=documents))
    trained_on = []

    def fit(part: Problem, run: RunContext) -> Tagger:
        assert part.labeled.documents is not None
        trained_on.append(np.bincount(part.labeled.documents, minlength=10).tolist())
        return constant(part, run)

    is_better(problem, GuardSpec("other", {}, 5, "documents"), fit, constant, RunContext())
    assert len(trained_on) == 5
    assert all(sorted(counts) == [0, 0, *[5] * 8] for counts in trained_on)


def test_equal_scores_keep_the_baseline() -> None:
    assert not is_better(toy_problem(), SPEC, table, table, RunContext())


def test_scores_are_those_of_a_plain_cross_validation() -> None:
    problem, run = toy_problem(), RunContext()
    is_better(problem, SPEC, table, constant, run)
    gold, n_right = problem.label_codes(problem.labeled), 0
    sentence = np.repeat(np.arange(problem.labeled.n_sentences), problem.labeled.lengths)
    words = problem.labeled.column("word").codes
    for fold in range(5):
        counts = np.zeros((20, 2))
        rest = sentence % 5 != fold
        np.add.at(counts, (words[rest], gold[rest]), 1)
        share = counts.sum(axis=0) / counts.sum()
        n_right += int(((counts + share).argmax(axis=1)[words] == gold)[~rest].sum())
    assert run.trace["guard"]["method_score"] == pytest.approx(n_right / len(gold))


def test_folds_see_no_held_out_sentence_and_the_random_numbers_of_the_run() -> None:
    problem, run = toy_problem(), RunContext(seed=3)
    seen: list[tuple[int, float]] = []

    def fit(part: Problem, own: RunContext) -> Tagger:
        seen.append((part.labeled.n_sentences, float(own.rng.random())))
        return table(part, own)

    is_better(problem, SPEC, fit, constant, run)
    assert [n for n, _ in seen] == [problem.labeled.n_sentences * 4 // 5] * 5
    assert {draw for _, draw in seen} == {float(run.rng.random())}  # the run's own is not used up
    assert set(run.trace) == {"guard"}


def test_under_a_codec_tags_are_scored() -> None:
    """A tagger that is right up to the part of the label that is no tag has a score of one."""
    sentence = ["B-PER", "O", "B-LOC", "O"]
    words, labels = Vocabulary(["w"]), Vocabulary(sorted(set(sentence)))
    codes = np.tile([labels.lookup(tag) for tag in sentence], 10).astype(np.int32)
    offsets = np.arange(11, dtype=np.int64) * 4
    text = Corpus(
        {"word": Column(words, np.zeros(40, np.int32)), "label": Column(labels, codes)}, offsets
    )
    plain = replace(toy_problem(), task="spans", encoding="IOB2", labeled=text)
    problem = replace(plain, labels=tuple(labels.strings)).coded(PreviousType(labels.strings))
    first_with = {tag: problem.labels[problem.tags.index(tag)] for tag in sentence}
    table = [problem.labels.index(first_with[tag]) for tag in sentence]

    def by_place(part: Problem, run: RunContext) -> Tagger:
        return ByPlace(part.labels, np.array(table, np.int32))

    run = RunContext()
    assert is_better(problem, SPEC, by_place, constant, run)
    assert run.trace["guard"]["method_score"] == 1.0


@dataclass
class ByPlace:
    """The same labels for each sentence."""

    labels: tuple[str, ...]
    codes: I32

    def predict(self, corpus: Corpus) -> I32:
        return np.tile(self.codes, corpus.n_sentences)


def test_one_sentence_cannot_be_cut() -> None:
    run = RunContext()
    assert is_better(toy_problem(n=1), SPEC, constant, table, run)
    assert guard_line(run.trace, "mine") is None


def test_every_task_has_a_metric() -> None:
    assert set(METRICS) == set(TASKS)


def guarded(own: float, theirs: float) -> RunTask:
    """A run of a method that is the worse the larger its parameter, guarded by itself."""
    other = GuardSpec("majority", {"weight": theirs, "sleep": 0.0})
    return task(labeled=50, params={"weight": own, "sleep": 0.0}, guard=other)


def test_a_run_keeps_the_better_one() -> None:
    harmful = guarded(1e9, 1.0)
    record = execute(harmful)
    assert record.status == "ok", record.error
    assert record.trace["guard"]["kept"] == "baseline"
    assert any("the majority tagger is kept" in line for line in record.warnings)
    plain = execute(task(labeled=50, params={"weight": 1.0, "sleep": 0.0}))
    assert record.predictions_sha256 == plain.predictions_sha256
    assert {"method", "guard"} <= set(code_versions(harmful.spec, registry()))
    assert execute(guarded(1.0, 1e9)).predictions_sha256 == plain.predictions_sha256


def test_the_guard_is_part_of_the_identity() -> None:
    one, other = guarded(1.0, 2.0).spec, guarded(1.0, 3.0).spec
    plain = msgspec.structs.replace(one, guard=msgspec.UNSET)
    assert len({one.run_id, plain.run_id, other.run_id}) == 3
    assert "guard" not in msgspec.to_builtins(plain)  # the identity is as if there were no guards


def test_the_guard_keeps_the_baseline_with_the_shared_settings() -> None:
    asked = RunRequest(
        ["self_training", "supervised"], ["synth"], params=["sigma2=3", "rounds=2"], guard=True
    )
    mine, baseline = plan(asked, store=None, notice=print)
    assert mine.spec.guard is not msgspec.UNSET
    assert baseline.spec.guard is msgspec.UNSET
    assert mine.spec.guard.method == "supervised"
    assert mine.spec.guard.params == baseline.spec.params
    assert mine.spec.guard.params["sigma2"] == 3


def test_guarded_runs_are_a_row_of_their_own() -> None:
    plain, kept = record("better"), record("better", seed=1)
    kept.spec = msgspec.structs.replace(kept.spec, guard=SPEC)
    names = row_names([row_key(plain), row_key(kept)])
    assert list(names.values()) == ["better", "better (guarded)"]
