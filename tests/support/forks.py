"""Copies of this process that do something at once."""

from __future__ import annotations

import os
from collections.abc import Callable


def forked(*actions: Callable[[], object]) -> list[int]:
    """The exit status of a forked process for each action: 0, or 1 if it raised an exception."""
    pids = []
    for action in actions:
        pids.append(os.fork())
        if pids[-1] == 0:
            status = 1
            try:
                action()
                status = 0
            finally:
                os._exit(status)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
