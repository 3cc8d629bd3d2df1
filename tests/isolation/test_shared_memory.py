"""The folder for shared memory of a restricted process: of its own, and counted as memory."""

from __future__ import annotations

import multiprocessing
import os
import sys
from multiprocessing.connection import Connection
from pathlib import Path

import psutil
import pytest

from sslbench.isolation.restrict import Restrictions, Watch, restrict
from sslbench.isolation.shared_memory import FOLDER, make_private
from sslbench.processes import call_apart, start
from sslbench.processes.memory import used_memory
from support.waiting import HANG

MEGA = 2**20
NAME = "sslbench-test-of-shared-memory"


@pytest.fixture(autouse=True)
def needs_mounts() -> None:
    if sys.platform != "linux" or call_apart(lambda: b"+" * make_private(None), HANG) != b"+":
        pytest.skip("this system gives a process no mounts of its own")


def fill(connection: Connection, size: int) -> None:
    """Write to a file of shared memory, which is in no memory of this process."""
    make_private(4 * size)
    (FOLDER / NAME).write_bytes(bytes(size))
    connection.send(None)
    connection.recv()


def test_files_count_as_memory_once() -> None:
    """Those of a file that is mapped, too, see `used_memory`."""
    child = start(fill, 64 * MEGA, fork=True)
    child.connection.recv()
    process = psutil.Process(child.pid)
    resident = process.memory_info().rss
    assert used_memory([process]) - resident >= 64 * MEGA
    assert 64 * MEGA <= used_memory([process], most=1) < used_memory([process])
    assert not (FOLDER / NAME).exists()
    child.end()


def test_files_have_a_limit() -> None:
    def beyond() -> bytes:
        make_private(MEGA)
        try:
            (FOLDER / NAME).write_bytes(bytes(2 * MEGA))
        except OSError as error:
            return os.strerror(error.errno or 0).encode()
        return b"written"

    assert call_apart(beyond, HANG) == b"No space left on device"


def square(number: int) -> int:
    return number * number


def test_a_method_may_use_multiprocessing(tmp_path: Path) -> None:
    """Its semaphores are files of shared memory, and its pipes may be pairs of sockets."""

    def compute() -> bytes:
        restrict(Restrictions([], [tmp_path], [], *[tmp_path] * 3, None, None), Watch())
        with multiprocessing.get_context("fork").Pool(2) as pool:
            return str(pool.map(square, range(4))).encode()

    assert call_apart(compute, HANG) == b"[0, 1, 4, 9]"
