"""Claims: of several processes on one store, each run is executed by one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sslbench.engine.files import atomic
from sslbench.experiment.execute.grid import GridOptions, run_grid
from sslbench.experiment.planning.plan import plan
from sslbench.experiment.records import claims as module
from sslbench.experiment.records.claims import Claims
from sslbench.experiment.records.store import Store
from sslbench.experiment.request.request import RunRequest
from sslbench.isolation.start import isolated
from support.run_fakes import install
from support.waiting import HANG, until

RUN = "0123456789abcdef"


def test_one_claim_at_a_time(tmp_path: Path) -> None:
    with Claims(tmp_path) as first, Claims(tmp_path) as second:
        assert first.claim(RUN)
        assert not second.claim(RUN)
        assert not second.is_free(RUN)
        second.release(RUN)  # not its own
        assert not second.claim(RUN)
        first.release(RUN)
        assert second.is_free(RUN)
        assert second.claim(RUN)
    assert list(tmp_path.iterdir()) == []


def test_the_claim_of_a_process_that_ended_is_taken_over(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path;"
        "from sslbench.experiment.records.claims import Claims;"
        f"Claims(Path(sys.argv[1])).claim({RUN!r}); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    assert (tmp_path / f"{RUN}.json").exists()
    with Claims(tmp_path) as mine:
        assert mine.is_free(RUN)
        assert mine.claim(RUN)
        assert len(list(tmp_path.iterdir())) == 1


def test_a_claim_of_a_process_that_nobody_waits_for(tmp_path: Path) -> None:
    """It has been killed, and stays in the table of processes until its parent asks for it."""
    nap = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    content = {"host": module._host(), **module._process(nap.pid), "token": "x"}
    (tmp_path / f"{RUN}.json").write_text(json.dumps(content))
    with Claims(tmp_path) as mine:
        assert not mine.is_free(RUN)
        nap.kill()
        os.waitid(os.P_PID, nap.pid, os.WEXITED | os.WNOWAIT)  # until it has ended
        assert mine.is_free(RUN)
    nap.communicate()


def test_a_claim_of_another_machine_lives_by_its_heartbeat(tmp_path: Path) -> None:
    path = tmp_path / f"{RUN}.json"
    path.write_text(json.dumps({"host": "elsewhere", "pid": 1, "token": "x"}))
    with Claims(tmp_path) as mine:
        assert not mine.claim(RUN)
        long_ago = time.time() - module.DEAD_SECONDS - 1
        os.utime(path, (long_ago, long_ago))
        assert mine.claim(RUN)


def test_a_claim_in_the_future_is_dead(tmp_path: Path) -> None:
    """Nobody renews it: the time of a living claim is that of its last renewal."""
    path = tmp_path / f"{RUN}.json"
    path.write_text(json.dumps({"host": "elsewhere", "pid": 1, "token": "x"}))
    later = time.time() + 86400
    os.utime(path, (later, later))
    with Claims(tmp_path) as mine:
        assert mine.claim(RUN)


@pytest.mark.parametrize("pid", [-1, 10**30, 1.5, None, "1", [1]])
def test_a_claim_with_an_impossible_number_is_dead(tmp_path: Path, pid: object) -> None:
    content = {"host": module._host(), "pid": pid, "started": 0, "token": "x"}
    (tmp_path / f"{RUN}.json").write_text(json.dumps(content))
    with Claims(tmp_path) as mine:
        assert mine.claim(RUN)


def test_dead_claims_are_removed_at_the_end(tmp_path: Path) -> None:
    """Also those of runs that are done: nobody claims them again."""
    content = {"host": module._host(), "pid": 2**22 + 1, "started": 0, "token": "x"}
    (tmp_path / f"{RUN}.json").write_text(json.dumps(content))
    (tmp_path / f".{RUN}-{atomic._host()}-{2**22 + 1}-00.tmp").touch()
    with Claims(tmp_path), Claims(tmp_path) as others:
        assert others.claim("f" * 16)
        with Claims(tmp_path):
            pass
        assert [path.stem for path in tmp_path.iterdir()] == ["f" * 16]
    assert list(tmp_path.iterdir()) == []


def test_a_run_is_executed_where_no_claim_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "claims").write_text("a file")
    with Claims(tmp_path / "claims") as mine:
        assert mine.claim(RUN)
        assert mine.is_free(RUN)


def test_a_claim_is_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HEARTBEAT_SECONDS", 0.01)
    with Claims(tmp_path) as mine:
        mine.claim(RUN)
        path = tmp_path / f"{RUN}.json"
        os.utime(path, (1, 1))
        assert until(lambda: path.stat().st_mtime > 1)


def test_a_run_of_another_process_is_picked_up_or_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch)
    request = RunRequest(["majority"], ["toy"], seeds=[0, 1], labeled=20, model="nothing", jobs=1)
    store, other = Store(tmp_path / "runs"), Store(tmp_path / "elsewhere")
    tasks = plan(request, store=None, notice=print)
    (done,) = run_grid(tasks[:1], other, isolated).records
    waited: list[int] = []
    with Claims(store.folder / "claims") as others:
        for task in tasks:
            assert others.claim(task.spec.run_id)

        def finish(number: int) -> None:
            """The other process ends: one run is done, the other one is not."""
            waited.append(number)
            store.save(done)
            for task in tasks:
                others.release(task.spec.run_id)

        result = run_grid(tasks, store, isolated, GridOptions(on_wait=finish))
    assert waited == [2]
    assert result.stored == 1
    assert [record.status for record in result.records] == ["ok", "ok"]
    assert result.records[0].created == done.created


def test_three_processes_execute_each_run_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch)
    seeds = [word for seed in range(4) for word in ("--seed", str(seed))]
    command = [sys.executable, "-m", "sslbench", "run", "--method", "majority", "--dataset", "toy"]
    command += ["--labeled", "20", "--model", "nothing", *seeds, "--store", str(tmp_path / "runs")]
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    outputs = [process.communicate(timeout=HANG) for process in started]
    assert [process.returncode for process in started] == [0, 0, 0], outputs
    executed = sum(line.startswith("ok: ") for _, err in outputs for line in err.splitlines())
    assert executed == 4
    assert len({out for out, _ in outputs}) == 1
    assert list((tmp_path / "runs" / "claims").iterdir()) == []
