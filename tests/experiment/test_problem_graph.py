"""A graph that reaches few tokens says so."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from sslbench.engine.corpus import Corpus
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.inputs import problem_graph as graphs
from sslbench.experiment.inputs.problem_graph import TextVertices, problem_graph
from sslbench_methods.graph_self_training.method import GraphSelfTraining


def test_tokens_with_edges_are_counted() -> None:
    W = csr_array(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]], dtype=np.float64))
    gold = np.zeros((3, 1)), np.zeros(3, dtype=np.bool_)
    text = TextVertices(np.array([0, 2, 2, 1, -1, 2, 0], dtype=np.int32), 3, 1, *gold)
    assert text.with_edges(W) == pytest.approx(2 / 6)  # a token outside of the graph has none
    assert TextVertices(np.zeros(1, dtype=np.int32), 3, 1, *gold).with_edges(W) == 0.0


@pytest.mark.parametrize("least", [0.1, 1.1])
def test_a_graph_of_isolated_tokens_warns(least: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "LEAST_REACHED", least)
    corpus, run = Corpus.from_sentences({"word": [["a", "b", "a"]] * 20}), RunContext()
    labels = np.zeros(3, dtype=np.int32)
    problem_graph(corpus, labels, 1, GraphSelfTraining.Params(), run)
    assert run.trace["graph"]["edges"] > 0
    warned = any("% of the unlabeled tokens" in line for line in run.warnings)
    assert warned == (least > 1)
