"""Tasks of kernels in several threads."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from sslbench.engine.compilation.compiled import chunks, parallel_kernel
from sslbench.engine.compilation.threads import (
    in_order,
    number_of_threads,
    set_number_of_threads,
    share_out,
    using_threads,
)
from sslbench.engine.types import I64
from sslbench.processes import call_apart
from support.threads import THREADS
from support.waiting import HANG


@parallel_kernel(lambda out, factor: len(out))
def multiples(begin: int, end: int, out: I64, factor: int) -> None:
    for i in range(begin, end):
        out[i] += factor * i


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("tasks", [0, 1, 2, 7, 1000])
def test_each_task_is_done_once(threads: int, tasks: int) -> None:
    out = np.zeros(tasks, np.int64)
    with using_threads(threads):
        multiples(out, 3)
    np.testing.assert_array_equal(out, 3 * np.arange(tasks))


def test_several_threads_work_at_the_same_time() -> None:
    meeting = threading.Barrier(2, timeout=HANG)
    met: list[int] = []

    def kernel(begin: int, end: int) -> None:
        meeting.wait()  # an error if the other one does not come
        met.extend(range(begin, end))

    with using_threads(2):
        share_out(kernel, 2)
    assert sorted(met) == [0, 1]


def test_an_error_is_raised_after_all_threads_have_stopped() -> None:
    busy: list[int] = []

    def kernel(begin: int, end: int) -> None:
        busy.append(begin)
        time.sleep(0.01)
        busy.remove(begin)
        if begin == 0:
            raise IndexError("task 0")

    with using_threads(3), pytest.raises(IndexError, match="task 0"):
        share_out(kernel, 30)
    assert not busy


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_has_threads_of_its_own() -> None:
    def both() -> bytes:
        out = np.zeros(500, np.int64)
        multiples(out, 2)
        return out.tobytes()

    with using_threads(2):
        assert both() == call_apart(both, HANG)


def test_the_number_of_threads() -> None:
    before = number_of_threads()
    with using_threads(3):
        assert number_of_threads() == 3
        with using_threads(None):
            assert number_of_threads() == 3
    assert number_of_threads() == before
    with pytest.raises(ValueError, match="at least 1"):
        set_number_of_threads(0)


@pytest.mark.parametrize(("length", "expected"), [(0, 0), (1, 1), (8, 1), (9, 2)])
def test_chunks(length: int, expected: int) -> None:
    assert chunks(length, 8) == expected


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("n", [0, 1, 5, 200])
def test_results_come_in_order(threads: int, n: int) -> None:
    out = np.zeros(50, np.int64)

    def total(item: int) -> int:
        mine = out.copy()
        multiples(mine, item)  # a kernel within it runs in its thread
        return int(mine.sum())

    with using_threads(threads):
        found = list(in_order(total, range(n)))
    assert found == [item * 50 * 49 // 2 for item in range(n)]


def test_items_are_computed_by_several_threads() -> None:
    meeting = threading.Barrier(2, timeout=HANG)

    def meet(item: int) -> int:
        meeting.wait()  # an error if the other one does not come
        return item

    with using_threads(2):
        results = in_order(meet, range(2))
        assert list(results) == [0, 1]


@pytest.mark.parametrize("threads", THREADS)
def test_an_error_is_raised_at_the_turn_of_its_item(threads: int) -> None:
    def checked(item: int) -> int:
        if item >= 3:
            raise ValueError(f"item {item}")
        return item

    found: list[int] = []
    with using_threads(threads), pytest.raises(ValueError, match="item 3"):
        found.extend(in_order(checked, range(9)))
    assert found == [0, 1, 2]
    multiples(np.zeros(5, np.int64), 1)  # the threads are free again


WITHOUT_SHARED_MEMORY = """
import multiprocessing.context
def refuse(self):
    raise PermissionError(13, "Permission denied")
multiprocessing.context.BaseContext.RLock = refuse
import numba
from sslbench.engine.compilation.threads import set_number_of_threads
set_number_of_threads(1)
assert numba.get_num_threads() == 1
"""


def test_numba_wants_no_lock_that_a_restricted_process_cannot_have() -> None:
    command = [sys.executable, "-W", "error", "-c", WITHOUT_SHARED_MEMORY]
    assert subprocess.check_output(command, stderr=subprocess.STDOUT, text=True) == ""
