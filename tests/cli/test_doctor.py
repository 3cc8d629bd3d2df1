"""``sslbench doctor``."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from sslbench.cli import cli


def findings() -> tuple[int, dict[str, tuple[str, str]]]:
    """Exit status; state and text by what is looked at."""
    result = CliRunner().invoke(cli, ["doctor"])
    rows = [line.split("  ", 1) for line in result.stdout.splitlines()]
    cells = [(state, *rest.strip().split("  ", 1)) for state, rest in rows]
    return result.exit_code, {what: (state, text.strip()) for state, what, text in cells}


def test_everything_is_looked_at() -> None:
    status, actual = findings()
    assert status == any(state == "wrong" for state, _ in actual.values())
    assert {"sslbench", "libraries", "machine", "isolation", "cache", "plugins"} <= actual.keys()
    assert "synth" in actual["datasets"][1]


def test_a_folder_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SSLBENCH_CACHE", str(tmp_path / "file" / "below"))
    status, actual = findings()
    state, text = actual["cache"]
    assert (status, state) == (1, "wrong")
    assert "SSLBENCH_CACHE names another one" in text
