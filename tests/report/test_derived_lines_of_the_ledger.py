"""Lines of the ledger that follow from other lines, or from the graph and the words of a record."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sslbench.report.ledger import Line, read_ledger
from sslbench.types import F64

ROOT = Path(__file__).resolve().parents[2]
LEDGER = read_ledger(ROOT / "replications/ledger.csv")
RELATIVE = [line for line in LEDGER if line.table == "text, relative gain in %" and line.ours]
GRAPHS = [
    line
    for line in LEDGER
    if line.paper == "Subramanya 2010" and line.metric == "count" and line.ours
]
#: systems of table 4 of Zeng et al. with the baseline that each extends
BASELINES = {
    "Wang et al. 2011": "Baseline I",
    "Jiao et al. 2006": "Baseline II",
    "Subramanya et al. 2010": "Baseline II",
    "virtual evidence": "Baseline II",
}
REDUCED = ("NN to VV", "CD to NN", "NR to VV", "JJ to NN", "NR to VA")
#: rows of table 3 of Subramanya et al.: entry of a record's `trace.graph`, and its factor
ENTRIES = {
    "no path to a labeled trigram, %": ("frac_unreachable", 100),
    "mean path length": ("mean_hops", 1),
}


@cache
def record(run_id: str) -> Any:
    return json.loads((ROOT / f"leaderboards/runs/{run_id}.json").read_text())


def system(name: str, column: str) -> F64:
    """The values of a system of table 4, one for each draw."""
    (line,) = (
        e
        for e in LEDGER
        if (e.paper, e.table, e.row, e.column) == ("Zeng 2013", "table 4", name, column)
    )
    metric = line.metric or "joint_f1"
    return np.array([record(run)["metrics"]["test"][metric] for run in line.run_ids[0]])


def relative(line: Line) -> Sequence[float]:
    """Mean over draws and its interval; one number for changes of counts."""
    if line.row == "reductions of table 6":
        cells = {
            (e.row, e.column): float(e.ours) for e in LEDGER if e.table == "table 6" and e.ours
        }
        return [
            float(np.mean([-100 * cells[row, "change"] / cells[row, "errors"] for row in REDUCED]))
        ] * 3
    names = ["Baseline I", "Baseline II", *BASELINES]
    of = {name: system(name, line.column) for name in names}
    if line.row == "joint over pipeline":
        gains = of["Baseline II"] / of["Baseline I"] - 1
    elif line.row == "semi-supervised over baselines":
        gains = np.mean([of[name] / of[base] - 1 for name, base in BASELINES.items()], axis=0)
    else:
        others = np.mean([of[name] for name in names if name != "virtual evidence"], axis=0)
        gains = of["virtual evidence"] / others - 1
    mean, half = gains.mean(), stats.t.isf(0.025, len(gains) - 1) * stats.sem(gains)
    return [100 * float(value) for value in (mean, mean - half, mean + half)]


def of_a_record(line: Line) -> float:
    (run,) = line.run_ids[0]
    if line.row in ENTRIES:
        entry, factor = ENTRIES[line.row]
        return factor * float(record(run)["trace"]["graph"][entry])
    parts: Mapping[str, Sequence[int]] = record(run)["anatomy"]["words"]
    sizes = {name: size for name, (size, _) in parts.items()}
    return 100 * (1 - sizes["labeled text"] / sum(sizes.values()))


def test_all_of_them_have_values() -> None:
    assert (len(RELATIVE), len(GRAPHS)) == (11, 5)


@pytest.mark.parametrize("line", RELATIVE, ids=lambda line: f"{line.row}, {line.column}")
def test_relative_gains(line: Line) -> None:
    shown = [float(text or line.ours) for text in (line.ours, line.low, line.high)]
    assert shown == pytest.approx(relative(line), abs=0.0051)


@pytest.mark.parametrize("line", GRAPHS, ids=lambda line: f"{line.row}, {line.column}")
def test_graphs_and_unknown_words(line: Line) -> None:
    assert float(line.ours) == pytest.approx(of_a_record(line), abs=0.0051)
