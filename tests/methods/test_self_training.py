"""Hard self-training: when it stops, and which attributes it knows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sslbench.engine.corpus import CorpusShards, Vocabulary
from sslbench.engine.crf import ChainCRF, EncodedCorpus
from sslbench.engine.types import I32
from sslbench.experiment.context.context import RunContext
from sslbench_methods.self_training import SelfTraining
from support.entropy_toys import SYMBOLS, toy_problem
from support.graph_toys import corpus

#: a self-labeled sentence counts as a labeled one
EACH: dict[str, Any] = {"weight": 1.0, "weight_scale": "sentence"}


def trained(**options: Any) -> tuple[ChainCRF, dict[str, Any]]:
    run = RunContext()
    crf = SelfTraining().fit(toy_problem(), SelfTraining.Params(**{**EACH, **options}), run)
    return crf, run.trace


def labelings(monkeypatch: pytest.MonkeyPatch, *found: str) -> list[int]:
    """Let the rounds find these labels of the text; the result gets a number for each decoding."""
    calls: list[int] = []

    def decode(self: ChainCRF, data: EncodedCorpus) -> I32:
        calls.append(len(calls))
        return np.array([int(c) for c in found[min(len(calls), len(found)) - 1]], np.int32)

    monkeypatch.setattr(ChainCRF, "decode", decode)
    return calls


@pytest.mark.parametrize(
    ("found", "status", "changed"),
    [
        (("0000000", "0000000"), "converged", [1.0]),
        (("0000000", "1000000", "1000000"), "converged", [1.0, 1 / 7]),
        (("0000000", "1100000", "0000000"), "cycle", [1.0, 2 / 7]),
        (("0000000", "1100000", "0010000", "1100000"), "cycle", [1.0, 2 / 7, 3 / 7]),
    ],
)
def test_stops_when_labels_stay_or_come_back(
    monkeypatch: pytest.MonkeyPatch, found: tuple[str, ...], status: str, changed: list[float]
) -> None:
    calls = labelings(monkeypatch, *found)
    _, trace = trained()
    assert trace["stopped"] == status
    assert [one["changed"] for one in trace["rounds"]] == pytest.approx(changed)
    assert len(calls) == len(found)  # and it was not trained on the last ones


def test_stops_after_so_many_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = labelings(monkeypatch, *(f"{i:07b}" for i in range(9)))
    _, trace = trained(rounds=4)
    assert (trace["stopped"], len(trace["rounds"]), len(calls)) == ("max_rounds", 4, 4)


def test_a_tolerated_change_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    labelings(monkeypatch, "0000000", "1000000", "1100000")
    _, trace = trained(tolerance=1 / 7)
    assert (trace["stopped"], len(trace["rounds"])) == ("converged", 1)


def test_retrainings_stop_early() -> None:
    """The labels of the text are those of whole trainings, after fewer iterations."""
    (whole, all_of_it), (short, some) = (trained(share=share) for share in (0.0, 0.05))
    text = toy_problem().unlabeled
    for shard in text:
        np.testing.assert_array_equal(whole.predict(shard), short.predict(shard))
    assert some["supervised"] == all_of_it["supervised"]
    assert some["rounds"][0]["iterations"] < all_of_it["rounds"][0]["iterations"]
    assert some["rounds"][0]["objective"] < all_of_it["rounds"][0]["objective"]


def test_the_weight_of_all_self_labeled_sentences() -> None:
    """As a ratio, it is shared out among them."""
    labeled = toy_problem().labeled.n_sentences
    n = sum(shard.n_sentences for shard in toy_problem().unlabeled)
    one, _ = trained(weight=0.5, weight_scale="ratio")
    other, _ = trained(weight=0.5 * labeled / n)
    np.testing.assert_allclose(one.weights, other.weights, rtol=1e-12)
    assert labeled != n


def test_attributes_of_the_text() -> None:
    """A symbol that only the text has gets weights only when asked for."""
    text = corpus([3, 0, 3], vocabulary=Vocabulary([*SYMBOLS.strings, "3"]))
    problem = replace(toy_problem(), unlabeled=CorpusShards(text))
    sizes = []
    for features_from in ("labeled", "labeled+unlabeled"):
        params = SelfTraining.Params(features_from=features_from, **EACH)
        crf = SelfTraining().fit(problem, params, RunContext())
        sizes.append(crf.index.n_node)
    assert sizes == [3, 4]
    assert np.abs(crf.weights[6:8]).max() > 0.01
