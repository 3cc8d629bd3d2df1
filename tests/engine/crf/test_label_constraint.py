"""A CRF with a label constraint, against enumeration of all label sequences."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.optimize import check_grad

from sslbench.engine.corpus import Corpus
from sslbench.engine.crf import ChainCRF, HardLabels, LogPartition, Objective
from sslbench.engine.crf.entropy import Entropy
from sslbench.engine.features import TemplateFeaturizer
from sslbench.plugins import registry
from sslbench_methods.graph_self_training.algorithm import decode
from support.crf_oracle import log_sum
from support.label_constraints import CONSTRAINT, labeled


def random_crf(order: int, rng: np.random.Generator) -> tuple[ChainCRF, Corpus]:
    """A CRF with a label constraint and random weights, and text with constrained tokens."""
    text = labeled([["a", ",", "b"], ["."], ["b", "a", ".", ",", "c"], ["c", "a"]], "ABCPCABCABC")
    text = CONSTRAINT.impose(text)
    names, model = ("A", "B", "C", "P")[-3:], f"crf{order}"
    crf = registry().model(model).load()()
    built = crf.prepare(
        TemplateFeaturizer(["word[0]", "word[-1]", "edge: word[0]"]),
        text,
        np.zeros(text.n_tokens, np.int32),
        names,
        label_constraint=CONSTRAINT,
    )
    built.weights[:] = rng.normal(size=built.layout.size)
    return built, text


def path_scores(crf: ChainCRF, sentence: Corpus) -> tuple[list[tuple[int, ...]], np.ndarray]:
    """All label sequences of a sentence and their log-probabilities without the constraint."""
    free = replace(crf, label_constraint=None)
    data = free.encode(sentence)
    paths = list(product(range(len(crf.labels)), repeat=sentence.n_tokens))
    found = []
    for path in paths:
        objective = Objective(crf.layout, [(data, HardLabels(np.array(path, np.int32)))], np.inf)
        found.append(objective.value_and_gradient(crf.weights, np.empty(crf.layout.size)))
    return paths, np.array(found)


@pytest.mark.parametrize("order", [1, 2])
def test_the_model_is_the_one_without_rule_given_that_it_is_obeyed(order: int) -> None:
    rng = np.random.default_rng(order)
    crf, text = random_crf(order, rng)
    for number in range(text.n_sentences):
        sentence = text.select(np.array([number]))
        only = CONSTRAINT.forced_labels(sentence, crf.labels)
        paths, scores = path_scores(crf, sentence)
        obeys = [all(o in (-1, y) for o, y in zip(only, path, strict=True)) for path in paths]
        assert (only >= 0).any() == (not all(obeys))
        scores = np.where(obeys, scores, -np.inf)
        p = np.exp(scores - log_sum(scores))
        data = crf.encode(sentence)
        wanted = np.zeros((sentence.n_tokens, len(crf.labels)))
        for path, probability in zip(paths, p, strict=True):
            wanted[np.arange(len(path)), path] += probability
        np.testing.assert_allclose(crf.marginals(data), wanted, atol=1e-12)
        np.testing.assert_allclose(crf.marginals(crf.reencode(data)), wanted, atol=1e-12)
        best = paths[int(np.argmax(scores))]
        assert crf.decode(data).tolist() == list(best)
        term = HardLabels(np.array(best, np.int32))
        value = Objective(crf.layout, [(data, term)], np.inf).value_and_gradient(
            crf.weights, np.empty(crf.layout.size)
        )
        assert value == pytest.approx(np.log(p.max()), abs=1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_gradients_by_differences(order: int) -> None:
    rng = np.random.default_rng(10 + order)
    crf, text = random_crf(order, rng)
    data = crf.encode(text)
    gold = HardLabels(crf.decode(data))
    parts = [(data, gold), (data, Entropy(0.3)), (data, LogPartition(0.7))]
    objective = Objective(crf.layout, parts, 2.0)

    def value(weights: np.ndarray) -> float:
        return objective.value_and_gradient(weights, np.empty_like(weights))

    def gradient(weights: np.ndarray) -> np.ndarray:
        out = np.empty_like(weights)
        objective.value_and_gradient(weights, out)
        return out

    slope = gradient(crf.weights)
    assert np.isfinite(slope).all()
    assert check_grad(value, gradient, crf.weights) < 1e-5 * max(1, np.abs(slope).max())


def test_a_mixture_without_transitions_still_obeys() -> None:
    crf, text = random_crf(1, np.random.default_rng(5))
    data, L = crf.encode(text), len(crf.labels)
    mixed = np.full((text.n_tokens, L), 1 / L)
    mixed[:, 0] += 0.1
    only = CONSTRAINT.forced_labels(text, crf.labels)
    for omega in (0.0, 1.0):
        path = decode(crf, data, mixed, omega)
        assert (path == only)[only >= 0].all()
    assert (decode(crf, data, mixed, 0.0) == 0)[only < 0].all()
