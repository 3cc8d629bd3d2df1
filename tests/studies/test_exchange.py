"""The null hypothesis from real runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from sslbench.experiment.records.record import RunRecord
from sslbench.experiment.records.store import Store
from sslbench.report.draws import compare_methods, values
from sslbench.report.significance import count_table
from studies.exchange import cells, exchanged, main
from support.board_records import record

pytestmark = pytest.mark.usefixtures("fake_plugin")


@pytest.fixture
def runs() -> list[RunRecord]:
    (actual,) = cells([record("better", seed) for seed in range(8)]).values()
    return actual


def test_the_share_is_that_of_comparisons_of_disjoint_sets(runs: list[RunRecord]) -> None:
    assert [run.spec.protocol.seed for run in runs] == list(range(8))
    p_values = []
    rng = np.random.default_rng([0, 3])
    for _ in range(400):
        order = [int(at) for at in rng.permutation(8)[:6]]
        a, b = (
            values(count_table([runs[at] for at in part]), "accuracy")
            for part in (order[:3], order[3:])
        )
        p_values.append(compare_methods(a, b).p_value)
    wanted = np.mean(np.array(p_values) <= 0.05)
    assert wanted > 0
    assert exchanged(runs, "accuracy", 3, 400).methods == wanted


def test_too_few_runs(runs: list[RunRecord]) -> None:
    assert exchanged(runs, "accuracy", 5, 10) == (None, None)


def test_the_table(runs: list[RunRecord], tmp_path: Path) -> None:
    store = Store(tmp_path / "runs")
    for run in runs:
        store.save(run)
    result = CliRunner().invoke(main, [str(tmp_path / "runs"), "--comparisons", "20"])
    assert result.exit_code == 0, result.output
    assert "| better | toy |" in result.stdout
    assert result.stdout.splitlines()[2].count("|") == 11
