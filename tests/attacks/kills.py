"""``kill -9`` at random moments of grids.

After each kill, every record in the store must be whole, and no process may be left. After several
kills the same command runs to its end: the store must then hold the records of a grid that was
never killed, and no other file. No run that had finished is run again.
"""

from __future__ import annotations

import json
import random
import shutil
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TypeAlias

import psutil

from attacks.command import SMALL, Process, Table, sslbench
from sslbench.engine.files.folders import cache_folder
from sslbench.experiment.records.reading import decode

GRIDS = {
    "plain": "--method supervised --method self_training --set self_training.rounds=1",
    "with tuning": "--method supervised --method self_training --tune 2",
    "with a graph": "--method graph_propagation --method graph_self_training",
    "two processes": "--method supervised --method self_training --set self_training.rounds=1",
}
TARGETS = ("the command", "a child", "the process group")
KERNELS = Path("cache", "plugins", "sslbench", "kernels")
PER_STORE = 6  # kills before the grid is run to its end

Results: TypeAlias = dict[str, dict[str, object]]
"""What must be the same, by run id."""


@dataclass
class Grid:
    """A command, how long it takes, and what its store holds at the end.

    kernels: machine code that its plugins have compiled, which other stores get.
    """

    name: str
    arguments: list[str]
    seconds: float
    results: Results
    kernels: Path


def attack(number: int, seed: int) -> Table:
    """`number` kills, shared out over the grids and what is killed."""
    table, chance = Table(), random.Random(seed)
    combinations = list(product(GRIDS, TARGETS))
    share, more = divmod(number, len(combinations))
    with tempfile.TemporaryDirectory() as folder:
        for name in GRIDS:
            targets = [target for grid, target in combinations if grid == name] * share
            targets += [target for grid, target in combinations[:more] if grid == name]
            grid = undisturbed(name, Path(folder, name)) if targets else None
            while grid and targets:
                with tempfile.TemporaryDirectory(dir=folder) as below:
                    attack_store(grid, targets[:PER_STORE], Path(below), chance, table)
                del targets[:PER_STORE]
    return table


def undisturbed(name: str, folder: Path) -> Grid:
    """The grid, left alone: the first time it compiles kernels, the second time is taken."""
    words = [*GRIDS[name].split(), *SMALL, "--jobs", "2"]
    for place in (folder / "first", folder / "second"):
        if place.name == "second":
            give_kernels(folder / "first" / KERNELS, place)
        began = time.monotonic()
        result, problems = sslbench(*command(words, place), variables=variables(place))
        assert result.status == 0, (result, problems)
    seconds = time.monotonic() - began
    return Grid(name, words, seconds, results(place / "runs"), folder / "first" / KERNELS)


def give_kernels(kernels: Path, folder: Path) -> None:
    """Put machine code where the plugins of a grid in this folder look for it."""
    if kernels.is_dir():  # else it was in the cache of all processes
        shutil.copytree(kernels, folder / KERNELS)


def command(words: list[str], folder: Path) -> list[str]:
    return ["run", *words, "--retry", "--store", str(folder / "runs"), "--format", "json"]


def variables(folder: Path) -> dict[str, str]:
    """A cache for graphs of its own; machine code is that of all processes."""
    return {"SSLBENCH_CACHE": str(folder / "cache"), "NUMBA_CACHE_DIR": str(cache_folder())}


def attack_store(
    grid: Grid, targets: list[str], folder: Path, chance: random.Random, table: Table
) -> None:
    """Kill each of the targets at a random moment of the grid, then run it to its end."""
    give_kernels(grid.kernels, folder)
    done = 0
    finished: dict[Path, int] = {}
    while done < len(targets):
        whole = sum(record["status"] == "ok" for record in results(folder / "runs").values())
        if whole == len(grid.results):  # nothing is left to be killed
            check_end(grid, folder, table)
            finished.clear()
            continue
        moment = chance.uniform(0.0, grid.seconds * (1 - whole / len(grid.results)))
        target = targets[done]
        problems, was_killed = kill(grid, target, folder, moment, chance)
        problems += damaged(folder / "runs") + again(folder / "runs", finished)
        if was_killed or problems:
            done += 1
            row = f"kill -9 of {target}, grid {grid.name}"
            table.add(row, "records whole, no process left", problems)
    check_end(grid, folder, table)


def kill(
    grid: Grid, target: str, folder: Path, moment: float, chance: random.Random
) -> tuple[list[str], bool]:
    """Start the grid and kill a part of it; the problems, and whether there was something left."""
    number = 2 if grid.name == "two processes" else 1
    started = [Process(command(grid.arguments, folder), variables(folder)) for _ in range(number)]
    time.sleep(moment)
    victim = chance.choice(started)
    was_killed = victim.process.poll() is None
    if target == "a child":
        while not (children := victim.children()) and victim.process.poll() is None:
            time.sleep(0.01)
        was_killed = bool(children)
        with suppress(psutil.Error):
            if children:
                chance.choice(children).kill()
    elif target == "the command":
        victim.process.kill()
    else:
        victim.kill_group()
    problems = []
    for process in started:
        result = process.wait()
        if process is not victim or target == "a child":
            problems += result.problems()
    orphans = sum(process.orphans() for process in started)
    return problems + ([f"{orphans} orphans"] if orphans else []), was_killed


def check_end(grid: Grid, folder: Path, table: Table) -> None:
    """Run the grid to its end, compare its store with the undisturbed one, and empty it."""
    result, problems = sslbench(*command(grid.arguments, folder), variables=variables(folder))
    store = folder / "runs"
    if result.status != 0:
        problems.append(f"status {result.status} at the end")
    problems += damaged(store)
    if not problems and results(store) != grid.results:
        problems.append("other records than those of the undisturbed grid")
    known = {"claims", "trials", "cache", "runs"}
    extra = [p.name for p in folder.rglob("*") if p.suffix == ".tmp" or p.name.endswith("damaged")]
    extra += [p.name for p in store.iterdir() if p.suffix != ".json" and p.name not in known]
    extra += [p.name for p in (store / "claims").iterdir()]
    problems += [f"{name} left" for name in extra]
    table.add(
        f"grid {grid.name}: run to its end", "same records, no other file, no claim", problems
    )
    for path in store.glob("**/*.json"):
        path.unlink()


def results(store: Path, names: Iterable[str] | None = None) -> Results:
    """What must be the same in each run: everything but times, memory and the machine.

    names: of the runs; None = all.
    """
    result: Results = {}
    paths = store.glob("*.json") if names is None else [store / f"{name}.json" for name in names]
    for path in paths:
        tree = json.loads(path.read_bytes())
        keys = ("status", "params", "metrics", "counts", "predictions", "predictions_sha256")
        tuning = [(trial["params"], trial["score"]) for trial in tree["tuning"]]
        result[path.stem] = {**{key: tree[key] for key in keys}, "tuning": tuning}
    return result


def again(store: Path, finished: dict[Path, int]) -> list[str]:
    """Runs that were run again after they had finished; adds new ones to `finished`."""
    names = [name for name, record in results(store).items() if record["status"] == "ok"]
    times = {path: path.stat().st_mtime_ns for path in (store / f"{name}.json" for name in names)}
    return [
        f"{path.name} was run again"
        for path, stamp in times.items()
        if finished.setdefault(path, stamp) != stamp
    ]


def damaged(store: Path) -> list[str]:
    """Records that are not whole."""
    result = []
    for path in store.glob("*.json"):
        try:
            if decode(path.read_bytes()).run_id != path.stem:
                result.append(f"{path.name} has another name")
        except Exception as error:
            result.append(f"{path.name}: {error}")
    return result
