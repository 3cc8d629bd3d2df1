"""The program of docs/results.md recomputes cells of the standard board."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
PAGE = TOP / "docs" / "results.md"


def test_random_cells_are_the_means_of_their_records(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(TOP)
    (program,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    exec(compile(program, str(PAGE), "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 20
    assert all(abs(float(line.split()[-1])) < 1e-11 for line in lines)
