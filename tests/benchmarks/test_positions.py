"""An evaluation with transitions by position: a matrix for each, and what depends on it alone."""

from __future__ import annotations

from time import process_time
from typing import ClassVar

import numpy as np
import pytest
from ours import SIGMA2, label_codes
from problem import ROUNDS, SENTENCES

from sslbench.engine.crf import ChainModel, HardLabels, Objective
from sslbench.engine.crf.weights.deduplicate import Deduplication
from sslbench.engine.errors import UserError
from sslbench.experiment.data import DataHome
from sslbench.plugins import registry


class ByMatrices(HardLabels):
    """The same term, which gets a matrix for each position."""

    live: ClassVar[bool] = False


@pytest.mark.parametrize("dataset", ["conll00", "conll03", "wsj_sample"])
def test_one_evaluation(dataset: str) -> None:
    info = registry().dataset(dataset)
    try:
        train = info.load()(DataHome(offline=True)).splits["train"]
    except UserError:
        pytest.skip(f"{dataset} is not in the data home")
    train = train.between(0, min(SENTENCES or train.n_sentences, train.n_sentences))
    featurizer = registry().featurizer(info.featurizer).load()()
    labels, codes = label_codes(train)
    crf = ChainModel().prepare(featurizer, train, codes, labels, state_support="all")
    data = crf.encode(train)
    merged = Deduplication.build(crf.layout, [data.attributes])
    weights = np.random.default_rng(0).normal(0, 0.1, merged.reduced.size)
    found, times = [], []
    objectives = [
        Objective(merged.reduced, [(data.deduplicated(merged), term(codes))], SIGMA2)
        for term in (ByMatrices, HardLabels)
    ]
    for objective in objectives:
        gradient = np.empty_like(weights)
        found.append((objective.value_and_gradient(weights, gradient), gradient))
        times.append(np.inf)
    for _ in range(3 * ROUNDS):
        for number, objective in enumerate(objectives):
            began = process_time()
            objective.value_and_gradient(weights, np.empty_like(weights))
            times[number] = min(times[number], process_time() - began)
    matrices, live = (1e6 * seconds / train.n_tokens for seconds in times)
    n_live, n_labels = merged.reduced.inner_transitions, len(labels)
    print(f"| {dataset} | {train.n_tokens} | {n_live} of {n_labels**2}", end="")
    print(f" | {matrices:.2f} | {live:.2f} | {matrices / live:.2f} |")
    (value, gradient), (again, other) = found
    assert again == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(other, gradient, rtol=1e-9, atol=1e-9)
