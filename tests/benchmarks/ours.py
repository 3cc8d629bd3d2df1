"""The same work as `peer`, by sslbench's engine."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import numpy as np
from traces import Trace, peak_mb

from sslbench.engine.corpus import Corpus, read_conll
from sslbench.engine.crf import ChainCRF, ChainModel, HardLabels, TrainingParams
from sslbench.engine.features import TemplateFeaturizer, load_template_file
from sslbench.engine.types import I32

COLUMNS = ("word", "pos", "label")
SIGMA2 = 0.5
#: the objective is certified to be so near the optimum: half of what both sides may differ by
FTOL = 5e-5


def label_codes(corpus: Corpus) -> tuple[tuple[str, ...], I32]:
    """The labels that occur, sorted as text, and int32[N] codes into them."""
    column = corpus.column("label")
    used = np.unique(column.codes)
    names = sorted(column.vocabulary.strings[code] for code in used)
    table = np.full(len(column.vocabulary), -1, dtype=np.int32)
    for code in used:
        table[code] = names.index(column.vocabulary.strings[code])
    return tuple(names), table[column.codes]


def prepare(corpus: Corpus, featurizer: TemplateFeaturizer) -> tuple[ChainCRF, I32]:
    """An untrained CRF with the weights of the peer: observed pairs, no START and no stop."""
    labels, codes = label_codes(corpus)
    crf = ChainModel().prepare(
        featurizer, corpus, codes, labels, state_support="observed", use_start=False, use_stop=False
    )
    return crf, codes


def train(crf: ChainCRF, corpus: Corpus, codes: I32, iterations: int | None = None) -> Trace:
    """Train to convergence, or for so many iterations; attributes are encoded within the time."""
    points: list[tuple[float, float]] = []
    began = time.perf_counter()

    def note(_iteration: int, value: float, _gradient: float) -> None:
        points.append((time.perf_counter() - began, value * corpus.n_tokens))

    params = TrainingParams(sigma2=SIGMA2, max_iterations=iterations or 500, ftol=FTOL)
    result = crf.train([(crf.encode(corpus), HardLabels(codes))], params, callback=note)
    per_evaluation = points[-1][0] / result.evaluations
    return Trace(points, per_evaluation, result.n_weights, result.evaluations)


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def main() -> None:
    """Child process: train on FILE with TEMPLATES for ITERATIONS; print the peak memory."""
    file, templates, iterations = sys.argv[1:4]
    corpus = read_conll(Path(file), COLUMNS)
    crf, codes = prepare(corpus, load_template_file(templates, COLUMNS))
    train(crf, corpus, codes, int(iterations))
    print(json.dumps({"peak_mb": peak_mb()}))


if __name__ == "__main__":
    main()
