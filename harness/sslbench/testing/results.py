"""Named checks: run one by one within a time limit, each with a result."""

from __future__ import annotations

import signal
import threading
import time
import unittest
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from sslbench.engine.errors import UserError
from sslbench.plugins.hooks import suggestion

SECONDS = 120.0
"""Time limit of one check. The first check of a process may have to compile kernels."""

Status = Literal["ok", "failed", "skipped"]


class CheckFailure(AssertionError):  # noqa: N818 (a test result, not a caller error)
    """The plugin breaks the rule that a check tests; the message is one line."""


class CheckSkipped(unittest.SkipTest):
    """The check does not apply to the plugin; the message says why. pytest reports it as a skip."""


class _TimeIsUp(BaseException):
    """Raised inside a check; no Exception, so that handlers of the plugin do not catch it."""


@dataclass(frozen=True)
class CheckResult:
    """The result of one check. message: why it failed or was skipped, "" when it is ok."""

    check: str
    status: Status
    message: str = ""
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.check}: {self.message or self.status}"


@dataclass(frozen=True)
class Check:
    """One check of one plugin, ready to run: call it in a test, or ask for its `result`.

    Attributes
    ----------
    name: e.g. "threads".
    meaning: the rule that it tests, one sentence.
    seconds: time limit.
    """

    name: str
    meaning: str
    seconds: float
    function: Callable[[], None]

    def __str__(self) -> str:
        return self.name

    def __call__(self) -> None:
        """Run; CheckFailure when the plugin breaks the rule, CheckSkipped when it has none."""
        try:
            with _time_limit(self.seconds):
                self.function()
        except unittest.SkipTest:
            raise
        except CheckFailure as failure:
            raise CheckFailure(f"{self.name}: {failure}") from failure.__cause__
        except _TimeIsUp:
            raise CheckFailure(f"{self.name}: not done after {self.seconds:g} s") from None
        except Exception as error:  # a plugin may raise anything
            raise CheckFailure(f"{self.name}: {describe_error(error)}") from error

    def result(self) -> CheckResult:
        """Run; whatever happens becomes a result."""
        began = time.perf_counter()
        try:
            self()
        except unittest.SkipTest as skipped:
            status, message = "skipped", str(skipped)
        except CheckFailure as failure:
            status, message = "failed", str(failure).removeprefix(f"{self.name}: ")
        else:
            status, message = "ok", ""
        return CheckResult(self.name, status, message, time.perf_counter() - began)  # type: ignore[arg-type]


def describe_error(error: BaseException) -> str:
    """An exception in one line: its type, its message and the innermost file and line.

    A UserError needs no type and no place.
    """
    if isinstance(error, UserError):
        return str(error)
    place, trace = "", error.__traceback__
    while trace is not None:
        place = f" ({trace.tb_frame.f_code.co_filename}:{trace.tb_lineno})"
        trace = trace.tb_next
    return " ".join(f"{type(error).__name__}: {error}".split()) + place


def select(checks: Sequence[Check], only: Iterable[str], skip: Iterable[str]) -> list[Check]:
    """The checks that `only` names (all when it names none) without those that `skip` names.

    UserError with near names for a name that no check has.
    """
    wanted, unwanted = set(only), set(skip)
    names = [check.name for check in checks]
    for name in sorted(wanted | unwanted):
        if name not in names:
            raise UserError(f"no check {name!r}", hint=suggestion(name, names))
    return [
        check
        for check in checks
        if (not wanted or check.name in wanted) and check.name not in unwanted
    ]


def run_checks(checks: Iterable[Check], what: str) -> list[CheckResult]:
    """Run all checks; CheckFailure, with a line per failed check, if a check fails."""
    results = [check.result() for check in checks]
    failed = [f"{what}: {result}" for result in results if result.status == "failed"]
    if failed:
        raise CheckFailure("\n".join(failed))
    return results


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise `_TimeIsUp` in the block after so many seconds of wall time.

    Outside the main thread, and where the system has no SIGALRM, there is no limit.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or not hasattr(signal, "SIGALRM"):
        yield
        return

    def stop(_signal: int, _frame: object) -> None:
        raise _TimeIsUp

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
