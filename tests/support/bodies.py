"""Bodies of processes, in a module that other processes can import."""

from __future__ import annotations

import os
import sys
import time


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
