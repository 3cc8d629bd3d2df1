"""Child processes: their answers, their limits, their ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest
from joblib import Parallel, delayed

from sslbench.experiment.execute.startup import early_server, import_engine, modules_of
from sslbench.plugins import registry
from sslbench.processes import Child, ChildError, ForkServer, call_apart
from support.bodies import asks_a_server, dies, facts, fails, leaves, sends, starts_a_daemon
from support.waiting import HANG, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks on Linux alone")
MOST = 2**20


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    made = ForkServer(import_engine)
    yield made
    pid = made.pid
    made.close()
    assert pid is not None
    assert not psutil.pid_exists(pid)


def failure(child: Child, seconds: float | None = None) -> str:
    """Why there is no answer; the process is gone afterwards, and no zombie."""
    with pytest.raises(ChildError) as caught:
        child.result(MOST, seconds)
    child.end()
    assert not psutil.pid_exists(child.pid)
    return str(caught.value)


def test_a_process_is_a_fork_with_the_engine_and_without_readers_of_data(
    server: ForkServer,
) -> None:
    names = [("methods", "supervised"), ("methods", "no such")]
    modules = modules_of(registry(), names)
    assert len(modules) == 1
    loaders = sorted({info.target.partition(":")[0] for info in registry().datasets.values()})
    wanted = ("sslbench.engine.crf", *modules, *loaders)
    child = server.start(facts, *wanted, modules=modules)
    assert child.result(MOST).decode().split() == [str(server.pid), *wanted[:2]]
    assert child.memory() > 0
    child.end()
    assert not psutil.pid_exists(child.pid)


def test_an_exception_an_exit_and_a_signal_are_told_apart(server: ForkServer) -> None:
    assert failure(server.start(fails)) == "ValueError: a reason"
    ended = "the process ended without a result (exit status 3)"
    assert failure(server.start(leaves, 3)) == ended
    assert "killed by SIGTERM" in failure(server.start(dies, signal.SIGTERM))
    assert "killed by SIGKILL; out of memory?" in failure(server.start(dies, signal.SIGKILL))
    assert failure(server.start(sends, MOST + 1)).endswith("more than 1,048,576 bytes")
    assert failure(server.start(dies, signal.SIGSTOP), 0.1) == "it took more than 0.1 s"


def test_no_process_holds_the_pipe_of_the_server(server: ForkServer) -> None:
    child = server.start(dies, signal.SIGSTOP)
    process = psutil.Process(child.pid)
    while (status := process.status()) not in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE):
        time.sleep(0.01)
    assert status == psutil.STATUS_STOPPED
    own, its = (sockets(each) for each in (process, psutil.Process(server.pid)))
    assert len(own) == 1
    assert not own & its
    child.end()
    assert child.exit_code() == -signal.SIGKILL


def sockets(process: psutil.Process) -> set[str]:
    folder = f"/proc/{process.pid}/fd"
    links = {os.readlink(os.path.join(folder, name)) for name in os.listdir(folder)}
    return {link for link in links if link.startswith("socket:")}


def test_a_server_that_is_gone_is_replaced() -> None:
    server = ForkServer(import_engine)
    assert server.pid is None
    server.start(facts).end()
    first = server.pid
    psutil.Process(first).kill()
    child = server.start(facts)
    assert child.result(MOST).decode().split() == [str(server.pid)]
    assert server.pid != first
    child.end()
    server.close()


def ends_at_once() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_starts_without_a_server_that_ends_at_once() -> None:
    server = ForkServer(ends_at_once)
    child = server.start(facts)
    assert child.result(MOST)
    child.end()
    assert server.pid is None


def test_a_process_that_may_have_data_is_not_forked() -> None:
    pytest.importorskip("numpy")
    assert early_server(1, ()) is None


def test_a_call_apart_returns_its_bytes_or_says_why_not() -> None:
    assert call_apart(lambda: b"x" * 10**6, HANG) == b"x" * 10**6
    failures: list[tuple[Callable[[], bytes], float, str]] = [
        (lambda: os._exit(0), HANG, "exit status 0"),
        (fails, HANG, "ValueError: a reason"),
        (lambda: sys.exit(2), HANG, "exit status 1"),
        (lambda: subprocess.call(["sleep", "600"]) and b"", 0.3, "it took more than 0.3 s"),
        (lambda: b"x" * 2**25, HANG, "more than 16,777,216 bytes"),
        (lambda: os.closerange(3, 64) or b"", HANG, "ended without a result|closed"),
    ]
    for call, seconds, message in failures:
        with pytest.raises(ChildError, match=message):
            call_apart(call, seconds)


def test_a_call_apart_leaves_no_process(tmp_path: Path) -> None:
    pid = int(call_apart(starts_a_daemon, HANG))
    assert until(lambda: has_ended(pid))


def has_ended(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_process_has_no_terminal_and_prints_to_standard_error(
    capfd: pytest.CaptureFixture[str],
) -> None:
    call = lambda: print("chat") or f"{os.getsid(0)} {os.read(0, 1)!r}".encode()  # noqa: E731
    session, read = call_apart(call, HANG).decode().split()
    assert int(session) != os.getsid(0)
    assert read == "b''"
    assert capfd.readouterr() == ("", "chat\n")


def in_pool(method: str) -> list[int]:
    with multiprocessing.get_context(method).Pool(2) as pool:
        return pool.map(asks_a_server, [3, 4])


@pytest.mark.parametrize(
    "backend",
    [
        *(partial(in_pool, method) for method in ("fork", "spawn")),
        *(
            partial(lambda name: Parallel(2, name)(map(delayed(asks_a_server), [3, 4])), name)
            for name in ("loky", "threading")
        ),
    ],
    ids=["fork", "spawn", "loky", "threading"],
)
def test_workers_of_pools_start_processes(backend: Callable[[], list[int]]) -> None:
    main = sys.modules["__main__"]
    assert backend() == [3, 4]
    assert sys.modules["__main__"] is main
