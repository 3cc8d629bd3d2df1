"""Whether forecasts tell the sign of the gain: the cells, the curve, the area, the page."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import integrate

from sslbench.experiment.records.record import RunRecord
from sslbench.report.forecasts import (
    Cell,
    auc,
    board_cells,
    cells_of,
    clear,
    elsewhere,
    forecast_rows,
    forecast_svg,
    roc,
)
from sslbench.report.page.build import Sources, page
from support.board_records import board, record


def foreseen(method: str, agreement: float, seed: int = 0, **changes: object) -> RunRecord:
    made = record(method, seed, **changes)
    made.trace["forecast"] = {
        "agreement": agreement,
        "error": 0.1,
        "model_right": 0.5,
        "taught_right": 0.5,
    }
    return made


def random_cells(n: int, seed: int = 0) -> list[Cell]:
    """With ties of agreement."""
    rng = np.random.default_rng(seed)
    actual = zip(rng.integers(-5, 6, n) / 10, rng.normal(size=n), strict=True)
    return [Cell("mine", float(a), float(g)) for a, g in actual]


# --- numbers -------------------------------------------------------------------------------------


def test_the_area_is_the_share_of_pairs_in_the_right_order() -> None:
    cells = random_cells(60)
    gains = [cell.forecast for cell in cells if cell.gain > 0]
    losses = [cell.forecast for cell in cells if cell.gain <= 0]
    pairs = [(a > b) + 0.5 * (a == b) for a in gains for b in losses]
    assert auc(cells) == pytest.approx(np.mean(pairs))


def test_the_area_is_that_under_the_curve() -> None:
    cells = random_cells(60, seed=1)
    x, y = np.array(roc(cells)).T
    assert (x[0], y[0], x[-1], y[-1]) == (0, 0, 1, 1)
    assert (np.diff(x) >= 0).all()
    assert (np.diff(y) >= 0).all()
    assert auc(cells) == pytest.approx(integrate.trapezoid(y, x))


def test_perfect_inverted_and_constant_forecasts() -> None:
    gains = np.array([-3.0, -2.0, -0.1, 0.2, 1.0, 4.0])
    for sign, expected in ((1.0, 1.0), (-1.0, 0.0), (0.0, 0.5)):
        assert auc([Cell("mine", sign * gain, gain) for gain in gains.tolist()]) == expected
    assert auc([Cell("mine", gain, gain) for gain in (-1.0, 2.0, 3.0)]) is None  # one loss
    assert auc([]) is None


def test_rows_by_method() -> None:
    cells = [
        *(Cell("one", g, g) for g in (-2.0, -1.0, 1.0, 2.0, 0.1)),
        *(Cell("two", -g, g) for g in (-2.0, 3.0)),
    ]
    assert forecast_rows(cells) == [
        ("one", "5", "3", "1.00", "4", "2", "1.00", "4 of 4", ""),
        ("two", "2", "1", "", "2", "1", "", "0 of 2", ""),
        ("all", "7", "4", "0.54", "6", "3", "0.50", "4 of 6", ""),
    ]
    assert [cell.gain for cell in clear(cells)] == [-2.0, -1.0, 1.0, 2.0, -2.0, 3.0]


def test_beside_the_forecast_stands_the_sign_of_other_families() -> None:
    gains = {"a": [2.0, 4.0], "b": [-1.0], "c": [-1.5, -0.1]}
    cells = [Cell("one", 1.0, gain, family) for family in gains for gain in gains[family]]
    # families count once: b and c are -1 and -0.8; a and c 3 and -0.8; a and b 3 and -1
    assert elsewhere(cells) == pytest.approx([-0.9, -0.9, 1.1, 1.0, 1.0])
    ((*_, forecast, constant), _) = forecast_rows(cells)
    assert (forecast, constant) == ("2 of 4", "0 of 4")
    alone = [Cell("one", 1.0, 2.0, "a")]
    assert elsewhere(alone) == [None]
    # the guesses of a method rest on its own cells
    other = [Cell("two", -1.0, -3.0, family) for family in "ab"]
    assert forecast_rows([*cells, *other])[1][-1] == "2 of 2"
    assert forecast_rows([*cells, *other])[2][-2:] == ("4 of 6", "2 of 6")


# --- cells ---------------------------------------------------------------------------------------


def test_a_cell_is_a_run_and_the_baseline_on_the_same_draw() -> None:
    ours = {seed: foreseen("better", 0.1 * seed, seed) for seed in range(3)}
    theirs = {seed: record("supervised", seed) for seed in (1, 2, 3)}
    cells = list(cells_of("better", ours, theirs))
    assert [cell.forecast for cell in cells] == [0.1, 0.2]
    for seed, cell in zip((1, 2), cells, strict=True):
        assert cell.gain == pytest.approx(100 * (ours[seed].score - theirs[seed].score))


def test_guarded_failed_and_plain_runs_are_no_cells() -> None:
    base = {0: record("supervised")}
    assert list(cells_of("better", {0: record("better")}, base)) == []
    guarded = foreseen("better", 0.3)
    guarded.trace["guard"] = {"kept": "method"}
    assert list(cells_of("better", {0: guarded}, base)) == []
    broken = foreseen("better", 0.3)
    broken.status = "failed"
    assert list(cells_of("better", {0: broken}, base)) == []
    same = foreseen("supervised", 0.3)
    assert list(cells_of("supervised", {0: same}, base)) == []  # no sign
    odd = record("better")
    odd.trace["forecast"] = "of the method's own"
    assert list(cells_of("better", {0: odd}, base)) == []


# --- the page ------------------------------------------------------------------------------------


def foreseen_records() -> list[RunRecord]:
    result = []
    for dataset in ("one", "two", "three"):
        for seed in range(2):
            result += [
                record("supervised", seed, dataset=dataset),
                foreseen("better", 0.2 + 0.1 * seed, seed, dataset=dataset),
                foreseen("worse", -0.2, seed, dataset=dataset),
            ]
    for made in result:
        made.data["task"] = "tagging"
    return result


def test_the_page_shows_them() -> None:
    shown = board(foreseen_records())
    cells = board_cells(shown)
    assert {cell.method for cell in cells} == {"better", "worse"}
    assert len(cells) == 12
    assert auc(cells) == 1.0
    text = page(shown, Sources())
    section = text[text.index('<h2 id="forecasts">') :]
    section = section[: section.index('<h2 id="d0">')]
    assert '<a href="#forecasts">' in text
    assert "all: AUC 1.00" in section
    assert section.count("<circle") == 12
    assert '<th scope="row">worse</th><td class="n">6</td><td class="n">0</td>' in section
    texts = json.loads(text.partition('id="places">')[2].partition("</script>")[0])["texts"]
    assert "forecast" in texts


def test_a_page_without_forecasts_has_no_such_section() -> None:
    plain = [r for r in foreseen_records() if r.method != "worse"]
    text = page(board(plain), Sources())
    assert "forecasts" not in text
    assert forecast_svg([]) == []


def test_the_picture_is_well_formed() -> None:
    cells = [
        Cell(f"<{i % 10}>", c.forecast, c.gain) for i, c in enumerate(random_cells(40, seed=2))
    ]
    scatter, curves = map(ElementTree.fromstring, forecast_svg(cells))
    assert len(scatter.findall(".//{*}circle")) == 40
    assert {f"<{i}>" for i in range(10)} <= {each.text for each in scatter.findall(".//{*}text")}
    assert len(curves.findall(".//{*}polyline")) == 2
