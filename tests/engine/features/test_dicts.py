"""Tokens that are dicts of features."""

from __future__ import annotations

import numpy as np
import pycrfsuite
import pytest

from sslbench.engine.corpus import Corpus
from sslbench.engine.errors import UserError
from sslbench.engine.features.dicts import DictFeatures, read_attributes

TEXT = [
    [{"w": "a", "up": True, "len": 2.5, "n": {"x": "1", "y": 3}}, {"w": "b", "tags": ["p", "q"]}],
    [{"w": "c", "up": False, "len": 0, "BOS": 1}, ["w:a", "BOS"], {}],
]


def fitted(text: list) -> DictFeatures:
    keys: dict[str, str] = {}
    return DictFeatures.fit(read_attributes(text, keys), keys)


def attributes(features: DictFeatures, text: list) -> list[dict[str, float]]:
    """The attributes of each token as the model reads them."""
    train, corpus = (features.corpus(read_attributes(part)) for part in (TEXT, text))
    index = features.featurizer.index(train)
    encoded = index.encode(corpus)
    found = [{index.node_text(i): 1.0 for i in column if i >= 0} for column in encoded.node.T]
    if encoded.dense is not None:
        for token, row in zip(found, encoded.dense, strict=True):
            token.update({name: x for name, x in zip(features.numbers, row, strict=True) if x})
    return found


def peer(token: object) -> dict[str, float]:
    """The attributes of python-crfsuite; it may not know those with the number 0."""
    (found,) = pycrfsuite.ItemSequence([token]).items()
    return {name: value for name, value in found.items() if value}


def test_attributes_are_those_of_crfsuite() -> None:
    features = fitted(TEXT)
    assert features.numbers == ("len", "n:y")
    assert attributes(features, TEXT) == [peer(token) for row in TEXT for token in row]


def test_later_text_may_have_other_features_and_more_at_a_token() -> None:
    features = fitted(TEXT)
    later = [[{"w": "z", "new": "x", "len": -1}, ["w:a", "w:b", "w:c", "tags:p", "tags:q", "up"]]]
    assert attributes(features, later) == [{"len": -1.0}, peer(later[0][1])]


def test_repeated_attributes_add_up() -> None:
    (row,) = read_attributes([[["a", "a"], {"b": ["x", "x"], "b:x": 1}]])
    assert row == [{"a": 2.0}, {"b:x": 3.0}]


def test_a_key_may_hold_texts_and_numbers() -> None:
    features = fitted([[{"a": "x"}, {"a": 2.5}]])
    corpus = features.corpus(read_attributes([[{"a": 2.5}, {"a": "x"}]]))
    np.testing.assert_array_equal(features.featurizer.dense(corpus), [[2.5], [0.0]])


def test_values_as_keys_take_no_more_columns() -> None:
    texts = [[{"w": f"x{i}", "v": f"y{i}"}] for i in range(300)]
    keys = [[{f"w=x{i}": 1, f"v=y{i}": True}] for i in range(300)]
    assert [bag.width for bag in fitted(texts).bags] == [1, 1]
    assert [bag.width for bag in fitted(keys).bags] == [1, 1]
    lists = fitted([[[f"x{i}", f"y{i}"]] for i in range(300)])
    assert sum(bag.width for bag in lists.bags) < 110


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "feature 'a' is nan"),
        (np.float32("inf"), "feature 'a' is inf"),
        (None, "feature 'a' is None"),
        (b"x", "feature 'a' is a bytes"),
        ([1], "a part of feature 'a' is 1, not a text"),
        ({"b": {"c": -np.inf}}, "feature 'c' is -inf"),
        ({1: "x"}, "the name of a feature is 1, not a text"),
    ],
)
def test_a_value_that_cannot_be_used_has_a_place(value: object, message: str) -> None:
    with pytest.raises(UserError, match=f"sentence 2, token 3: {message}"):
        read_attributes([[{}], [{}, {"x": 1}, {"a": value}]])


def test_numbers_are_limited() -> None:
    with pytest.raises(UserError, match="6,000 features with numbers"):
        fitted([[{f"w{i}": 0.5 for i in range(6000)}]])


def test_corpora_share_vocabularies() -> None:
    features, shared = fitted(TEXT), {}
    parts = [features.corpus(read_attributes([row]), shared) for row in TEXT]
    assert Corpus.concatenate(parts).n_tokens == 5
