"""``kill -9`` while ``sslbench train --save M`` runs: M is absent, the old file, or whole."""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path

import numpy as np

from attacks.command import SMALL, Process, Table, sslbench
from sslbench.engine.crf import read_model

_AFTER_TRAINING = 0.7  # of the time of an undisturbed command


def attack(number: int, seed: int) -> Table:
    """`number` kills, in turn without a file of that name and over the model of another seed."""
    table, chance = Table(), random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        began = time.monotonic()
        new, old = trained(folder / "new", 0), trained(folder / "old", 1)
        seconds = (time.monotonic() - began) / 2
        for turn in range(number):
            target = folder / f"{turn}" / "model"
            target.parent.mkdir()
            if turn % 2:
                target.write_bytes(old.read_bytes())
            # Half of the kills come at the end, where the file is written.
            first = _AFTER_TRAINING if turn % 4 < 2 else 0.0
            problems = kill(target, chance.uniform(first, 1.1) * seconds)
            row = "kill -9 of train --save, over " + ("an old file" if turn % 2 else "nothing")
            outcome = state(target, new, old)
            if outcome == "damaged":
                problems.append("M is neither absent nor the old one nor whole")
            table.add(row, f"M is {outcome}", problems)
            left = [path.name for path in target.parent.iterdir() if path != target]
            if left or turn < 2:  # what a killed command has left, the next one removes
                trained(target, 0)
                left = [path.name for path in target.parent.iterdir() if path != target]
                problems = [f"{name} left" for name in left]
                table.add("the same command again", "M is whole, nothing beside it", problems)
    return table


def command(path: Path, seed: int) -> list[str]:
    words = ["--method", "supervised", *SMALL, "--seed", str(seed), "--save", str(path)]
    return ["train", *words]


def trained(path: Path, seed: int) -> Path:
    result, problems = sslbench(*command(path, seed))
    assert result.status == 0, (result, problems)
    return path


def kill(target: Path, after: float) -> list[str]:
    process = Process(command(target, 0))
    time.sleep(after)
    process.process.kill()
    process.wait()
    orphans = process.orphans()
    return [f"{orphans} orphans"] if orphans else []


def state(path: Path, new: Path, old: Path) -> str:
    if not path.exists():
        return "absent"
    for name, other in (("whole", new), ("the old one", old)):
        if same(path, other):
            return name
    return "damaged"


def same(path: Path, other: Path) -> bool:
    try:
        (kind, arrays, metadata), right = read_model(path), read_model(other)
    except Exception:
        return False
    return (
        (kind, metadata) == (right[0], right[2])
        and arrays.keys() == right[1].keys()
        and all(np.array_equal(arrays[name], right[1][name]) for name in arrays)
    )
