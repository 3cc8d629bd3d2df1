"""Access to files and network that a process gives up for good, by Linux's Landlock.

Kernel documentation: userspace-api/landlock. The calling thread and all that it starts are
restricted, so that it must be the only thread of the process.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG = 1
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES = 38

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
_READ = _EXECUTE | _READ_FILE
#: number of file rights that each version of the interface knows
_FILE_RIGHTS = (0, 13, 14, 15, 15, 16, 16)
_TCP = 0b11  # bind and connect, from version 4
_SCOPES = 0b11  # abstract sockets and signals of other processes, from version 6


def is_available() -> bool:
    """Whether this system has Landlock."""
    if sys.platform != "linux":
        return False
    return bool(ctypes.CDLL(None).syscall(_CREATE_RULESET, None, 0, _VERSION_FLAG) >= 1)


def restrict(hidden: Iterable[Path], writable: Iterable[Path]) -> bool:
    """Give up TCP, reading of `hidden`, and writing outside of `writable`; False: not available.

    hidden: files or folders. Names and sizes of files stay visible.
    """
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
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
            _allow(libc, rules, path, rights)
        libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
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
        own = rights if path.is_dir() else rights & _OF_FILES
        rule = struct.pack("=Qi", own, descriptor)
        libc.syscall(_ADD_RULE, rules, _PATH_BENEATH, rule, 0)
    finally:
        os.close(descriptor)
