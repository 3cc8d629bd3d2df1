"""Models of labels alone: what is forbidden is replaced, and other terms are refused."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from sslbench import UserError
from sslbench.engine.crf import Entropy, HardLabels, TrainingParams
from support.lexicon_model import LexiconModel
from support.synth_text import synth_text

PARAMS = TrainingParams()


def problem(mask: Any = None) -> Any:
    corpus = synth_text(30, seed=3, lexicon=40)
    codes = corpus.column("label").codes.astype(np.int32)
    labels = corpus.column("label").vocabulary.strings
    model = LexiconModel().prepare(
        None, corpus, codes, labels, text=(), transition_mask=mask, label_constraint=None
    )
    return model, corpus, codes


def test_its_labels_are_given() -> None:
    model, corpus, codes = problem()
    text = model.encode(corpus)
    result = model.train([(text, HardLabels(codes))], PARAMS)
    assert (result.status, result.converged) == ("learned", True)
    words = corpus.column("word").strings()
    for word, label in zip(words, model.decode(text).tolist(), strict=True):
        own = codes[[each == word for each in words]]
        assert label == np.bincount(own, minlength=len(model.labels)).argmax()
    marginals = model.marginals(text)
    assert (marginals.argmax(axis=1) == model.decode(text)).all()
    assert marginals.max(axis=1).min() > 0.999


def test_weights_of_sentences_count() -> None:
    model, corpus, codes = problem()
    text = model.encode(corpus)
    once = model.train([(text, HardLabels(codes))], PARAMS), model.parameters
    half = HardLabels(codes, np.full(corpus.n_sentences, 0.5))
    model.train([(text, half), (text, half)], PARAMS)
    np.testing.assert_allclose(model.parameters, once[1])


def test_a_forbidden_label_is_replaced_by_the_nearest_allowed_sequence() -> None:
    free, corpus, codes = problem()
    L = len(free.labels)
    mask = np.random.default_rng(2).random((L + 1, L)) < 0.5
    mask[np.arange(L), np.arange(L)] = True
    model, *_ = problem(mask)
    for each in (free, model):
        each.train([(each.encode(corpus), HardLabels(codes))], PARAMS)
    short = corpus.select(np.flatnonzero(np.diff(corpus.offsets) <= 4))
    wanted, found = (each.decode(each.encode(short)) for each in (free, model))
    changed = 0
    for a, b in zip(short.offsets[:-1], short.offsets[1:], strict=True):
        allowed = [
            path
            for path in product(range(L), repeat=int(b - a))
            if mask[L, path[0]] and all(mask[path[i], path[i + 1]] for i in range(len(path) - 1))
        ]
        agree = max(sum(x == y for x, y in zip(path, wanted[a:b], strict=True)) for path in allowed)
        assert tuple(found[a:b].tolist()) in allowed
        assert (found[a:b] == wanted[a:b]).sum() == agree
        changed += int((found[a:b] != wanted[a:b]).any())
    assert changed


def test_other_terms_are_refused() -> None:
    model, corpus, _ = problem()
    text = model.encode(corpus)
    with pytest.raises(UserError, match="lexicon is trained on labels alone, not Entropy"):
        model.train([(text, Entropy(1.0))], PARAMS)
    with pytest.raises(UserError, match="trained on labels alone"):
        model.gradient([(text, Entropy(1.0))], np.empty_like(model.parameters))
