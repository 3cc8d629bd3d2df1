"""What the process of the plugins gives up: files, network, system calls, imports.

Linux's Landlock (kernel documentation: userspace-api/landlock) restricts the calling thread and all
that it starts, so that this must be the only thread of the process. An audit hook of Python refuses
and notes attempts; it does not see code that avoids the interpreter's own `open` (compiled code,
ctypes), which Landlock stops, too.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sslbench.engine.files import derived
from sslbench.engine.files.folders import CACHE_VARIABLE, cache_folder
from sslbench.isolation.calls import refuse_calls
from sslbench.isolation.shared_memory import FOLDER, make_private
from sslbench.processes.child import limit_memory

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG = 1
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES = 38

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
#: make a character device, a socket, a block device; talk to a device
_SPECIAL = 1 << 6 | 1 << 9 | 1 << 11 | _IOCTL
_READ = _EXECUTE | _READ_FILE
#: number of file rights that each version of the interface knows
_FILE_RIGHTS = (0, 13, 14, 15, 15, 16, 16)
_MOST_NOTES = 20  # of the audit hook, in a reply
_TCP = 0b11  # bind and connect, from version 4
_SCOPES = 0b11  # abstract sockets and signals of other processes, from version 6


#: how files are hidden from the process
Isolation = Literal["landlock", "audit hook"]


@dataclass(frozen=True)
class Restrictions:
    """What the process of the plugins may do.

    Attributes
    ----------
    hidden: files and folders that it may not read.
    writable: folders that it may write to, `cache` and `temporary` among them.
    modules: modules and packages that it may not import.
    cache: folder for its derived data, which no process without these restrictions reads.
    temporary: folder for its temporary files.
    texts: folder in which the process of the run stores text; it may only read it.
    memory: bytes that it may allocate; None = all.
    checkpoints: a folder that it may read and write although it is in a hidden one; None = none.
    """

    hidden: list[Path]
    writable: list[Path]
    modules: list[str]
    cache: Path
    temporary: Path
    texts: Path
    memory: int | None
    checkpoints: Path | None


def restrict(given: Restrictions, watch: Watch) -> Isolation:
    """Restrict this process for good, and return by what. watch: notes what is refused."""
    _write_derived_data_to(given.cache)
    os.environ["TMPDIR"] = tempfile.tempdir = str(given.temporary)
    _find_kernels(given.modules)
    open_folders = [] if given.checkpoints is None else [given.checkpoints]
    watch.start(given.hidden, given.modules, open_folders)
    writable = [*given.writable, *open_folders]
    if make_private(given.memory):
        writable.append(FOLDER)
    restricted = restrict_files(given.hidden, writable)
    refuse_calls()
    if given.memory is not None:  # last: a lack of memory is an answer to the first request
        limit_memory(given.memory)
    return "landlock" if restricted else "audit hook"


def _write_derived_data_to(folder: Path) -> None:
    """Read the cache from now on, and write to this folder in its place."""
    # Imports numba, which not all methods use.
    from sslbench.engine.compilation import compiled

    compiled.write_instead(folder)
    derived.write_instead(folder, cache_folder())
    os.environ[CACHE_VARIABLE] = str(folder)


def _find_kernels(modules: Iterable[str]) -> None:
    """Find the machine code of the packages of modules, which takes reading all of their sources.

    A kernel beside the dataset is imported when these are hidden.
    """
    # Imports numba, which not all methods use.
    from sslbench.engine.compilation.compiled import package_folder

    for package in {module.partition(".")[0] for module in modules}:
        package_folder(package)


def is_available() -> bool:
    """Whether this system has Landlock."""
    if sys.platform != "linux":
        return False
    return bool(ctypes.CDLL(None).syscall(_CREATE_RULESET, None, 0, _VERSION_FLAG) >= 1)


def restrict_files(hidden: Iterable[Path], writable: Iterable[Path]) -> bool:
    """Give up TCP, reading of `hidden`, and writing outside of `writable`; False: not available.

    hidden: files or folders. Names and sizes of files stay visible.
    """
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    version = libc.syscall(_CREATE_RULESET, None, 0, _VERSION_FLAG)
    if version < 1:
        return False
    rights = (1 << _FILE_RIGHTS[min(version, len(_FILE_RIGHTS) - 1)]) - 1
    attributes = struct.pack(
        "=QQQ", rights, _TCP if version >= 4 else 0, _SCOPES if version >= 6 else 0
    )
    # Older kernels refuse a longer struct.
    size = 8 if version < 4 else 16 if version < 6 else 24
    rules = libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(size), 0)
    if rules < 0:
        return False
    try:
        _allow(libc, rules, Path("/"), rights & _READ_DIR)
        for path in _all_but(Path("/"), {path.resolve() for path in hidden}):
            _allow(libc, rules, path, rights & _READ)
        for path in writable:
            _allow(libc, rules, path, rights & ~_SPECIAL)
        return bool(libc.syscall(_RESTRICT_SELF, rules, 0) == 0)
    finally:
        os.close(rules)


def _all_but(folder: Path, hidden: set[Path]) -> Iterator[Path]:
    """Files and folders that together hold all of `folder` but what is hidden.

    Rules only add rights: a folder with something hidden in it is replaced by its other entries.
    Links are left out, since their targets have rules of their own.
    """
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        path = Path(entry.path)
        if entry.is_symlink() or path in hidden:
            continue
        if any(path in inner.parents for inner in hidden):
            yield from _all_but(path, hidden)
        else:
            yield path


def _allow(libc: ctypes.CDLL, rules: int, path: Path, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # removed in the meantime
        return
    try:
        allowed = rights if path.is_dir() else rights & _OF_FILES
        rule = struct.pack("=Qi", allowed, descriptor)
        libc.syscall(_ADD_RULE, rules, _PATH_BENEATH, rule, 0)
    finally:
        os.close(descriptor)


class Watch:
    """Opening and importing: what is refused from `start` on, and notes of the attempts."""

    def __init__(self) -> None:
        self._notes: list[str] = []
        self._hidden: tuple[str, ...] = ()
        self._open: tuple[str, ...] = ()
        self._modules: tuple[str, ...] = ()

    def start(
        self, hidden: Iterable[Path], modules: Iterable[str], opened: Iterable[Path] = ()
    ) -> None:
        """Refuse from now on.

        hidden: files and folders that may not be opened.
        modules: modules and packages that may not be imported.
        opened: folders in hidden ones that may be opened.
        """
        self._hidden = tuple(str(path.resolve()) for path in hidden)
        self._open = tuple(str(path.resolve()) for path in opened)
        self._modules = tuple(f"{module}." for module in modules)
        sys.addaudithook(self._check)

    def take(self) -> list[str]:
        """The notes since the last call, each once."""
        notes, self._notes = list(dict.fromkeys(self._notes)), []
        return notes[:_MOST_NOTES]

    def _check(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(args[0], str | bytes):
            path = os.path.realpath(os.fsdecode(args[0]))
            if _inside(path, self._hidden) and not _inside(path, self._open):
                self._refuse(f"read {path}")
        elif event == "import" and f"{args[0]}.".startswith(self._modules):
            self._refuse(f"import {args[0]}")

    def _refuse(self, what: str) -> None:
        self._notes.append(what)
        raise PermissionError(f"a method may not {what}: hidden labels come from there")


def _inside(path: str, folders: Iterable[str]) -> bool:
    return any(path == each or path.startswith(each + os.sep) for each in folders)
