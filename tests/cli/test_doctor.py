"""``sslbench doctor``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sslbench.cli import requirements
from support.command import sslbench


def findings() -> tuple[int, dict[str, tuple[str, str]]]:
    """Exit status; state and text by what is looked at."""
    result = sslbench("doctor")
    rows = [line.split("  ", 1) for line in result.stdout.splitlines()]
    cells = [(state, *rest.strip().split("  ", 1)) for state, rest in rows]
    return result.exit_code, {what: (state, text.strip()) for state, what, text in cells}


def test_everything_is_looked_at() -> None:
    status, actual = findings()
    assert status == any(state == "wrong" for state, _ in actual.values())
    assert {"sslbench", "libraries", "machine", "isolation", "cache", "plugins"} <= actual.keys()
    assert "synth" in actual["datasets"][1]


@pytest.fixture
def declare(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Make these the requirements of sslbench."""

    def declare(*texts: str) -> None:
        monkeypatch.setattr(requirements, "requires", lambda _: list(texts))
        requirements.unmet.cache_clear()

    yield declare
    requirements.unmet.cache_clear()


def test_this_installation_is_as_declared() -> None:
    assert requirements.unmet() == ()
    assert {"numba", "msgspec"} < {requirement.name for requirement, _ in requirements.declared()}


def test_versions_that_are_too_old_are_named(declare: Callable[..., None]) -> None:
    """One line each, with what to do; what developers need, and missing extras, are no error."""
    extras = ("click>=999; extra == 'test'", "scikit-learn>=998; extra == 'sklearn'")
    other = (
        "nothing-of-this-name>=2",
        "none-here; python_version < '3'",
        "none-here; extra == 'dask'",
    )
    declare("numpy>=1", "msgspec>=997,<9999", *extras, *other)
    status, found = findings()
    assert status == 1
    old = {what: text for what, (state, text) in found.items() if state == "wrong"}
    assert list(old) == ["msgspec", "scikit-learn", "nothing-of-this-name"]
    assert re.fullmatch(
        r"[\d.]+ is installed, sslbench needs <9999,>=997: pip install 'msgspec<9999,>=997'",
        old["msgspec"],
    )
    assert old["nothing-of-this-name"] == "not installed: pip install 'nothing-of-this-name>=2'"
    assert found["none-here"] == ("note", "not installed: pip install 'sslbench[dask]'")


def test_a_run_warns_of_them(declare: Callable[..., None]) -> None:
    declare("msgspec>=997")
    words = ["run", "--method", "supervised", "--dataset", "synth", "--dry-run"]
    lines = sslbench(*words).stderr.splitlines()
    (line,) = [line for line in lines if "msgspec" in line]
    assert line.startswith("sslbench: warning: msgspec: ")


def test_without_an_installation_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(requirements.declared("nothing-of-this-name")) == []


def test_a_folder_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SSLBENCH_CACHE", str(tmp_path / "file" / "below"))
    status, actual = findings()
    state, text = actual["cache"]
    assert (status, state) == (1, "wrong")
    assert "SSLBENCH_CACHE names another one" in text
