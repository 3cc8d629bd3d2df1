"""Error patterns, against counting by hand, and ``sslbench errors``."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sslbench.engine.types import I32
from sslbench.experiment.records.predictions import Predictions
from sslbench.experiment.records.store import Store
from sslbench.report.patterns import Pattern, patterns
from support.command import sslbench

LABELS = ("B-N", "M-N", "E-N", "S-N", "B-V", "E-V", "S-V")


def codes(text: str) -> I32:
    return np.array([LABELS.index(label) for label in text.split()], np.int32)


GOLD = codes("B-N E-N S-V S-V B-N M-N E-N S-N")
OFFSETS = np.array([0, 4, 8])


def test_words_that_are_not_found_and_words_that_are_called_otherwise() -> None:
    one = codes("S-N S-N S-N S-V B-N M-N E-N S-V")  # [ab] lost, V called N, last N called V
    two = codes("B-V E-V S-V S-V B-N E-N S-N S-N")  # [ab] called V, the long word lost
    actual = patterns((LABELS, GOLD), [(LABELS, one), (LABELS, two)], OFFSETS, "BMES")
    assert actual == [
        Pattern("N", None, 3, (1, 1)),
        Pattern("N", "V", 3, (1, 1)),
        Pattern("V", "N", 2, (1, 0)),
    ]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=40))
def test_tokens_are_a_table_of_confusions(pairs: list[tuple[int, int]]) -> None:
    names, others = ("a", "b", "c", "d"), ("b", "e", "a")  # the system has its own labels
    gold, system = (np.array(column, np.int32) for column in zip(*pairs, strict=True))
    actual = patterns((names, gold), [(others, system)], np.array([0, len(pairs)]), None)
    wanted = Counter((names[g], others[s]) for g, s in pairs if names[g] != others[s])
    assert {(row.gold, row.predicted): row.errors[0] for row in actual} == dict(wanted)
    sizes = Counter(names[g] for g, _ in pairs)
    assert all(row.units == sizes[row.gold] for row in actual)
    counts = [row.errors[0] for row in actual]
    assert counts == sorted(counts, reverse=True)


def run(*words: str) -> tuple[int, str]:
    done = sslbench(*words)
    return done.exit_code, done.output


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for seed in ("0", "1"):
        status, _ = run(
            "run",
            "--method",
            "supervised",
            "--dataset",
            "synth",
            "--labeled",
            "5",
            "--seed",
            seed,
            "--set",
            "synth.test=40",
            "--store",
            str(folder),
            "--executor",
            "local",
            "--jobs",
            "1",
        )
        assert status == 0
    return folder


def test_the_errors_are_those_of_the_record(store: Path) -> None:
    records = Store(store).records()
    status, output = run(
        "errors", *(r.run_id for r in records), "--store", str(store), "--format", "json"
    )
    assert status == 0, output
    rows = json.loads(output)["patterns"]
    for i, record in enumerate(records):
        counts = record.counts["test"]
        wrong = sum(counts["n_tokens"]) - sum(counts["correct_tokens"])
        assert sum(row["errors"][i] for row in rows) == wrong > 0
    status, output = run("errors", records[0].run_id, "--store", str(store), "--top", "2")
    assert status == 0
    assert f"A  {records[0].run_id}  supervised on synth" in output
    assert "confused:" in output


def test_records_without_predictions_are_refused(store: Path, tmp_path: Path) -> None:
    record = Store(store).records()[0]
    kept = record.predictions
    record.predictions = {}
    Store(tmp_path).save(record)
    status, output = run("errors", record.run_id, "--store", str(tmp_path))
    assert status == 2
    assert "has no predictions of test" in output
    record.predictions = {"test": Predictions(kept["test"].labels, "AAAA")}
    Store(tmp_path).save(record)
    status, output = run("errors", record.run_id, "--store", str(tmp_path))
    assert status == 2
    assert "predictions" in output
    assert run("errors", *["x"] * 3)[0] == 2
