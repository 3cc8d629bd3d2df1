"""Runs in processes: hostile methods, timeouts, memory, kill -9 of the parent."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from sslbench.experiment.execute.pool import run_all
from sslbench.experiment.execute.run_folder import remove_abandoned_folders
from sslbench.experiment.planning.task import RunTask
from sslbench.experiment.run.runner import execute
from sslbench.isolation.start import isolated
from support import run_fakes
from support.run_fakes import task
from support.waiting import until

pytestmark = pytest.mark.usefixtures("fake_plugin")


def hostile(how: str) -> RunTask:
    return task("hostile", params={"how": how})


def sleepers() -> list[psutil.Process]:
    """The grandchildren that the hanging method starts."""
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if os.environ["RUN_FAKES_MARK"] in (process.info["cmdline"] or [])
    ]


def test_whatever_a_method_does_becomes_a_record_and_the_others_go_on() -> None:
    hows = ("raise", "exit", "kill", "allocate", "negative", "large")
    tasks = [hostile(how) for how in hows] + [task(labeled=20)]
    records = {r.run_id: r for r in run_all(tasks, isolated, jobs=2)}
    assert len(records) == len(tasks)
    by_how = {how: records[hostile(how).spec.run_id] for how in hows}
    assert {how: (r.status, r.error_kind) for how, r in by_how.items()} == {
        "raise": ("failed", "method"),
        "exit": ("failed", "process"),
        "kill": ("failed", "process"),
        "allocate": ("failed", "method"),
        "negative": ("failed", "method"),
        "large": ("ok", None),
    }
    assert by_how["raise"].error == "ValueError: a bug over two lines"
    assert any("run_fakes.py" in line for line in by_how["raise"].traceback)
    assert "exit status 3" in str(by_how["exit"].error)
    assert "SIGKILL" in str(by_how["kill"].error)
    assert "codes outside" in str(by_how["negative"].error)
    honest = records[tasks[-1].spec.run_id]
    assert honest.status == "ok"
    assert honest.score == execute(tasks[-1]).score
    # Counted in its own process; the honest one may compile kernels, which takes less.
    assert by_how["large"].peak_rss_mb > run_fakes.LARGE_MB > honest.peak_rss_mb
    assert honest.wall_s > 0
    assert honest.cpu_s is not None


def test_a_hanging_run_is_killed_with_its_children() -> None:
    assert not sleepers()
    (record,) = run_all([hostile("hang")], isolated, timeout=3.0)
    assert (record.status, record.error_kind) == ("timeout", "timeout")
    assert "3 s" in str(record.error)
    assert record.wall_s >= 2.9
    assert record.peak_rss_mb is not None
    assert until(lambda: not sleepers())


def test_children_are_fresh_interpreters_with_the_threads_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NUMBA_NUM_THREADS", "7")
    monkeypatch.setattr(run_fakes.Majority, "fit", None)  # a forked child would inherit this
    (record,) = run_all([task(labeled=20)], isolated)
    assert record.status == "ok"
    assert record.environment["threads"] == 1
    assert os.environ["NUMBA_NUM_THREADS"] == "7"


def test_what_a_method_prints_goes_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    assert next(run_all([task(labeled=20)], isolated)).status == "ok"
    out, err = capfd.readouterr()
    assert out == ""
    assert "chats on standard output" in err


def test_leaving_the_iterator_kills_what_runs() -> None:
    runs = run_all([task(labeled=20), hostile("hang")], isolated, jobs=2)
    assert next(runs).status == "ok"
    assert until(lambda: bool(sleepers()))
    runs.close()
    assert until(lambda: not sleepers())


def test_a_killed_parent_takes_a_busy_run_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next command removes its temporary files."""
    words = [
        sys.executable,
        "-c",
        "from sslbench.cli import main; main()",
        *("run", "--method", "hostile", "--set", "how=spin", "--dataset", "toy"),
        *("--labeled", "20", "--model", "nothing", "--store"),
        str(tmp_path / "runs"),
    ]
    log, temporary = tmp_path / "log", tmp_path / "temporary"
    temporary.mkdir()
    with log.open("w") as stream:
        variables = {**os.environ, "TMPDIR": str(temporary)}
        parent = subprocess.Popen(words, stderr=stream, env=variables)
    spins = re.compile(r"spinning (\d+)\n")
    assert until(lambda: bool(spins.search(log.read_text())) or parent.poll() is not None)
    assert parent.poll() is None, log.read_text()
    child = psutil.Process(int(spins.findall(log.read_text())[0]))
    assert child.is_running()
    parent.kill()
    parent.wait()
    assert until(lambda: not child.is_running())
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    assert list(temporary.glob("sslbench-run-*"))
    remove_abandoned_folders()
    assert not list(temporary.glob("sslbench-run-*"))
