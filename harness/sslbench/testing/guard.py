"""Refuse and report what a method may not touch while it trains and predicts.

An audit hook (PEP 578) sees every file that Python code opens, every connection and every process
that is started. It does not see files that compiled code opens by itself.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock
from weakref import WeakSet

from sslbench.experiment.data import DataHome
from sslbench.plugins.registrations import DatasetInfo

#: source and compiled code, numba's compiled kernels
_CODE = (".py", ".pyc", ".pyi", ".so", ".pyd", ".dylib", ".nbi", ".nbc", ".pth")
_SYSTEM = ("/proc", "/sys", "/dev", "/etc", "/usr", "/lib", "/lib64")
_STARTS = ("subprocess.Popen", "os.system", "os.posix_spawn", "os.exec", "os.spawn")
_CONNECTS = ("socket.connect", "socket.getaddrinfo", "urllib.Request")
_WATCHED = {"open", *_STARTS, *_CONNECTS}


@dataclass
class Watch:
    """What was refused so far, as "opened /path", and what may be opened.

    allowed: folders and files that may be read. denied: the data home, of which only longer paths
        that are allowed may be read. Files written under the watch may be read again.
    others: threads that ran before the block, and those that they start: they are not watched.
    """

    allowed: list[str]
    denied: str
    refused: list[str] = field(default_factory=list)
    written: set[str] = field(default_factory=set)
    others: WeakSet[threading.Thread] = field(default_factory=WeakSet)

    @classmethod
    def of_module(cls, module: str, home: DataHome) -> Watch:
        """What a plugin may read: code, the files of its package and of the system, not `home`."""
        folders = [*_code_folders(), *_package_files(module), *_SYSTEM]
        return cls([os.path.realpath(path) for path in folders], os.path.realpath(home.root))

    def allow(self, *paths: Path) -> None:
        """Let these files, or all below these folders, be read."""
        self.allowed += [os.path.realpath(path) for path in paths]

    def opened(self, path: object, flags: int) -> None:
        """Note a file that was opened for writing; refuse one that may not be read."""
        if not isinstance(path, str | bytes | os.PathLike):
            return  # a descriptor: the file is open already
        real = os.path.realpath(os.fsdecode(path))
        if _overwrites(flags):
            self.written.add(real)
        elif not self._may_read(real):
            self.refuse(f"opened {real}")

    def _may_read(self, real: str) -> bool:
        if real in self.written or real.endswith(_CODE) or os.path.isdir(real):
            return True
        allowed = max((len(path) for path in self.allowed if _below(real, path)), default=0)
        return allowed > (len(self.denied) if _below(real, self.denied) else 0)

    def refuse(self, what: str) -> None:
        """Report and raise PermissionError: the caller does not get what it asked for."""
        if what not in self.refused:
            self.refused.append(what)
        raise PermissionError(f"refused while a plugin is checked: {what}")


def _overwrites(flags: int) -> bool:
    """Whether the content of the file before it was opened cannot be read."""
    reads = flags & (os.O_WRONLY | os.O_RDWR) != os.O_WRONLY
    return not reads or bool(flags & os.O_TRUNC) or flags & os.O_EXCL != 0


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


_watch: Watch | None = None
_installed = False


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    watch = _watch
    if watch is None or event not in _WATCHED or threading.current_thread() in watch.others:
        return
    if event == "open":
        watch.opened(arguments[0], arguments[2])
    elif event in _STARTS:
        watch.refuse(f"started a process: {arguments[0]!r}")
    else:
        watch.refuse("used the network")


@contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Refuse files, processes and connections while the block runs, in all threads of its own.

    Other threads of this process go on as before, e.g. those of a client that looks for its server.
    """
    global _watch, _installed
    if not _installed:  # a hook cannot be removed: one for the life of the process
        sys.addaudithook(_hook)
        _installed = True
    watch.others.update(set(threading.enumerate()) - {threading.current_thread()})
    before, _watch = _watch, watch
    try:
        with mock.patch.object(threading.Thread, "start", _start):
            yield
    finally:
        _watch = before


_thread_start = threading.Thread.start


def _start(thread: threading.Thread) -> None:
    """Start a thread, which is watched if the thread that starts it is."""
    if _watch is not None and threading.current_thread() in _watch.others:
        _watch.others.add(thread)
    _thread_start(thread)


@contextmanager
def no_datasets(watch: Watch) -> Iterator[None]:
    """Refuse to load registered datasets and to look files up in the data home."""

    def load(info: DatasetInfo) -> object:
        watch.refuse(f"loaded the dataset {info.name}")
        return None

    def path(home: DataHome, file: Any, **_options: Any) -> object:
        watch.refuse(f"asked the data home for {file.path}")
        return None

    with mock.patch.object(DatasetInfo, "load", load), mock.patch.object(DataHome, "path", path):
        yield


def _package_files(module: str) -> list[str]:
    """The folder of the package that a module belongs to; for a lone module its file."""
    top = sys.modules.get(module.partition(".")[0])
    folders = list(getattr(top, "__path__", ()))
    file = getattr(top, "__file__", None)
    return folders or ([file] if file else [])


def _code_folders() -> list[str]:
    paths = sysconfig.get_paths()
    return [paths["stdlib"], paths["platstdlib"], paths["purelib"], paths["platlib"]]
