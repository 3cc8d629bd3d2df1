"""A suite of short runs in two processes and on two dask workers, in turns: wall and CPU seconds.

    python tests/benchmarks/workers.py [ROUNDS]

Three methods on twenty draws of the generated language, in an empty store each time; kernels are
compiled before. CPU seconds are of the command with all its processes, the workers too, which it
starts and ends.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = "--method supervised --method self_training --method graph_lift --dataset synth"
SAMPLE = "--labeled 100 --unlabeled 500"
WAYS = {"--jobs 2": ["--jobs", "2"], "two dask workers": ["--executor", "dask", "--jobs", "2"]}


def measure(words: list[str], seeds: str, store: Path) -> tuple[float, float, set[tuple[str, str]]]:
    """Wall and CPU seconds of a command, and its runs with the hashes of their predictions."""
    command = [sys.executable, "-m", "sslbench", "run", *RUNS.split(), *SAMPLE.split()]
    command += ["--seeds", seeds, "--store", str(store), "--format", "json"]
    began, before = time.perf_counter(), _children()
    done = subprocess.run([*command, *words], stdout=subprocess.PIPE, check=True)
    wall, cpu = time.perf_counter() - began, _children() - before
    return wall, cpu, {(r["run_id"], r["predictions_sha256"]) for r in json.loads(done.stdout)}


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


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
