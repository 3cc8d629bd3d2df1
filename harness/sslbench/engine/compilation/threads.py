"""Tasks of a compiled kernel in several threads.

The first two arguments of a kernel, begin and end, say which tasks to do. It must release the
interpreter lock. No task may write what another one reads or writes, so that results do not depend
on the number of threads. numba's own parallel loops take longer to compile, and wait for a thread
that is held up.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import islice, pairwise
from threading import local
from typing import Generic, TypeVar

from sslbench.engine.variables import processors

T = TypeVar("T")
R = TypeVar("R")
_local = local()  # alone: kernels of this thread run in it alone
PARTS = 4  # runs of tasks per thread: one that is held up leaves runs to the others
_limit = 0  # 0: as the environment says


def number_of_threads() -> int:
    """Return how many threads a kernel uses: as set, as ``$NUMBA_NUM_THREADS`` says, or all."""
    return _limit or int(os.environ.get("NUMBA_NUM_THREADS") or _cores())


@cache
def _cores() -> int:
    """Return the number of processors, asked for once: it takes as long as a small kernel."""
    return processors()


def set_number_of_threads(number: int) -> None:
    """Set the threads of this process, also of numba's parallel loops, which plugins may have.

    ValueError if it is less than one.
    """
    global _limit
    if number < 1:
        raise ValueError(f"the number of threads must be at least 1, got {number}")
    _limit = number
    if "numba" in sys.modules:
        import numba
        from numba.core.errors import NumbaSystemWarning

        with warnings.catch_warnings(), suppress(ValueError):  # more than numba was started with
            # It wants a lock between processes, which a process of plugins may have no right to.
            warnings.simplefilter("ignore", NumbaSystemWarning)
            numba.set_num_threads(number)


@contextmanager
def using_threads(number: int | None) -> Iterator[None]:
    """Set the number of threads for a while; None = leave it."""
    before = number_of_threads()
    if number is not None:
        set_number_of_threads(number)
    try:
        yield
    finally:
        if number is not None:
            set_number_of_threads(before)


def share_out(kernel: Callable[..., None], tasks: int, *arguments: object) -> None:
    """Call kernel(begin, end, *arguments) for ranges that make up 0 to `tasks`."""
    helpers = min(number_of_threads(), tasks) - 1
    if helpers < 1 or getattr(_local, "alone", False):
        kernel(0, tasks, *arguments)
        return
    parts = min(tasks, PARTS * (helpers + 1))
    borders = [tasks * p // parts for p in range(parts + 1)]
    ranges = iter(list(pairwise(borders)))

    def work() -> None:
        for begin, end in ranges:  # each thread takes the next one; `next` of a list is atomic
            kernel(begin, end, *arguments)

    pool = _pool(helpers)
    jobs = [pool.submit(work) for _ in range(helpers)]
    try:
        work()
    finally:
        started = [job for job in jobs if not job.cancel()]
        wait(started)
    for job in started:
        job.result()


def in_order(function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """Yield function(item) of each item, in order; other threads compute some of them ahead.

    Until the iterator ends, kernels of this thread run in it alone: many small kernels are better
    shared out by items, since handing over a task takes as long as a small kernel. An exception is
    raised at its item's turn.
    """
    helpers = number_of_threads() - 1
    if helpers < 1 or getattr(_local, "alone", False):
        yield from map(function, items)
        return

    def run(item: T) -> R:
        _local.alone = True
        return function(item)

    pool, rest = _pool(helpers), iter(items)
    ahead: deque[_Result[T, R]] = deque()
    _local.alone = True
    try:
        while True:
            for item in islice(rest, 2 * helpers + 1 - len(ahead)):
                ahead.append(_Result(item, pool.submit(run, item)))
            if not ahead:
                return
            while not ahead[0].future.done():
                own = next((each for each in ahead if each.future.cancel()), None)
                if own is None:
                    wait([ahead[0].future])
                else:
                    own.compute(function)
            yield ahead.popleft().future.result()
    finally:
        _local.alone = False
        wait([each.future for each in ahead if not each.future.cancel()])


@dataclass
class _Result(Generic[T, R]):
    """The result of an item, now or later."""

    item: T
    future: Future[R]

    def compute(self, function: Callable[[T], R]) -> None:
        """Compute the result in this thread; the future has been canceled."""
        self.future = Future()
        try:
            self.future.set_result(function(self.item))
        except BaseException as error:
            self.future.set_exception(error)


@cache
def _pool(helpers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(helpers, "kernel")


if hasattr(os, "register_at_fork"):  # the threads of a pool do not exist in a fork
    os.register_at_fork(after_in_child=_pool.cache_clear)
