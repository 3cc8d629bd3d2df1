"""Named checks: run one by one within a time limit, each with a result."""

from __future__ import annotations

import signal
import threading
import time
import unittest
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypedDict, Unpack

from sslbench.engine.errors import UserError
from sslbench.experiment.planning.description import make_params
from sslbench.experiment.planning.space import SearchAxis
from sslbench.plugins.hooks import suggestion

SECONDS = 120.0
"""Time limit of one check. The first check of a process may have to compile kernels."""

Status = Literal["ok", "failed", "skipped"]


class CheckFailure(AssertionError):  # noqa: N818 (a test result, not a caller error)
    """The plugin breaks the rule that a check tests; the message is one line."""


class CheckSkipped(unittest.SkipTest):
    """The check does not apply to the plugin; the message says why. pytest reports it as a skip."""


def require(condition: object, message: str) -> None:
    """Raise CheckFailure with the message unless the condition is true."""
    if not condition:
        raise CheckFailure(message)


def require_axes(target: type[Any], axes: Iterable[SearchAxis]) -> None:
    """CheckFailure, or UserError, unless all that tuning may choose is legal in `target.Params`."""
    for axis in axes:
        known = axis.param in target.Params.__struct_fields__
        require(known, f"search: there is no parameter {axis.param!r}")
        for value in axis.values or axis.limits or ():
            make_params(target, {axis.param: value})


class Selection(TypedDict, total=False):
    """Names of checks to run alone, or to leave out; limit of each check in seconds (120)."""

    only: Iterable[str]
    skip: Iterable[str]
    seconds: float


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


CheckFunction = Callable[[Any], None]


def checks_in(namespace: Mapping[str, Any]) -> tuple[CheckFunction, ...]:
    """Return the functions ``check_NAME`` of a module, given its variables, in their order."""
    return tuple(each for name, each in namespace.items() if name.startswith("check_"))


def checks_of(
    functions: Iterable[CheckFunction], case: object, **selection: Unpack[Selection]
) -> list[Check]:
    """Return a `Check` per function, whose name and meaning it has.

    UserError with similar names for a name in `selection` that no check has.
    """
    only, skip = set(selection.get("only", ())), set(selection.get("skip", ()))
    seconds = selection.get("seconds", SECONDS)
    named = {function.__name__.removeprefix("check_"): function for function in functions}
    for name in sorted(only | skip):
        if name not in named:
            raise UserError(f"no check {name!r}", hint=suggestion(name, list(named)))
    return [
        Check(name, (each.__doc__ or "").partition("\n")[0], seconds, partial(each, case))
        for name, each in named.items()
        if (not only or name in only) and name not in skip
    ]


def run_checks(checks: Iterable[Check], plugin: Any) -> list[CheckResult]:
    """Run all checks of a plugin; CheckFailure, with a line per failed check, if a check fails.

    plugin: a name, a registration, or a class.
    """
    name = plugin if isinstance(plugin, str) else getattr(plugin, "name", None) or plugin.__name__
    results = [check.result() for check in checks]
    failed = [f"{name}: {result}" for result in results if result.status == "failed"]
    require(not failed, "\n".join(failed))
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
