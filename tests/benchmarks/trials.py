"""CPU of the same tuning trials on several source trees, by phase.

    python tests/benchmarks/trials.py TREE TREE -- --data FOLDER --columns word,pos,label \
        --featurizer chunk39 --labeled 100 --tune 2 --seed 0

Runs ``sslbench run`` with the words after ``--`` for each method on each tree, in an empty store.
What tuning tries is given here (`SETTINGS`), since the search has changed: trees must have the
parameters. With a dev file in the folder each trial is one training. Kernels are compiled by a
first round, whose figures do not count. Phases are CPU seconds of all trainings; the log is written
by `given_trials/sitecustomize.py`, which both trees import.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

from grid import measure

#: today's defaults, and the second trial of seed 0
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
    ],
    "entropy_regularization": [
        {"sigma2": 10, "gamma": 0.001},
        {"sigma2": 27, "gamma": 10, "anneal": "geometric"},
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
    end = sys.argv.index("--")
    trees, words = [Path(name).resolve() for name in sys.argv[1:end]], sys.argv[end + 1 :]
    os.environ["SSLBENCH_GIVEN_TRIALS"] = json.dumps(SETTINGS)
    hook = Path(__file__).parent / "given_trials"
    with tempfile.TemporaryDirectory() as folder:
        for method in SETTINGS:
            for round_ in ("compile", "measure"):
                for tree in trees:
                    log = Path(folder) / f"cache-{tree.name}" / "phases.log"
                    log.unlink(missing_ok=True)
                    own = ["--method", method, *FIXED.get(method, [])]
                    if method == "virtual_evidence" and not _has_base_rates(tree):
                        own = own[:2]
                    store = Path(folder) / f"{method}-{tree.name}-{round_}"
                    cpu, records = measure(tree, [*own, *words], store, hook)
                    if round_ == "measure":
                        scores = [r["metrics"]["test"][r["primary_metric"]] for r in records]
                        print(method, tree.name, f"{cpu:.1f}", _phases(log), scores, flush=True)


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
