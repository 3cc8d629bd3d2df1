"""The page on entropy regularisation: its tables are those of the runs beside it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[1] / "docs"
NAME = "entropy_tables"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location(NAME, DOCS / f"{NAME}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, NAME, module)
    spec.loader.exec_module(module)
    return module


def test_the_tables_are_those_of_the_runs(
    script: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = script.read(None)
    script.tables(runs)
    script.differences(runs)
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    page = (DOCS / "entropy_regularization.md").read_text(encoding="utf-8").splitlines()
    assert len(rows) > 40
    assert [row for row in rows if row not in page] == []


def test_a_cell_has_means_and_standard_deviations(script: ModuleType) -> None:
    assert script.mean_sd([0.2, 0.4]) == "0.300 (0.141)"
    assert script.mean_sd([0.25]) == "0.250"
    assert script._paper(2, 5.0, 1) == "0.701 0.394 0.505<br>4206 / 2947"
    assert script._start("entropy_of=token joint_iterations=9 sigma2=1.0") == "sigma2=1.0"
