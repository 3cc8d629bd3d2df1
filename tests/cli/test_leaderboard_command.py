"""``sslbench leaderboard`` and ``sslbench compare`` on a store of real runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sslbench.experiment.records.store import Store
from support.command import sslbench


def run(*words: str) -> tuple[int, str]:
    done = sslbench(*words)
    return done.exit_code, done.output


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    words = (
        "run --method supervised --method self_training --dataset synth --labeled 5 --unlabeled 20"
    )
    words += " --seed 0 --seed 1 --seed 2 --set synth.test=40 --set self_training.rounds=1"
    words += f" --executor local --jobs 1 --store {folder}"
    status, output = run(*words.split())
    assert status == 0, output
    return folder


def test_the_registered_baseline_is_compared_with(store: Path, tmp_path: Path) -> None:
    out = ("--store", str(store), "--out", str(tmp_path))
    status, output = run("leaderboard", *out)
    assert status == 0, output
    assert "Power: the test of the methods finds a difference" in output
    assert "With 3 draws the variance" in output
    assert "vs supervised" in (tmp_path / "leaderboard.md").read_text()
    assert run("leaderboard", *out, "--check")[0] == 0
    status, output = run("leaderboard", *out, "--baseline", "self_training")
    assert status == 0
    assert "vs self\\_training" in (tmp_path / "leaderboard.md").read_text()
    assert run("leaderboard", *out, "--check")[0] == 1
    status, output = run("leaderboard", *out, "--baseline", "nobody")
    assert status == 2
    assert "self_training, supervised" in output


def test_check_names_rows_on_stale_records(store: Path, tmp_path: Path) -> None:
    records, copy = Store(store).records(), tmp_path / "runs"
    for record in records:
        record.code = (
            {**record.code, "method": "0"} if record.method == "supervised" else record.code
        )
        Store(copy).save(record)
    out = ("--store", str(copy), "--out", str(tmp_path / "out"))
    status, output = run("leaderboard", *out)
    assert status == 0
    assert "supervised: stale" in output
    status, output = run("leaderboard", *out, "--check")
    assert status == 1
    assert [line for line in output.splitlines() if line.startswith("stale:")] == [
        "stale: synth, labeled 5, unlabeled rest of train, at most 20 sentences, no tuning:"
        " supervised"
    ]


def test_two_runs_are_a_comparison_of_taggers(store: Path) -> None:
    records = {r.method: r for r in Store(store).records() if r.spec.protocol.seed == 0}
    ids = [records[name].run_id for name in ("supervised", "self_training")]
    status, output = run("compare", *ids, "--store", str(store))
    assert status == 0, output
    assert "these taggers: 95 % interval" in output
    assert "the methods: one draw" in output
    status, output = run("compare", *ids, "--store", str(store), "--format", "json")
    actual = json.loads(output[output.index('{"runs') :])
    assert (actual["question"], actual["n_sentences"], actual["n_draws"]) == (
        "these taggers",
        40,
        1,
    )
    assert actual["difference"] == pytest.approx(actual["scores"][0] - actual["scores"][1])
