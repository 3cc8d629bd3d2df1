"""L-BFGS from zero beside an ascent on the dual followed by L-BFGS, CPU seconds in one process.

    python tests/benchmarks/starts.py SUPPORT DATASET:SENTENCES:SIGMA2[:FEATURES] ...

SUPPORT: observed or all pairs; 0 SENTENCES = all; FEATURES: a featurizer or a file of templates.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import ours

from sslbench.engine.crf import ChainModel, HardLabels, Options
from sslbench.engine.crf.dual import ascent as dual
from sslbench.engine.crf.objective import Objective
from sslbench.engine.crf.optim import lbfgs
from sslbench.engine.crf.weights.deduplicate import Deduplication
from sslbench.engine.features import load_template_file
from sslbench.experiment.data import DataHome
from sslbench.plugins import registry

#: relative distance from the best objective found
CLOSE = 1e-4


@dataclass
class Search:
    """(CPU seconds, objective to minimize) after each iteration of L-BFGS from some weights."""

    began: float = field(default_factory=time.process_time)
    points: list[tuple[float, float]] = field(default_factory=list)

    def run(self, objective: Objective, start: Any, scaling: Any, ftol: float) -> None:
        def note(_iteration: int, value: float, _gradient: float) -> None:
            seconds = time.process_time() - self.began
            self.points.append((seconds, value * objective.n_tokens))

        options = Options(ftol=ftol, gtol=0.0, max_iterations=3000)
        lbfgs.minimize(objective.scaled_loss, start, options, preconditioner=scaling, callback=note)

    def seconds(self, target: float) -> float:
        return next(seconds for seconds, value in self.points if value <= target)


def problem(support: str, word: str) -> tuple[Objective, Any]:
    name, sentences, sigma2, *features = word.split(":")
    info = registry().dataset(name)
    train = info.load()(DataHome(offline=True)).splits["train"]
    order = np.random.default_rng(0).permutation(train.n_sentences)
    train = train.select(order[: int(sentences) or None])
    chosen = features[0] if features else info.featurizer
    if chosen in registry().featurizers:
        featurizer = registry().featurizer(chosen).load()()
    else:
        featurizer = load_template_file(chosen, tuple(train.columns))
    labels, codes = ours.label_codes(train)
    crf = ChainModel().prepare(featurizer, train, codes, labels, state_support=support)
    data = crf.encode(train)
    merged = Deduplication.build(crf.layout, [data.attributes])
    part = data.deduplicated(merged), HardLabels(codes)
    objective = Objective(merged.reduced, [part], float(sigma2), copies=merged.weight_copies)
    return objective, merged.preconditioner()


def main() -> None:
    support, *words = sys.argv[1:]
    for word in words:
        objective, scaling = problem(support, word)
        if not dual.suits(objective, Options()):
            print(f"{word}: left to L-BFGS")
            continue
        zero = np.zeros(objective.layout.size)
        dual.maximize(objective, 1.0, 2)
        Search().run(objective, zero, scaling, 1.0)  # compile
        cold, warm = Search(), Search()
        cold.run(objective, zero, scaling, 1e-7)
        warm.began = time.process_time()
        point = dual.maximize(objective, CLOSE / 2, 500)
        assert point is not None
        ascent = time.process_time() - warm.began
        warm.run(objective, point.weights, scaling, 1e-7)
        best = min(value for _, value in cold.points + warm.points)
        gap = (warm.points[0][1] - point.bound) / best
        old, new = (each.seconds(best * (1 + CLOSE)) for each in (cold, warm))
        print(
            f"{word}: {objective.n_tokens:,.0f} tokens, {objective.layout.size:,} weights;"
            f" L-BFGS {old:.2f} s; {point.passes} passes {ascent:.2f} s, gap {gap:.0e},"
            f" then L-BFGS, {new:.2f} s in all; {old / new:.2f} times as fast",
            flush=True,
        )


if __name__ == "__main__":
    main()
