"""The user's folders: where corpora lie and where derived files are kept.

Imports nothing heavy.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import stat
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

from sslbench.engine.errors import UserError

HOME_VARIABLE = "SSLBENCH_DATA"
CACHE_VARIABLE = "SSLBENCH_CACHE"
_UNMAPPED = 65534
_ALL_USERS = ["0", "0", "4294967295"]
_TOLD_VARIABLE = "SSLBENCH_TOLD"  # words, for child processes: what was said is not said again


def data_folder(given: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of upstream files: `given`, ``$SSLBENCH_DATA`` or the user cache folder."""
    return _folder(given, HOME_VARIABLE, "")


def cache_folder(given: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of derived files: `given`, ``$SSLBENCH_CACHE`` or the user cache's."""
    return _folder(given, CACHE_VARIABLE, "derived")


def _folder(given: str | os.PathLike[str] | None, variable: str, below: str) -> Path:
    chosen = given or os.environ.get(variable)
    if chosen:
        return Path(os.path.expanduser(chosen))
    from platformdirs import user_cache_path

    folder = Path()
    with suppress(RuntimeError):  # no home; earlier versions return "~/.cache"
        folder = user_cache_path("sslbench", appauthor=False)
    if not folder.is_absolute():
        folder = temporary_folder()
        tell_once(f"no home folder; files are kept in {folder} ({variable} names another folder)")
    return folder / below


@cache
def temporary_folder() -> Path:
    """Return a folder of this user alone below the system's temporary one.

    It is the same for all processes of the user, or, where somebody else has made the one of that
    name, of this process. OSError if there is no temporary folder that can be written.
    """
    user = os.getuid() if hasattr(os, "getuid") else "user"
    folder = Path(tempfile.gettempdir(), f"sslbench-{user}")
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        if not folder.is_symlink() and others_can_write(folder) is None:
            return folder
    own = tempfile.mkdtemp(prefix="sslbench-")
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    return Path(own)


def tell_once(text: str, about: str = "folders") -> None:
    """Write a line to standard error, unless this process or its parent has written one about it.

    about: a word.
    """
    told = os.environ.get(_TOLD_VARIABLE, "").split()
    if about not in told:
        os.environ[_TOLD_VARIABLE] = " ".join([*told, about])
        print(f"sslbench: {text}", file=sys.stderr, flush=True)


def check_name(path: Path) -> None:
    """UserError for a name that a record cannot hold."""
    if os.fsencode(path).decode(errors="ignore") != os.fspath(path):
        raise UserError("the name is not UTF-8", file=path, hint="rename the file or folder")


def others_can_write(folder: Path) -> Path | None:
    """The first of a folder and those above it that another user can change; None if there is none.

    A folder with the sticky bit, such as ``/tmp``, is not changed by others, and a group that has
    the user's name is the user's own. On systems without user numbers: None.
    """
    if not hasattr(os, "getuid"):
        return None
    whole, real = folder.absolute(), folder.resolve()
    for each in dict.fromkeys([whole, real, *whole.parents, *real.parents]):
        status = each.stat()
        mode, above = status.st_mode, each not in (whole, real)
        if status.st_uid not in (os.getuid(), 0) and not (above and _is_unmapped(status.st_uid)):
            return each
        group = mode & stat.S_IWGRP and not _is_own_group(status.st_gid)
        if (group or mode & stat.S_IWOTH) and not (above and mode & stat.S_ISVTX):
            return each
    return None


def _is_unmapped(user: int) -> bool:
    """Whether this stands for all users outside of the user name space that the process is in."""
    with suppress(OSError):
        return user == _UNMAPPED and Path("/proc/self/uid_map").read_text().split() != _ALL_USERS
    return False


def _is_own_group(group: int) -> bool:
    import grp
    import pwd

    with suppress(KeyError):
        return grp.getgrgid(group).gr_name == pwd.getpwuid(os.getuid()).pw_name
    return False


def remove_folders(parent: Path, names: re.Pattern[str], keep: int) -> None:
    """Remove the folders in a folder that have such names, but the `keep` that changed last.

    Nothing is removed through a link: what is in another place stays. On systems where that cannot
    be made sure of, nothing is removed.
    """
    if not shutil.rmtree.avoids_symlink_attacks:
        return
    with suppress(OSError):
        handle = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            with os.scandir(handle) as entries:
                found = [
                    (entry.stat(follow_symlinks=False).st_mtime, entry.name)
                    for entry in entries
                    if names.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
                ]
            for _, name in sorted(found)[: max(0, len(found) - keep)]:
                shutil.rmtree(name, ignore_errors=True, dir_fd=handle)
        finally:
            os.close(handle)
