"""Runs and passes on a real dask cluster whose workers are killed."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from sslbench.engine.corpus.units import TextPass
from sslbench.engine.errors import UserError
from sslbench.engine.features import Streams
from sslbench.engine.spread import WorkerError, using_broker
from sslbench.experiment.execute import workers
from sslbench.experiment.execute.grid import GridOptions, run_grid
from sslbench.experiment.execute.workers import DaskBroker, connect, run_on_dask
from sslbench.experiment.identity import processor
from sslbench.experiment.planning.plan import plan
from sslbench.experiment.records.store import Store
from sslbench.experiment.request.request import RunRequest
from sslbench.experiment.run.runner import execute
from sslbench.isolation.start import isolated
from sslbench_methods.jess_cm.counts import SymbolCounts
from support import run_fakes
from support.jess_cm_toys import assert_same, trained
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
    records = run_on_dask(tasks, isolated, address=cluster.scheduler_address)
    first = next(records)  # two others run
    kill_worker(cluster)
    found = {record.run_id: record for record in [first, *records]}
    assert {record.status for record in found.values()} == {"ok"}
    for each in tasks:
        assert found[each.spec.run_id].predictions == execute(each).predictions


def test_a_method_that_kills_its_process_leaves_the_worker_as_it_was(cluster: Any) -> None:
    address, before = cluster.scheduler_address, {each.pid for each in cluster.workers.values()}
    (killed,) = run_on_dask([task("hostile", params={"how": "kill"})], isolated, address=address)
    assert (killed.status, killed.error_kind) == ("failed", "process")
    assert "killed by SIGKILL" in str(killed.error)
    many = msgspec.structs.replace(task(labeled=20), threads=64)
    (after,) = run_on_dask([many], isolated, address=address)
    assert after.status == "ok"
    assert after.environment["threads"] == 1  # those of the worker
    assert after.environment["isolation"] != "none"
    assert {each.pid for each in cluster.workers.values()} == before


def test_a_run_that_hangs_or_takes_too_much_memory_is_stopped_on_its_worker(cluster: Any) -> None:
    address = cluster.scheduler_address
    slow = [task(labeled=20, params={"sleep": 600.0}), task(labeled=21)]
    records = list(run_on_dask(slow, isolated, address=address, timeout=10.0))
    assert {record.run_id: record.status for record in records} == {
        slow[0].spec.run_id: "timeout",
        slow[1].spec.run_id: "ok",
    }
    hostile, limit = task("hostile", params={"how": "large"}), run_fakes.LARGE_MB * 2**20
    (large,) = run_on_dask([hostile], isolated, address=address, memory=limit)
    assert large.status == "memory"


@pytest.mark.parametrize("killed_after", [None, 1, 5])
def test_passes_of_one_training(
    killed_after: int | None, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when a worker is killed after so many units of E-steps: it had some of the text."""
    monkeypatch.setattr("sslbench.engine.corpus.units.LEAST", 60)
    expected, add, added = trained(), SymbolCounts.add, list[float]()

    def add_and_kill(self: SymbolCounts, other: SymbolCounts) -> None:
        added.append(other.log_z)
        if len(added) == killed_after:
            kill_worker(cluster)
        add(self, other)

    monkeypatch.setattr(SymbolCounts, "add", add_and_kill)
    with closing(DaskBroker(cluster.scheduler_address)) as broker, using_broker(broker):
        assert_same(trained(), expected)
    assert len(added) > 10
    assert broker.cpu > 0


def test_all_workers_end_in_a_pass(
    cluster: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """This process goes on alone."""
    monkeypatch.setattr("sslbench.engine.corpus.units.LEAST", 60)
    monkeypatch.setattr(workers, "PATIENCE", 1.0)
    expected, merge, merged = trained(), Streams._merge, []

    def merge_and_close(self: Streams, other: Streams) -> None:
        merged.append(other)
        if len(merged) == 2:
            cluster.scale(0)
        merge(self, other)

    monkeypatch.setattr(Streams, "_merge", merge_and_close)
    with closing(DaskBroker(cluster.scheduler_address)) as broker, using_broker(broker):
        assert_same(trained(), expected)
    assert "goes on in this process" in capsys.readouterr().err
    assert broker.client.status == "closed"


def test_a_pass_that_fails_on_a_worker_is_one_line(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sslbench.engine.corpus.units.LEAST", 60)
    monkeypatch.setattr(TextPass, "pack_unit", staticmethod(lambda unit: ({}, {"columns": ["x"]})))
    line = r"^worker tcp://[^ ]+, pass [a-z.]+:SymbolPass: ValueError: array text0 is missing$"
    with (
        closing(DaskBroker(cluster.scheduler_address)) as broker,
        using_broker(broker),
        pytest.raises(WorkerError, match=line),
    ):
        trained()


def test_a_scheduler_without_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is closed: nothing asks for the scheduler when it is gone."""
    made = []

    def nobody(client: Any, *_: Any, **options: Any) -> None:
        made.append(client)
        raise TimeoutError("none has come")

    monkeypatch.setattr(distributed.Client, "wait_for_workers", nobody)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=None) as empty,
        pytest.raises(UserError, match=r"no dask scheduler with workers at tcp.*none has come"),
    ):
        connect(empty.scheduler_address)
    assert [client.status for client in made] == ["closed"]


def test_workers_of_other_code_are_refused(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_other_code", lambda worker: f"{worker} is another")
    monkeypatch.setattr(workers, "code", lambda: "today")
    monkeypatch.setattr(distributed.Client, "run", lambda self, call: {"tcp://a": "old"})
    with pytest.raises(UserError, match="tcp://a is another; workers need the same sslbench"):
        connect(cluster.scheduler_address)


def test_workers_with_another_kind_of_processor_are_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    here = processor()
    for kinds in ({here}, {here, "a8 wide"}):
        found = {f"tcp://{number}": kind for number, kind in enumerate(kinds)}
        workers.warn_of_other_processors(SimpleNamespace(run=lambda call, found=found: found))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert f"(a8 wide) than this command ({here})" in lines[0]


def test_dask_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UserError, match=r"pip install 'sslbench\[dask\]'"):
        list(run_on_dask([task()], isolated, address=None))


def test_no_scheduler() -> None:
    dask = pytest.importorskip("dask")
    short = dask.config.set({"distributed.comm.timeouts.connect": "1s"})
    with short, pytest.raises(UserError, match="no dask scheduler with workers at tcp"):
        connect("tcp://127.0.0.1:1")


def test_a_single_run_spreads_its_passes(cluster: Any, tmp_path: Path) -> None:
    """In its isolated process, which never sees the cluster: the record is the same."""
    options = ("rounds=1", "max_iterations=5", "synth.unlabeled=120000")
    request = RunRequest(method=("jess_cm",), dataset=("synth",), labeled=20, params=options)
    records = []
    for executor in ("local", f"dask:{cluster.scheduler_address}"):
        store = Store(tmp_path / executor.partition(":")[0])
        result = run_grid(
            plan(request, store=store, notice=print),
            store,
            isolated,
            GridOptions(executor=executor),
        )
        records += result.records
    here, spread = records
    assert (here.status, spread.status) == ("ok", "ok")
    assert spread.environment["isolation"] == here.environment["isolation"]
    for name in ("trace", "predictions", "metrics", "counts", "run_id"):
        assert getattr(spread, name) == getattr(here, name), name
