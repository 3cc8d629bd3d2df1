"""Made-up run records."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sslbench.experiment.metrics import SentenceCounts, metrics_from_counts
from sslbench.experiment.records.record import RunRecord
from sslbench.experiment.run.recording import failed
from sslbench.report.board import Board, board_of_tables
from sslbench.report.leaderboard import Table, leaderboard
from sslbench.report.page.build import Sources
from sslbench.report.render import board_files
from sslbench.report.rows import Row
from support.run_fakes import task

DATASETS = tuple(f"set{i}" for i in range(7))
SKILL = {"supervised": 0.7, "better": 0.8, "worse": 0.6}


def record(
    method: str, seed: int = 0, *, created: str = "2024-01-01", code: str = "1", **changes: object
) -> RunRecord:
    """A good run whose scores depend on method and seed alone."""
    fields = {"labeled": 100, **changes}
    made = failed(task(method, seed=seed, **fields), "method", "")
    made.code = {"method": code}
    rng = np.random.default_rng([seed, *map(ord, method)])
    counts = SentenceCounts(np.full(60, 10), rng.binomial(10, SKILL.get(method, 0.5), size=60))
    made.counts = {"test": counts.to_lists()}
    made.metrics = {"test": dict(metrics_from_counts(counts))}
    made.status, made.error, made.error_kind = "ok", None, None
    made.created, made.wall_s, made.cpu_s, made.peak_rss_mb = created, 10.0 + seed, 5.0, 100.0
    labeled = made.spec.protocol.labeled
    made.data = {"test_sha256": "t", "sentences": {"labeled": 900 if labeled == "all" else labeled}}
    return made


def broken(method: str, seed: int) -> RunRecord:
    return failed(task(method, seed=seed, labeled=100), "method", "bug")


def boards(records: Sequence[RunRecord]) -> list[Table]:
    return leaderboard(records, baselines=["supervised"])


def board(records: Sequence[RunRecord]) -> Board:
    return board_of_tables(boards(records), lambda row: f"make {row.name}")


def files(records: Sequence[RunRecord], name: str = "leaderboard") -> dict[str, bytes]:
    return board_files(board(records), name, Sources())


def row_of(table: Table, name: str) -> Row:
    return next(row for row in table.rows if row.name == name)


def records_on(*datasets: str, sizes: tuple[int, ...] = (100, 500)) -> list[RunRecord]:
    """Runs of the methods of SKILL with three draws, which have the costs of a board."""
    result = []
    for dataset in datasets:
        for size in sizes:
            for method in SKILL:
                for seed in range(3):
                    made = record(method, seed, labeled=size, dataset=dataset)
                    made.data["task"] = "tagging"
                    made.cpu_s = {"supervised": 1.0, "better": 10.0, "worse": 5.0}[method]
                    result.append(made)
    return result
