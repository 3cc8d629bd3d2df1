"""Bits and bytes of records and tuning trials that change: refused by name, or the same content."""

from __future__ import annotations

import random
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

from attacks.command import SMALL, Table, sslbench
from sslbench.engine.errors import UserError
from sslbench.experiment.records.reading import StoreWarning
from sslbench.experiment.records.store import Store

Change = Callable[[bytearray, random.Random], None]
_EVERY = 200  # attacks of which one is also looked at by the command line, which takes a second


def flip(data: bytearray, chance: random.Random) -> None:
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def replace(data: bytearray, chance: random.Random) -> None:
    data[chance.randrange(len(data))] = chance.randrange(256)


def digit(data: bytearray, chance: random.Random) -> None:
    """A digit becomes another one: the file stays JSON."""
    places = [i for i, byte in enumerate(data) if 48 <= byte <= 57]
    data[chance.choice(places)] = 48 + chance.randrange(10)


def letter(data: bytearray, chance: random.Random) -> None:
    """A letter becomes another one: the file stays JSON."""
    places = [i for i, byte in enumerate(data) if 97 <= byte <= 122]
    data[chance.choice(places)] = 97 + chance.randrange(26)


def delete(data: bytearray, chance: random.Random) -> None:
    del data[chance.randrange(len(data))]


def insert(data: bytearray, chance: random.Random) -> None:
    data.insert(chance.randrange(len(data)), chance.randrange(256))


def exchange(data: bytearray, chance: random.Random) -> None:
    """Two bytes change places."""
    first, second = chance.sample(range(len(data)), 2)
    data[first], data[second] = data[second], data[first]


def cut(data: bytearray, chance: random.Random) -> None:
    del data[chance.randrange(len(data)) :]


def double(data: bytearray, chance: random.Random) -> None:
    """A line comes twice: a key of the object, too."""
    lines = bytes(data).splitlines(keepends=True)
    number = chance.randrange(len(lines))
    data[:] = b"".join([*lines[: number + 1], *lines[number:]])


CHANGES: tuple[Change, ...] = (
    flip, replace, digit, letter, delete, insert, exchange, cut, double
)  # fmt: skip


def attack(number: int, seed: int) -> Table:
    """`number` changes, in turn of each kind, of the records and trials of a grid."""
    table, chance = Table(), random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        store = Store(Path(name, "runs"))
        words = [*SMALL, "--tune", "2", "--store", store.folder]
        result, problems = sslbench("run", "--method", "supervised", *words)
        assert result.status == 0, (result, problems)
        (record,) = store.folder.glob("*.json")
        trials = sorted((store.folder / "trials").glob("*.json"))
        for turn in range(number):
            change = CHANGES[turn % len(CHANGES)]
            path = chance.choice(trials) if turn % 10 == 9 else record
            attack_file(store, path, change, chance, table, by_command=turn % _EVERY == 0)
    return table


def attack_file(
    store: Store, path: Path, change: Change, chance: random.Random, table: Table, by_command: bool
) -> None:
    """Change a file, read it, and put it back."""
    whole = path.read_bytes()
    kind = "trial" if path.parent.name == "trials" else "record"
    before = read(store, path)
    data = bytearray(whole)
    change(data, chance)
    path.write_bytes(data)
    try:
        after = read(store, path)
        if isinstance(after, str):
            named = str(path) in after and "\n" not in after
            outcome, problems = "refused by name", [] if named else [f"refused by {after!r}"]
        else:
            outcome = "the same content"
            problems = [] if after == before else ["another content, silently"]
        table.add(f"{kind}: {change.__name__}", outcome, problems)
        if by_command and kind == "record":
            table.add("the same, by sslbench leaderboard", *by_leaderboard(store, path, outcome))
    finally:
        path.write_bytes(whole)


def read(store: Store, path: Path) -> object:
    """The content, or the line that says why there is none."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", StoreWarning)
        try:
            found = (
                store.load_trial(path.stem)
                if path.parent.name == "trials"
                else store.load(path.stem)
            )
        except UserError as error:
            return str(error)
    return str(caught[0].message) if found is None else found


def by_leaderboard(store: Store, path: Path, expected: str) -> tuple[str, list[str]]:
    out = store.folder.parent / "leaderboards"
    result, problems = sslbench("leaderboard", "--store", store.folder, "--out", out)
    refused = str(path) in result.err
    if refused != (expected == "refused by name"):
        problems.append("the command and the reader do not agree")
    return expected, problems
