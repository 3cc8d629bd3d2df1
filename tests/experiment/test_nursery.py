"""Processes that a nursery starts."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator

import psutil
import pytest

from sslbench.experiment.execute.nursery import BodyError, Nursery, Started, early_nursery
from sslbench.plugins import registry
from support.bodies import dies, facts, fails, leaves

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks on Linux alone")


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    yield made
    made.close()
    assert not psutil.pid_exists(made.parent)


def ended(started: Started) -> int | None:
    with pytest.raises(EOFError):
        started.result()
    return started.exit_code()


def test_a_process_is_a_fork_with_the_engine_and_without_readers_of_data(nursery: Nursery) -> None:
    targets = registry().own_targets(("methods", "supervised"), ("methods", "no such"))
    assert len(targets) == 1
    loaders = sorted({info.target.partition(":")[0] for info in registry().datasets.values()})
    names = ("sslbench.engine.crf", targets[0].partition(":")[0], *loaders)
    started = nursery.start(facts, names, targets)
    assert started.result().decode().split() == [str(nursery.parent), *names[:2]]
    assert started.exit_code() == 0


def test_an_exception_an_exit_and_a_signal_are_told_apart(nursery: Nursery) -> None:
    failed = nursery.start(fails, ())
    with pytest.raises(BodyError, match="ValueError: a reason"):
        failed.result()
    assert failed.exit_code() == 0
    assert ended(nursery.start(leaves, (3,))) == 3
    assert ended(nursery.start(dies, (signal.SIGKILL,))) == -signal.SIGKILL


def test_no_process_holds_the_pipe_of_the_nursery(nursery: Nursery) -> None:
    started = nursery.start(dies, (signal.SIGSTOP,))
    child = psutil.Process(started.pid)
    while (status := child.status()) not in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE):
        time.sleep(0.01)
    assert status == psutil.STATUS_STOPPED
    own, its = (sockets(process) for process in (child, psutil.Process(nursery.parent)))
    assert len(own) == 1
    assert not own & its
    child.kill()
    assert ended(started) == -signal.SIGKILL


def sockets(process: psutil.Process) -> set[str]:
    folder = f"/proc/{process.pid}/fd"
    links = {os.readlink(os.path.join(folder, name)) for name in os.listdir(folder)}
    return {link for link in links if link.startswith("socket:")}


def test_a_nursery_that_is_gone_is_an_error_not_a_wait() -> None:
    gone = Nursery()
    psutil.Process(gone.parent).kill()
    with pytest.raises(OSError, match=r"ended|Broken|reset"):
        gone.start(facts, ())
    gone.close()


def test_a_process_that_may_have_data_is_not_forked() -> None:
    pytest.importorskip("numpy")
    assert early_nursery(1, ()) is None
