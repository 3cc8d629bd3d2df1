"""``kill -9`` while records are packed, in a store (`pack`) or into a bundle (`submit`).

A process is forked, as the operations take less time than a command takes to start. Afterwards the
store must have every record once more, and the bundle must be absent, the old one or the new one;
the same operation, left alone, must then remove what the killed one has left.
"""

from __future__ import annotations

import multiprocessing
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from attacks.command import Table
from attacks.faults import RECORDS, filled, missing
from sslbench.experiment.records.archive import pack
from sslbench.experiment.records.bundle import Manifest, write_bundle
from sslbench.experiment.records.store import Store

_MANIFEST = Manifest(suite="toy", methods=["better"], datasets=[], sslbench="1", plugins={})
_BUNDLE = "x.bundle"


def attack(number: int, seed: int) -> Table:
    """`number` kills, in turn of packing a store and of writing a bundle."""
    table, chance = Table(), random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        for turn in range(number):
            folder = Path(name, str(turn))
            folder.mkdir()
            (attack_store, attack_bundle)[turn % 2](folder, chance, table)
    return table


def attack_store(folder: Path, chance: random.Random, table: Table) -> None:
    """Kill `pack`; then all records are there, and a second `pack` leaves segments alone."""
    filled(folder)
    table.add(f"kill -9 of pack {kill(pack_all, folder, chance)}", "all records", missing(folder))
    pack_all(folder)
    left = [path.name for path in folder.iterdir() if path.suffix in (".json", ".tmp")]
    table.add(
        "pack again", "all records, packed", [f"{each} left" for each in left] + missing(folder)
    )


def pack_all(folder: Path) -> None:
    pack(Store(folder))


def attack_bundle(folder: Path, chance: random.Random, table: Table) -> None:
    """Kill `write_bundle` over nothing or over another bundle; then write the bundle alone."""
    path, is_first = folder / _BUNDLE, chance.random() < 0.5
    write_new(folder)
    new = path.read_bytes()
    path.unlink()
    if not is_first:
        write_bundle(path, _MANIFEST, RECORDS[:3])
    before = path.read_bytes() if path.exists() else None
    when = kill(write_new, folder, chance)
    after = path.read_bytes() if path.exists() else None
    outcomes = {before: "the old one" if before else "absent", new: "the new one"}
    outcome = outcomes.get(after, "")
    over = "nothing" if is_first else "an old bundle"
    row = f"kill -9 of submit over {over} {when}"
    table.add(row, f"the bundle is {outcome}", [] if outcome else ["a damaged bundle"])
    write_new(folder)
    problems = [f"{each.name} left" for each in folder.iterdir() if each != path]
    problems += [] if path.read_bytes() == new else ["another bundle"]
    table.add("submit again", "the new bundle, nothing beside it", problems)


def write_new(folder: Path) -> None:
    write_bundle(folder / _BUNDLE, _MANIFEST, RECORDS)


def kill(act: Callable[[Path], None], folder: Path, chance: random.Random) -> str:
    """Kill a process that does this at a random moment; whether it was still at work."""
    moment = chance.uniform(0.0, 1.2) * seconds_of(act, folder)
    process = multiprocessing.get_context("fork").Process(target=act, args=(folder,))
    process.start()
    process.join(moment)
    process.kill()
    process.join()
    return "after its end" if process.exitcode == 0 else "at work"


def seconds_of(act: Callable[[Path], None], folder: Path) -> float:
    """How long it takes in a process of its own, in another folder."""
    with tempfile.TemporaryDirectory() as name:
        filled(Path(name))
        began = time.monotonic()
        process = multiprocessing.get_context("fork").Process(target=act, args=(Path(name),))
        process.start()
        process.join()
        return time.monotonic() - began
