"""Leaderboards from made-up records."""

from __future__ import annotations

import csv
import io
import random
from pathlib import Path

import msgspec
import numpy as np
import pytest

from sslbench.experiment.records.record import DataSpec, RunRecord, content_id
from sslbench.report.curves import UNLABELED, curve_lines, curves
from sslbench.report.render import changed_files, markdown, write_files
from support.board_records import SKILL, board, boards, broken, record, row_of
from support.board_records import files as leaderboard_files


def test_means_and_paired_differences_on_the_same_seeds() -> None:
    records = [record(method, seed) for method in SKILL for seed in range(3)]
    (table,) = boards(records)
    assert [row.name for row in table.rows] == ["better", "supervised", "worse"]
    assert [row.rank for row in table.rows] == [1, 2, 3]
    scores = {m: [r.score for r in records if r.method == m] for m in SKILL}
    better = row_of(table, "better")
    assert better.mean == pytest.approx(np.mean(scores["better"]))
    assert better.sd == pytest.approx(np.std(scores["better"], ddof=1))
    assert better.wall_s == 11.0
    assert better.paired is not None
    assert better.paired.difference == pytest.approx(
        np.mean(scores["better"]) - np.mean(scores["supervised"])
    )
    assert better.paired.p_value < 0.01
    assert better.p_holm == 2 * min(row.paired.p_value for row in table.rows if row.paired)
    assert row_of(table, "supervised").paired is None


def test_seeds_that_one_side_lacks_are_left_out_of_the_difference_and_of_the_ranks() -> None:
    records = [record("supervised", seed) for seed in range(3)]
    records += [record("better", 0), record("better", 1), broken("better", 2)]
    (table,) = boards(records)
    assert [row.name for row in table.rows] == ["supervised", "better"]
    better = row_of(table, "better")
    assert (better.rank, better.missing, better.failed) == (None, (2,), 1)
    assert better.paired is not None
    assert better.draws == 2
    shared = [record("supervised", seed).score for seed in (0, 1)]
    assert better.paired.difference == pytest.approx(better.mean - np.mean(shared))
    assert "seed 2: failed" in markdown(board(records))


def test_a_method_that_always_fails_is_still_a_row() -> None:
    (table,) = boards([record("supervised", 0), broken("jess", 0)])
    jess = row_of(table, "jess")
    assert (jess.mean, jess.rank, jess.failed, jess.paired) == (None, None, 1, None)


def test_protocols_data_and_parameters_do_not_mix() -> None:
    from sslbench.experiment.records.record import DataSpec

    records = [
        record("supervised"),
        record("supervised", labeled=1000),
        record("supervised", labeled="all"),
        record("supervised", unlabeled=5),
        record("supervised", tune=5),
        record("supervised", data=DataSpec("other bytes")),
    ]
    assert len(boards(records)) == 6
    sizes = [t.protocol.split(",")[0] for t in boards(records[:3])]
    assert sizes == ["labeled 100", "labeled 1000", "labeled all"]
    varied = [record("supervised"), record("better"), record("better", params={"a": 1})]
    (table,) = boards(varied)
    assert {row.name for row in table.rows} == {"supervised", "better", "better (a=1)"}


@pytest.mark.parametrize("codes", [("1", "2"), ("2", "1")])  # whatever the order of run ids
def test_the_newest_run_of_a_cell_counts(codes: tuple[str, str]) -> None:
    old = record("supervised", code=codes[0], created="2023")
    new = record("supervised", code=codes[1], created="2025")
    (table,) = boards([new, old])
    assert row_of(table, "supervised").codes == (content_id({"method": codes[1]}),)


def test_a_row_of_several_code_versions_is_marked() -> None:
    """Not one whose code differs from another row's: every method has code of its own."""
    records = [record("supervised", seed=0), record("supervised", seed=1, code="2")]
    records += [record("better", seed=seed, code="3") for seed in (0, 1)]
    (table,) = boards(records)
    assert len(row_of(table, "supervised").codes) == 2
    assert row_of(table, "supervised").mixed
    assert not row_of(table, "better").mixed
    assert markdown(board(records)).count("mixed code") == 2  # of the row, and the legend


def test_the_heading_has_the_options_of_the_data_set() -> None:
    plain, other = record("supervised"), record("supervised")
    data = DataSpec(options={"path": "x", "draw": 0})
    other.spec = msgspec.structs.replace(other.spec, data=data)
    headings = [line for line in markdown(board([plain, other])).splitlines() if "##" in line]
    headings = [line for line in headings if "unlabeled" in line]
    assert sorted("(draw=0, path=x), labeled" in line for line in headings) == [False, True]


def test_other_test_sentences_are_not_paired() -> None:
    other = record("better")
    other.data["test_sha256"] = "another"
    (table,) = boards([record("supervised"), other])
    assert row_of(table, "better").taggers is None


def test_files_are_a_function_of_the_set_of_records() -> None:
    records = [record(m, s, labeled=n) for m in SKILL for s in (0, 1) for n in (100, 500)]
    files = leaderboard_files(records)
    for seed in range(3):
        random.Random(seed).shuffle(records)
        assert leaderboard_files(records) == files
    assert b"labeled sentences: toy" in files["leaderboard.html"]
    rows = list(csv.DictReader(io.StringIO(files["leaderboard.csv"].decode())))
    assert len(rows) == 6
    assert float(rows[0]["mean"]) == pytest.approx(
        np.mean([r.score for r in records if r.method == "better" and r.protocol["labeled"] == 100])
    )
    numbers = [float(row[name]) for row in rows for name in ("mean", "sd")]
    assert numbers == [float(f"{each:.12g}") for each in numbers]  # the last digits are noise
    one_size = [r for r in records if r.protocol["labeled"] == 100]
    assert not curves(boards(one_size))


def test_curves_join_rows_of_the_same_parameters_only() -> None:
    records = [record("better", labeled=100), record("better", labeled=500, params={"a": 1})]
    assert set(curve_lines(boards(records))) == {"better", "better (a=1)"}
    records.append(record("better", labeled=500))
    lines = curve_lines(boards(records))
    assert [size for size, _, _ in lines["better"]] == [100, 500]


def test_a_second_curve_is_over_the_unlabeled_text() -> None:
    records = []
    for cap, sentences in ((50, 50), (400, 320)):
        for method, used in (("supervised", 0), ("better", sentences)):
            made = record(method, labeled=100)
            protocol = msgspec.structs.replace(made.spec.protocol, unlabeled=cap)
            made.spec = msgspec.structs.replace(made.spec, protocol=protocol)
            made.data["sentences"] = {**made.data["sentences"], "unlabeled": used}
            records.append(made)
    tables = boards(records)
    lines = curve_lines(tables, UNLABELED)
    for method in ("supervised", "better"):  # the baseline is drawn at the text that there was
        assert [size for size, _, _ in lines[method]] == [50, 320]
    (curve,) = curves(tables)
    assert "labeled 100" in curve.protocol
    assert "unlabeled sentences" in curve.svg()


def test_a_curve_counts_the_seeds_that_all_its_points_have() -> None:
    records = [record("better", seed, labeled=100) for seed in (0, 1, 2)]
    records += [record("better", seed, labeled=500) for seed in (1, 2, 3)]
    (few, many) = curve_lines(boards(records))["better"]
    for point, labeled in ((few, 100), (many, 500)):
        mine = [r for r in records if r.protocol["labeled"] == labeled]
        scores = [100 * r.score for r in mine if r.spec.protocol.seed in (1, 2)]
        sd = pytest.approx(np.std(scores, ddof=1))
        assert point == (labeled, pytest.approx(np.mean(scores)), sd)
    records = [r for r in records if r.protocol["labeled"] == 100 or r.spec.protocol.seed == 3]
    assert curve_lines(boards(records))["better"][1][2] == 0.0  # none in common: all count


def test_check_sees_every_change(tmp_path: Path) -> None:
    records = [record(m, 0, labeled=n) for m in SKILL for n in (100, 500)]
    files = leaderboard_files(records)
    assert changed_files(tmp_path, files) == sorted(files)
    assert write_files(tmp_path, files) == sorted(files)
    assert changed_files(tmp_path, files) == []
    (tmp_path / "leaderboard.md").write_text("doctored")
    assert changed_files(tmp_path, files) == ["leaderboard.md"]
    (tmp_path / "notes.txt").write_text("mine")
    assert write_files(tmp_path, files) == ["leaderboard.md"]
    assert (tmp_path / "notes.txt").exists()
    changed = msgspec.convert(msgspec.to_builtins(records[0]), RunRecord)
    changed.metrics["test"]["accuracy"] = 0.123
    assert changed_files(tmp_path, leaderboard_files([changed, *records[1:]]))


def test_texts_from_records_cannot_break_the_pages() -> None:
    evil = record("better", params={"x": "</td><script>alert(1)</script>|"})
    files = leaderboard_files([record("supervised"), evil, record("better")])
    assert b"<script>alert" not in files["leaderboard.html"]
    text = files["leaderboard.md"].decode()
    assert "<script>" not in text
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.replace("\\|", "").count("|") for line in lines}) == 1
