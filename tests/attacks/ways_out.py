"""Ways out of the process of the plugins: all of `support.ways_out`, in one run.

Each must be refused, and a file can be made in three folders alone. Afterwards the home folder, the
cache, the folder for shared memory, the objects of System V and a folder of the user must be as
before.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any
from unittest import mock

from attacks.command import Table
from attacks.methods import install
from sslbench.engine.files.folders import cache_folder
from sslbench.experiment.execute.pool import run_all
from sslbench.experiment.planning.plan import plan
from sslbench.experiment.records.store import Store
from sslbench.experiment.request.request import RunRequest
from sslbench.isolation.start import isolated
from support.ways_out import CANARY, WAYS

SHARED = Path("/dev/shm")


def digest(folder: Path, leave_out: str = "-", names: str = "*") -> str:
    """Of all names, rights, times and contents below a folder. leave_out: how paths begin."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob(names)):
        if str(path).startswith(leave_out):
            continue
        state = path.lstat()
        found.update(f"{path} {state.st_mode} {state.st_uid}".encode())
        if path.is_file() and not path.is_symlink():
            found.update(f"{state.st_mtime_ns}".encode() + path.read_bytes())
    return found.hexdigest()


def canary() -> str:
    """What a file in the folder for shared memory has; other processes have files there, too."""
    return (SHARED / CANARY).read_text()


def objects() -> str:
    """Shared memory, queues and semaphores of System V with the key of the attack."""
    lines = [table.read_text().splitlines() for table in Path("/proc/sysvipc").glob("*")]
    return str([line for line in chain(*lines) if line.split()[:1] == ["4711"]])


@contextmanager
def place(folder: Path) -> Iterator[dict[str, str]]:
    """What is attacked; the variables that name it."""
    home, outside, cache = folder / "home", folder / "outside", folder / "cache"
    for each in (home / ".cache" / "numba", outside, cache / "plugins" / "sslbench"):
        each.mkdir(parents=True)
    for name in ("kernels", "sha256", "neighbors"):
        (cache / name).mkdir()
    (cache / "kernels" / "code.nbc").write_bytes(b"machine code")
    (outside / "mine").write_text("of the user")
    file = SHARED / CANARY
    file.write_text("of another process")
    with ExitStack() as stack:
        stack.callback(file.unlink)
        unix = stack.enter_context(socket.socket(socket.AF_UNIX))
        unix.bind(str(outside / "socket"))
        unix.listen()
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        yield {
            "HOME": str(home),
            "SSLBENCH_CACHE": str(cache),
            "ATTACKED_CACHE": str(cache),
            "ATTACKED_FOLDER": str(outside),
            "ATTACKED_PORT": str(server.getsockname()[1]),
            "NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR") or str(cache_folder()),
        }


def trace_of_the_run(variables: Mapping[str, str], store: Store) -> dict[str, Any]:
    """What came of each way, and the folders that can be written, in a run."""
    with mock.patch.dict(os.environ, variables):
        request = RunRequest(
            method=["escaping"], dataset=["synth"], params=("synth.test=5",), labeled=5, threads=1
        )
        tasks = plan(request, store=store, notice=lambda text: None)
        (record,) = run_all(tasks, isolated)
    if record.status != "ok":
        raise RuntimeError(f"{record.error}: {record.traceback}")
    return record.trace


def names(folders: list[str], variables: Mapping[str, str]) -> list[str]:
    """The folders as they are called in docs/architecture.md."""
    called = {
        rf"{re.escape(variables['ATTACKED_CACHE'])}/plugins/hostile-\w+": "derived data of its own",
        r".*/sslbench-run-\w+/method": "temporary folder of its own",
        str(SHARED): "shared memory of its own",
    }
    return sorted(
        next((name for path, name in called.items() if re.fullmatch(path, each)), each)
        for each in folders
    )


def attack(number: int, seed: int) -> Table:
    """All ways; nothing about them is random."""
    table = Table()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        install(folder / "site", "support.ways_out")
        store = Store(folder / "runs")
        store.folder.mkdir()
        (store.folder / "gold").write_text("hidden")
        with place(folder) as variables:
            os.environ["ATTACKED_STORE"] = str(store.folder)
            own = str(folder / "cache" / "plugins" / "hostile-")
            parts = {
                "home": lambda: digest(folder / "home"),
                "cache": lambda: digest(folder / "cache", own),
                "other folders": lambda: digest(folder / "outside"),
                "shared memory": lambda: digest(SHARED, names="*planted*") + canary(),
                "System V": objects,
            }
            before = {part: look() for part, look in parts.items()}
            trace = trace_of_the_run(variables, store)
            for part, look in parts.items():
                table.add(f"({part})", "as before", [] if look() == before[part] else ["changed"])
        for way in WAYS:
            found = trace["ways"][way]
            table.add(way, found, [] if found.startswith("refused") else [found])
        for each in names(trace["writable"], variables):
            table.add("(a file can be made in)", each, [] if each.endswith("its own") else [each])
    return table
