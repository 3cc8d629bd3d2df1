"""CPU of one grid on several source trees, by phase; are predictions equal?

    python tests/benchmarks/grid.py TREE TREE -- --method supervised --dataset synth --labeled 50

Runs ``sslbench run`` with the words after ``--`` on each source tree, each in an empty store and
with machine code of its own, once to compile and then once to measure. Prints the CPU seconds of
the whole command, of all its processes, and of the runs as their records say; "start" is what no
record has: interpreters, imports, plan. Phases are wall seconds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from traces import children_cpu


def measure(tree: Path, words: list[str], store: Path) -> tuple[float, list[dict[str, Any]]]:
    """CPU seconds of the command with all its processes, and its records."""
    path = os.pathsep.join(str(tree / part) for part in ("harness", "methods", "datasets"))
    cache = store.parent / f"cache-{tree.name}"
    environment = {**os.environ, "PYTHONPATH": path, "SSLBENCH_CACHE": str(cache)}
    command = [sys.executable, "-m", "sslbench", "run", *words, "--format", "json"]
    before = children_cpu()
    done = subprocess.run(
        [*command, "--store", str(store)],
        env=environment,
        cwd=tree,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    return children_cpu() - before, json.loads(done.stdout)


def main() -> None:
    """Print a table with a column per tree."""
    end = sys.argv.index("--")
    trees, words = [Path(name).resolve() for name in sys.argv[1:end]], sys.argv[end + 1 :]
    columns: list[dict[str, float]] = []
    predictions = []
    with tempfile.TemporaryDirectory() as folder:
        for number, tree in enumerate(trees):
            for round_ in ("compile", "measure"):
                cpu, records = measure(tree, words, Path(folder) / f"{number}-{round_}")
            phases: Counter[str] = Counter()
            for record in records:
                phases.update({f"  {k}": v for k, v in record["timing"].items()})
            runs = sum(record["cpu_s"] for record in records)
            columns.append({"command": cpu, "runs": runs, "start": cpu - runs, **phases})
            predictions.append({r["run_id"]: r["predictions_sha256"] for r in records})
    for name in dict.fromkeys(name for column in columns for name in column):
        print(f"{name:14}", *(f"{column.get(name, 0.0):10.2f}" for column in columns))
    print(
        "predictions:", "equal" if all(each == predictions[0] for each in predictions) else "DIFFER"
    )


if __name__ == "__main__":
    main()
