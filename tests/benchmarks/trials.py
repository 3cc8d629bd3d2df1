"""CPU of the same tuning trials on several source trees, by phase.

    python tests/benchmarks/trials.py TREE TREE --trials 8 --seeds 3 -- --data FOLDER \
        --columns word,pos,label --featurizer chunk39 --labeled 100

Runs ``sslbench run`` with the words after ``--`` for each method on each tree, in an empty store.
What tuning tries is given here, since the search has changed: the settings in `SETTINGS` and
mixtures of them. Trees must have the parameters. With a dev file in the folder each trial is one
training. Kernels are compiled by two trials before, whose figures do not count. Phases are CPU
seconds of all trainings; the log is written by `given_trials/sitecustomize.py`, which both trees
import.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from grid import measure

#: today's defaults; what tuning tries second with seed 0; a third where two mix to fewer than eight
SETTINGS = {
    "graph_self_training": [
        {"sigma2": 10, "eta": 0.001, "rounds": 10, "alpha": 0.6, "omega": 0, "mu": 0.5, "nu": 0.01},
        {
            "sigma2": 27,
            "eta": 0.00316,
            "rounds": 1,
            "alpha": 0.583,
            "omega": 1.72,
            "mu": 2.01,
            "nu": 0.0835,
        },
    ],
    "jess_cm": [
        {"sigma2": 10, "eta": 0.01, "symbol_min_count": 2},
        {"sigma2": 27, "eta": 0.00631, "symbol_min_count": 3},
    ],
    "graph_pr": [
        {"sigma2": 10, "lam": 0.1, "em_iters": 3},
        {"sigma2": 27, "lam": 1.49, "em_iters": 3},
        {"sigma2": 3, "lam": 0.4, "em_iters": 3},
    ],
    "entropy_regularization": [
        {"sigma2": 10, "gamma": 0.001},
        {"sigma2": 27, "gamma": 10, "anneal": "geometric"},
        {"sigma2": 3, "gamma": 0.1},
    ],
    "virtual_evidence": [
        {"sigma2": 10, "alpha": 0.7, "mu": 0.5, "lam": 0.3, "rounds": 10},
        {"sigma2": 27, "alpha": 0.874, "mu": 2.01, "lam": 1.41, "rounds": 1},
    ],
}
#: where defaults differ between trees
FIXED = {
    "graph_pr": ["--set", "graph_pr.decoding=posterior"],
    "virtual_evidence": ["--set", "virtual_evidence.base_rates=kept"],
}
OUTER = ("tune", "fit")  # they contain the others


def main() -> None:
    """Print a line per method and tree."""
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    parser = argparse.ArgumentParser()
    parser.add_argument("trees", nargs="+", type=Path)
    parser.add_argument("--trials", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=1)
    given, words = parser.parse_args(sys.argv[1:end]), sys.argv[end + 1 :]
    tried = {method: mixtures(settings, given.trials) for method, settings in SETTINGS.items()}
    os.environ["SSLBENCH_GIVEN_TRIALS"] = json.dumps(tried)
    with tempfile.TemporaryDirectory() as folder:
        for method in SETTINGS:
            for tree in map(Path.resolve, given.trees):
                _measure(method, tree, Path(folder), words, 2, 1)  # compiles
                cpu, phases, scores = _measure(
                    method, tree, Path(folder), words, given.trials, given.seeds
                )
                print(method, tree.name, f"{cpu:.1f}", phases, scores, flush=True)


def mixtures(settings: list[dict[str, Any]], number: int) -> list[dict[str, Any]]:
    """The settings, and others, each once, with parameters of several of them; order by seed 0.

    ValueError if there are not so many: what was tried before is not computed again.
    """
    names = list(settings[0])
    values = [dict.fromkeys(setting[name] for setting in settings) for name in names]
    mixed = [dict(zip(names, chosen, strict=True)) for chosen in product(*values)]
    others = [setting for setting in mixed if setting not in settings]
    found = settings + [others[i] for i in np.random.default_rng(0).permutation(len(others))]
    if len(found) < number:
        raise ValueError(f"{len(found)} settings of {', '.join(names)}, not {number}")
    return found[:number]


def _measure(
    method: str, tree: Path, folder: Path, words: list[str], trials: int, seeds: int
) -> tuple[float, dict[str, float], list[float]]:
    """CPU seconds in all, those of phases, and the scores of the test."""
    log = folder / f"cache-{tree.name}" / "phases.log"
    log.unlink(missing_ok=True)
    own = ["--method", method, "--tune", str(trials)]
    if method != "virtual_evidence" or _has_base_rates(tree):
        own += FIXED.get(method, [])
    for seed in range(seeds):
        own += ["--seed", str(seed)]
    store = Path(tempfile.mkdtemp(dir=folder))
    cpu, records = measure(tree, [*own, *words], store, Path(__file__).parent / "given_trials")
    scores = [record["metrics"]["test"][record["primary_metric"]] for record in records]
    return cpu, _phases(log), scores


def _has_base_rates(tree: Path) -> bool:
    files = (tree / "methods").rglob("*.py")
    return any("base_rates" in file.read_text(encoding="utf-8") for file in files)


def _phases(log: Path) -> dict[str, float]:
    seconds: Counter[str] = Counter()
    for line in log.read_text(encoding="utf-8").splitlines():
        name, cpu = json.loads(line)
        seconds[name] += cpu
    return {k: round(v, 1) for k, v in seconds.items() if v >= 0.05 and k not in OUTER}


if __name__ == "__main__":
    main()
