"""Child process: JESS-CM's unlabeled pass over REPEATS copies of FILE, from stored shards.

Prints peak memory and time; the parent compares them between one copy and ten.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from traces import peak_mb

from sslbench.engine.corpus import (
    ChainedShards,
    CorpusShards,
    StoredShards,
    read_conll,
    write_shards,
)
from sslbench.engine.corpus.units import TextUnits
from sslbench.engine.crf import ChainModel
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.inputs.problem import Problem, relabeled
from sslbench.plugins import registry
from sslbench_methods.jess_cm.method import JessCM, Trainer
from sslbench_methods.jess_cm.models import EmbeddedModels

#: less than a copy of the text, so that a unit is full with one copy as with ten
UNIT_TOKENS = 1 << 17


def main() -> None:
    file, repeats = Path(sys.argv[1]), int(sys.argv[2])
    corpus = read_conll(file, ("word", "pos", "label"))
    labeled = relabeled(corpus.select(np.arange(min(500, corpus.n_sentences))))
    featurizer = registry().featurizer("chunk39").load()()
    with tempfile.TemporaryDirectory() as folder:
        copies = [CorpusShards(corpus.drop("label"), UNIT_TOKENS)] * repeats
        write_shards(Path(folder) / "text", ChainedShards(copies))
        text = StoredShards(Path(folder) / "text")
        problem = Problem(
            "spans",
            "IOB2",
            tuple(labeled.column("label").vocabulary.strings),
            labeled,
            text,
            None,
            featurizer,
            ChainModel(),
        )
        params = JessCM.Params(max_iterations=10)
        # each copy counts every symbol again: the cut-off that keeps the dictionaries of one copy
        cut = 2 * repeats
        models = EmbeddedModels.build(featurizer.templates, len(problem.labels), text, cut)
        crf = problem.crf(params, n_factors=models.n_models)
        units = TextUnits(text, UNIT_TOKENS)
        trainer = Trainer(crf, models, problem, units, params, RunContext(0))
        trainer.round(1)  # tables that are not uniform
        trainer.fit_weights()
        began = time.perf_counter()
        models.expected_counts(crf, text)
        seconds = time.perf_counter() - began
    print(json.dumps({"peak_mb": peak_mb(), "seconds": seconds, "tokens": text.n_tokens}))


if __name__ == "__main__":
    main()
