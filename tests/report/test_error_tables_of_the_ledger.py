"""The ledger's counts of errors by tag (tables 5 and 6 of Zeng et al.) are those of its runs."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

from sslbench.cli.errors import command
from sslbench.engine.types import F64
from sslbench.plugins import registry
from sslbench.report.ledger import Line, read_ledger
from support.real_files import real_home

ROOT = Path(__file__).resolve().parents[2]
TAGS = {"named entities": "NR", "numbers": "CD"}
LINES = [
    line
    for line in read_ledger(ROOT / "replications/ledger.csv")
    if line.paper == "Zeng 2013" and line.table in ("table 5", "table 6") and line.ours
]


@cache
def errors(supervised: str, evidence: str) -> dict[tuple[str, str | None], tuple[int, int, int]]:
    """Words of a tag, and the errors of two runs, by the tag and what it was taken for."""
    store = str(ROOT / "leaderboards/runs")
    words = [supervised, evidence, "--store", store, "--format", "json"]
    done = CliRunner().invoke(command, words, catch_exceptions=False)
    actual = json.loads(done.stdout)["patterns"]
    return {(row["gold"], row["predicted"]): (row["units"], *row["errors"]) for row in actual}


def value(line: Line) -> tuple[float, float, float]:
    """Mean over draws and its interval."""
    evidence, supervised = line.run_ids
    gold, _, predicted = line.row.partition(" to ")
    key = (TAGS[line.row], None) if line.row in TAGS else (gold, predicted)
    counts = np.array(
        [errors(*pair).get(key, (0, 0, 0)) for pair in zip(supervised, evidence, strict=True)],
        float,
    )
    words, before, after = counts.T
    of: dict[str, F64] = {
        "words": words,
        "errors": before,
        "errors of Baseline II": before,
        "errors of virtual evidence": after,
        "change": after - before,
        "change, %": 100 * (after - before) / np.maximum(before, 1),
    }
    draws = of[line.column]
    half = stats.t.isf(0.025, len(draws) - 1) * draws.std(ddof=1) / np.sqrt(len(draws))
    return float(draws.mean()), float(draws.mean() - half), float(draws.mean() + half)


def test_only_the_illegible_line_of_the_tables_has_no_value() -> None:
    assert len(LINES) == 26


@pytest.mark.corpus
@pytest.mark.parametrize("line", LINES, ids=lambda line: f"{line.row}, {line.column}")
def test_errors_by_tag(line: Line) -> None:
    real_home(registry().dataset("zh_zx").files)
    shown = [float(text or line.ours) for text in (line.ours, line.low, line.high)]
    assert shown == pytest.approx(value(line), abs=0.051)
