"""Hostile methods, each in a run: what becomes of it, and whether a run after it is as before.

A cheat succeeds if its predictions of test are all right, or if what it tried is not refused.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import psutil

from attacks.command import Table
from sslbench.experiment.execute.pool import run_all
from sslbench.experiment.planning.plan import plan
from sslbench.experiment.planning.task import RunTask
from sslbench.experiment.records.record import RunRecord
from sslbench.experiment.records.store import Store
from sslbench.experiment.request.request import RunRequest
from sslbench.isolation.start import isolated
from sslbench.plugins import registry
from support.cheats import CHEATS
from support.hostile_methods import BEHAVIORS, MARK

TIMEOUT = 20.0
MEMORY = 1200 * 2**20
_FROM_FILES = [name for name in CHEATS if name.startswith("reads_") and "parents" not in name]
#: end well: what they do is allowed, or has no effect
_HARMLESS = {
    "alarm", "breaks_builtins", "changes_folder", "closes_output", "deletes_environment",
    "deletes_path", "fills_folder", "floods_lines", "floods_stderr", "floods_stdout",
    "labels_many", "long_trace", "no_recursion", "no_stdout", "objects", "prints_at_exit",
    "reads_stdin", "session", "terminated", "threads", "traces", "writes_garbage", "writes_frames",
    "writes_endless_frame", "replaces_the_scorer", "edits_labels", "opens_files", "endless_trace",
    "collects_garbage",
}  # fmt: skip


def install(folder: Path, module: str = "support.hostile_methods") -> None:
    """Make a module with hostile methods a plugin of this process and of its children."""
    info = folder / "hostile-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hostile\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[sslbench]\nhostile = {module}\n")
    here = str(Path(__file__).parents[1])
    paths = [str(folder), here, *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    sys.path.insert(0, str(folder))
    registry.cache_clear()


def make_data(folder: Path) -> None:
    """Files of a user: the test labels cannot be guessed from the words."""
    folder.mkdir()
    for split, number in (("train", 30), ("test", 20)):
        lines = [f"w{i % 7} x {'ABC'[i * i % 11 % 3]}\n" for i in range(5 * number)]
        text = "".join(line + "\n" * (at % 5 == 4) for at, line in enumerate(lines))
        (folder / f"{split}.txt").write_text(text)


def tasks(names: Sequence[str], store: Path, data: Path) -> list[RunTask]:
    """One run by behavior; "" is the method that does no harm."""
    made = []
    for name in names:
        common = {"method": ["hostile"], "labeled": 10, "threads": 1}
        own = {"dataset": ["synth"], "params": (f"how={name}", "synth.test=50")}
        if name in _FROM_FILES:
            own = {
                "data": data,
                "columns": ("word", "pos", "label"),
                "params": (f"how={name}",),
            }
        made += plan(RunRequest(**common, **own), store=Store(store), notice=lambda text: None)  # type: ignore[arg-type]
    return made


def left_over() -> list[psutil.Process]:
    """Processes that hostile methods have started."""
    found = psutil.process_iter(["cmdline"])
    return [process for process in found if MARK in (process.info["cmdline"] or [])]


def problems(name: str, record: RunRecord) -> Iterator[str]:
    """What is wrong with the record of a behavior."""
    if record.status == "ok" and name not in _HARMLESS:
        yield "nothing was noticed"
    if record.status == "ok" and record.score == 1.0:
        yield "the cheat succeeded"
    if record.status != "ok" and not record.error:
        yield "no message"
    if record.error and (len(record.error) > 3000 or not record.error.isprintable()):
        yield "a message that is too long or not one line"
    if len(msgspec.json.encode(record)) > 10**7:
        yield "a record of over 10 MB"


def attack(number: int, seed: int) -> Table:
    """The first `number` behaviors; nothing about them is random."""
    return behave([*BEHAVIORS, *CHEATS][:number])


def behave(names: Sequence[str]) -> Table:
    """What becomes of each behavior, of a run after all of them, and of the store."""
    table = Table()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = Store(folder / "runs")
        os.environ["ATTACKED_STORE"] = str(store.folder)
        os.environ["ATTACKED_DATA"] = str(folder / "data")
        install(folder / "site")
        make_data(folder / "data")
        store.folder.mkdir()
        harmless, *planned = tasks(["", *names], store.folder, folder / "data")
        (before,) = run_all([harmless], isolated)
        store.save(before)
        stored = store.path(before.run_id).read_bytes()
        records = run_all(planned, isolated, jobs=2, timeout=TIMEOUT, memory=MEMORY)
        by_id = {record.run_id: record for record in records}
        (after,) = run_all([harmless], isolated)
        for task, behavior in zip(planned, names, strict=True):
            record = by_id[task.spec.run_id]
            message = (record.error or "; ".join(record.audit.get("violations", [])))[:90]
            outcome = f"{record.status} {message}".replace("|", "\\|")
            table.add(behavior, outcome, list(problems(behavior, record)))
        same = before.predictions_sha256 == after.predictions_sha256
        table.add("(a run afterwards)", "the same", [] if same else ["it differs"])
        same = [path.read_bytes() for path in store.folder.glob("*.json")] == [stored]
        table.add("(the store)", "the same", [] if same else ["it was changed"])
    left = left_over()
    table.add("(processes)", "none is left", [f"{len(left)} are left"] if left else [])
    for process in left:
        process.kill()
    return table
