"""One run is one computation: the same data and code from the plan to the record."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sslbench.engine.corpus import Column, Corpus, LabelConstraint
from sslbench.experiment.data import Dataset
from sslbench.experiment.execute.grid import GridOptions, is_stored, run_grid
from sslbench.experiment.identity import fingerprint
from sslbench.experiment.metrics import Alternatives
from sslbench.experiment.planning.plan import plan
from sslbench.experiment.planning.task import RunTask
from sslbench.experiment.records.record import spec_key
from sslbench.experiment.records.store import Store
from sslbench.experiment.request.request import RunRequest
from sslbench.experiment.run.runner import execute
from sslbench.isolation.start import isolated
from support import run_fakes
from support.run_fakes import toy_splits

pytestmark = pytest.mark.usefixtures("fake_plugin")


def planned(*, make_text: bool = True, **request: Any) -> list[RunTask]:
    base = {"method": ["majority"], "dataset": ["toy"], "model": "nothing", "labeled": 20}
    asked = RunRequest(**{**base, **request})
    return plan(asked, store=None, notice=print, make_text=make_text)


def with_label(corpus: Corpus, token: int) -> Corpus:
    """The same text with another label of one token."""
    column = corpus.column("label")
    codes = column.codes.copy()
    codes[token] = (codes[token] + 1) % len(column.vocabulary.strings)
    return corpus.with_column("label", Column(column.vocabulary, codes))


def relabel(split: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plugin's data change, as if the file behind them were edited."""
    honest = run_fakes.load

    def load(home: object, **options: int) -> Dataset:
        data = honest(home, **options)
        splits = {**data.splits, split: with_label(data.splits[split], 3)}
        return Dataset(**{**vars(data), "splits": splits})

    monkeypatch.setattr(run_fakes, "load", load)


def test_a_default_that_is_written_out_is_the_same_run() -> None:
    ids = {
        task.spec.run_id
        for settings in ([], ["weight=1"], ["weight=1.0"], ["majority.weight=1"], ["toy.train=60"])
        for task in planned(params=settings)
    }
    assert len(ids) == 1
    assert planned(params=["weight=2"])[0].spec.run_id not in ids
    assert planned(params=["toy.train=59"])[0].spec.run_id not in ids


def test_a_plan_without_text_makes_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    honest = run_fakes.load
    made: list[str] = []

    def load(home: object, **options: int) -> Dataset:
        data = honest(home, **options)
        return replace(data, external=lambda: (made.append("text"), data.external())[1])

    monkeypatch.setattr(run_fakes, "load", load)
    monkeypatch.setenv("SSLBENCH_CACHE", str(tmp_path / "cache"))
    (task,) = planned(labeled="all", make_text=False)
    assert (made, task.lacks_text, task.spec.protocol.text) == ([], True, "external")
    (rest,) = planned(make_text=False)  # which does not need the text
    assert not rest.lacks_text
    store = Store(tmp_path)
    assert not is_stored(task, store, GridOptions())
    (whole,) = planned(labeled="all")
    assert made
    assert not whole.lacks_text
    assert spec_key(task.spec, by_text=True) == spec_key(whole.spec, by_text=True)
    store.save(execute(whole))
    assert is_stored(task, store, GridOptions())  # the newest run like it


@pytest.mark.parametrize("split", ["train", "test"])
def test_other_data_behind_a_plugin_are_another_run(
    split: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (before,) = planned()
    relabel(split, monkeypatch)
    (after,) = planned()
    assert before.spec.run_id != after.spec.run_id


def test_data_that_change_after_the_plan_fail_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_process(tasks: Any, **_: object) -> Any:
        for number, task in enumerate(tasks):
            if number == 1:  # the file is edited after the first of three runs
                relabel("test", monkeypatch)
            yield execute(task)

    monkeypatch.setattr("sslbench.experiment.execute.grid.run_all", in_process)
    store = Store(tmp_path)
    result = run_grid(planned(seeds=[0, 1, 2]), store, isolated)
    assert [record.status for record in result.records] == ["ok", "failed", "failed"]
    assert "the data of toy were changed since the run was planned" in result.records[1].error
    assert len(store.records()) == 1  # nothing is stored under the old data's name


def test_a_method_that_changes_the_data_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    data = run_fakes.load(None)
    monkeypatch.setattr(run_fakes, "load", lambda home, **options: data)
    honest = run_fakes.Majority.fit

    def fit(self: object, problem: object, params: object, run: object) -> object:
        data.splits["test"].column("label").codes.setflags(write=True)
        data.splits["test"].column("label").codes[:] = 0
        return honest(self, problem, params, run)

    monkeypatch.setattr(run_fakes.Majority, "fit", fit)
    record = execute(planned()[0])
    assert record.status == "failed"
    assert "were changed during the run" in record.error


def test_a_fingerprint_is_of_all_that_can_be_seen() -> None:
    splits = toy_splits()
    other_label = {**splits, "test": with_label(splits["test"], 0)}
    base = Dataset("toy", "tagging", "accuracy", None, splits)
    others = [
        Dataset("toy", "tagging", "sentence_accuracy", None, splits),
        Dataset("toy", "spans", "accuracy", "IOB2", splits),
        Dataset("toy", "tagging", "accuracy", None, {**splits, "dev": splits["test"]}),
        Dataset("toy", "tagging", "accuracy", None, other_label),
        Dataset("toy", "tagging", "accuracy", None, splits, transductive=True),
        Dataset("toy", "tagging", "accuracy", None, splits, joined=True),
        Dataset(
            *("toy", "tagging", "accuracy", None, splits),
            label_constraint=LabelConstraint("word", ".", "A"),
        ),
        Dataset(
            *("toy", "tagging", "accuracy", None, splits),
            alternatives={"test": Alternatives(np.array([0]), np.array([1]))},
        ),
    ]
    digests = [fingerprint(each) for each in (base, *others)]
    assert len(set(digests)) == len(digests)
    assert fingerprint(base, "text") != fingerprint(base)
    same = Dataset("another name", "tagging", "accuracy", None, toy_splits(), metadata={"a": 1})
    assert fingerprint(same) == fingerprint(base)
