"""Numbers of threads within a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numba

THREADS = [1, 2, 3, 5]


@contextmanager
def using(threads: int) -> Iterator[None]:
    before = numba.get_num_threads()
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
    try:
        yield
    finally:
        numba.set_num_threads(before)
