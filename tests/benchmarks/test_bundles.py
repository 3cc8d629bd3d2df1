"""An evaluation of the objective with and without bundles, for the template sets of corpora."""

from __future__ import annotations

from dataclasses import replace
from time import process_time

import numpy as np
import pytest
from ours import SIGMA2, label_codes
from problem import ROUNDS, SENTENCES

from sslbench.engine.crf import ChainModel, HardLabels, Objective
from sslbench.engine.crf.weights.deduplicate import Deduplication
from sslbench.engine.errors import UserError
from sslbench.engine.features import TemplateFeaturizer
from sslbench.experiment.data import DataHome
from sslbench.plugins import registry

CASES = [
    ("conll00", "chunk39"),
    ("conll02", "ner79"),
    ("wsj_sample", "pos47"),
    ("ud_el", "pos_window"),
]


@pytest.mark.parametrize(("dataset", "templates"), CASES)
@pytest.mark.parametrize("edges", [False, True])
def test_one_evaluation(dataset: str, templates: str, edges: bool) -> None:
    try:
        train = registry().dataset(dataset).load()(DataHome(offline=True)).splits["train"]
    except UserError:
        pytest.skip(f"{dataset} is not in the data home")
    train = train.between(0, min(SENTENCES or train.n_sentences, train.n_sentences))
    featurizer = registry().featurizer(templates).load()()
    featurizer = TemplateFeaturizer([t for t in featurizer.templates if edges or not t.edge])
    labels, codes = label_codes(train)
    crf = ChainModel().prepare(featurizer, train, codes, labels, state_support="observed")
    data = crf.encode(train)
    merged = Deduplication.build(crf.layout, [data.attributes])
    weights = np.random.default_rng(0).normal(0, 0.1, merged.reduced.size)
    seconds, values, gradient = [], [], np.empty_like(weights)
    for reused in (False, True):
        part = replace(data.deduplicated(merged), reused=reused), HardLabels(codes)
        objective = Objective(merged.reduced, [part], SIGMA2)
        values.append(objective.value_and_gradient(weights, gradient))
        times = []
        for _ in range(3 * ROUNDS):
            began = process_time()
            objective.value_and_gradient(weights, gradient)
            times.append(process_time() - began)
        seconds.append(min(times))
    plain, bundled = seconds
    print(f"{templates} edges={edges}: {1e3 * plain:.1f} {1e3 * bundled:.1f} ms", end=" ")
    print(f"{plain / bundled:.2f}")
    assert values[1] == pytest.approx(values[0], rel=1e-12)
