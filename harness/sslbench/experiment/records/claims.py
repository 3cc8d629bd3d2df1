"""Claims on runs: of several processes on one store, one executes a run, the others wait for it."""

from __future__ import annotations

import json
import os
import platform
import secrets
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil

from sslbench.engine.files.atomic import remove_abandoned, temporary_name
from sslbench.engine.files.derived import drop

HEARTBEAT_SECONDS = 10.0
#: a claim of another machine without a heartbeat for so long is dead
DEAD_SECONDS = 90.0


class Claims:
    """The claims of this process on runs of a store, in the folder ``claims`` of the store.

    A claim is a file that names host, process and a token. It is created exclusively, and its
    modification time is renewed while the process lives. A claim is dead if its process has ended
    or, on another machine, if it was not renewed for `DEAD_SECONDS`; it is then taken over.
    Close it to remove its claims that are left, and dead ones.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own: dict[str, str] = {}
        self._end = threading.Event()
        self._heart = threading.Thread(target=self._beat, daemon=True)
        self._heart.start()

    def __enter__(self) -> Claims:
        return self

    def __exit__(self, *error: object) -> None:
        self._end.set()
        self._heart.join()
        for run_id in list(self._own):
            self.release(run_id)
        with suppress(OSError):
            for path in self._folder.glob("*.json"):
                self._remove_dead(path)
        remove_abandoned(self._folder)

    def claim(self, run_id: str) -> bool:
        """Whether this process has the run now; False if another one is executing it.

        True also where no claim can be written: the run may then be executed twice, which gives the
        same record.
        """
        path = self._path(run_id)
        token = secrets.token_hex(8)
        content = {"token": token, "host": _host(), **_process(os.getpid())}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            for _ in range(2):
                with suppress(FileExistsError):
                    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
                    self._own[run_id] = token
                    with os.fdopen(handle, "w") as file:
                        file.write(json.dumps(content))
                    return True
                if not self._remove_dead(path):
                    return False
        except OSError:
            if self._own.pop(run_id, None) is not None:  # its content could not be written
                drop(path)
            return True
        return self.is_free(run_id)

    def release(self, run_id: str) -> None:
        """Give up a claim, once the record is stored; a claim of somebody else's is left alone."""
        token = self._own.pop(run_id, None)
        path = self._path(run_id)
        if token is not None and _read(path).get("token") == token:
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def is_free(self, run_id: str) -> bool:
        """Whether nobody is executing the run."""
        path = self._path(run_id)
        return not os.path.exists(path) or _is_dead(path)

    def _path(self, run_id: str) -> Path:
        return self._folder / f"{run_id}.json"

    def _remove_dead(self, path: Path) -> bool:
        """Remove a dead claim; False if it is alive.

        It is renamed first, and its content looked at again: of two processes that find the same
        dead claim, the slower one would otherwise remove the new claim of the faster one.
        """
        before = _read(path)
        if not _is_dead(path):
            return False
        aside = temporary_name(path)
        with suppress(OSError):
            os.rename(path, aside)
            if _read(aside).get("token") != before.get("token"):
                with suppress(OSError):
                    os.link(aside, path)
            drop(aside)
        return True

    def _beat(self) -> None:
        while not self._end.wait(HEARTBEAT_SECONDS):
            for run_id in list(self._own):
                with suppress(OSError):
                    os.utime(self._path(run_id))


def _host() -> str:
    """The machine and, on Linux, the name space in which its process numbers are valid."""
    try:
        return f"{platform.node()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return platform.node()


def _process(pid: int) -> dict[str, object]:
    """A process by its number and the time of its start, since numbers are used again.

    started: None for one that has ended, also if its parent does not ask how.
    """
    started = None
    with suppress(psutil.Error, ValueError, OverflowError):  # no such process, or no number of one
        process = psutil.Process(pid)
        if process.status() != psutil.STATUS_ZOMBIE:
            started = process.create_time()
    return {"pid": pid, "started": started}


def _read(path: Path) -> dict[str, object]:
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _now(folder: Path) -> float:
    """The time in the clock that gives files their times: that of a file server may differ."""
    path = temporary_name(folder / "clock")
    try:
        path.touch()
        now = path.stat().st_mtime
        path.unlink()
    except OSError:
        return time.time()
    return now


def _is_dead(path: Path) -> bool:
    content = _read(path)
    if content.get("host") != _host():  # or its content is not written yet
        try:
            age = _now(path.parent) - path.stat().st_mtime
        except OSError:
            return True  # released in the meantime
        return abs(age) > DEAD_SECONDS  # nobody renews a claim in the future
    pid = content.get("pid")
    started = _process(pid)["started"] if isinstance(pid, int) else None
    return started is None or started != content.get("started")
