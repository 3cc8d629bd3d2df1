"""What each method teaches in a forecast: the evidence of its graph or of its model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sslbench import Problem, RunContext, TrainingParams
from sslbench.cli.messages import forecast_lines
from sslbench.engine.corpus import Corpus
from sslbench.engine.crf import ChainCRF, EncodedCorpus
from sslbench.engine.features import TemplateFeaturizer
from sslbench.engine.graph.lookup import NgramScores
from sslbench.experiment.checks.forecast import Fold, fold_problem, foresee, held_out
from sslbench.experiment.inputs.folding import folds
from sslbench.plugins import registry
from sslbench_methods.entropy_regularization.method import EntropyRegularization
from sslbench_methods.graph_lift.method import GraphLift
from sslbench_methods.graph_pr.e_step import Backtracking, RegularizedPosterior
from sslbench_methods.graph_pr.method import EVIDENCE_STEPS, PR1, GraphPR, penalty_of
from sslbench_methods.graph_self_training.method import GraphSelfTraining, TypeSelfTraining
from sslbench_methods.jess_cm.method import JessCM
from sslbench_methods.selective_self_training import SelectiveSelfTraining
from sslbench_methods.self_training import SelfTraining
from sslbench_methods.virtual_evidence.method import VirtualEvidenceTraining
from support.graph_problems import problem_of, random_problem

pytestmark = pytest.mark.usefixtures("own_cache")
METHODS = (
    EntropyRegularization,
    GraphLift,
    GraphPR,
    GraphSelfTraining,
    JessCM,
    PR1,
    SelectiveSelfTraining,
    SelfTraining,
    TypeSelfTraining,
    VirtualEvidenceTraining,
)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_the_evidence_of_a_method(method: type[Any]) -> None:
    """Distributions of the right tokens: they mostly agree with what the model says of these."""
    problem = random_problem(7)
    first, second = (
        list(held_out(method(), problem, method.Params(), RunContext())) for _ in range(2)
    )
    assert len(first) == 5
    for one, other in zip(first, second, strict=True):
        assert np.array_equal(one.taught, other.taught)
        assert np.allclose(one.taught.sum(axis=1), 1.0)
        assert (one.taught >= 0).all()
    same = np.concatenate([p.taught.argmax(axis=1) == p.model.argmax(axis=1) for p in first])
    assert same.mean() > 0.7


def trained_fold(params: TrainingParams) -> tuple[Problem, ChainCRF, EncodedCorpus, Corpus]:
    problem = random_problem(10)
    train, test = folds(problem.labeled.n_sentences, 5)[2]
    part = fold_problem(problem, train, test, {})
    crf = part.crf(params)
    crf.train([part.encode(crf).labeled], params)
    hidden = next(iter(part.unlabeled))
    return part, crf, crf.encode(hidden), hidden


def test_virtual_evidence_is_that_of_the_vertices_of_the_held_out_text() -> None:
    """Their vertices looked up as those of new text."""
    params, run = VirtualEvidenceTraining.Params(alpha=3.0), RunContext()
    part, crf, data, hidden = trained_fold(params)
    method = VirtualEvidenceTraining()
    q, _ = method.propagated(part, params, run)
    at = part.graph(params, run).lookup.vertices(hidden)
    expected = crf.marginals(data, 3.0 * np.where((at >= 0)[:, None], q[at], 0.0))
    assert not np.allclose(expected, crf.marginals(data))
    assert np.allclose(method.evidence(Fold(part, crf, data), params, run), expected)


def test_regularized_posteriors_are_those_of_the_vertices_of_the_held_out_text() -> None:
    params, run = GraphPR.Params(lam=2.0), RunContext()
    part, crf, data, hidden = trained_fold(params)
    penalty, lookup = penalty_of(part, params, run)
    text = part.encode(crf).unlabeled
    posterior = RegularizedPosterior(crf, text, penalty, params.lam)
    model = posterior.model(crf.weights)
    q, _ = posterior.minimize(model, model, Backtracking(most_steps=EVIDENCE_STEPS))
    assert lookup is not None
    moved = replace(crf, weights=q.weights)
    expected = moved.marginals(data, NgramScores(lookup, q.offset).of(hidden))
    assert not np.allclose(expected, crf.marginals(data))
    assert np.allclose(GraphPR().evidence(Fold(part, crf, data), params, run), expected)


def test_the_registered_methods_with_evidence_are_all_tested() -> None:
    found = {info.load() for info in registry().methods.values()}
    assert {method for method in found if hasattr(method, "evidence")} == set(METHODS)


@pytest.mark.parametrize("informed", [True, False])
def test_a_graph_that_knows_more_than_the_model(informed: bool) -> None:
    """Each word occurs in one sentence, so that a CRF of words alone can only guess its label; the
    words around it tell the label, or are the same for both labels.
    """
    rng = np.random.default_rng(0)
    around = [("la", "ra"), ("le", "re") if informed else ("la", "ra")]
    sides = rng.integers(0, 2, 90)
    text = [[around[side][0], f"x{i}", around[side][1]] for i, side in enumerate(sides)]
    gold = [label for side in sides[:40] for label in ("P", "AB"[side], "P")]
    problem = problem_of(text[:40], gold, text[40:])
    problem = replace(problem, featurizer=TemplateFeaturizer(["word[0]"]))
    run = RunContext()
    foresee(GraphLift(), problem, GraphLift.Params(), run)
    found = run.trace["forecast"]
    assert (found["agreement"] > 0.5) == informed
    assert (found["taught_right"] > found["model_right"] + 0.1) == informed


def test_parts_of_the_text_have_no_forecast() -> None:
    run = RunContext()
    params = GraphSelfTraining.Params(sentences=5)
    foresee(GraphSelfTraining(), random_problem(7), params, run)
    assert "forecast" not in run.trace
    assert forecast_lines(run.trace, "graph_self_training") == []
