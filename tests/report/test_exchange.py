"""The null hypothesis from real runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from sslbench.experiment.runner import execute
from sslbench.experiment.store import Store
from sslbench.report.exchange import cells, exchanged, main
from support.run_fakes import task

pytestmark = pytest.mark.usefixtures("fake_plugin")


def test_one_method_against_itself_and_against_a_worse_one(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for seed in range(8):
        store.save(execute(task(labeled=20, seed=seed)))
    (runs,) = cells(store.records()).values()
    assert [run.spec.protocol.seed for run in runs] == list(range(8))
    null = exchanged(runs, "accuracy", 3, 100)
    assert null.methods is not None
    assert null.methods <= 0.2
    assert exchanged(runs, "accuracy", 5, 10) == (None, None)
    result = CliRunner().invoke(main, [str(tmp_path), "--comparisons", "20"])
    assert result.exit_code == 0, result.output
    assert "| majority | toy |" in result.stdout
    assert result.stdout.splitlines()[2].count("|") == 11
