"""Potentials of a few sentences have the bits of those of a corpus."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sslbench.engine.corpus import Corpus
from sslbench.engine.crf import ChainCRF, ChainModel
from sslbench.engine.crf.quick import quick_encoder, quick_potentials
from sslbench.engine.features import TemplateFeaturizer
from sslbench.engine.features.dicts import DictFeatures, read_attributes
from support.features_oracle import corpus_of, random_sentences

TRAIN, TEST = random_sentences(0, 60), random_sentences(1, 20)
TEST[3] = [("never seen", "never"), *TEST[3]]
LABELS = ("A", "B", "C", "D")
TEMPLATES = [
    ["word[0]"],
    ["bias", "word[0]", "pos[-1]", "pos[1]"],
    ["word[-2]|word[-1]|word[0]", "pos[0]|word[1]", "word[1]|pos[1]|word[2]"],
    ["word.suffix2[0]", "word.lower.prefix1[1]", "word.shape[-1]|pos[0]", "pos[3]"],
]


def random_crf(featurizer: TemplateFeaturizer, train: Corpus, **options: Any) -> ChainCRF:
    rng = np.random.default_rng(2)
    codes = rng.integers(0, len(LABELS), train.n_tokens).astype(np.int32)
    mask = options.pop("mask", False)
    crf = ChainModel().prepare(featurizer, train, codes, LABELS, **options)
    crf.weights = rng.normal(size=crf.layout.size)
    if mask:
        crf.transition_mask = rng.random((len(LABELS) + 1, len(LABELS))) < 0.7
    return crf


def check(
    crf: ChainCRF, columns: tuple[str, ...], sentences: list[list[Any]], text: Corpus
) -> None:
    """Compare with the potentials of the corpus, all at once and sentence by sentence."""
    (want,) = crf.potentials(crf.encode(text))
    encoder = quick_encoder(crf, columns)
    assert encoder is not None
    tokens = [token for sentence in sentences for token in sentence]
    found = quick_potentials(crf, encoder, tokens, text.offsets)
    np.testing.assert_array_equal(found.node, want.node)
    np.testing.assert_array_equal(found.edge, want.edge)
    for sentence, first, last in zip(sentences, text.offsets, text.offsets[1:], strict=False):
        offsets = np.array([0, len(sentence)])
        one = quick_potentials(crf, encoder, sentence, offsets)
        np.testing.assert_array_equal(one.node, want.node[first:last])


@pytest.mark.parametrize(
    "options",
    [
        {"state_support": "all"},
        {"state_support": "observed", "mask": True},
        {"state_support": "observed", "use_start": False, "use_stop": False},
        {"state_support": "all", "use_start": False, "mask": True, "min_count": 2},
    ],
)
@pytest.mark.parametrize("templates", TEMPLATES)
def test_the_bits_are_those_of_a_corpus(templates: list[str], options: dict[str, Any]) -> None:
    crf = random_crf(TemplateFeaturizer(templates), corpus_of(TRAIN), **options)
    check(crf, ("word", "pos"), TEST, corpus_of(TEST))


def test_changed_weights_are_used() -> None:
    crf = random_crf(TemplateFeaturizer(["word[0]"]), corpus_of(TRAIN), state_support="observed")
    encoder = quick_encoder(crf, ("word", "pos"))
    assert encoder is not None
    offsets, text = np.array([0, len(TEST[0])]), corpus_of(TEST[:1])
    for change in (lambda w: w + 1.0, lambda w: np.multiply(w, 2.0, out=w)):
        crf.weights = change(crf.weights)
        (want,) = crf.potentials(crf.encode(text))
        found = quick_potentials(crf, encoder, TEST[0], offsets)
        np.testing.assert_array_equal(found.node, want.node)
        np.testing.assert_array_equal(found.edge, want.edge)
    crf.weights[0] = np.nan
    with pytest.raises(ArithmeticError, match="not finite"):
        quick_potentials(crf, encoder, TRAIN[0], np.array([0, len(TRAIN[0])]))


def dicts(sentences: list[list[tuple[str, str]]], numbers: bool) -> list[list[dict[str, Any]]]:
    return [
        [
            {"w": word, "long": len(word) > 3, "tags": [pos, word[:1], word[-1:]]}
            | ({"len": len(word) / 3, "more": len(pos)} if numbers else {})
            for word, pos in sentence
        ]
        for sentence in sentences
    ]


@pytest.mark.parametrize("numbers", [False, True])
@pytest.mark.parametrize("options", [{}, {"min_count": 3, "state_support": "observed"}])
def test_dicts_of_features(numbers: bool, options: dict[str, Any]) -> None:
    keys: dict[str, str] = {}
    train = read_attributes(dicts(TRAIN, numbers), keys)
    test = [
        [*row, {"more": 3.0, "w:unknown": 1.0}, {}] for row in read_attributes(dicts(TEST, numbers))
    ]
    features = DictFeatures.fit(train, keys)
    crf = random_crf(features.featurizer, features.corpus(train), **options)
    check(crf, (), test, features.corpus(test))


def test_other_models_are_tagged_as_a_corpus() -> None:
    train = corpus_of(TRAIN)
    for templates in (["word[0]", "edge: pos[0]"], ["bag: word[-1..1]"]):
        assert quick_encoder(random_crf(TemplateFeaturizer(templates), train), ("word",)) is None
    second = random_crf(TemplateFeaturizer(["word[0]"]), train)
    second.label_constraint = object()  # type: ignore[assignment]
    assert quick_encoder(second, ("word", "pos")) is None
