"""Waiting for a condition, without an expectation of how fast the machine is."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

HANG = 1800.0  # seconds after which a test that waits is taken to hang, on a machine however busy


def until(condition: Callable[[], bool]) -> bool:
    """Wait until the condition is true; return False if it never is."""
    end = time.monotonic() + HANG
    while not (met := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    return met


@contextmanager
def limited(cpu_seconds: int) -> Iterator[None]:
    """Raise AssertionError if the block takes more CPU time of this process, or hangs."""

    def stop(*_: object) -> None:
        raise AssertionError(f"not done after {cpu_seconds} CPU seconds")

    timers = (
        (signal.ITIMER_PROF, signal.SIGPROF, cpu_seconds),
        (signal.ITIMER_REAL, signal.SIGALRM, HANG),
    )
    before = [signal.signal(number, stop) for _, number, _ in timers]
    for timer, _, seconds in timers:
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for (timer, number, _), handler in zip(timers, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)
