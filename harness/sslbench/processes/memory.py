"""The memory that processes use: resident pages, and files of shared memory."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil  # 20 ms, which most commands do not need

_KILO = 1024


def used_memory(processes: Iterable[psutil.Process], most: int | None = None) -> int:
    """Return bytes; processes that have ended use none.

    A page of several processes counts for each, and one of a file of shared memory again for the
    file. If that gives more than `most`, each page is counted once, which takes longer.
    """
    import psutil

    running, resident = [], 0
    for process in processes:
        with suppress(psutil.Error):
            resident += process.memory_info().rss
            running.append(process.pid)
    files = _private_files(running)
    if most is None or resident + files <= most:
        return resident + files
    shares = [_share(pid) for pid in running]
    mapped = sum(shared for _, shared in shares)
    return sum(whole for whole, _ in shares) + max(0, files - mapped)


def _private_files(pids: Iterable[int]) -> int:
    """Bytes of files of shared memory that only these processes see: in mounts of their own."""
    used: dict[int, int] = {}
    ours = Path("/proc/self/ns/mnt")
    for pid in pids:
        with suppress(OSError):
            mounts = os.stat(f"/proc/{pid}/ns/mnt").st_ino
            if mounts != ours.stat().st_ino and mounts not in used:
                state = os.statvfs(f"/proc/{pid}/root/dev/shm")
                used[mounts] = (state.f_blocks - state.f_bfree) * state.f_frsize
    return sum(used.values())


def _share(pid: int) -> tuple[int, int]:
    """Bytes of a process, pages of n processes counting 1/n; those of shared memory alone."""
    fields = {"Pss:": 0, "Pss_Shmem:": 0}
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            words = line.split()
            if words[0] in fields:
                fields[words[0]] = int(words[1]) * _KILO
    return fields["Pss:"], fields["Pss_Shmem:"]


def group_limits(root: Path = Path("/")) -> list[int]:
    """Return the memory limits, in bytes, of the control groups that this process is in.

    A limit of a group binds all groups inside of it, so those above are read, too. Both versions of
    control groups count. root: where the folders ``proc`` and ``sys`` are.
    """
    limits: list[int] = []
    text = ""
    with suppress(OSError):
        text = (root / "proc/self/cgroup").read_text()
    for line in text.splitlines():
        controllers, _, group = line.partition(":")[2].partition(":")
        name, folder = "memory.max", root / "sys/fs/cgroup"
        if controllers:  # version 1
            if "memory" not in controllers.split(","):
                continue
            name, folder = "memory.limit_in_bytes", folder / "memory"
        inner = Path(group.lstrip("/"))
        for each in (inner, *inner.parents):
            with suppress(OSError, ValueError):  # ValueError: the word "max"
                limits.append(int((folder / each / name).read_text()))
    return limits
