"""Claims of papers, by the runs of the ledger."""

from __future__ import annotations

import csv
import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sslbench.engine.errors import UserError
from sslbench.experiment.records.record import RunRecord
from sslbench.experiment.records.store import Store
from sslbench.report.claims import (
    VERDICTS,
    Claim,
    Difference,
    claims_page,
    claims_table,
    differences,
    read_claims,
    verdict,
    written,
)
from sslbench.report.ledger import COLUMNS, Line
from support.board_records import record

ROOT = Path(__file__).resolve().parents[2]
SIGNS = {"same": (1.0, 2.0), "opposite": (-2.0, -1.0), "unclear": (-1.0, 1.0), "none": (None, None)}


def difference(sign: str) -> Difference:
    low, high = SIGNS[sign]
    return Difference("A", "t", "r", "s", "c", 1.0, 0.0, low, high)


@pytest.mark.slow
def test_the_claims_of_the_project_are_those_of_its_records() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        texts = written(ROOT / "replications", Store(ROOT / "leaderboards/runs"))
    for name, text in texts.items():
        assert (ROOT / "replications" / name).read_text(encoding="utf-8") == text
    rows = list(csv.DictReader(io.StringIO(texts["claims.csv"])))
    assert len(rows) >= 50
    assert all(float(row["printed"]) > 0 for row in rows)


@pytest.mark.parametrize("name", SIGNS)
def test_signs(name: str) -> None:
    assert difference(name).sign == name


@pytest.mark.parametrize(
    ("signs", "expected"),
    [
        ("same unclear", "confirmed"),
        ("same same none none none", "confirmed"),
        ("same unclear unclear", "undecided"),
        ("same same same opposite", "undecided"),
        ("opposite unclear", "refuted"),
        ("opposite opposite same", "undecided"),
        ("unclear", "undecided"),
        ("none none", "cannot be tested here"),
    ],
)
def test_verdicts(signs: str, expected: str) -> None:
    assert verdict([difference(sign) for sign in signs.split()]) == expected
    assert expected in VERDICTS


def ledger(**runs: list[RunRecord]) -> tuple[list[Line], dict[str, RunRecord]]:
    """Lines of a table with the columns "one" and "two"; methods are rows, printed 80, 81, ..."""
    blank: dict[str, Any] = dict.fromkeys(COLUMNS, "") | {
        "paper": "A 2000",
        "data": "same",
        "verdict": "open",
    }
    lines = [
        Line(
            **blank
            | {"table": "t", "row": name, "column": column, "printed": f"{80 + place}"}
            | {"runs": " ".join(run.run_id for run in own), "metric": "accuracy"}
        )
        for place, (name, own) in enumerate(runs.items())
        for column in ("one", "two")
    ]
    return lines, {run.run_id: run for own in runs.values() for run in own}


def test_a_difference_is_paired_by_draw() -> None:
    base, better = ([record(name, seed) for seed in range(5)] for name in ("supervised", "better"))
    lines, known = ledger(base=base, better=better, other=base, missing=[])
    claim = Claim("A 2000", "t", "it is better", better=("better",), than=("base",))
    found = differences(claim, lines, known)
    assert [(each.column, each.printed) for each in found] == [("one", 1), ("two", 1)]
    values = [100 * ((b.score or 0) - (a.score or 0)) for a, b in zip(base, better, strict=True)]
    assert found[0].ours == pytest.approx(np.mean(values), abs=0.005)
    only = Claim("A 2000", "t", "", better=("other", "missing"), than=("base",), columns=("two",))
    same, missing = differences(only, lines, known)
    assert (same.sign, missing.sign) == ("none", "none"), "the same runs, and none"
    page, table = claims_page({claim: found}), claims_table({claim: found})
    assert "| it is better |" in page
    assert table.count("\n") == 3


def test_metrics_of_two_rounds_are_compared_over_draws() -> None:
    runs = [record("better", seed) for seed in range(4)]
    first, last = (0.5, 0.6, 0.55, 0.7), (0.6, 0.65, 0.7, 0.72)
    for run, one, two in zip(runs, first, last, strict=True):
        run.metrics["test"] |= {"accuracy_pr1": one, "accuracy_pr2": two}
    lines, known = ledger(one=runs, two=runs)
    metrics = {"one": "1-accuracy_pr1", "two": "1-accuracy_pr2"}
    printed = {"one": "60", "two": "50"}
    changed = [
        Line(
            **{name: getattr(line, name) for name in COLUMNS}
            | {"metric": metrics[line.row]}
            | {"printed": printed[line.row]}
        )
        for line in lines
    ]
    claim = Claim("A 2000", "t", "", better=("two",), than=("one",), columns=("one",), lower=True)
    (found,) = differences(claim, changed, known)
    gains = 100 * (np.array(last) - first)
    half = stats.t.ppf(0.975, 3) * gains.std(ddof=1) / 2
    expected = (gains.mean(), gains.mean() - half, gains.mean() + half)
    assert (found.ours, found.low, found.high) == pytest.approx(expected, abs=0.006)
    assert found.printed == 10


def test_rows_that_are_gains_themselves() -> None:
    lines, known = ledger(gain=[])
    gain = Line(**{name: getattr(lines[0], name) for name in COLUMNS} | {"printed": "+.5"}
                | {"ours": "1.00", "low": "0.50", "high": "1.50", "data": "stand-in"})  # fmt: skip
    (found,) = differences(Claim("A 2000", "t", "it gains", gains=("gain",)), [gain], known)
    assert (found.printed, found.ours, found.sign) == (0.5, 1.0, "same")


def test_runs_that_cannot_be_compared_are_told() -> None:
    base, better = ([record(name, seed) for seed in range(2)] for name in ("supervised", "better"))
    lines, known = ledger(base=base, better=better)
    claim = Claim("A 2000", "t", "", better=("better",), than=("base",), columns=("one",))
    with pytest.raises(UserError, match="no record"):
        differences(claim, lines, {})
    wrong = [
        Line(**{name: getattr(line, name) for name in COLUMNS} | {"metric": "recall"})
        for line in lines
    ]
    with pytest.raises(UserError, match="no metric 'recall'"):
        differences(claim, wrong, known)
    both = f"{lines[2].runs} - {lines[0].runs}"
    wrong = [
        Line(**{name: getattr(line, name) for name in COLUMNS} | {"runs": both})
        for line in lines[2:]
    ]
    with pytest.raises(UserError, match="a difference itself"):
        differences(claim, [*lines[:2], *wrong], known)


def test_a_claim_that_the_paper_does_not_make_is_refused(tmp_path: Path) -> None:
    lines, known = ledger(base=[], better=[])
    wrong = Claim("A 2000", "t", "no", better=("base",), than=("better",))
    with pytest.raises(UserError, match="base, one: printed as no gain"):
        differences(wrong, lines, known)
    with pytest.raises(UserError, match="no line"):
        differences(Claim("A 2000", "u", "no", better=("base",)), lines, known)
    path = tmp_path / "claims.toml"
    path.write_text("[[claims]]\npaper = 'A'\ntable = 't'\ntext = 1\n")
    with pytest.raises(UserError, match=r"claims\.toml: text is 1"):
        read_claims(path)
