"""The methods over a graph, from a problem to a tagger."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sslbench.engine.graph.build", reason="no graphs in this installation")

from sslbench.engine.corpus import CorpusShards, HeadShards
from sslbench.engine.graph.build import build_graph
from sslbench.engine.graph.options import GraphOptions
from sslbench.engine.types import I32
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.inputs.problem import Problem, without_labels
from sslbench.experiment.inputs.problem_graph import registered_similarity
from sslbench_methods.graph_self_training.method import GraphSelfTraining, TypeSelfTraining
from sslbench_methods.supervised import Supervised
from sslbench_methods.virtual_evidence.method import VirtualEvidenceTraining
from support.eight_sentences import eight_sentences

pytestmark = pytest.mark.usefixtures("own_cache")


METHODS = {
    "graph_self_training": GraphSelfTraining,
    "type_self_training": TypeSelfTraining,
    "virtual_evidence": VirtualEvidenceTraining,
}


@pytest.fixture(scope="module")
def problem() -> Problem:
    """Eight labeled sentences; one of them and sixteen others without labels, in two shards."""
    return eight_sentences([0, *range(8, 24)])


def fitted(name: str, problem: Problem, **options: Any) -> tuple[I32, dict[str, Any]]:
    """Labels of the development sentences, and the record."""
    method, run = METHODS[name](), RunContext()
    fit = method.fit(problem, method.Params(**options), run)
    return fit.predict(without_labels(problem.dev)), run.trace


@pytest.mark.parametrize("name", METHODS)
def test_the_record(name: str, problem: Problem) -> None:
    labels, trace = fitted(name, problem)
    json.dumps(trace)
    assert labels.shape == (problem.dev.n_tokens,)
    assert trace["graph"]["vertices"] > trace["graph"]["labeled_vertices"] > 0
    assert 0 < trace["graph"]["known_tokens"] < 1
    assert trace["rounds"]
    assert ("edges" in trace["graph"] or "frac_unreachable" in trace["graph"]) == (
        name != "type_self_training"
    )


def test_no_steps_are_no_graph(problem: Problem) -> None:
    graph, trace = fitted("graph_self_training", problem, steps=0, eta=0.5, rounds=2)
    types, other = fitted("type_self_training", problem, eta=0.5, rounds=2)
    np.testing.assert_array_equal(graph, types)
    for key in ("supervised", "rounds", "stopped", "pruned_weights"):
        assert trace[key] == other[key]


def test_sentences_that_are_counted_only(problem: Problem) -> None:
    head = replace(problem, unlabeled=HeadShards(problem.unlabeled, 9))
    wanted, small = fitted("graph_self_training", head, rounds=2)
    labels, trace = fitted("graph_self_training", problem, rounds=2, sentences=9, count="graph")
    np.testing.assert_array_equal(labels, wanted)
    assert trace["rounds"] == small["rounds"]
    _, counted = fitted("graph_self_training", problem, rounds=2, sentences=9)
    for key in ("vertices", "labeled_vertices", "tokens"):
        assert counted["graph"][key] == small["graph"][key]
    text = problem.text("word")
    first = problem.labeled.n_sentences + 9
    given = build_graph(
        text.between(0, first),
        registered_similarity("subramanya2010"),
        GraphOptions(),
        counting_text=text.between(first, text.n_sentences),
    )
    assert counted["graph"]["mean_weight"] == pytest.approx(given.W.data.mean(), rel=1e-12)
    assert counted["graph"]["mean_weight"] != small["graph"]["mean_weight"]


def test_the_graph_matters(problem: Problem) -> None:
    objectives = set()
    for options in ({}, {"propagation": "optimum"}, {"mu": 0.0}):
        trace = fitted("graph_self_training", problem, eta=0.5, rounds=2, **options)[1]
        objectives.add(trace["rounds"][-1]["objective"])
    assert len(objectives) == 3


def test_both_solvers_gain(problem: Problem) -> None:
    em = fitted("virtual_evidence", problem, rounds=5, tolerance=0.0)[1]
    direct = fitted("virtual_evidence", problem, solver="direct")[1]
    ends = [[found["start"], *found["rounds"]] for found in (em, direct)]
    assert all(rounds[-1]["F"] > rounds[0]["F"] for rounds in ends)
    assert ends[0][0]["F"] == pytest.approx(ends[1][0]["F"], rel=1e-3)
    slow, fast = (rounds[-1]["F"] - rounds[0]["F"] for rounds in ends)
    assert 0.5 * fast < slow < fast
    assert 0 < em["evidence_tokens"] <= 1
    scaled = fitted("virtual_evidence", problem, normalize=True, rounds=1)[1]
    assert scaled["start"]["F"] != em["start"]["F"]


def test_without_unlabeled_text(problem: Problem) -> None:
    alone = replace(problem, unlabeled=CorpusShards(next(iter(problem.unlabeled)).select([])))
    for name in METHODS:
        method = METHODS[name]()
        params = method.Params(sigma2=10.0)
        fit = method.fit(alone, params, RunContext())
        wanted = Supervised().fit(alone, Supervised.Params(sigma2=10.0), RunContext())
        np.testing.assert_array_equal(fit.weights, wanted.weights)


def test_vertices_of_little_mass_are_no_evidence(problem: Problem) -> None:
    known = [
        fitted("virtual_evidence", problem, rounds=1, least_mass=mass)[1].get("evidence_tokens")
        for mass in (0.0, 0.5, 1e9)
    ]
    assert known[0] > known[1] > known[2] == 0
