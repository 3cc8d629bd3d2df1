"""``sslbench suite``: runs that are never made twice, and a report that moves no rank silently."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
from click.testing import Result

from sslbench.experiment.records.store import Store
from support.command import sslbench
from support.suite_fakes import TOY, fill, opened, suite_file

pytestmark = pytest.mark.usefixtures("fake_plugin")
SKILLS = {"majority": 0.7, "peeking": 0.8}
THREE = TOY.replace('"majority", "peeking"', '"majority", "peeking", "hostile"')


def suite(*words: object) -> Result:
    return sslbench("suite", *words)


def test_show_tells_what_there_is_and_what_the_rest_costs(tmp_path: Path) -> None:
    path = suite_file(tmp_path)
    before = suite("show", path)
    assert before.exit_code == 0, before.output
    assert "12 cells: 12 missing" in before.stdout
    assert "12 cells of unknown price" in before.stdout
    fill(path, SKILLS, leave=[("peeking", 1), ("peeking", 2)])
    after = suite("show", path, "--jobs", 2)
    rows = [line.split() for line in after.stdout.splitlines()]
    assert ["toy", "10", "6", "4", "-", "-", "-", "2", "10", "s"] in rows
    assert "8 done, 4 missing; to run: 20 s of CPU, about 10 s with --jobs 2" in after.stdout
    lines = suite("show", path, "--cells").stdout.splitlines()
    assert len(lines) == 12
    assert lines[-1].startswith("missing: peeking on toy, labeled 20")


def test_several_suites_have_a_line_each_and_a_run_of_both_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = suite_file(tmp_path)
    fill(path, SKILLS, leave=[("peeking", 1)])  # each run: 5 CPU seconds
    other = path.with_name("again.toml")
    other.write_text(path.read_text())
    shown = suite("show", path, other)
    assert shown.exit_code == 0, shown.output
    rows = {line.split("  ")[0]: line.split() for line in shown.stdout.splitlines()}
    assert rows["again"][1:5] == ["50", "s", "12", "10"]
    assert rows["all, each run once"][4:8] == ["50", "s", "12", "10"]
    folder = tmp_path / "leaderboards" / "suites"
    folder.mkdir(parents=True)
    path.rename(folder / path.name)
    monkeypatch.chdir(tmp_path)
    assert "12 cells: 12 missing" in suite("show").stdout  # a suite alone is shown by dataset


def test_the_suites_of_the_package_have_records_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "leaderboards" / "suites").mkdir(parents=True)  # empty
    shown = suite("show")
    assert shown.exit_code == 0, shown.output
    assert suite("show", "--cells").exit_code == 2
    rows = {line.split()[0]: line.split() for line in shown.stdout.splitlines()}
    assert rows["standard"][1:3] == ["0", "s"]
    assert rows["standard"][4] == "-"


def test_costs_by_method(tmp_path: Path) -> None:
    path = suite_file(tmp_path)
    fill(path, SKILLS, leave=[("peeking", 1), ("peeking", 2)])
    shown = suite("show", path, "--costs")
    assert shown.exit_code == 0, shown.output
    lines = [line.split() for line in shown.stdout.splitlines()]
    assert lines[1][:6] == ["majority", "6", "-", "30", "s", "-"]
    assert lines[2][:6] == ["peeking", "2", "-", "10", "s", "-"]
    assert lines[3][:6] == ["all", "8", "-", "40", "s", "-"]
    assert suite("show", path, "--costs", "--cells").exit_code == 2


def test_what_is_there_is_not_run_again(tmp_path: Path) -> None:
    text = TOY.replace("[10, 20]", "[10]").replace(
        "seeds = 3", "seeds = 2\ntune = 3\ntune_seed = 0"
    )
    path = suite_file(tmp_path, text)
    first = suite("run", path, "--budget", "1h")
    assert first.exit_code == 0, first.output
    done = [line for line in first.stderr.splitlines() if line.startswith("ok: ")]
    assert [re.findall(r"seed (\d)", line) for line in done] == [["0"], ["0"], ["1"], ["1"]]
    _, cells = opened(path)
    assert {cell.state for cell in cells} == {"done"}
    records = [cell.record for cell in cells if cell.record and cell.spec.method == "majority"]
    assert len({json.dumps(r.tuning) for r in records}) == 1  # one search for all draws
    removed, kept = cells[-1].record, cells[0].record
    assert removed is not None
    assert kept is not None
    file = Store(tmp_path / "runs").path(removed.run_id)
    file.unlink()
    again = suite("run", path)
    assert again.exit_code == 0, again.output
    assert "3 done, 1 missing" in again.stderr
    assert "1 run" in again.stderr.splitlines()[-1]
    assert file.exists()
    assert suite("run", path).stderr.splitlines()[-1] == "sslbench: 0 runs"


def test_what_lies_elsewhere_is_written_only_when_it_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    (tmp_path / "suites").mkdir()
    text = TOY.replace('"runs"', f"'{other / 'runs'}'").replace('"out"', f"'{other}'")
    path = suite_file(tmp_path / "suites", text)
    for words in (("run", path), ("report", path)):
        refused = suite(*words)
        assert refused.exit_code == 2
        assert "outside of the current folder" in refused.stderr
        assert not other.exists()
    assert suite("show", path).exit_code == 0
    fill(path, SKILLS)
    monkeypatch.setattr("sslbench.cli.suite.can_ask", lambda: True)
    assert sslbench("suite", "report", path, stdin="n\n").exit_code == 2
    assert not list(other.glob("*.html"))
    assert suite("report", path, "--yes").exit_code == 0
    assert (other / "toy.html").exists()


def test_a_budget_leaves_what_would_not_fit(tmp_path: Path) -> None:
    path = suite_file(tmp_path)
    fill(path, SKILLS, leave=[("peeking", 2), ("majority", 2)])
    result = suite("run", path, "--budget", "2s")  # each is known to take 5 s
    assert result.exit_code == 0, result.output
    assert result.stderr.splitlines()[-1] == "sslbench: --budget: 4 runs left"


def test_a_report_says_what_it_lacks_and_check_fails_with_names(tmp_path: Path) -> None:
    path = suite_file(tmp_path)
    fill(path, SKILLS)
    assert suite("report", path).exit_code == 0
    names = {file.name for file in (tmp_path / "out").iterdir()}
    assert names == {"toy.csv", "toy.html", "toy.md", "toy.tex"}  # no baseline, so no picture
    assert suite("report", path, "--check").exit_code == 0
    assert suite("report", path, "--check").stdout == ""
    _, cells = opened(path)
    record = cells[0].record
    assert record is not None
    Store(tmp_path / "runs").path(record.run_id).unlink()
    checked = suite("report", path, "--check")
    assert checked.exit_code == 1
    assert "missing: majority on toy, labeled 10" in checked.stdout
    assert "seeds 0" in checked.stdout
    assert "would change: " in checked.stdout


def test_names_of_columns_tell_options_of_a_dataset_apart(tmp_path: Path) -> None:
    """Options with their defaults are not named."""
    text = TOY.replace("[10, 20]", "[10]")
    block = text[text.index("[[") :]
    text = f"{text}\n{block}\nset = ['toy.train=40']\n"
    path = suite_file(tmp_path, text)
    fill(path, SKILLS)
    assert suite("report", path).exit_code == 0
    lines = (tmp_path / "out" / "toy.md").read_text().splitlines()
    head = next(line for line in lines if line.startswith("| method | mean rank | toy"))
    assert head.count("(train=40)") == 1
    tables = sorted(line.split(", ")[0] for line in lines if line.startswith("## toy"))
    assert tables == ["## toy", "## toy (train=40)"]


def test_stale_cells_are_marked_and_named(tmp_path: Path) -> None:
    path = suite_file(tmp_path)
    for cell in fill(path, SKILLS):
        record = cell.record
        if record is not None and cell.spec.method == "peeking":
            record.code = {**record.code, "engine": "0"}
            Store(tmp_path / "runs").save(record)
    result = suite("report", path)
    assert result.exit_code == 0
    page = (tmp_path / "out/toy.html").read_text()
    assert re.search(r'<td class="[^"]*stale"', page)
    checked = suite("report", path, "--check")
    assert checked.exit_code == 1
    assert "stale: peeking on toy, labeled 10" in checked.stdout


def ranks(folder: Path, size: int) -> dict[str, float | None]:
    with (folder / "out/toy.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if f"labeled {size}" in row["protocol"]]
    return {row["method"]: float(row["rank"]) if row["rank"] else None for row in rows}


def test_a_deleted_record_moves_no_rank_silently(tmp_path: Path) -> None:
    skills = {"hostile": 0.9, "peeking": 0.8, "majority": 0.6}
    path = suite_file(tmp_path, THREE)
    cells = fill(path, skills)
    suite("report", path)
    before = ranks(tmp_path, 10)
    assert before == {"hostile": 1, "peeking": 2, "majority": 3}
    gone = next(c for c in cells if c.spec.method == "hostile" and c.seed == 1)
    assert gone.record is not None
    Store(tmp_path / "runs").path(gone.record.run_id).unlink()
    suite("report", path)
    after = ranks(tmp_path, 10)
    assert after["hostile"] is None  # it has no rank with two of three draws
    assert ranks(tmp_path, 20) == before  # other columns keep theirs
    page = (tmp_path / "out/toy.html").read_text()
    assert "2 of 3 draws" in page
    assert "1 cells without a current run" in page
    assert "missing: hostile on toy, labeled 10" in page
    assert "missing: hostile on toy" in (tmp_path / "out/toy.md").read_text()


def test_a_selection(tmp_path: Path) -> None:
    path = suite_file(tmp_path)
    fill(path, SKILLS)
    out = ("--out", tmp_path / "some")
    assert suite("report", path, "--method", "maj*", *out).exit_code == 0
    assert "peeking" not in (tmp_path / "some/toy.tex").read_text()
    wrong = suite("report", path, "--dataset", "other", *out)
    assert wrong.exit_code == 2
    assert "no cell" in wrong.stderr
