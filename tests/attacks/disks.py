"""Stores that cannot be written from the first run of a grid on, or from the second.

The results must be shown, the records be kept in another folder that is named in a line, and
copying them into the store must bring them back. Parts need Linux and the superuser.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from attacks.command import SMALL, Process, Result, Table, main, sslbench
from attacks.kills import Results, results, variables

SEEDS = ("0", "1", "2")
WORDS = ["--method", "supervised", *SMALL, *(word for s in SEEDS for word in ("--seed", s))]


@dataclass
class Place:
    """A store in a folder of its own, and a cache."""

    folder: Path

    @property
    def store(self) -> Path:
        return self.folder / "disk" / "runs"

    def command(self) -> list[str]:
        return ["run", *WORDS, "--format", "csv", "--store", str(self.store)]


def a_file(place: Place) -> None:
    place.store.rename(place.folder / "away")
    place.store.write_text("")


def a_link(place: Place) -> None:
    place.store.rename(place.folder / "away")
    place.store.symlink_to("nowhere")


def removed_for_good(place: Place) -> None:
    """The folder above it is another file, as where a network folder was mounted."""
    place.store.parent.rename(place.folder / "away")
    place.store.parent.write_text("")


def fill(place: Place) -> None:
    with suppress(OSError), open(place.store.parent / "filler", "wb") as file:
        while True:
            file.write(bytes(4096))
            file.flush()


def read_only(place: Place) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(place.store.parent)], check=True)


Change = Callable[[Place], None]
CHANGES: dict[str, Change] = {
    "the store becomes a file": a_file,
    "the store becomes a dangling link": a_link,
    "the folder above the store is gone": removed_for_good,
}
MOUNTED: dict[str, Change] = {"the disk is full": fill, "the disk is read-only": read_only}


def attack(number: int, seed: int) -> Table:
    """The first `number` attacks; nothing about them is random."""
    table = Table()
    with tempfile.TemporaryDirectory() as name:
        first = Place(Path(name, "first"))
        result, problems = sslbench(*first.command(), variables=variables(first.folder))
        assert result.status == 0, (result, problems)
        expected, shown = results(first.store), result.out
        steps = [(row, change, False) for row, change in CHANGES.items()]
        if os.getuid() == 0:
            steps += [(row, change, True) for row, change in MOUNTED.items()]
        steps = steps[:number]
        for turn, (row, change, is_mounted) in enumerate(steps):
            place = Place(Path(name, str(turn)))
            place.store.parent.mkdir(parents=True)
            with mounted(place.store.parent) if is_mounted else nullcontext():
                problems = attack_grid(place, change, expected, shown)
            table.add(f"during a grid: {row}", "records kept elsewhere, brought back", problems)
        if number > len(steps):
            table.add("no file may have 10,000 bytes", *limited(Place(Path(name, "limited"))))
    return table


@contextmanager
def mounted(folder: Path) -> Iterator[None]:
    """A file system of one megabyte."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def attack_grid(place: Place, change: Change, expected: Results, shown: str) -> list[str]:
    process = Process(place.command(), variables(place.folder))
    while not list(place.store.glob("*.json")) and process.process.poll() is None:
        time.sleep(0.02)
    change(place)
    result = process.wait()
    problems = result.problems()
    if orphans := process.orphans():
        problems.append(f"{orphans} orphans")
    kept = list((place.folder / "cache" / "unsaved").glob("*/*.json"))
    if result.status != 1:
        problems.append(f"status {result.status}")
    if scores(result) != scores(Result(0, shown, "")):
        problems.append("other results on standard output")
    lines = [line for line in result.err.splitlines() if "to bring them back: cp " in line]
    if not kept or not lines or not all(str(p) in lines[0] for p in (kept[0].parent, place.store)):
        problems.append(f"{len(kept)} records kept, {result.err!r}")
    stored = [path for path in (place.folder / "away", place.store) if path.is_dir()]
    whole = place.folder / "whole"
    whole.mkdir()
    for path in [*kept, *(p for folder in stored for p in folder.rglob("*.json"))]:
        if path.parent.name != "claims":
            shutil.copy(path, whole)
    if results(whole) != expected:
        problems.append(f"{len(list(whole.iterdir()))} records, others than without the attack")
    again, more = sslbench("leaderboard", "--store", whole, "--out", place.folder / "out")
    return problems + more + ([again.err] if again.status else [])


def scores(result: Result) -> list[list[str]]:
    """The rows of a table without times and memory."""
    lines = [line.split(",") for line in result.out.splitlines()]
    times = [i for i, name in enumerate(lines[0]) if name in ("wall_s", "cpu_s", "peak_rss_mb")]
    return [[value for i, value in enumerate(line) if i not in times] for line in lines]


def limited(place: Place) -> tuple[str, list[str]]:
    """The program is refused a file of the size of a record, and says so before any run."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))

    result, problems = sslbench(
        *place.command(), variables=variables(place.folder), preexec_fn=limit
    )
    if result.status != 2 or str(place.store) not in result.err or result.out:
        problems.append(f"status {result.status}: {result.err!r}")
    return "refused in one line", problems


if __name__ == "__main__":
    main(attack, len(CHANGES) + len(MOUNTED) + 1)
