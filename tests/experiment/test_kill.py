"""``kill -9`` at random moments of a grid, then the same command again.

SSLBENCH_KILL_ROUNDS sets the number of kills (default 3):
    SSLBENCH_KILL_ROUNDS=20 pytest tests/experiment/test_kill.py
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
import warnings
from pathlib import Path

import psutil
import pytest

from sslbench.experiment.records.record import RunRecord
from sslbench.experiment.records.store import Store
from sslbench.report.leaderboard import leaderboard
from support.waiting import HANG

ROUNDS = int(os.environ.get("SSLBENCH_KILL_ROUNDS", "3"))
JOBS = 2
METHODS = ("supervised", "self_training")
# Enough that something is left to be killed until the end.
SEEDS = range(2 + ROUNDS // 2)


def grid(store: Path) -> list[str]:
    """Two methods, tuned, so that there are trials to be cut off too."""
    return [
        sys.executable,
        "-m",
        "sslbench",
        "run",
        "--dataset",
        "synth",
        "--featurizer",
        "basic",
        *(word for name in METHODS for word in ("--method", name)),
        *(word for seed in SEEDS for word in ("--seed", str(seed))),
        "--labeled",
        "20",
        "--unlabeled",
        "30",
        "--set",
        "synth.test=60",
        "--set",
        "synth.dev=20",
        "--set",
        "self_training.rounds=1",
        "--tune",
        "1",
        "--jobs",
        str(JOBS),
        "--threads",
        "1",
        "--store",
        str(store),
        "--format",
        "json",
    ]


def kill_once(store: Path, after: float, records: int = 0) -> None:
    """Start the grid; kill it after so many seconds, once there are so many records.

    None of its processes lives on.
    """
    parent = subprocess.Popen(grid(store), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(after)
    while len(list(store.glob("*.json"))) < records and parent.poll() is None:
        time.sleep(0.05)
    family = psutil.Process(parent.pid).children(recursive=True)
    parent.kill()
    parent.wait()
    _, alive = psutil.wait_procs(family, timeout=HANG)
    assert not alive


def read(store: Path) -> list[RunRecord]:
    """Every record; a damaged one is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        records = Store(store).records()
        for trial in (store / "trials").glob("*.json"):
            assert Store(store).load_trial(trial.stem) is not None
    assert all(record.status == "ok" for record in records)
    return records


def board(records: list[RunRecord]) -> list[tuple[object, ...]]:
    """What a leaderboard says, but for times and memory."""
    return [
        (
            table.dataset,
            table.protocol,
            table.data,
            table.seeds,
            row.rank,
            row.name,
            row.mean,
            row.sd,
            row.paired,
            row.p_holm,
            row.missing,
        )
        for table in leaderboard(records)
        for row in table.rows
    ]


def run_to_its_end(store: Path) -> tuple[list[dict[str, object]], str]:
    done = subprocess.run(grid(store), capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """The store of a grid that was not killed, and the seconds it took."""
    store = tmp_path_factory.mktemp("undisturbed") / "runs"
    began = time.monotonic()
    run_to_its_end(store)
    return store, time.monotonic() - began


def test_kill_dash_nine(tmp_path: Path, undisturbed: tuple[Path, float]) -> None:
    reference, seconds = undisturbed
    store, chance = tmp_path / "runs", random.Random(ROUNDS)
    seconds_per_run = seconds * JOBS / (len(METHODS) * len(SEEDS))
    finished: dict[str, int] = {}
    for number in range(ROUNDS):
        # The first kill leaves a finished run behind; the next ones get on with the grid.
        kill_once(store, chance.uniform(0.2, 2.2) * seconds_per_run, records=number == 0)
        for record in read(store):
            stamp = Store(store).path(record.run_id).stat().st_mtime_ns
            # A run that was finished is not run again.
            assert finished.setdefault(record.run_id, stamp) == stamp
    assert finished
    records, messages = run_to_its_end(store)
    assert len(records) == len(METHODS) * len(SEEDS) == len(read(store))
    assert all(Store(store).path(i).stat().st_mtime_ns == t for i, t in finished.items())
    assert f"{len(finished)} of them found in the store" in messages
    assert board(read(store)) == board(read(reference))
    print(f"{ROUNDS} kills; {len(finished)} of {len(records)} runs had finished before the last")


def test_half_written_files_are_left_alone(undisturbed: tuple[Path, float]) -> None:
    """A file that a killed process left half-written is no record and stops no other run."""
    store, _ = undisturbed
    (store / ".0123456789abcdef-x.tmp").write_bytes(b'{\n"run_id": "01')
    assert len(read(store)) == len(METHODS) * len(SEEDS)
