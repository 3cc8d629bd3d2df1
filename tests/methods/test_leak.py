"""No method sees hidden gold labels, and no result depends on the number of threads."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import sslbench_datasets.synth.load as synth
from sslbench.engine.corpus import CorpusShards
from sslbench.experiment.data import DataHome, Dataset
from support import run_fakes
from support.hidden_labels import both_ways
from support.run_fakes import task, toy_splits
from support.waiting import HANG

METHODS = ("supervised", "self_training")  # sslbench.testing has the same checks for all methods


@pytest.mark.parametrize("method", METHODS)
def test_permuting_hidden_gold_changes_no_prediction(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = synth.load(DataHome(), train=60, dev=0, test=30)
    asked = task(method, dataset="synth", featurizer="basic", model="crf1", labeled=12, seed=3)
    one, other = both_ways(base, asked, synth, monkeypatch)
    assert one.predictions_sha256 == other.predictions_sha256
    assert one.trace == other.trace  # not a likelihood differs either
    assert one.data["sentences"]["unlabeled"] == (0 if method == "supervised" else 48)


@pytest.mark.parametrize("method", METHODS)
def test_the_labels_of_external_text_are_for_the_scorer_alone(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text that methods get without labels is also a split, which is scored with them."""
    base = synth.load(DataHome(), train=12, dev=0, test=60)
    text, test = base.splits["test"].between(0, 30), base.splits["test"].between(30, 60)
    splits = {"train": base.splits["train"], "test": test, "transductive": text}
    base = replace(base, splits=splits, external=lambda: CorpusShards(text.drop("label")))
    names = {"dataset": "synth", "featurizer": "basic", "model": "crf1"}
    asked = task(method, **names, text="external", seed=3)
    one, other = both_ways(base, asked, synth, monkeypatch)
    assert one.predictions_sha256 == other.predictions_sha256
    assert one.predictions["transductive"] == other.predictions["transductive"]
    assert one.trace == other.trace
    assert set(one.metrics) == {"test", "transductive"}
    found = [record.metrics["transductive"]["accuracy"] for record in (one, other)]
    assert found[0] != found[1]
    if method != "supervised":
        assert one.data["sentences"]["unlabeled"] == one.data["sentences"]["transductive"] == 30
        assert one.audit["duplicates"]["transductive_in_unlabeled"] == 30


@pytest.mark.usefixtures("fake_plugin")
def test_nor_does_it_change_what_is_tuned(monkeypatch: pytest.MonkeyPatch) -> None:
    base = Dataset("toy", "tagging", "accuracy", None, toy_splits())
    one, other = both_ways(base, task(labeled=20, tune=5), run_fakes, monkeypatch)
    assert one.predictions_sha256 == other.predictions_sha256
    assert [trial["score"] for trial in one.tuning] == [trial["score"] for trial in other.tuning]


def test_a_method_that_peeks_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the tests above rely on: a method that did see the hidden labels would show."""
    from sslbench.experiment.run.fitting import Session

    base = synth.load(DataHome(), train=60, dev=0, test=30)
    monkeypatch.setattr(Session, "problem", _with_all_of_train(Session.problem))
    asked = task("supervised", dataset="synth", featurizer="basic", model="crf1", labeled=12)
    one, other = both_ways(base, asked, synth, monkeypatch)
    assert one.predictions_sha256 != other.predictions_sha256


def _with_all_of_train(honest: object) -> object:
    import numpy as np

    def leaky(self: object, sample: object, _sentences: object) -> object:
        return honest(self, sample, np.arange(sample.dataset.splits["train"].n_sentences))

    return leaky


@pytest.mark.usefixtures("own_cache")
def test_one_and_two_threads_give_the_same_bits(tmp_path: Path) -> None:
    """All methods in one command, for one thread and for two; each makes its own graphs."""
    records = []
    for threads in ("1", "2"):
        words = [
            "run",
            *(word for name in METHODS for word in ("--method", name)),
            *("--dataset", "synth", "--labeled", "25", "--unlabeled", "60", "--set"),
            *("synth.test=50", "--set", "self_training.rounds=2", "--store"),
            str(tmp_path / threads),
            "--threads",
            threads,
            "--format",
            "json",
        ]
        done = subprocess.run(
            [sys.executable, "-m", "sslbench", *words], capture_output=True, text=True, timeout=HANG
        )
        assert done.returncode == 0, done.stderr
        records.append(json.loads(done.stdout))
        for file in (tmp_path / "cache").rglob("*.npz"):
            file.unlink()
    for one, two in zip(*records, strict=True):
        assert (one["environment"]["threads"], two["environment"]["threads"]) == (1, 2)
        assert one["run_id"] == two["run_id"]  # threads are no part of what was asked
        for key in ("predictions_sha256", "metrics", "counts", "trace", "params", "audit"):
            assert one[key] == two[key], (one["method"], key)
