"""The ledger of printed numbers: each value is that of its records."""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path

import msgspec
import numpy as np
import pytest

from sslbench.engine.errors import UserError
from sslbench.experiment.records.store import Store
from sslbench.report.ledger import (
    COLUMNS,
    Line,
    filled,
    ledger_text,
    read_ledger,
    verdict,
    wrong_lines,
)
from support.board_records import record

ROOT = Path(__file__).resolve().parents[2]
BLANK = dict.fromkeys(COLUMNS, "") | {"paper": "A 2000", "data": "same", "verdict": "open"}


def line(**changes: str) -> Line:
    return Line(**{**BLANK, "printed": "80.0", "margin": "1", **changes})


@pytest.mark.slow
def test_the_ledger_of_the_project_is_that_of_its_records() -> None:
    lines = read_ledger(ROOT / "replications/ledger.csv")
    papers = Counter(each.paper for each in lines)
    assert sorted(papers.values()) == [20, 23, 78, 95, 162]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ids = {run for each in lines for side in each.run_ids for run in side}
        stored = Store(ROOT / "leaderboards/runs").records(ids)
    records = {record.run_id: record for record in stored}
    assert wrong_lines(lines, records) == []
    assert all(each.reason for each in lines)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        ("79.5", "80.5", "agrees"),
        ("79.0", "81.0", "agrees"),
        ("78.9", "80.0", "undecided"),
        ("70", "90", "undecided"),
        ("78", "78.9", "differs"),
        ("81.1", "85", "differs"),
    ],
)
def test_verdicts(low: str, high: str, expected: str) -> None:
    assert verdict(line(ours="80", low=low, high=high)) == expected


def test_values_on_other_data_are_not_comparable() -> None:
    other = line(ours="80", low="79.9", high="80.1", data="stand-in")
    assert verdict(other) == "not comparable"
    assert verdict(line(data="stand-in")) == "open"


def test_values_come_from_the_runs(tmp_path: Path) -> None:
    runs = [record("better", seed) for seed in range(5)]
    known = {run.run_id: run for run in runs}
    ids = " ".join(known)
    actual = filled(line(runs=ids, metric="1-accuracy"), known)
    mean = np.mean([run.score for run in runs])
    assert float(actual.ours) == pytest.approx(100 - 100 * mean, abs=0.005)
    assert float(actual.low) < float(actual.ours) < float(actual.high)
    assert actual.verdict == "differs"
    others = [record("supervised", seed) for seed in range(5)]
    known |= {run.run_id: run for run in others}
    gain = filled(line(runs=f"{ids} - {' '.join(run.run_id for run in others)}"), known)
    expected = 100 * (mean - np.mean([run.score for run in others]))
    assert float(gain.ours) == pytest.approx(expected, abs=0.005)
    one = filled(line(runs=runs[0].run_id), known)
    assert float(one.low) < float(one.ours) < float(one.high)
    path = tmp_path / "ledger.csv"
    path.write_text(ledger_text([actual, msgspec.structs.replace(gain, row="gain")]))
    assert wrong_lines(read_ledger(path), known) == []
    doctored = msgspec.structs.replace(actual, ours="21.00")
    assert wrong_lines([doctored], known) == ["A 2000, , , : other value"]
    assert "no record" in wrong_lines([actual], {})[0]


def test_metrics_of_parts_and_counts() -> None:
    runs = [record("better", seed) for seed in range(3)]
    known = {run.run_id: run for run in runs}
    ids = " ".join(known)
    correct = filled(line(runs=ids, metric="test.correct_tokens"), known)
    sums = [sum(run.counts["test"]["correct_tokens"]) for run in runs]
    assert float(correct.ours) == pytest.approx(np.mean(sums), abs=0.05)
    assert float(correct.low) < float(correct.ours) < float(correct.high)
    share = filled(line(runs=ids, printed=".8", metric="accuracy"), known)
    assert float(share.ours) == pytest.approx(np.mean([run.score for run in runs]), abs=5e-4)
    for run, value in zip(runs, (0.5, 0.6, 0.7), strict=True):
        run.metrics["test"]["unseen_accuracy"] = value
    unseen = filled(line(runs=ids, metric="unseen_accuracy"), known)
    # t quantile of 2 degrees of freedom, sd 10 points; no score is above 100
    assert (unseen.ours, unseen.low, unseen.high) == ("60.00", "35.16", "84.84")
    for run, value in zip(runs, (0.8, 0.9, 1.0), strict=True):
        run.metrics["test"]["unseen_accuracy"] = value
    high = filled(line(runs=ids, metric="unseen_accuracy"), known)
    assert (high.ours, high.low, high.high) == ("90.00", "65.16", "100.00")
    # s / sqrt(chi2 / 2), chi2 of 2 degrees of freedom: 7.378 and 0.0506
    spread = filled(line(runs=ids, metric="sd unseen_accuracy"), known)
    assert (spread.ours, spread.low, spread.high) == ("10.00", "5.21", "62.85")
    for metric, message in [("train.f1", "no part 'train'"), ("recall", "no metric 'recall'")]:
        with pytest.raises(UserError, match=message):
            filled(line(runs=ids, metric=metric), known)
    for metric in ("unseen_accuracy", "sd accuracy"):
        with pytest.raises(UserError, match="needs two draws"):
            filled(line(runs=runs[0].run_id, metric=metric), known)


def test_runs_on_several_datasets_have_the_mean_over_datasets() -> None:
    # two draws on one dataset, one on the others: each dataset counts once
    places = [("conll00", 0), ("conll00", 1), ("ud_el", 0), ("bio", 0)]
    runs = [record("better", seed, dataset=name) for name, seed in places]
    bases = [record("supervised", seed, dataset=name) for name, seed in places]
    known = {run.run_id: run for run in [*runs, *bases]}
    for run, value in zip([*runs, *bases], (0.7, 0.9, 0.6, 1.0, 0.5, 0.5, 0.4, 0.3), strict=True):
        run.metrics["test"]["unseen_accuracy"] = value
    ids, others = (" ".join(run.run_id for run in side) for side in (runs, bases))
    actual = filled(line(runs=f"{ids} - {others}", metric="unseen_accuracy"), known)
    # gains 30, 20, 70; sd 26.46 points; t quantile of 2 degrees of freedom 4.303
    assert (actual.ours, actual.low, actual.high) == ("40.00", "-25.72", "105.72")
    with pytest.raises(UserError, match="different datasets"):
        filled(line(runs=f"{ids} - {bases[0].run_id}"), known)


def test_a_share_of_sentences_of_one_run_has_a_normal_interval() -> None:
    runs = [record("better", 0), record("supervised", 0)]
    known = {run.run_id: run for run in runs}
    n = len(runs[0].counts["test"]["n_tokens"])
    for run, value in zip(runs, (0.9, 0.5), strict=True):
        run.metrics["test"] |= {"share_app": 10 / n, "sentence_accuracy_app": value, "u_app": value}
        run.metrics["test"]["sentence_accuracy_notapp"] = value

    def half(*shares: float, of: int) -> float:
        return 196 * float(np.sqrt(sum(share * (1 - share) for share in shares) / of))

    for metric, of in [("_app", 10), ("_notapp", n - 10)]:
        one = filled(line(runs=runs[1].run_id, metric=f"sentence_accuracy{metric}"), known)
        assert float(one.high) - float(one.ours) == pytest.approx(half(0.5, of=of), rel=1e-3)
    whole = filled(line(runs=runs[1].run_id, metric="test.u_app"), known)
    assert float(whole.high) - float(whole.ours) == pytest.approx(half(0.5, of=n), rel=1e-2)
    rest = filled(line(runs=runs[0].run_id, metric="1-test.sentence_accuracy_app"), known)
    assert (rest.ours, rest.low) == ("10.00", "0.00")
    with pytest.raises(UserError, match="needs two draws"):
        filled(line(runs=runs[0].run_id, metric="sd sentence_accuracy_app"), known)
    ids = " - ".join(run.run_id for run in runs)
    gain = filled(line(runs=ids, metric="sentence_accuracy_app"), known)
    assert float(gain.ours) == pytest.approx(40)
    assert float(gain.ours) - float(gain.low) == pytest.approx(half(0.9, 0.5, of=10), rel=1e-3)


WRONG = [
    ({"printed": "about 80"}, "no number"),
    ({"verdict": "agrees"}, "the verdict is 'agrees', its numbers say 'open'"),
    ({"ours": "80", "verdict": "agrees"}, "a value without runs"),
    ({"data": "similar"}, "data is similar, but must be same or stand-in or licensed"),
    ({"reason": "a comma, unquoted"}, "more cells than columns"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG)
def test_a_wrong_line_is_told_with_its_place(
    changes: dict[str, str], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "ledger.csv"
    fields = {**BLANK, "printed": "80", **changes}
    path.write_text(",".join(COLUMNS) + "\n" + ",".join(fields[c] for c in COLUMNS) + "\n")
    with pytest.raises(UserError, match=message) as caught:
        read_ledger(path)
    assert "ledger.csv:2: " in str(caught.value)


def test_a_number_stands_once(tmp_path: Path) -> None:
    path = tmp_path / "ledger.csv"
    path.write_text(ledger_text([line(), line(printed="81")]))
    with pytest.raises(UserError, match="printed twice"):
        read_ledger(path)
    path.write_text("paper,table\n")
    with pytest.raises(UserError, match="the columns are not"):
        read_ledger(path)


def test_the_summary_counts_the_lines_of_the_ledger() -> None:
    text = (ROOT / "replications/README.md").read_text(encoding="utf-8")
    counts = Counter(
        (each.paper, "none" if each.verdict == "open" else each.data)
        for each in read_ledger(ROOT / "replications/ledger.csv")
    )
    for paper in {paper for paper, _ in counts}:
        actual = [counts[paper, name] for name in ("same", "stand-in", "none")]
        row = next(line for line in text.splitlines() if line.startswith(f"| {paper} | "))
        assert [int(cell) for cell in row.strip("|").split("|")[2:]] == [sum(actual), *actual]
