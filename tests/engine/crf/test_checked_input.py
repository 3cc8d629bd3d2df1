"""What a method or a featurizer hands to the engine is checked before kernels read it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from sslbench.engine.corpus import Column, Corpus, Vocabulary
from sslbench.engine.crf import (
    BatchPotentials,
    ChainCRF,
    ChainModel,
    EncodedCorpus,
    Entropy,
    HardLabels,
    PartialLabels,
    PotentialGradient,
    SoftTargets,
    TrainingParams,
    best_sequences,
)
from sslbench.engine.crf import memory as crf_memory
from sslbench.engine.crf.chain_model import SecondOrderModel
from sslbench.engine.crf.weights.occurrences import Occurrences
from sslbench.engine.crf.weights.rowtable import RowTable
from sslbench.engine.errors import UserError
from sslbench.engine.features import TemplateFeaturizer
from sslbench.engine.types import F64

WORDS = Vocabulary(["a", "b", "c"])
LABELS = ("X", "Y")
CODES = np.array([0, 1, 2, 0, 1], np.int32)
GOLD = np.array([0, 1, 0, 0, 1], np.int32)
OFFSETS = np.array([0, 3, 5])
CORPUS = Corpus({"word": Column(WORDS, CODES)}, OFFSETS)
PARAMS = TrainingParams()


def crf_of(dense: Any = None, model: ChainModel | None = None, **options: Any) -> ChainCRF:
    featurizer = TemplateFeaturizer(["word[0]", "edge: word[0]"], dense)
    return (model or ChainModel()).prepare(featurizer, CORPUS, GOLD, LABELS, **options)


@dataclass
class Dense:
    """Columns that can be changed between training and prediction."""

    columns: Any

    def __call__(self, _corpus: Corpus) -> Any:
        return self.columns


@pytest.mark.parametrize("width", [0, 1, 3, 300])
def test_a_featurizer_with_another_width_when_it_predicts(width: int) -> None:
    dense = Dense(np.ones((5, 2)))
    crf = crf_of(dense)
    crf.train([(crf.encode(CORPUS), HardLabels(GOLD))], PARAMS)
    dense.columns = np.ones((5, width))
    with pytest.raises(ValueError, match=rf"dense columns: float64 \[5, {width}\], not .*\[5, 2\]"):
        crf.predict(CORPUS)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_dense_columns_that_are_not_finite(bad: float) -> None:
    crf = crf_of(dense := Dense(np.ones((5, 2))))
    dense.columns = np.array([[1.0, bad]] * 5)
    with pytest.raises(ValueError, match="not finite"):
        crf.predict(CORPUS)


def test_dense_columns_that_are_missing() -> None:
    crf = crf_of(Dense(np.ones((5, 2))))
    crf.index.dense = None
    with pytest.raises(ValueError, match="no dense columns, the model has weights for 2"):
        crf.predict(CORPUS)


@dataclass
class Found:
    """Attributes of a featurizer of a plugin."""

    node: Any
    edge: Any
    dense: Any
    offsets: Any


ATTRIBUTES: list[tuple[dict[str, Any], str]] = [
    ({"node": np.zeros((1, 5))}, "node attributes: float64"),
    ({"node": np.zeros((1, 5), np.int64)}, "node attributes: int64"),
    ({"node": np.zeros(5, np.int32)}, "node attributes"),
    ({"node": [[0] * 5]}, "node attributes: a list"),
    ({"node": np.full((1, 5), 3, np.int32)}, "node attributes: values 3 to 3"),
    ({"node": np.full((1, 5), -2, np.int32)}, "node attributes: values -2"),
    ({"node": np.zeros((5, 2), np.int32).T}, "C-contiguous"),
    ({"node": np.zeros((1, 4), np.int32)}, "sentence offsets"),
    ({"edge": np.zeros((1, 4), np.int32)}, "edge attributes"),
    ({"edge": np.full((1, 5), 7, np.int32)}, "edge attributes: values 7"),
    ({"dense": np.zeros((5, 1))}, "dense columns"),
    ({"offsets": np.array([0, 4, 3, 5])}, "sentence offsets: does not ascend"),
    ({"offsets": np.array([0, 3, 9])}, "sentence offsets: does not ascend"),
    ({"offsets": np.array([1, 5])}, "sentence offsets: does not ascend"),
    ({"offsets": np.array([0, 2**63 - 1, -(2**63), -1, 5])}, "does not ascend"),
    ({"offsets": np.array([0, 5], np.int32)}, "sentence offsets: int32"),
    ({"offsets": np.empty(0, np.int64)}, "sentence offsets"),
]


@pytest.mark.parametrize(("changes", "message"), ATTRIBUTES, ids=lambda value: str(value)[:30])
def test_attributes_that_do_not_fit(changes: dict[str, Any], message: str) -> None:
    crf = crf_of()
    good = crf.index.encode(CORPUS)
    found = Found(good.node, good.edge, good.dense, good.offsets)
    EncodedCorpus.build(crf.layout, found)
    with pytest.raises(ValueError, match=message):
        EncodedCorpus.build(crf.layout, replace(found, **changes))


TERMS: list[tuple[Any, str]] = [
    (HardLabels(GOLD[:4]), "labels"),
    (HardLabels(np.array([0, 1, 2, 0, 0], np.int32)), "labels: values 0 to 2"),
    (HardLabels(np.array([0, 1, -1, 0, 0], np.int32)), "labels: values -1 to 1"),
    (HardLabels(GOLD.astype(np.int64)), "labels: int64"),
    (HardLabels(GOLD, np.ones(1)), "one per sentence"),
    (HardLabels(GOLD, np.ones((2, 1))), "one per sentence"),
    (SoftTargets(np.full((5, 3), 1 / 3)), "targets"),
    (SoftTargets(np.full((5, 1), 1.0)), "targets"),
    (SoftTargets(np.full((4, 2), 0.5)), "targets"),
    (PartialLabels(np.ones((5, 1), bool)), "allowed labels"),
    (PartialLabels(np.ones((5, 2), bool), np.zeros((5, 1))), "log-evidence"),
    (Entropy(1.0, np.ones(1)), "one per sentence"),
]


@pytest.mark.parametrize("model", [ChainModel(), SecondOrderModel()], ids=["crf1", "crf2"])
@pytest.mark.parametrize(("term", "message"), TERMS)
def test_terms_that_do_not_fit(term: Any, message: str, model: ChainModel) -> None:
    crf = crf_of(model=model)
    for use in (crf.evaluate, crf.expect, lambda parts: crf.train(parts, PARAMS)):
        with pytest.raises(ValueError, match=message):
            use([(crf.encode(CORPUS), term)])


@dataclass
class Own:
    """A term of a method; derivatives of any shape."""

    node: F64
    edge: F64

    def evaluate(self, _potentials: BatchPotentials) -> PotentialGradient:
        return PotentialGradient(np.zeros(2), self.node, self.edge)

    def n_tokens(self, lengths: F64) -> float:
        return float(lengths.sum())


@pytest.mark.parametrize(
    "term",
    [
        Own(np.zeros((4, 2)), np.zeros((5, 2, 2))),
        Own(np.zeros((5, 3)), np.zeros((5, 2, 2))),
        Own(np.zeros((5, 2), np.float32), np.zeros((5, 2, 2))),
        Own(np.zeros((2, 5)).T, np.zeros((5, 2, 2))),
        Own(np.zeros((5, 2)), np.zeros((2, 2))),
        Own(np.zeros((5, 2)), np.zeros((3, 2, 2))),
    ],
)
def test_derivatives_of_a_term_that_do_not_fit(term: Own) -> None:
    crf = crf_of()
    with pytest.raises(ValueError, match="a term gave derivatives"):
        crf.train([(crf.encode(CORPUS), term)], PARAMS)


def test_potentials_that_do_not_fit() -> None:
    crf = crf_of()
    (potentials,) = crf.potentials(crf.encode(CORPUS))
    for node in (np.zeros((4, 2)), np.zeros((5, 3)), np.zeros((5, 2), np.float32)):
        with pytest.raises(ValueError, match="potentials"):
            potentials.with_node(node)
    for edge in (np.zeros((2, 2)), np.zeros((2, 2, 2)), np.zeros((5, 2, 3))):
        with pytest.raises(ValueError, match="edge potentials"):
            replace(potentials, edge=edge)
    with pytest.raises(ValueError, match="weights for 2 sentences"):
        potentials.posterior(np.ones(3))


def test_text_of_another_model() -> None:
    crf, other = crf_of(), crf_of(state_support="observed")
    parts = [(other.encode(CORPUS), HardLabels(GOLD))]
    for use in (crf.evaluate, crf.expect, lambda parts: crf.train(parts, PARAMS)):
        with pytest.raises(ValueError, match="encoded for another model"):
            use(parts)
    with pytest.raises(ValueError, match="encoded for another model"):
        crf.decode(parts[0][0])
    with pytest.raises(ValueError, match="encoded for another model"):
        crf.pruned(parts[0][0], GOLD, [])
    same = replace(crf, layout=replace(crf.layout))  # a copy has the same weights
    assert same.decode(crf.encode(CORPUS)).shape == (5,)


def test_weights_and_scores_of_other_sizes() -> None:
    crf = crf_of()
    data = crf.encode(CORPUS)
    parts = [(data, HardLabels(GOLD))]
    for weights in (np.zeros(3), np.zeros(crf.layout.size, np.float32), crf.weights[None]):
        with pytest.raises(ValueError, match="weights"):
            crf.evaluate(parts, weights)
    with pytest.raises(ValueError, match="expected counts"):
        crf.train(parts, PARAMS, expected_counts=np.zeros(3))
    for extra in (np.zeros((5, 1)), np.zeros((1, 2)), np.zeros((6, 2))):
        with pytest.raises(ValueError, match="extra scores"):
            crf.marginals(data, extra)
    with pytest.raises(ValueError, match="no number"):
        crf.marginals(data, np.full((5, 2), np.nan))
    crf.weights = np.zeros(2)
    with pytest.raises(ValueError, match="weights"):
        crf.decode(data)
    with pytest.raises(ValueError, match="weights"):
        crf.train(parts, PARAMS)


def test_labels_and_masks_of_other_sizes() -> None:
    featurizer = TemplateFeaturizer(["word[0]"])
    for gold in (GOLD[:4], GOLD + 1, GOLD.astype(np.int64)):
        with pytest.raises(ValueError, match="labels"):
            ChainModel().prepare(featurizer, CORPUS, gold, LABELS, state_support="observed")
    for mask in (np.ones((2, 2), bool), np.ones((3, 2)), np.ones((3, 1), bool)):
        with pytest.raises(ValueError, match="the transition mask"):
            ChainModel().prepare(featurizer, CORPUS, GOLD, LABELS, transition_mask=mask)
        with pytest.raises(ValueError, match="the transition mask"):
            best_sequences(np.zeros((5, 2)), OFFSETS, mask)
    with pytest.raises(ValueError, match="sentence offsets"):
        best_sequences(np.zeros((4, 2)), OFFSETS, np.ones((3, 2), bool))


def test_posteriors_of_other_sizes_do_not_prune() -> None:
    crf = crf_of()
    data = crf.encode(CORPUS)
    with pytest.raises(ValueError, match="posteriors"):
        crf.pruned(data, GOLD, [(data, np.ones((4, 2)))])
    with pytest.raises(ValueError, match="labels"):
        crf.pruned(data, GOLD[:3], [])


@pytest.mark.parametrize("sigma2", [1e-320, np.nan])
def test_a_training_with_numbers_that_are_not_finite(sigma2: float) -> None:
    """Before, the weights stayed zero and every token had label 0."""
    crf = crf_of()
    params = TrainingParams(sigma2=sigma2)  # ranges are checked where parameters are parsed
    with pytest.raises(ArithmeticError, match="not finite"):
        crf.train([(crf.encode(CORPUS), HardLabels(GOLD))], params)


def test_weights_that_are_not_finite() -> None:
    crf = crf_of()
    crf.weights = np.full(crf.layout.size, np.nan)
    for use in (crf.decode, crf.marginals):
        with pytest.raises(ArithmeticError, match="weights that are not finite"):
            use(crf.encode(CORPUS))


def test_columns_of_wide_tables_are_not_cut_to_16_bits() -> None:
    """300 labels have 90,300 transitions."""
    width = 90_300
    table = RowTable(np.array([0, 2]), np.array([40_000, 90_299], np.int32), width, 3)
    assert table.list_column.tolist() == [40_000, 90_299]
    ids = np.zeros((1, 1), np.int32)
    found = Occurrences.build(ids, table.code, table, spelled=True)
    assert found.extra.tolist() == [40_000, 90_299]  # of the first token of a block


def test_memory_is_estimated_before_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    crf, pairs = crf_of(), crf_of(model=SecondOrderModel())
    monkeypatch.setattr(crf_memory, "most_memory", lambda: 300)
    with pytest.raises(UserError, match="a sentence of 3 tokens with 2 labels would take"):
        pairs.encode(CORPUS)
    monkeypatch.setattr(crf_memory, "most_memory", lambda: 100)
    with pytest.raises(UserError, match="a sentence of 3 tokens with 2 labels would take"):
        crf.encode(CORPUS)
    with pytest.raises(UserError, match=r"a model of \d+ weights and 2 labels would take"):
        crf_of()
