"""Homes and caches that cannot be written, are damaged, or can be written by others; full disks.

A run must give the records that it gives otherwise, and say in one line what it cannot keep. Parts
need Linux and the superuser, who runs the command as another user or in a small file system.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from attacks.command import SMALL, Result, Table, main, sslbench
from attacks.kills import results
from sslbench.engine.files.folders import cache_folder

NOBODY = 12345  # a user who has no name
METHODS = ["--method", "supervised", "--method", "graph_propagation"]
WORDS = [*METHODS, *SMALL, "--format", "json"]


@dataclass
class Place:
    """Folders of one attack: a warm cache to be spoiled, and a store.

    files: of machine code and of graphs, in a fixed order.
    """

    folder: Path
    chance: random.Random

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    @property
    def store(self) -> Path:
        return self.folder / "runs"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def files(self, pattern: str) -> list[Path]:
        return sorted(self.cache.rglob(pattern))

    def each(self, pattern: str, change: Callable[[Path], object]) -> None:
        """Change all files of the cache whose names match."""
        files = self.files(pattern)
        assert files, pattern
        for path in files:
            change(path)

    def flip(self, path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[self.chance.randrange(len(data))] ^= 1 << self.chance.randrange(8)
        path.write_bytes(data)

    def exchange(self, pattern: str) -> None:
        """Each file gets the content of the next one."""
        files = self.files(pattern)
        contents = [path.read_bytes() for path in files]
        for path, content in zip(files, [*contents[1:], contents[0]], strict=True):
            path.write_bytes(content)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def folder_instead(path: Path) -> None:
    path.unlink()
    (path / "x").mkdir(parents=True)


def some(change: Callable[[Path], object]) -> Callable[[Path], object]:
    """Change one file of 16: each is compiled again, which takes seconds."""
    return lambda path: change(path) if hash_of(path) % 16 == 0 else None


def hash_of(path: Path) -> int:
    return sum(path.name.encode())


CODE: dict[str, Callable[[Place], object]] = {
    "machine code: a bit changed": lambda p: p.each("*.nbc", some(p.flip)),
    "machine code: cut": lambda p: p.each("*.nbc", some(cut)),
    "machine code: empty": lambda p: p.each("*.nbc", some(lambda path: path.write_bytes(b""))),
    "machine code: folders": lambda p: p.each("*.nbc", some(folder_instead)),
    "machine code: that of other functions": lambda p: p.exchange("s*.nbc"),
}
GRAPHS: dict[str, Callable[[Place], object]] = {
    "graph: a bit changed": lambda p: p.each("*.npz", p.flip),
    "graph: cut": lambda p: p.each("*.npz", cut),
    "graph: folders": lambda p: p.each("*.npz", folder_instead),
    "graph: that of others": lambda p: p.exchange("*.npz"),
}
TOLD: dict[str, Callable[[Place], object]] = {
    "the cache is a file": lambda p: (shutil.rmtree(p.cache), p.cache.write_text("")),
    "the cache is a dangling link": lambda p: (shutil.rmtree(p.cache), p.cache.symlink_to("x")),
    "others can write to the cache": lambda p: p.cache.chmod(0o777),
}


def attack(number: int, seed: int) -> Table:
    """The first `number` attacks."""
    table, chance = Table(), random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        warm = Place(Path(name, "warm"), chance)
        compiled = cache_folder() / "kernels"
        if compiled.is_dir():  # compiling all takes a minute
            shutil.copytree(compiled, warm.cache / "kernels")
        result, problems = run(warm)
        assert result.status == 0, (result, problems)
        expected = results(warm.store)
        steps = [(row, spoiled, change, False) for row, change in {**CODE, **GRAPHS}.items()]
        steps += [(row, spoiled, change, True) for row, change in TOLD.items()]
        if os.getuid() == 0:
            steps += [(row, step, step, True) for row, step in BY_ROOT.items()]
        for turn, (row, step, change, told) in enumerate(steps[:number]):
            place = Place(Path(name, str(turn)), chance)
            place.folder.mkdir()
            place.folder.chmod(0o1777)
            shutil.copytree(warm.cache, place.cache)
            if step is spoiled:
                change(place)
                result, problems = run(place, temporary(place))
            else:
                result, problems = step(place)
            if result.status != 0 or results(place.store) != expected:
                problems.append(f"status {result.status}, other records: {result.err!r}")
            lines = [line for line in result.err.splitlines() if "SSLBENCH_CACHE" in line]
            if len(lines) != told:
                problems.append(f"{len(lines)} lines on the cache, not {int(told)}: {result.err!r}")
            table.add(row, "the same records" + (", one line says so" if told else ""), problems)
    return table


def spoiled(place: Place) -> None:
    """Marks attacks that change the cache before the run."""


def temporary(place: Place) -> dict[str, str | None]:
    """A temporary folder whose own cache is warm, since compiling all takes a minute."""
    folder = place.folder / "tmp" / f"sslbench-{os.getuid()}"
    shutil.copytree(place.folder.parent / "warm" / "cache" / "kernels", folder / "kernels")
    folder.chmod(0o700)
    return {"TMPDIR": str(folder.parent)}


def run(
    place: Place, variables: Mapping[str, str | None] | None = None, **more: object
) -> tuple[Result, list[str]]:
    """A grid; variables: None as value = not set."""
    given = {"SSLBENCH_CACHE": str(place.cache), "NUMBA_CACHE_DIR": None, **(variables or {})}
    return sslbench("run", *WORDS, "--store", place.store, variables=given, **more)


def without_rights(place: Place, **variables: str | None) -> tuple[Result, list[str]]:
    """Run without the rights of the superuser, who may write to the folders of all users."""
    place.store.mkdir()
    for path in (place.home, place.cache):
        path.mkdir(exist_ok=True)
        os.chown(path, NOBODY, NOBODY)
    given = {**temporary(place), "SSLBENCH_CACHE": None, "XDG_CACHE_HOME": None, **variables}
    no = ("--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all")
    return run(place, given, prefix=("setpriv", *no, "--"))


BY_ROOT: dict[str, Callable[[Place], tuple[Result, list[str]]]] = {
    "a home that cannot be written": lambda p: without_rights(p, HOME=str(p.home)),
    "a home that is not there": lambda p: without_rights(p, HOME=str(p.home / "x")),
    "a cache of another user": lambda p: without_rights(p, SSLBENCH_CACHE=str(p.cache)),
}

if __name__ == "__main__":
    main(attack, len(CODE) + len(GRAPHS) + len(TOLD) + len(BY_ROOT))
