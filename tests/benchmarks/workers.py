"""Sixty short runs with `--jobs 2` and on two dask workers, in turns: wall and CPU seconds.

    python tests/benchmarks/workers.py [ROUNDS]

The runs are those of three methods with twenty seeds on `synth`. Each round starts with an empty
store, and kernels are compiled before the first one. CPU seconds are those of all processes of the
command. The command starts the workers and ends them, so theirs are included.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from traces import children_cpu

RUNS = "--method supervised --method self_training --method graph_lift --dataset synth"
SAMPLE = "--labeled 100 --unlabeled 500"
WAYS = {"--jobs 2": ["--jobs", "2"], "two dask workers": ["--executor", "dask", "--jobs", "2"]}


def measure(words: list[str], seeds: str, store: Path) -> tuple[float, float, set[tuple[str, str]]]:
    """Wall and CPU seconds of a command, and its runs with the hashes of their predictions."""
    command = [sys.executable, "-m", "sslbench", "run", *RUNS.split(), *SAMPLE.split()]
    command += ["--seeds", seeds, "--store", str(store), "--format", "json"]
    began, before = time.perf_counter(), children_cpu()
    done = subprocess.run([*command, *words], stdout=subprocess.PIPE, check=True)
    wall, cpu = time.perf_counter() - began, children_cpu() - before
    return wall, cpu, {(r["run_id"], r["predictions_sha256"]) for r in json.loads(done.stdout)}


def main() -> None:
    """Print a line for each way and round, and whether all predictions are the same."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for name, words in WAYS.items():
            measure(words, "0", Path(folder, f"compile-{name}"))
        for number in range(rounds):
            for name, words in WAYS.items():
                wall, cpu, runs = measure(words, "0-19", Path(folder, f"{name}-{number}"))
                found.append(runs)
                print(f"{name:18}{len(runs):4} runs{wall:8.1f} s wall{cpu:8.1f} s of CPU")
    print("predictions:", "equal" if all(each == found[0] for each in found) else "DIFFER")


if __name__ == "__main__":
    main()
