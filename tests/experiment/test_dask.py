"""Runs on a real dask cluster whose workers are killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from sslbench.experiment.execute.cluster import run_on_dask
from sslbench.experiment.runner import execute
from support.run_fakes import task

distributed = pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.usefixtures("fake_plugin"),
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture
def cluster(fake_plugin: None) -> Iterator[Any]:
    """Two workers with a process each; a nanny starts a new one in place of one that ends."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(processes=True, **options) as cluster:
        yield cluster


def kill_worker(cluster: Any) -> None:
    os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)


def test_the_run_of_a_killed_worker_is_made_by_another(cluster: Any) -> None:
    tasks = [task(labeled=20 + n, params={"sleep": 1.0}) for n in range(5)]
    records = run_on_dask(tasks, address=cluster.scheduler_address)
    first = next(records)  # two others run
    kill_worker(cluster)
    found = {record.run_id: record for record in [first, *records]}
    assert {record.status for record in found.values()} == {"ok"}
    for each in tasks:
        assert found[each.spec.run_id].predictions == execute(each).predictions


def test_a_method_that_kills_each_worker_is_a_failed_run(cluster: Any) -> None:
    address = cluster.scheduler_address
    (killed,) = run_on_dask([task("hostile", params={"how": "kill"})], address=address)
    assert (killed.status, killed.error_kind) == ("failed", "process")
    assert "KilledWorker" in str(killed.error)
    (after,) = run_on_dask([task(labeled=20)], address=address)
    assert after.status == "ok"
