"""A folder for shared memory that only the process of the plugins sees.

Semaphores and arrays of `multiprocessing` are files in ``/dev/shm``. There, the files of all
processes of the user would be at hand, and would stay when the process has ended. In a mount name
space of its own the process has another folder in its place, which ends with it.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from pathlib import Path

FOLDER = Path("/dev/shm")
_NEW_MOUNTS, _NEW_USERS = 0x00020000, 0x10000000
_RECURSIVE, _PRIVATE, _NO_PROGRAMS = 1 << 14, 1 << 18, 2 | 4 | 8  # no setuid, devices, programs


def make_private(most: int | None) -> bool:
    """Give this process an empty `FOLDER`; False: the system does not allow it, nothing changed.

    It needs the rights of root, or a user name space, and no other thread.

    most: bytes of all files; None = half of the machine's memory.
    """
    if not FOLDER.is_dir():
        return False
    if os.geteuid() == 0:
        return _mount(most, 0)
    child = os.fork()  # what fails half-way cannot be taken back
    if child == 0:
        os._exit(0 if _mount(most, _NEW_USERS) else 1)
    return os.waitpid(child, 0)[1] == 0 and _mount(most, _NEW_USERS)


def _mount(most: int | None, flags: int) -> bool:
    libc, user, group = ctypes.CDLL(None), os.geteuid(), os.getegid()
    if libc.unshare(_NEW_MOUNTS | flags) != 0:
        return False
    if flags & _NEW_USERS:
        with suppress(OSError):  # the same numbers as outside
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
            Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
        if (os.geteuid(), os.getegid()) != (user, group):
            return False
    private, size = _RECURSIVE | _PRIVATE, "" if most is None else f",size={most}"
    if libc.mount(None, b"/", None, private, None) != 0:
        return False
    options = f"mode=1777{size}".encode()
    return bool(libc.mount(b"tmpfs", bytes(FOLDER), b"tmpfs", _NO_PROGRAMS, options) == 0)
