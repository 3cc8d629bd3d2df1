"""Bodies of processes, in a module that other processes can import."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from sslbench.processes import ForkServer


def facts(*names: str) -> bytes:
    known = [name for name in names if name in sys.modules]
    return f"{os.getppid()} {' '.join(known)}".encode()


def fails() -> bytes:
    raise ValueError("a reason")


def dies(number: int) -> bytes:
    os.kill(os.getpid(), number)
    time.sleep(60)
    return b""


def leaves(status: int) -> bytes:
    os._exit(status)


def sends(number: int) -> bytes:
    return b"x" * number


def starts_a_daemon() -> bytes:
    """Start a process of its own session whose parent ends; return its number."""
    daemon = "subprocess.Popen(['sleep', '600'], stdout=2, start_new_session=True)"
    words = [sys.executable, "-c", f"import subprocess; print({daemon}.pid)"]
    return subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout


def nothing() -> None:
    """Prepare nothing."""


def asks_a_server(number: int) -> int:
    """Return how many bytes a process of a new server sends."""
    server = ForkServer(nothing)
    try:
        child = server.start(sends, number)
        try:
            return len(child.result(2**20))
        finally:
            child.end()
    finally:
        server.close()
