"""The hybrid: R by enumeration, its gradient, and the models that it contains as cases."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from sslbench import RunContext
from sslbench.engine.crf import HardLabels, LogPartition
from sslbench.engine.features import TemplateFeaturizer
from sslbench.testing.cases import method_case
from sslbench.testing.toys import toy_dataset
from sslbench_methods.hybrid.method import (
    Hybrid,
    cut,
    fit_gamma,
    held_out,
    mixture_of,
    part_crfs,
    train_parts,
)
from sslbench_methods.hybrid.mixture import MixedModels, Scores, feature_sets

PARAMS = {"max_iterations": 30, "rounds": 2}
PAPER: dict[str, Any] = Hybrid.Params.presets["paper"]


def fit(**params: Any) -> Any:
    return method_case(Hybrid, {**PARAMS, **params}, ()).fit(toy_dataset())


def mixture(seed: int = 0) -> Any:
    """A problem, trained parts, random tables, and R with random weights."""
    rng, problem = np.random.default_rng(seed), fit(rounds=1).problem
    params = Hybrid.Params(**PARAMS)
    models = MixedModels.build(
        problem.featurizer.templates, len(problem.labels), problem.unlabeled, 1
    )
    for table in (models.chain, models.state, models.arc):
        table[:] = np.log(rng.dirichlet(np.ones(3), table.shape)[..., 0])
    models.with_crfs(
        part_crfs(problem, np.arange(problem.labeled.n_sentences), params, RunContext())
    )
    crf = mixture_of(problem, len(models.crfs) + models.n_models)
    crf.weights[crf.factor_indices] = rng.uniform(0, 1, len(crf.factor_indices))
    return problem, params, models, crf


def scores_of(models: MixedModels, gamma: np.ndarray, corpus: Any, path: tuple[int, ...]) -> float:
    """sum_i gamma_i score_i + sum_j gamma_j log p_j of one sentence, model by model."""
    labels, total = np.array(path, np.int32), 0.0
    for weight, crf in zip(gamma, models.crfs, strict=False):
        (potentials,) = crf.potentials(crf.encode(corpus))
        total += weight * potentials.path_scores(labels).sum()
    bound, L = models.bind(corpus).tables, models.n_labels
    for j, weight in enumerate(gamma[len(models.crfs) :]):
        chain = models.chain[j].reshape(L + 1, L)
        previous = L
        for t, y in enumerate(path):
            total += weight * chain[previous, y]
            for slot, owner in enumerate(models.state_rows.owner):
                if owner == j and bound.state[t, slot] >= 0:
                    total += weight * models.state[bound.state[t, slot], y]
            for slot, owner in enumerate(models.arc_rows.owner):
                if owner == j and bound.arc[t, slot] >= 0:
                    total += weight * models.arc[bound.arc[t, slot], previous * L + y]
            previous = y
    return float(total)


def test_r_is_normalized_over_all_labelings() -> None:
    problem, _, models, crf = mixture()
    gamma, L = crf.weights[crf.factor_indices], len(crf.labels)
    lengths = problem.labeled.lengths
    sentence = int(np.flatnonzero(lengths <= 4)[0])
    corpus = problem.labeled.select([sentence])
    data = crf.encode(corpus, models.bind(corpus))
    paths = list(product(range(L), repeat=corpus.n_tokens))
    scores = np.array([scores_of(models, gamma, corpus, path) for path in paths])
    log_z = np.log(np.exp(scores - scores.max()).sum()) + scores.max()
    assert crf.evaluate([(data, LogPartition(-1.0))])[0] == pytest.approx(log_z)
    best = paths[int(scores.argmax())]
    assert tuple(crf.decode(data)) == best
    found = crf.evaluate([(data, HardLabels(np.array(best, np.int32)))])[0]
    assert found == pytest.approx(scores.max() - log_z)


def test_gradient_in_gamma_by_finite_differences() -> None:
    problem, _, models, crf = mixture(1)
    text = problem.labeled
    part = crf.encode(text, models.bind(text)), HardLabels(problem.label_codes(text))
    slope = crf.expect([part]).counts
    for place in crf.factor_indices:
        both = []
        for step in (1e-6, -1e-6):
            weights = crf.weights.copy()
            weights[place] += step
            both.append(crf.evaluate([part], weights).sum())
        assert slope[place] == pytest.approx((both[0] - both[1]) / 2e-6, rel=1e-5, abs=1e-4)


@pytest.mark.parametrize("own_weights", [False, True])
def test_gamma_is_a_maximum_with_nonnegative_weights(own_weights: bool) -> None:
    problem, _, models, crf = mixture(2)
    params = Hybrid.Params(own_weights=own_weights)
    n = problem.labeled.n_sentences
    halves = [np.arange(n // 2), np.arange(n // 2, n)]
    texts = [held_out(problem, half, models.crfs) for half in halves]
    best = fit_gamma(crf, models, texts, params)
    text = problem.labeled
    part = crf.encode(text, models.bind(text)), HardLabels(problem.label_codes(text))
    gamma, weights = crf.weights[crf.factor_indices], crf.weights
    slope = crf.expect([part]).counts - weights / params.gamma_sigma2
    own = np.setdiff1d(np.arange(len(weights)), crf.factor_indices)
    assert (gamma >= 0).all()
    assert np.abs(slope[crf.factor_indices][gamma > 0]).max() < 0.05
    assert slope[crf.factor_indices][gamma == 0].max(initial=-1.0) < 0.05
    assert (np.abs(slope[own]).max() < 0.05) == own_weights == weights[own].any()
    penalty = weights @ weights / (2 * params.gamma_sigma2)
    assert best == pytest.approx(crf.evaluate([part]).sum() - penalty)


def test_each_sentence_is_scored_by_crfs_that_have_not_seen_it() -> None:
    problem, _, models, _ = mixture()
    params = Hybrid.Params(**PARAMS)
    texts = train_parts(models, problem, params, RunContext())
    seen = np.concatenate([each.text.column("word").codes for each in texts])
    assert len(texts) == 5
    assert sorted(seen.tolist()) == sorted(problem.labeled.column("word").codes.tolist())
    for each in texts:
        inside = [Scores.of(crf, each.text) for crf in models.crfs]
        for own, other in zip(inside, each.scores, strict=True):
            assert not np.allclose(own.node, other.node)
    whole = part_crfs(problem, np.arange(problem.labeled.n_sentences), params, RunContext())
    for trained, crf in zip(models.crfs, whole, strict=True):
        assert np.array_equal(trained.weights, crf.weights)


def test_one_part_with_weight_one_is_the_supervised_crf() -> None:
    fitted = fit(parts="one", **PAPER)
    problem, tagger = fitted.problem, fitted.own_tagger
    crf, models = tagger.crf, tagger.models
    crf.weights[:] = 0.0
    crf.weights[crf.factor_indices[0]] = 1.0
    own, _ = cut(problem.labeled.n_sentences, 0.2, np.random.default_rng([0, 0x6D657468]))
    labeled = problem.labeled.select(own)
    params = Hybrid.Params(**PARAMS)
    alone = replace(problem, labeled=labeled, dev=None).crf(params)
    alone.train([(alone.encode(labeled), HardLabels(problem.label_codes(labeled)))], params)
    test = toy_dataset().splits["test"]
    assert np.allclose(tagger.predict_marginals(test), alone.predict_marginals(test), atol=1e-12)
    assert tagger.predict(test).tolist() == alone.predict(test).tolist()
    assert len(models.crfs) == 1


def test_on_the_same_data_the_generative_models_get_no_weight() -> None:
    """The paper's reason to cut the labeled sentences."""

    def share(held_out: float) -> float:
        fitted = fit(held_out=held_out, parts="one", gamma_sigma2=100.0, sigma2=1000.0, **PAPER)
        gamma = np.array(fitted.trained.run.trace["gamma"])
        return float(gamma[1:].sum() / gamma.sum())

    assert share(0.0) < 0.5 * share(0.5)


@pytest.mark.parametrize(
    ("n", "held_out", "sizes"),
    [(10, 0.2, (8, 2)), (2, 0.2, (1, 1)), (1, 0.2, (1, 1)), (5, 0, (5, 5))],
)
def test_cut(n: int, held_out: float, sizes: tuple[int, int]) -> None:
    own, other = cut(n, held_out, np.random.default_rng(0))
    assert (len(own), len(other)) == sizes
    assert sorted({*own.tolist(), *other.tolist()}) == list(range(n))


def test_sets_of_features() -> None:
    templates = [
        *("word[0]", "word[-1]|word[0]", "pos[0]", "word.suffix2[0]", "word[0]|pos[0]"),
        "edge: pos[0]",
        "bias",
    ]
    sets = feature_sets(TemplateFeaturizer(templates, lambda corpus: np.zeros((0, 1))))
    assert [list(map(str, each.templates)) for each in sets] == [
        templates[:2],
        templates[2:3],
        templates[3:4],
        templates[4:],
    ]
    assert [each.dense is not None for each in sets] == [False, False, False, True]
    assert len(feature_sets(TemplateFeaturizer(["word[0]"]))) == 1
