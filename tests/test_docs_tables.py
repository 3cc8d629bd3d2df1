"""Pages with tables of runs: their tables are those of the runs beside them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[1] / "docs"


def script(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(DOCS))
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "page", "least"),
    [
        ("entropy_tables", "entropy_regularization", 40),
        ("posterior_tables", "posterior_regularisation", 15),
    ],
)
def test_the_tables_are_those_of_the_runs(
    name: str, page: str, least: int, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    module = script(name, monkeypatch)
    module.tables(module.read(None))
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    lines = (DOCS / f"{page}.md").read_text(encoding="utf-8").splitlines()
    assert len(rows) > least
    assert [row for row in rows if row not in lines] == []


def test_a_cell_has_means_and_standard_deviations(monkeypatch: pytest.MonkeyPatch) -> None:
    entropy = script("entropy_tables", monkeypatch)
    assert entropy.mean_sd([0.2, 0.4]) == "0.300 (0.141)"
    assert entropy.mean_sd([0.25]) == "0.250"
    assert entropy._paper(2, 5.0, 1) == "0.701 0.394 0.505<br>4206 / 2947"
    assert entropy._start("entropy_of=token joint_iterations=9 sigma2=1.0") == "sigma2=1.0"
    posterior = script("posterior_tables", monkeypatch)
    assert posterior.mean_sd([1.0, 2.0, float("nan")]) == "1.50 ± 0.71"
    assert posterior.paper("PR") == "4.89 ± 0.42"
