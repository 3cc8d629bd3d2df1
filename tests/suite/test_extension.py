"""A method or a dataset of somebody else on a published suite."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result

from sslbench.engine.errors import UserError
from sslbench.experiment.planning import published
from sslbench.experiment.planning.published import PublishedCosts, PublishedLines, results_text
from sslbench.experiment.records.cost import Prices
from sslbench.experiment.records.store import Store
from sslbench.plugins import registry
from sslbench.report.extension import Score, comparisons, scores, standings
from sslbench.suite.cells import Cell, suite_cells
from sslbench.suite.extension import added_cells, neighbors
from sslbench.suite.file import read_suite
from support.command import sslbench
from support.suite_fakes import TOY, made, opened, suite_file

BOARD = Path(__file__).parents[2] / "leaderboards"


def test_a_method_is_run_where_the_suite_compares_methods() -> None:
    suite, plugins = read_suite("standard"), registry()
    cells = added_cells(suite, ["jess_cm"], [], plugins)
    assert len(cells) == 21 * 3 + 6 * 2  # not on the curve of the baseline
    whole = {cell.key for cell in suite_cells(suite, plugins) if cell.line == "jess_cm"}
    assert {cell.key for cell in cells} == whole
    around = neighbors(suite, cells, plugins)
    assert {cell.seed for cell in around} == {0}
    assert {cell.column for cell in around} == {cell.column for cell in cells}
    standard = {cell.line for cell in suite_cells(suite, plugins)}
    assert {cell.line for cell in around} == standard - {"jess_cm"}


def test_a_dataset_is_run_with_every_table() -> None:
    suite, plugins = read_suite("standard"), registry()
    cells = added_cells(suite, [], ["synth"], plugins)
    sizes = {
        size: {c.line for c in cells if c.spec.protocol.labeled == size} for size in (100, 200)
    }
    assert sizes[200] == {"supervised"}
    assert len(sizes[100]) > 15
    both = added_cells(suite, ["hybrid"], ["synth"], plugins)
    assert {cell.line for cell in both} == {"hybrid"}
    assert len({cell.spec.dataset for cell in both}) == 28


def test_settings_of_the_methods_of_a_suite_are_not_those_of_another_method(tmp_path: Path) -> None:
    file = tmp_path / "suite.toml"
    both = '[[cells]]\ndatasets = ["synth"]\nmethods = ["supervised", "graph_pr"]\nlabeled = [10]\n'
    file.write_text(f'title = "x"\nabout = "y"\n{both}{both}set = ["neighbors=20"]\n')
    assert len(added_cells(read_suite(str(file)), ["hybrid"], [], registry())) == 1
    assert len(added_cells(read_suite("smoke"), ["hybrid", "gp_crf"], [], registry())) == 12


def test_what_cannot_be_added_is_refused() -> None:
    suite = read_suite("standard")
    for methods, datasets, message in (
        ([], [], "nothing to add"),
        (["jes_cm"], [], "did you mean jess_cm"),
        ([], ["sinth"], "did you mean synth"),
    ):
        with pytest.raises(UserError) as caught:
            added_cells(suite, methods, datasets, registry())
        assert message in str(caught.value)


@pytest.fixture(scope="module")
def board() -> tuple[list[Cell], list[Score]]:
    """The cells of jess_cm on the standard suite, and the published scores of all methods."""
    suite, plugins = read_suite("standard"), registry()
    cells = added_cells(suite, ["jess_cm"], [], plugins)
    others = [*neighbors(suite, cells, plugins), *(cell for cell in cells if cell.seed == 0)]
    shown = [s for s in scores(cells, others, PublishedLines()) if s.source == "published"]
    return cells, shown


def test_every_published_line_is_found(board: tuple[list[Cell], list[Score]]) -> None:
    with (BOARD / "standard.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if "labeled 100," in row["protocol"]]
    means = {(row["dataset"], row["method"]): float(row["mean"]) for row in rows}
    assert {(s.dataset, s.line): s.mean for s in board[1]} == pytest.approx(means, abs=1e-6)
    assert all(score.complete for score in board[1])


def test_standings_are_those_of_the_board(board: tuple[list[Cell], list[Score]]) -> None:
    """The means in Markdown are made from the records."""
    text = (BOARD / "standard.md").read_text()
    table = text[text.index("| method | mean rank") :].split("\n\n")[0].replace("\\_", "_")
    head, _, *rows = [[t.strip() for t in line[2:-2].split(" | ")] for line in table.splitlines()]
    expected = {row[0]: dict(zip(head, row, strict=True)) for row in rows}
    mine = [replace(s, source="added") if s.line == "jess_cm" else s for s in board[1]]
    lines, n_columns = standings(mine, registry())
    assert n_columns == 27
    assert [line.line for line in lines if line.added] == ["jess_cm"]
    for line in lines:
        row = expected[line.line]
        assert (f"{line.rank:.2f}", line.group) == (row["mean rank"], row["group"])
        assert f"{line.gain:+.2f}" == row["mean gain"]
        assert "{:+.2f} to {:+.2f}".format(*line.gains) == row["95 % of gain"]
    assert {line.line for line in lines} == set(expected)


def test_an_unfinished_row_has_no_place(board: tuple[list[Cell], list[Score]]) -> None:
    mine = [replace(s, source="added") if s.line == "jess_cm" else s for s in board[1]]
    first = next(s for s in mine if s.line == "jess_cm")
    partial = [replace(s, draws=first.draws - 1) if s is first else s for s in mine]
    assert standings(partial, registry())[1] == 26
    places = {each.score.dataset: each for each in comparisons(partial, registry())}
    assert places[first.dataset].place == 0
    whole = {each.score.dataset: each for each in comparisons(mine, registry())}
    one = whole[first.dataset]
    others = [s for s in mine if s.dataset == first.dataset and s.line != "jess_cm"]
    assert one.best == max(others, key=lambda s: s.mean or 0)
    assert one.place == 1 + sum((s.mean or 0) > (first.mean or 0) for s in others)
    assert one.base is not None
    assert one.base.line == "supervised"


def test_a_method_without_runs_is_priced_by_the_others(
    board: tuple[list[Cell], list[Score]],
) -> None:
    import msgspec

    spec = board[0][0].spec
    prices = Prices(PublishedCosts())
    unknown = prices.of(msgspec.structs.replace(spec, method="mine"))
    others = sorted(s.cpu_s or 0.0 for s in board[1] if s.dataset == spec.dataset)
    assert unknown is not None
    assert unknown.guess
    assert others[0] < unknown.cpu_s < others[-1]
    elsewhere = msgspec.structs.replace(spec, method="mine", dataset="other")
    assert prices.of(elsewhere) is None


def extend(*words: object) -> Result:
    return sslbench("suite", "extend", *words)


@pytest.mark.usefixtures("fake_plugin")
def test_one_command_gives_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = TOY.replace('"majority", "peeking"', '"peeking"')
    path = suite_file(tmp_path, text.replace("[10, 20]", "[10]").replace("seeds = 3", "seeds = 2"))
    _, cells = opened(path)
    (tmp_path / "results.csv").write_text(results_text([made(cell, 0.2) for cell in cells]))
    monkeypatch.setattr(published, "published_folder", lambda: tmp_path)
    words = (path, "--method", "majority", "--store", tmp_path / "mine")
    price = extend(*words, "--dry-run")
    assert price.exit_code == 0, price.output
    assert ["majority", "toy", "10", "2", "-", "-", "-", "-", "2", "~10", "s"] in [
        line.split() for line in price.stdout.splitlines()
    ]
    assert not (tmp_path / "mine").exists()
    done = extend(*words)
    assert done.exit_code == 0, done.output
    assert len(Store(tmp_path / "mine").records()) == 2  # none of the published method
    rows = [line.split() for line in done.stdout.splitlines()]
    assert [">", "majority", "1.00"] in [row[:3] for row in rows]
    assert ["peeking", "2.00"] in [row[:2] for row in rows]
    again = extend(*words, "--format", "csv")
    assert "0 runs" in again.stderr
    table = list(csv.DictReader(again.stdout.splitlines()))
    assert [(row["line"], row["labeled"], row["source"]) for row in table] == [
        ("majority", "10", "added"),
        ("peeking", "10", "published"),
    ]
    assert {row["draws"] for row in table} == {"2"}


@pytest.mark.usefixtures("fake_plugin")
def test_failed_runs_leave_the_others_in_place(tmp_path: Path) -> None:
    path = suite_file(tmp_path)
    _, cells = opened(path)
    store = Store(tmp_path / "mine")
    for cell in cells[:2]:
        record = made(cell)
        record.status, record.error, record.error_kind = "timeout", "too long", "timeout"
        record.metrics, record.counts, record.anatomy = {}, {}, {}
        store.save(record)
    words = (path, "--method", cells[0].line, "--store", store.folder, "--budget", "1s")
    done = extend(*words)
    assert "failed" in done.stderr
    assert "no published result" in done.stderr
