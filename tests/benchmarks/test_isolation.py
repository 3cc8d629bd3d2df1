"""What a process of its own costs a method: a run of a method that does next to nothing.

pytest tests/benchmarks/test_isolation.py -s
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from problem import OUT, Figure

from sslbench.experiment.run.runner import execute
from sslbench.isolation.start import isolated
from sslbench.plugins import registry
from support.run_fakes import task

ROUNDS = 20 if OUT else 1


def milliseconds(work: Callable[[], None]) -> float:
    work()
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        work()
        times.append(1000 * (time.perf_counter() - begin))
    return float(np.median(times))


@pytest.mark.usefixtures("fake_plugin")
def test_overhead_of_a_process(tmp_path: Path, figure: Figure) -> None:
    asked = task(labeled=20)

    def here() -> None:
        assert execute(asked).status == "ok"

    def apart() -> None:
        method = isolated(asked, registry(), tmp_path, None)
        try:
            record = execute(asked, registry(), method)
        finally:
            method.close()
        assert record.status == "ok", record.error

    alone, together = milliseconds(here), milliseconds(apart)
    figure("run with a process for its method", "ms", ours=together, peer=alone)
    print(f"one process {alone:.0f} ms, two {together:.0f} ms")
