"""Environment variables that are checked, and limits of the shell."""

from __future__ import annotations

import os
import resource

import pytest

from sslbench.engine.variables import (
    CHECKPOINTS,
    NO_COMPILER,
    THREADS,
    checkpoint_seconds,
    processors,
)
from support.command import sslbench

LIMIT = 700_000 * 2**10


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *((THREADS, text) for text in ("many", "0", "-3", "1.5", "9" * 5000)),
        *((CHECKPOINTS, text) for text in ("soon", "nan", "-1", "inf", "1e99")),
        (NO_COMPILER, "1"),
    ],
)
def test_another_text_is_refused_before_anything_is_done(
    name: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, text)
    result = sslbench("list", "models")
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"sslbench: the variable {name} is ")
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("problem", "line"),
    [
        (OSError(24, "Too many open files"), "too many open files; raise the limit"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (MemoryError(), "out of memory; free some"),
        (RuntimeError("can't start new thread"), "out of memory; free some"),
    ],
)
def test_small_limits_are_named(
    problem: Exception, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise problem

    monkeypatch.setattr("sslbench.cli.list.checked_registry", fail)
    result = sslbench("list", "models")
    assert result.exit_code == (1 if line.startswith("No space") else 2)
    assert result.stderr.startswith(f"sslbench: {line}")


@pytest.mark.parametrize(
    ("error", "limit", "line"),
    [
        (OSError, LIMIT, "out of memory; free some"),
        (ImportError, LIMIT, "out of memory; free some"),
        (ModuleNotFoundError, LIMIT, "internal error: ModuleNotFoundError"),
        (OSError, resource.RLIM_INFINITY, "internal error"),
        (ImportError, resource.RLIM_INFINITY, "internal error"),
    ],
)
def test_a_library_that_does_not_fit_into_a_limited_memory(
    error: type[Exception], limit: int, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a limit, or without the library, it is another fault, which is shown as it is."""
    true = resource.getrlimit

    def limits(which: int) -> tuple[int, int]:
        return (limit, limit) if which == resource.RLIMIT_AS else true(which)

    def fail() -> None:
        raise error("Could not load 'libllvmlite.so'")

    monkeypatch.setattr("resource.getrlimit", limits)
    monkeypatch.setattr("sslbench.cli.list.checked_registry", fail)
    assert sslbench("list", "models").stderr.startswith(f"sslbench: {line}")


def test_too_few_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda which: (14, 14))
    result = sslbench("list", "models")
    assert result.exit_code == 2
    message = "this shell allows 14 open files, and 64 are needed"
    assert result.stderr == f"sslbench: {message}; raise the limit: ulimit -n 1024\n"


@pytest.mark.parametrize(("room", "status"), [((640 << 20) - 1, 2), (640 << 20, 0), (-1, 0)])
def test_too_little_virtual_memory(room: int, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process: its libraries would end it by a signal."""
    true = resource.getrlimit
    limits = {resource.RLIMIT_AS: (room, room)}
    monkeypatch.setattr("resource.getrlimit", lambda which: limits.get(which) or true(which))
    result = sslbench("list", "models")
    assert result.exit_code == status
    message = "this shell allows 639 MB of virtual memory, and 640 are needed"
    wanted = f"sslbench: {message}; raise the limit, see ulimit -v\n" if status else ""
    assert result.stderr == wanted


def test_numbers_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(THREADS, "2")
    for text, seconds in (("", 60.0), ("0", 0.0), ("1.5", 1.5)):
        monkeypatch.setenv(CHECKPOINTS, text)
        assert checkpoint_seconds() == seconds
        assert sslbench("list", "models").exit_code == 0


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="Linux alone")
def test_processors_that_are_not_allowed_are_not_counted() -> None:
    allowed = os.sched_getaffinity(0)
    assert processors() == len(allowed)
    try:
        os.sched_setaffinity(0, [min(allowed)])
        assert processors() == 1
    finally:
        os.sched_setaffinity(0, allowed)
