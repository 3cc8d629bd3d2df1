"""Trainings that did not converge are told by record and leaderboard."""

from __future__ import annotations

from typing import Any

import pytest

from sslbench.experiment.checks.warnings import convergence_warnings
from support.board_records import boards, record, row_of


def result(status: str, iterations: int = 7) -> dict[str, Any]:
    converged = status in ("gradient", "decrease")
    return {"status": status, "converged": converged, "iterations": iterations, "objective": -1.0}


@pytest.mark.parametrize(
    ("trace", "lines"),
    [
        ({}, []),
        ({"training": result("gradient"), "x": None, "y": [1]}, []),
        (
            {"training": result("max_iterations", 500)},
            ["training: stopped at iteration 500 before it converged"],
        ),
        (
            {"training": result("line_search", 0)},
            ["training: stopped at iteration 0, its weights are those of the start"],
        ),
        (
            {"final": {"tagger": result("line_search"), "segmenter": result("decrease")}},
            ["final.tagger: stopped at iteration 7 before it converged"],
        ),
        ({"rounds": [result("max_iterations")]}, []),
        ({"training": {**result("gradient"), "converged": False, "gap": 9e-4}}, []),
        (
            {"joint": {**result("gradient", 0), "converged": False, "gap": 0.19}},
            [
                "joint: stopped at iteration 0 before it converged: the objective may be 19 % below"
                " its maximum"
            ],
        ),
    ],
)
def test_warnings(trace: dict[str, Any], lines: list[str]) -> None:
    assert convergence_warnings(trace) == lines


def test_the_leaderboard_marks_the_row() -> None:
    runs = [record(method, seed) for method in ("supervised", "better") for seed in range(2)]
    runs[2].trace = {"training": result("max_iterations")}
    (table,) = boards(runs)
    assert row_of(table, "better").notes == ("not converged",)
    assert row_of(table, "supervised").notes == ()
