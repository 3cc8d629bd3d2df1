"""`sslbench bench`: the table, and the message when it cannot run."""

from __future__ import annotations

from pathlib import Path

import pytest

from sslbench.cli import bench
from sslbench.engine.errors import UserError
from support.command import sslbench

FOUND = {
    "text": "CoNLL-2000, 9 sentences",
    "threads": 1,
    "figures": {
        "training": {"unit": "s", "ours": 0.5, "peer": 2.0},
        "a pass": {"unit": "us/token", "ours": 4.25, "tenfold": 4.5},
    },
}
FAILING = "def test_it():\n    assert False, 'told above'\n"


def test_the_table_gives_ratios(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "measure", lambda **asked: FOUND)
    lines = sslbench("bench").stdout.splitlines()
    assert lines[0].strip() == "CoNLL-2000, 9 sentences, 1 thread"
    rows = [line.split() for line in lines]
    assert ["training", "s", "0.5", "2", "4.00"] in rows
    assert ["a", "pass", "us/token", "4.25"] in rows
    assert lines[-1] == "a pass: tenfold 4.5"


def test_the_table_fits_into_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "JESS-CM: one pass of the unlabeled text, then of ten times the text, peak memory"
    many = {"unit": "us/token/core", "ours": 1234.5, "peer": 123456.0, "bound": 1.0, "bytes": 2.0}
    monkeypatch.setattr(bench, "measure", lambda **asked: {**FOUND, "figures": {name: many}})
    lines = sslbench("bench").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) < 12
    assert any(
        line.split()[-4:] == ["us/token/core", "1,234", "123,456", "100.00"] for line in lines
    )


def test_options_reach_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, object] = {}
    monkeypatch.setattr(bench, "measure", lambda **given: asked.update(given) or FOUND)
    words = ["bench", "--rounds", "2", "--threads", "3", "--sentences", "40", "--format", "json"]
    assert sslbench(*words).exit_code == 0
    assert asked == {"rounds": 2, "threads": 3, "sentences": 40, "everything": False}


def test_scores_are_of_four_corpora(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(bench, "_run", lambda words, variables: asked.append(words))
    assert sslbench("bench", "--scores", "--sentences", "40").exit_code == 0
    ((program, *words),) = asked
    assert Path(program).is_file()
    assert words == ["40", "conll00", "conll03", "ud_el", "sxu"]


def test_a_benchmark_without_figures_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tests" / "benchmarks"
    folder.mkdir(parents=True)
    (folder / "test_benchmarks.py").write_text("def test_it():\n    pass\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="the benchmarks failed"):
        bench.measure(rounds=1, threads=1)


def test_a_failing_benchmark_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "tests" / "benchmarks"
    folder.mkdir(parents=True)
    (folder / "test_benchmarks.py").write_text(FAILING)
    monkeypatch.chdir(tmp_path)
    assert bench.find_benchmarks() == folder
    with pytest.raises(UserError, match="the benchmarks failed"):
        bench.measure(rounds=1, threads=1)
    out, err = capfd.readouterr()
    assert out == ""  # results go there
    assert "told above" in err


def test_without_the_checkout_there_is_nothing_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bench, "__file__", str(tmp_path / "a" / "b" / "c" / "bench.py"))
    with pytest.raises(UserError, match="are in the source checkout only"):
        bench.find_benchmarks()
