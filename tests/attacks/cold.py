"""Commands that start at the same moment with one empty cache, so that all compile every kernel.

    PYTHONPATH=tests python -m attacks.cold --number 10

Each must give the same records. A command takes about a minute of CPU time.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from attacks.command import SMALL, Process, Table, main
from attacks.kills import results

METHODS = ["--method", "supervised", "--method", "entropy_regularization"]


def attack(number: int, _seed: int) -> Table:
    """`number` commands at once, and one more after them, which compiles nothing."""
    table = Table()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        variables = {"SSLBENCH_CACHE": str(folder / "cache"), "NUMBA_CACHE_DIR": None}

        def start(turn: int) -> Process:
            store = str(folder / str(turn))
            words = ["run", *METHODS, *SMALL, "--store", store, "--format", "json"]
            return Process(words, variables)

        cold = [start(turn) for turn in range(number)]
        ended = [(process.wait(), process.orphans()) for process in cold]
        warm = start(number)
        ended.append((warm.wait(), warm.orphans()))
        expected = results(folder / str(number))
        for turn, (result, orphans) in enumerate(ended):
            problems = result.problems()
            if result.status or not expected or results(folder / str(turn)) != expected:
                problems.append(f"status {result.status}, other records: {result.err!r}")
            if orphans:
                problems.append(f"{orphans} orphans")
            row = "at once, empty cache" if turn < number else "afterwards, full cache"
            table.add(row, "the same records", problems)
    return table


if __name__ == "__main__":
    main(attack, 10)
