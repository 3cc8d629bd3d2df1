"""Values, expectations and objectives of a CRF, transitions alone, and best allowed sequences."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

from sslbench.engine.corpus import Corpus
from sslbench.engine.crf import (
    STRICT,
    ChainCRF,
    ChainModel,
    EncodedCorpus,
    HardLabels,
    InfeasibleSentenceError,
    LogPartition,
    Term,
    TrainingParams,
    best_sequences,
)
from sslbench.engine.errors import UserError
from sslbench.engine.features import TemplateFeaturizer
from sslbench.engine.types import F64, Bool
from support.graph_toys import corpus

TEXT = corpus([2, 0, 3], [1], [0, 1, 1, 3])
OTHER = corpus([3, 3], [0, 2])
#: no b after b, no sentence that begins with c
MASK = np.array([[True, True, True], [True, False, True], [True, True, True], [True, True, False]])
Parts = list[tuple[EncodedCorpus, Term]]


def random_crf(order: int, transition_mask: Bool | None = None) -> ChainCRF:
    crf = ChainModel(order).prepare(
        TemplateFeaturizer(["x[0]", "edge: x[0]"]),
        TEXT,
        np.array([0, 1, 2, 0, 2, 1, 0, 2], np.int32),
        "abc",
        transition_support="all",
        transition_mask=transition_mask,
    )
    crf.weights[:] = np.random.default_rng(order).normal(size=crf.layout.size)
    return crf


def parts_of(crf: ChainCRF) -> Parts:
    gold = np.array([0, 1, 2, 0, 0, 2, 1, 0], np.int32)
    weighted = HardLabels(gold, np.array([1.0, 0.0, 0.5]))
    return [(crf.encode(TEXT), weighted), (crf.encode(OTHER), LogPartition(0.7))]


def allowed(path: tuple[int, ...], mask: Bool | None) -> bool:
    return mask is None or all(mask[pair] for pair in pairwise((len(mask) - 1, *path)))


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("mask", [None, MASK], ids=["all", "mask"])
def test_values_are_log_probabilities(order: int, mask: Bool | None) -> None:
    """Over all allowed sequences of a sentence they sum to 1; the others are refused."""
    crf = random_crf(order, mask)
    for i in range(TEXT.n_sentences):
        data, total = crf.encode(TEXT.select(np.array([i]))), 0.0
        for path in product(range(3), repeat=int(TEXT.lengths[i])):
            term = HardLabels(np.array(path, np.int32))
            if allowed(path, mask):
                (value,) = crf.evaluate([(data, term)])
                total += np.exp(value)
            else:
                with pytest.raises(InfeasibleSentenceError):
                    crf.evaluate([(data, term)])
        assert total == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_values_come_in_the_order_of_parts_and_sentences(
    order: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    crf = random_crf(order)
    parts = parts_of(crf)
    values = crf.evaluate(parts)
    assert values.shape == (5,)
    assert values[1] == 0.0  # a sentence of weight 0
    np.testing.assert_array_equal(values, np.concatenate([crf.evaluate([p]) for p in parts]))
    alone = [crf.encode(OTHER.select(np.array([i]))) for i in range(2)]
    apart = [crf.evaluate([(data, LogPartition(0.7))]) for data in alone]
    np.testing.assert_allclose(values[3:], np.concatenate(apart), rtol=1e-14)
    for name in ("VARYING_BATCH", "LIVE_BATCH"):
        monkeypatch.setattr(f"sslbench.engine.crf.encoded_corpus.{name}", 2)
    split = parts_of(crf)
    assert len(split[0][0].batches) > 1
    np.testing.assert_allclose(crf.evaluate(split), values, rtol=1e-14)
    np.testing.assert_allclose(crf.expect(split).counts, crf.expect(parts).counts, atol=1e-13)
    assert crf.evaluate([]).shape == (0,)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("mask", [None, MASK], ids=["all", "mask"])
def test_counts_are_the_derivative_of_the_values(order: int, mask: Bool | None) -> None:
    crf = random_crf(order, mask)
    parts = parts_of(crf)
    found = crf.expect(parts)
    np.testing.assert_allclose(found.values, crf.evaluate(parts), rtol=1e-14)
    slopes = [
        (crf.evaluate(parts, crf.weights + h).sum() - crf.evaluate(parts, crf.weights - h).sum())
        / 2e-5
        for h in 1e-5 * np.eye(crf.layout.size)
    ]
    np.testing.assert_allclose(found.counts, slopes, atol=1e-8)
    assert abs(found.counts).max() > 0.1


def test_log_partitions_give_expected_counts() -> None:
    """Of every symbol and label: the sum of the marginals of its tokens."""
    crf = random_crf(1)
    data = crf.encode(TEXT)
    counts = crf.expect([(data, LogPartition(-1.0))]).counts
    wanted = np.zeros((crf.index.n_node, 3))
    for attribute, row in zip(data.attributes.node[0], crf.marginals(data), strict=True):
        wanted[attribute] += row
    np.testing.assert_allclose(crf.layout.part(counts, "state").reshape(-1, 3), wanted, atol=1e-14)


def test_other_weights_in_place_of_the_models_own() -> None:
    crf = random_crf(1)
    mine, other = crf.weights.copy(), np.cos(np.arange(crf.layout.size))
    parts = parts_of(crf)
    values, expected = crf.evaluate(parts, other), crf.expect(parts, other)
    nodes = [p.node.copy() for p in crf.potentials(parts[0][0], other)]
    np.testing.assert_array_equal(crf.weights, mine)
    moved = replace(crf, weights=other)
    np.testing.assert_array_equal(moved.evaluate(parts), values)
    np.testing.assert_array_equal(moved.expect(parts).counts, expected.counts)
    for node, batch in zip(nodes, moved.potentials(parts[0][0]), strict=True):
        np.testing.assert_array_equal(node, batch.node)


@pytest.mark.parametrize("order", [1, 2])
def test_the_objective_is_what_training_reaches(order: int) -> None:
    crf = random_crf(order, MASK)
    parts, params = parts_of(crf)[:1], TrainingParams(sigma2=3.0)
    penalty = float(crf.weights @ crf.weights) / 6.0
    before = crf.objective(parts, params)
    assert before == pytest.approx(crf.evaluate(parts).sum() - penalty, abs=1e-12)
    result = crf.train(parts, params, options=STRICT)
    assert crf.objective(parts, params) == pytest.approx(result.objective, abs=1e-10)
    assert result.objective > before


def test_training_stops_by_the_parameters_unless_there_are_options() -> None:
    crf = random_crf(1)
    parts = parts_of(crf)[:1]
    start = crf.weights.copy()
    few = crf.train(parts, TrainingParams(max_iterations=3))
    crf.weights = start.copy()
    loose = crf.train(parts, TrainingParams(ftol=0.1))
    crf.weights = start.copy()
    strict = crf.train(parts, TrainingParams(max_iterations=3, ftol=0.1), options=STRICT)
    assert few.iterations == 3
    assert 3 < loose.iterations < strict.iterations
    assert TrainingParams(ftol=0.1).options(max_iterations=9).max_iterations == 9
    assert TrainingParams(ftol=0.1).options(max_iterations=9).ftol == 0.1


def first_potentials(crf: ChainCRF, text: Corpus) -> tuple[F64, F64]:
    (found,) = crf.potentials(crf.encode(text))
    return found.node.copy(), found.edge.copy()


def test_transitions_alone() -> None:
    crf = ChainModel().prepare(TemplateFeaturizer(["x[0]"]), TEXT, np.zeros(8, np.int32), "abc")
    crf.weights[:] = np.random.default_rng(5).normal(size=crf.layout.size)
    own = crf.weights.copy()
    w = crf.layout.part(own, "transitions").reshape(4, 3)
    stop = crf.layout.part(own, "stop")
    node, edge = first_potentials(crf.transitions_only(), TEXT)
    wanted = np.zeros((8, 3))
    wanted[TEXT.offsets[:-1]] += w[3]
    wanted[TEXT.offsets[1:] - 1] += stop
    np.testing.assert_allclose(node, wanted, atol=1e-15)
    np.testing.assert_array_equal(edge[0], w[:3])
    node, edge = first_potentials(crf.transitions_only(centered=True), TEXT)
    assert not node.any()
    center = edge[0]
    np.testing.assert_allclose(center.sum(axis=0), 0.0, atol=1e-14)
    np.testing.assert_allclose(center.sum(axis=1), 0.0, atol=1e-14)
    moved = w[:3] - center  # a part of the row's label and a part of the column's
    np.testing.assert_allclose(moved - moved[:1], (moved[:, :1] - moved[0, 0]) + 0 * moved)
    np.testing.assert_array_equal(crf.weights, own)


def test_transitions_alone_need_a_first_order_chain() -> None:
    for centered in (False, True):
        with pytest.raises(UserError, match="first-order"):
            random_crf(2).transitions_only(centered=centered)


@pytest.mark.parametrize("seed", range(5))
def test_best_sequences_by_enumeration(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sslbench.engine.crf.model.SHARED_BATCH", 4)  # several batches
    rng, offsets = np.random.default_rng(seed), np.array([0, 3, 4, 6, 10])
    scores = rng.normal(size=(10, 3))
    kept = scores.copy()
    mask = rng.random((4, 3)) < 0.6
    mask[:, 1] = True  # something is always possible
    found = best_sequences(scores, offsets, mask)
    np.testing.assert_array_equal(scores, kept)
    for a, b in pairwise(offsets):
        paths = [y for y in product(range(3), repeat=b - a) if allowed(y, mask)]
        best = max(paths, key=lambda y: sum(scores[a + t, label] for t, label in enumerate(y)))
        assert found[a:b].tolist() == list(best)
    everything = best_sequences(scores, offsets, np.ones((4, 3), bool))
    np.testing.assert_array_equal(everything, scores.argmax(axis=1))
    assert best_sequences(np.empty((0, 3)), np.array([0]), mask).dtype == np.int32
