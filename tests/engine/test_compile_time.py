"""Compilation is told once and does not count for a run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sslbench.engine.compilation import compile_time
from sslbench.experiment.execute.pool import run_all
from sslbench.experiment.run.runner import execute
from sslbench.isolation.start import isolated
from sslbench.processes import call_apart
from support.command import sslbench
from support.run_fakes import task
from support.waiting import HANG

SCRIPT = """
import time
import numpy as np
from sslbench.engine.compilation.compile_time import compile_seconds
from sslbench.engine.crf.optim.vectors import combine, dot
began = time.perf_counter()
x = np.ones(4)
dot(x, x), combine(1.0, x, 1.0, x, x)
spent = time.perf_counter() - began
print(0.0 < compile_seconds().wall <= spent, compile_seconds().cpu > 0.0)
"""


def test_compilation_is_timed_and_told_once(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    environment.pop("SSLBENCH_TOLD", None)
    found = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        for _ in range(2)
    ]
    assert [each.stdout for each in found] == ["True True\n", "False False\n"]
    line = f"sslbench: compiling, once: machine code is kept in {tmp_path / 'kernels'}\n"
    assert [each.stderr for each in found] == [line, ""]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_has_compiled_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the run of a forked process would be given the time of its parent."""
    monkeypatch.setattr(compile_time, "_spent", compile_time.Seconds(3.0, 2.0))
    assert compile_time.compile_seconds().wall == 3.0
    assert (
        call_apart(lambda: repr(tuple(compile_time.compile_seconds())).encode(), HANG)
        == b"(0.0, 0.0)"
    )


@pytest.mark.usefixtures("fake_plugin")
def test_a_run_does_not_count_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    """The method says that it has compiled for an hour, in this process and in its own."""
    monkeypatch.setattr(compile_time, "_spent", compile_time.Seconds())
    asked = task("hostile", labeled=20, params={"how": "compile"})
    here, (apart,) = execute(asked), run_all([asked], isolated)
    assert here.cpu_s == 0.0
    for record in (here, apart):
        assert record.status == "ok", record.error
        assert record.timing["compile"] == pytest.approx(3600.0)
        assert record.wall_s == 0.0
        assert record.cpu_s is not None
        assert record.cpu_s < 60.0


def test_warmup() -> None:
    done = sslbench("warmup", "--method", "supervised", "--model", "crf1")
    assert done.exit_code == 0, done.output
    assert re.search(r"^sslbench: \d+ runs; \d+ s of compilation$", done.stderr, re.M)
