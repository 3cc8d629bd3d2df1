"""Tokens that are dicts of features."""

from __future__ import annotations

import numpy as np
import pytest

from sslbench.engine.corpus import Corpus
from sslbench.engine.errors import UserError
from sslbench.engine.features.dicts import DictFeatures

TEXT = [
    [{"w": "a", "up": True, "len": 2.5, "n": {"x": "1", "y": 3}}, {"w": "b", "tags": ["p", "q"]}],
    [{"w": "c", "up": False, "len": 0, "BOS": 1}],
]


def test_every_value_has_a_column() -> None:
    found = DictFeatures.fit(TEXT)
    assert found.texts == ("w", "up", "n:x", "tags:p", "tags:q", "BOS")
    assert found.numbers == ("len", "n:y")
    corpus = Corpus.from_sentences(found.columns(TEXT))
    np.testing.assert_array_equal(found.dense(corpus), [[2.5, 3.0], [0.0, 0.0], [0.0, 0.0]])
    assert corpus.column("f0").strings() == ["a", "b", "c"]
    assert corpus.column("f1").strings() == ["1.0", "", ""]
    attributes = found.featurizer.index(corpus).encode(corpus)
    assert attributes.node.shape == (6, 3)
    assert attributes.dense is not None


def test_later_text_may_have_other_features() -> None:
    found = DictFeatures.fit(TEXT)
    later = Corpus.from_sentences(found.columns([[{"w": "z", "new": "x", "len": 1}, {}]]))
    assert later.column("f0").strings() == ["z", ""]
    np.testing.assert_array_equal(found.dense(later), [[1.0, 0.0], [0.0, 0.0]])


def test_a_key_with_texts_and_numbers_holds_texts() -> None:
    found = DictFeatures.fit([[{"a": "x"}, {"a": 2.5}]])
    assert (found.texts, found.numbers) == (("a",), ())
    assert found.columns([[{"a": 2.5}]]) == {"f0": [["2.5"]]}


def test_values_as_keys_are_refused() -> None:
    with pytest.raises(UserError, match="at most 5,000"):
        DictFeatures.fit([[{f"w={i}": 1 for i in range(6000)}]])
