"""Stores that are no folders, or hold what no run has put there.

`sslbench run` and `sslbench leaderboard` must refuse them in a line with the path, or name the file
and go on; the record of the run must be that of an empty store.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from attacks.command import SMALL, Result, Table, sslbench
from attacks.kills import Results, results


@dataclass
class Place:
    """Where a store is to be: the path, and the record that a run puts into an empty one."""

    store: Path
    record: bytes
    run_id: str

    @property
    def file(self) -> Path:
        """The file of the record."""
        self.store.mkdir(exist_ok=True)
        return self.store / f"{self.run_id}.json"

    def claim(self, age: float = 0.0, **content: object) -> None:
        """A claim on the run; age: seconds since it was renewed."""
        path = self.store / "claims" / f"{self.run_id}.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"host": "elsewhere", "pid": 1, "token": "x", **content}))
        os.utime(path, (time.time() - age,) * 2)

    def edit(self, **changes: object) -> None:
        """The record with other values of some keys."""
        self.file.write_text(json.dumps({**json.loads(self.record), **changes}))

    def extra(self, name: bytes, content: bytes = b"{}") -> None:
        """Another file in the store."""
        self.store.mkdir(exist_ok=True)
        Path(os.fsdecode(os.path.join(os.fsencode(self.store), name))).write_bytes(content)


Attack = Callable[[Place], object]
#: the store itself: the run is refused before it starts
REFUSED: dict[str, Attack] = {
    "the store is a file": lambda p: p.store.write_text("x"),
    "the store is a device": lambda p: p.store.symlink_to("/dev/null"),
    "the store is a dangling link": lambda p: p.store.symlink_to("nowhere"),
    "the store is a link to itself": lambda p: p.store.symlink_to(p.store),
    "the store is a pipe": lambda p: os.mkfifo(p.store),
}
#: a file in the store: it is named, and the run executed
NAMED: dict[str, Attack] = {
    "an empty file": lambda p: p.file.write_bytes(b""),
    "half of the record": lambda p: p.file.write_bytes(p.record[: len(p.record) // 2]),
    "a folder in its place": lambda p: p.file.mkdir(),
    "a folder with files in its place": lambda p: (p.file / "x").mkdir(parents=True),
    "a pipe in its place": lambda p: os.mkfifo(p.file),
    "a link to an endless device": lambda p: p.file.symlink_to("/dev/zero"),
    "a dangling link": lambda p: p.file.symlink_to("nowhere"),
    "a link to itself": lambda p: p.file.symlink_to(p.file),
    "a file of 10 GB": lambda p: (p.file.touch(), os.truncate(p.file, 10**10)),
    "a newer schema": lambda p: p.edit(schema=3),
    "schema 10^400": lambda p: p.edit(schema=10**400),
    "another run": lambda p: p.edit(run_id="0" * 16),
    "not a number": lambda p: p.edit(metrics={"test": {"accuracy": float("nan")}}),
    "infinite": lambda p: p.edit(wall_s=float("inf")),
    "counts of 10^400": lambda p: p.edit(counts={"test": {"n_tokens": [10**400]}}),
    "a negative number": lambda p: p.edit(wall_s=-1),
    "1e999": lambda p: p.file.write_bytes(p.record.replace(b'"wall_s": ', b'"wall_s": 1e999')),
    "lists 100,000 deep": lambda p: p.file.write_bytes(b"[" * 10**5),
    "objects 100,000 deep": lambda p: p.file.write_bytes(b'{"schema": 2, "a":' + b'{"a":' * 10**5),
    "another value first": lambda p: p.file.write_bytes(b'{"status": "ok",' + p.record[1:-3]),
    "invalid UTF-8": lambda p: p.file.write_bytes(p.record.replace(b"supervised", b"\xff\xfe")),
    "UTF-16": lambda p: p.file.write_bytes(p.record.decode().encode("utf-16")),
    "null": lambda p: p.file.write_bytes(b"null"),
}
#: what is beside the record: nothing happens to the run
PASSED: dict[str, Attack] = {
    "a key twice": lambda p: p.file.write_bytes(b'{"wall_s": 5,' + p.record[1:]),
    "the claim of a dead machine": lambda p: p.claim(age=10**6),
    "a claim of the future": lambda p: p.claim(age=-(10**6)),
    "an empty claim": lambda p: (p.claim(age=10**6), rewrite(p, b"", 10**6)),
    "a claim 100,000 deep": lambda p: (p.claim(), rewrite(p, b"[" * 10**5, 10**6)),
    "a folder as claim": lambda p: folder_as_claim(p),
    "claims is a file": lambda p: p.extra(b"claims"),
    "trials is a file": lambda p: p.extra(b"trials"),
    "a name with escapes": lambda p: p.extra(b"\x1b[31m\n.json"),
    "a name that is no UTF-8": lambda p: p.extra(b"\xff\xfe.json"),
    "a hidden record": lambda p: p.extra(b".x.json"),
    "the record under another name": lambda p: p.extra(b"0123456789abcdef.json", p.record),
}


def rewrite(place: Place, content: bytes, age: float) -> None:
    path = place.store / "claims" / f"{place.run_id}.json"
    path.write_bytes(content)
    os.utime(path, (time.time() - age,) * 2)


def folder_as_claim(place: Place) -> None:
    path = place.store / "claims" / f"{place.run_id}.json"
    (path / "x").mkdir(parents=True)
    os.utime(path, (1, 1))


def attack(number: int, seed: int) -> Table:
    """The first `number` attacks; nothing about them is random."""
    table = Table()
    with tempfile.TemporaryDirectory() as name:
        first = Path(name, "first")
        result, problems = run(first)
        assert result.status == 0, (result, problems)
        (path,) = first.glob("*.json")
        expected = results(first)
        attacks = [(row, REFUSED, a) for row, a in REFUSED.items()]
        attacks += [(row, NAMED, a) for row, a in NAMED.items()]
        attacks += [(row, PASSED, a) for row, a in PASSED.items()]
        for turn, (row, kind, prepare) in enumerate(attacks[:number]):
            place = Place(Path(name, f"{turn}", "runs"), path.read_bytes(), path.stem)
            place.store.parent.mkdir()
            prepare(place)
            if kind is REFUSED:
                table.add(row, *refused(place))
            else:
                table.add(row, *executed(place, expected, named=kind is NAMED))
    return table


def run(store: Path) -> tuple[Result, list[str]]:
    words = ["--method", "supervised", "--tune", "1", *SMALL, "--format", "json"]
    return sslbench("run", *words, "--store", store)


def refused(place: Place) -> tuple[str, list[str]]:
    result, problems = run(place.store)
    lines = result.err.splitlines()
    if result.status != 2 or len(lines) != 1 or str(place.store) not in lines[0] or result.out:
        problems.append(f"status {result.status}, {result.err!r}")
    _, more = board(place)
    return "refused in one line", problems + more


def executed(place: Place, expected: Results, named: bool) -> tuple[str, list[str]]:
    before, problems = board(place)
    result, more = run(place.store)
    problems += more
    if result.status != 0:
        problems.append(f"status {result.status}: {result.err!r}")
    actual = results(place.store, expected)
    if actual != expected:
        problems.append("another record")
    if named:
        problems += [
            f"{what} does not name the file"
            for what, text in (("run", result.err), ("leaderboard", before.err))
            if place.run_id not in text
        ]
        return "named, then the right record", problems
    return "the right record", problems


def board(place: Place) -> tuple[Result, list[str]]:
    return sslbench("leaderboard", "--store", place.store, "--out", place.store.parent / "out")
