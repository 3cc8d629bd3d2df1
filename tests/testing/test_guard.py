"""Whose files and connections the checks of a plugin refuse."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from queue import SimpleQueue

import pytest

from sslbench.testing.guard import Watch, watched


def resolve() -> bool:
    """Whether the network may be used here."""
    try:
        socket.getaddrinfo("127.0.0.1", 0)
    except PermissionError:
        return False
    return True


def in_a_thread(call: Callable[[], bool]) -> bool:
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(call()))
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.parametrize("call", [resolve, lambda: in_a_thread(resolve)])
def test_threads_of_the_block_are_refused(call: Callable[[], bool]) -> None:
    watch = Watch([], "/no/corpora")
    with watched(watch):
        assert not call()
    assert watch.refused == ["used the network"]
    assert call()


def test_threads_that_ran_before_go_on_with_those_that_they_start() -> None:
    """A client of a cluster that is gone looks for it from a thread of its own."""
    asked: SimpleQueue[Callable[[], bool]] = SimpleQueue()
    told: SimpleQueue[bool] = SimpleQueue()

    def serve() -> None:
        for _ in range(2):
            told.put(asked.get()())

    other = threading.Thread(target=serve, daemon=True)
    other.start()
    watch = Watch([], "/no/corpora")
    with watched(watch):
        asked.put(resolve)
        assert told.get()
        asked.put(lambda: in_a_thread(resolve))
        assert told.get()
        assert not resolve()
    other.join()
