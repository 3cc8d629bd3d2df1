"""Properties that are computed once."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

import sslbench
from sslbench.engine.lazy import lazy


class Slow:
    """Its value takes as long as another thread wants."""

    calls = 0

    def __init__(self) -> None:
        self.entered, self.go_on = threading.Event(), threading.Event()

    @lazy
    def value(self) -> list[int]:
        """Return a new list."""
        Slow.calls += 1
        self.entered.set()
        self.go_on.wait()
        return []


def test_it_is_computed_once() -> None:
    one = Slow()
    one.go_on.set()
    before = Slow.calls
    assert one.value is one.value
    assert Slow.calls == before + 1
    assert Slow.value.__doc__ == "Return a new list."


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_fork_while_another_thread_computes_it() -> None:
    """`functools.cached_property` of Python 3.11 makes the child wait without end."""
    one, other = Slow(), Slow()
    other.go_on.set()
    thread = threading.Thread(target=lambda: one.value)
    thread.start()
    one.entered.wait()
    pid = os.fork()
    if not pid:
        os._exit(0 if other.value == [] else 1)
    one.go_on.set()
    thread.join()
    assert os.waitpid(pid, 0)[1] == 0


def test_no_module_has_a_property_with_a_lock() -> None:
    for package in Path(sslbench.__file__).parent.rglob("*.py"):
        if package.name != "lazy.py":
            assert "cached_property" not in package.read_text("utf-8"), package
