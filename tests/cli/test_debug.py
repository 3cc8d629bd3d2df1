"""A failed run: one line of limited length; with --debug its traceback too."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import Result

from support.command import sslbench

pytestmark = pytest.mark.usefixtures("fake_plugin")


def run(store: Path, *options: str) -> Result:
    words = ["run", "--method", "hostile", "--dataset", "toy", "--model", "nothing"]
    return sslbench(*options, *words, "--labeled", "20", "--store", store)


def test_debug_shows_the_traceback_of_a_failed_run(tmp_path: Path) -> None:
    quiet = run(tmp_path / "a")
    debug = run(tmp_path / "b", "--debug")
    assert quiet.exit_code == debug.exit_code == 1
    assert "Traceback" not in quiet.stderr
    assert 'raise ValueError("a bug\\nover two lines")' in debug.stderr
    assert "hostile on toy" in debug.stderr
    assert debug.stdout.replace("b", "") != ""
    again = run(tmp_path / "b", "--debug")  # a failed run that is in the store already
    assert 'raise ValueError("a bug\\nover two lines")' in again.stderr
