"""Lines of the ledger that follow from other lines, or from the graph and the data of a record."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sslbench.engine.types import F64
from sslbench.experiment.records.record import encode
from sslbench.experiment.records.store import Store
from sslbench.report.ledger import Line, number, read_ledger

ROOT = Path(__file__).resolve().parents[2]
LEDGER = read_ledger(ROOT / "replications/ledger.csv")
RELATIVE = [line for line in LEDGER if line.table == "text, relative gain in %" and line.ours]
ERRORS = ("Zeng 2013", "table 5"), ("Zeng 2013", "table 6")  # another test counts them
OF_A_RECORD = [
    line
    for line in LEDGER
    if line.metric == "count" and line.ours and line.runs and (line.paper, line.table) not in ERRORS
]
#: systems of table 4 of Zeng et al. with the baseline that each extends
BASELINES = {
    "Wang et al. 2011": "Baseline I",
    "Jiao et al. 2006": "Baseline II",
    "Subramanya et al. 2010": "Baseline II",
    "virtual evidence": "Baseline II",
}
REDUCED = ("NN to VV", "CD to NN", "NR to VV", "JJ to NN", "NR to VA")


@cache
def record(run_id: str) -> Any:
    stored = Store(ROOT / "leaderboards/runs").load(run_id)
    assert stored is not None
    return json.loads(encode(stored))


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
            (e.row, e.column): float(e.ours)
            for e in LEDGER
            if (e.paper, e.table) == ERRORS[1] and e.ours
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


def size(data: Mapping[str, Mapping[str, int]], unit: str, part: str) -> int:
    """Sentences or tokens of a part of the data; train is the labeled and the unlabeled part."""
    parts = ("labeled", "unlabeled") if part == "train" else (part,)
    return sum(data[unit][each] for each in parts)


def of_a_record(line: Line) -> float:
    (run,) = line.run_ids[0]
    actual = record(run)
    graph, data, name = actual["trace"].get("graph"), actual["data"], f"{line.row} {line.column}"
    unit = "sentences" if "sentences" in name else "tokens"
    if line.row.startswith("vertices"):
        return float(graph["vertices"]) / (1e6 if "millions" in line.row else 1)
    if line.row == "graph":
        known = graph["labeled_vertices"] if line.column == "only in unlabeled text" else 0
        return float(graph["vertices"] - known)
    if line.row == "no path to a labeled trigram, %":
        return 100 * float(graph["frac_unreachable"])
    if line.row == "mean path length":
        return float(graph["mean_hops"])
    if line.row == "unknown-word rate, %":
        parts: Mapping[str, Sequence[int]] = actual["anatomy"]["words"]
        sizes = {text: words for text, (words, _) in parts.items()}
        return 100 * (1 - sizes["labeled text"] / sum(sizes.values()))
    if line.column == "labels":
        return float(data["labels"])
    if line.row == "POS":  # table 1 of Suzuki & Isozaki: "train words"
        return size(data, unit, line.column.split()[0].replace("train", "labeled"))
    if line.column.endswith(", millions"):  # table 6 of Suzuki & Isozaki: a month's text
        return size(data, unit, "unlabeled") / 1e6
    if line.column == "OOV rate":
        return float(
            sum(actual["counts"][line.row]["oov_words"]) / data["facts"][f"{line.row}_words"]
        )
    if line.table == "table 3" and line.column == "words":
        return float(data["facts"][f"{line.row}_words"])
    return size(data, unit, "unlabeled" if line.row in ("all", "unlabeled text") else line.row)


def test_all_of_them_have_values() -> None:
    assert (len(RELATIVE), len(OF_A_RECORD)) == (11, 42)


@pytest.mark.parametrize("line", RELATIVE, ids=lambda line: f"{line.row}, {line.column}")
def test_relative_gains(line: Line) -> None:
    shown = [float(text or line.ours) for text in (line.ours, line.low, line.high)]
    assert shown == pytest.approx(relative(line), abs=0.0051)


@pytest.mark.parametrize("line", OF_A_RECORD, ids=lambda line: f"{line.row}, {line.column}")
def test_graphs_and_sizes_of_data(line: Line) -> None:
    rounding = 0.00051 if "millions" in line.column else 0.0051
    assert number(line.ours) == pytest.approx(of_a_record(line), abs=rounding)
