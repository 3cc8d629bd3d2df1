"""The base class of models: everything from `open` alone, and the M-step of EM for any model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from sslbench.engine.corpus import Corpus
from sslbench.engine.crf import (
    STRICT,
    BatchPotentials,
    ChainCRF,
    ChainModel,
    Entropy,
    FrozenChain,
    HardLabels,
    LogLinear,
    LogPartition,
    PartialLabels,
    SequenceModel,
    SoftTargets,
    Term,
    TrainingParams,
    VirtualEvidence,
)
from sslbench.engine.crf.chain_model import SecondOrderModel
from sslbench.engine.features import TemplateFeaturizer
from sslbench.engine.types import F64, I32
from support.synth_text import synth_text
from support.toy_model.sslbench_toy import Toy, ToyModel

MODELS = {"crf1": ChainModel(), "crf2": SecondOrderModel()}
TEMPLATES = {"shared": ["word[0]", "word[-1]"], "varying": ["word[0]", "edge: word.suffix1[0]"]}
PARAMS = TrainingParams(sigma2=1.0)


@dataclass
class Plain(SequenceModel):
    """A CRF of which only `encode` and `open` are used."""

    crf: ChainCRF
    kind = "plain"

    def __post_init__(self) -> None:
        self.labels, self.parameters = self.crf.labels, self.crf.weights

    def encode(self, corpus: Corpus) -> Any:
        return self.crf.encode(corpus)

    def open(self, text: Any, batch: Any, noise: Any = None) -> Any:
        return replace(self.crf, weights=self.parameters).open(text, batch, noise)

    def train(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    def arrays(self) -> Any:
        raise NotImplementedError


def text_of(seed: int, n: int = 30) -> tuple[Corpus, I32]:
    corpus = synth_text(n, seed=seed, lexicon=60)
    return corpus, corpus.column("label").codes.astype(np.int32)


def crf_of(model: str = "crf1", templates: str = "shared", seed: int = 0) -> ChainCRF:
    corpus, codes = text_of(1)
    labels = corpus.column("label").vocabulary.strings
    L, rng = len(labels), np.random.default_rng(seed)
    mask = rng.random((L + 1, L)) < 0.7
    mask[codes[:-1], codes[1:]] = True
    mask[L] = True
    crf = MODELS[model].prepare(
        TemplateFeaturizer(TEMPLATES[templates]), corpus, codes, labels, transition_mask=mask
    )
    crf.weights = rng.normal(0, 0.5, crf.layout.size)
    return crf


def toy(seed: int = 0) -> Toy:
    corpus, codes = text_of(1)
    labels = corpus.column("label").vocabulary.strings
    rules = {"transition_mask": None, "label_constraint": None}
    made = ToyModel(ToyModel.Params(steps=5), 0).prepare(
        None, corpus, codes, labels, text=(), **rules
    )
    made.parameters = np.random.default_rng(seed).normal(0, 0.5, len(made.parameters))
    return made


@pytest.mark.parametrize("templates", TEMPLATES)
@pytest.mark.parametrize("model", MODELS)
def test_what_follows_from_open_is_what_the_crf_computes(model: str, templates: str) -> None:
    crf = crf_of(model, templates)
    plain, (corpus, codes) = Plain(crf), text_of(1)
    data, other = crf.encode(corpus), np.random.default_rng(3).normal(size=crf.layout.size)
    parts = [(data, HardLabels(codes)), (data, Entropy(0.1))]
    np.testing.assert_array_equal(plain.decode(data), crf.decode(data))
    np.testing.assert_array_equal(plain.marginals(data), crf.marginals(data))
    np.testing.assert_array_equal(plain.evaluate(parts, other), crf.evaluate(parts, other))
    np.testing.assert_allclose(plain.evaluate(parts), crf.expect(parts).values, rtol=1e-13)
    assert plain.objective(parts, PARAMS) == pytest.approx(crf.objective(parts, PARAMS), rel=1e-12)
    gradient = np.full(crf.layout.size, np.nan)
    assert plain.gradient(parts, gradient) == pytest.approx(crf.evaluate(parts).sum(), rel=1e-12)
    np.testing.assert_allclose(gradient, crf.expect(parts).counts, atol=1e-9)
    if model == "crf1":
        for one, two in zip(plain.n_best(data, 3), crf.n_best(data, 3), strict=True):
            np.testing.assert_array_equal(one.labels, two.labels)


def test_a_model_without_state_weights_is_not_pruned_and_is_not_log_linear() -> None:
    crf, (corpus, codes) = crf_of(), text_of(1)
    plain = Plain(crf)
    assert plain.pruned(plain.encode(corpus), codes, []) is plain
    assert isinstance(crf, LogLinear)
    assert not isinstance(plain, LogLinear)


def test_transitions_alone_leave_out_scores_of_labels_and_keep_what_is_impossible() -> None:
    plain, (corpus, _) = Plain(crf_of()), text_of(1)
    (batch,) = plain.potentials(data := plain.encode(corpus))
    for centered in (False, True):
        (found,) = plain.transition_potentials(data, centered=centered)
        assert set(np.unique(found.node)) <= {0.0, -np.inf}
        np.testing.assert_array_equal(np.isneginf(found.node), np.isneginf(batch.node))
        np.testing.assert_array_equal(np.isneginf(found.edge), np.isneginf(batch.edge))
        assert np.array_equal(found.edge, batch.edge) != centered


def term(name: str, corpus: Corpus, codes: I32, L: int) -> Term:
    rng = np.random.default_rng(7)
    allowed = rng.random((corpus.n_tokens, L)) < 0.5
    allowed[np.arange(len(codes)), codes] = True
    q = rng.dirichlet(np.ones(L), corpus.n_tokens)
    other = toy(5)
    frozen = FrozenChain.of(other.potentials(other.encode(corpus)), L, evidence=q, weight=0.7)
    return {
        "hard": HardLabels(codes),
        "partial": PartialLabels(allowed),
        "soft": SoftTargets(q),
        "entropy": Entropy(0.3),
        "evidence": VirtualEvidence(q, np.arange(len(codes), dtype=np.int32), 0.8, 0.5),
        "frozen": frozen,
    }[name]


@pytest.mark.parametrize("name", ["hard", "partial", "soft", "entropy", "evidence", "frozen"])
def test_a_pullback_of_every_term_is_the_derivative(name: str) -> None:
    model, (corpus, codes) = toy(), text_of(1, 6)
    data = model.encode(corpus)
    parts = [(data, term(name, corpus, codes, len(model.labels)))]
    gradient = np.empty_like(model.parameters)
    value = model.gradient(parts, gradient)
    assert value == pytest.approx(model.evaluate(parts).sum())
    rng = np.random.default_rng(2)
    for _ in range(3):
        step = 1e-5 * rng.normal(size=len(gradient))
        up, down = (model.evaluate(parts, model.parameters + s * step).sum() for s in (1, -1))
        assert (up - down) / 2 == pytest.approx(gradient @ step, rel=1e-5, abs=1e-10)


def frozen_and_counts(crf: ChainCRF, corpus: Corpus) -> tuple[Any, FrozenChain, F64]:
    """Text, a chain that is frozen at other weights with evidence, and its expected counts."""
    rng, data = np.random.default_rng(4), crf.encode(corpus)
    evidence = rng.normal(size=(corpus.n_tokens, len(crf.labels)))
    start = replace(crf, weights=rng.normal(0, 0.5, crf.layout.size))
    frozen = FrozenChain.of(start.potentials(data), len(crf.labels), evidence=evidence, weight=0.3)

    class Clamped:
        def evaluate(self, potentials: BatchPotentials) -> Any:
            node = potentials.node + evidence[potentials.batch.tokens]
            return LogPartition(-0.3).evaluate(potentials.with_node(node))

        def n_tokens(self, lengths: F64) -> float:
            return 0.0

    return data, frozen, start.expect([(data, Clamped())]).counts


@pytest.mark.parametrize("templates", TEMPLATES)
@pytest.mark.parametrize("model", MODELS)
def test_a_frozen_chain_is_the_expected_counts_of_a_crf(model: str, templates: str) -> None:
    crf, (corpus, _) = crf_of(model, templates), text_of(1)
    data, frozen, counts = frozen_and_counts(crf, corpus)
    found, free = crf.expect([(data, frozen)]), crf.expect([(data, LogPartition(0.3))])
    wanted = free.values.sum() + counts @ crf.weights
    assert found.values.sum() == pytest.approx(wanted, rel=1e-9)
    np.testing.assert_allclose(found.counts, free.counts + counts, atol=1e-9)


def test_training_on_a_frozen_chain_ends_where_that_on_expected_counts_does() -> None:
    crf, (corpus, codes) = crf_of(), text_of(1)
    data, frozen, counts = frozen_and_counts(crf, corpus)
    gold, one = (data, HardLabels(codes)), replace(crf, weights=np.zeros_like(crf.weights))
    two = replace(crf, weights=np.zeros_like(crf.weights))
    a = one.train([gold, (data, frozen)], PARAMS, options=STRICT)
    rest = [gold, (data, LogPartition(0.3))]
    b = two.train(rest, PARAMS, options=STRICT, expected_counts=counts)
    assert a.objective == pytest.approx(b.objective, rel=1e-9)
    np.testing.assert_allclose(one.marginals(data), two.marginals(data), atol=1e-6)


def test_a_frozen_chain_of_another_text_is_refused() -> None:
    crf, (corpus, _) = crf_of(), text_of(1)
    data, frozen, _ = frozen_and_counts(crf, corpus)
    short = replace(frozen, node=frozen.node[:-1])
    with pytest.raises(ValueError, match="not one of this text"):
        crf.evaluate([(data, short)])


def test_nothing_can_be_frozen() -> None:
    empty = FrozenChain.of([], 3)
    assert empty.node.shape == (0, 3)
    assert empty.edge.shape == (1, 3, 3)
