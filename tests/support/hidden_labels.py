"""Runs on a dataset and on the same with other hidden labels."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sslbench.experiment.data import Dataset
from sslbench.experiment.inputs.protocol import draw
from sslbench.experiment.planning.task import RunTask
from sslbench.experiment.records.record import RunRecord
from sslbench.experiment.run.runner import execute
from support.run_fakes import scrambled


def both_ways(
    base: Dataset, asked: RunTask, module: object, monkeypatch: pytest.MonkeyPatch
) -> tuple[RunRecord, RunRecord]:
    """The run on a dataset, and on the same with permuted labels wherever they are hidden."""
    hidden = draw(base, asked.spec.protocol).hidden
    found = []
    for data in (base, replace(base, splits=scrambled(base.splits, hidden))):
        monkeypatch.setattr(module, "load", lambda home, data=data, **options: data)
        found.append(execute(asked))
        assert found[-1].status == "ok", found[-1].traceback
    assert found[0].metrics != found[1].metrics  # only the scorer reads them
    return found[0], found[1]
