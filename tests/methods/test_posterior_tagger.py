"""Tagging with the regularized posterior q itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sslbench.engine.corpus import Corpus, CorpusShards
from sslbench.engine.crf import ChainModel, read_model
from sslbench.engine.crf.chain_model import SecondOrderModel
from sslbench.engine.errors import UserError
from sslbench.engine.types import F64
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.inputs.problem import Problem
from sslbench.method import GraphParams
from sslbench.taggers import PosteriorTagger
from sslbench_methods.graph_pr.method import PR1, GraphPR
from support.graph_problems import OPTIONS, random_problem
from support.texts import corpus_of

pytestmark = pytest.mark.usefixtures("own_cache")


def fitted(problem: Problem, method: type[GraphPR | PR1] = GraphPR, **options: Any) -> Any:
    rounds = {"em_iters": 2} if method is GraphPR else {}
    values = {"lam": 1.0, "sigma2": 10.0, "decoding": "posterior"}
    params = {**OPTIONS, **rounds, **values, **options}
    return method().fit(problem, method.Params(**params), RunContext())


def q_of(tagger: PosteriorTagger, text: Corpus) -> F64:
    assert tagger.extra is not None
    return tagger.crf.marginals(tagger.crf.encode(text), tagger.extra.of(text))


@pytest.mark.parametrize("model", [ChainModel(), SecondOrderModel()], ids=["crf1", "crf2"])
def test_it_is_the_fixed_point_of_the_e_step(model: ChainModel) -> None:
    """a = -lam dh/dm, with the mean marginals of vertices taken token by token and h's derivative
    from the dense Laplacian."""
    problem = replace(random_problem(7), model=model)
    tagger = fitted(problem, lam=0.7, decode_from="q")
    assert isinstance(tagger, PosteriorTagger)
    graph = problem.graph(GraphParams(neighbors=4, symmetry="mutual"), RunContext())
    known = graph.text
    gold = np.eye(len(problem.labels))[problem.label_codes(problem.labeled)]
    m = np.concatenate([gold, *(q_of(tagger, shard) for shard in problem.unlabeled)])
    V = known.n_vertices
    total, n = np.zeros((V, len(problem.labels))), np.zeros(V)
    for row, vertex in zip(m, known.vertex_of, strict=True):
        if vertex >= 0:
            total[vertex] += row
            n[vertex] += 1
    mean, W = total / n[:, None], graph.W.toarray()
    G = 2.0 / n[:, None] * (W.sum(axis=1)[:, None] * mean - W @ mean)
    assert np.abs(tagger.extra.scores[:-1]).max() > 0.05
    np.testing.assert_allclose(tagger.extra.scores[:-1], -0.7 * G, atol=1e-3)
    assert not tagger.extra.scores[-1].any()


def test_its_accuracy_stands_beside_the_models() -> None:
    problem = random_problem(7)
    model, q = fitted(problem), fitted(problem, decode_from="q")
    assert model.extra is None
    assert set(model.variants) == {"pr1", "q"}
    assert set(q.variants) == {"pr1"}
    (text, *_) = problem.unlabeled
    wanted = q_of(q, text).argmax(axis=1)
    np.testing.assert_array_equal(q.predict(text), wanted)
    np.testing.assert_array_equal(model.variants["q"].predict(text), wanted)
    assert (wanted != model.predict(text)).any()
    only = fitted(problem, PR1)
    assert set(only.variants) == {"q"}
    np.testing.assert_array_equal(only.crf.weights, model.variants["pr1"].crf.weights)


def test_of_ngrams_that_the_graph_does_not_have_the_crf_alone_decides() -> None:
    tagger = fitted(random_problem(7), decode_from="q")
    text = corpus_of([["new", "words", "everywhere"], ["none"]])
    plain = tagger.crf.marginals(tagger.crf.encode(text)).argmax(axis=1)
    np.testing.assert_array_equal(tagger.predict(text), plain)


def test_saved_and_restored(tmp_path: Path) -> None:
    problem = random_problem(7)
    tagger = fitted(problem, decode_from="q")
    tagger.save(tmp_path / "model")
    kind, arrays, facts = read_model(tmp_path / "model")
    restored = GraphPR.restore(arrays, facts)
    assert kind == "graph_pr"
    assert restored.extra is not None
    (text, *_) = problem.unlabeled
    np.testing.assert_array_equal(restored.predict(text), tagger.predict(text))
    for damaged in (
        arrays["offset"][1:],
        arrays["offset"].astype(np.float32),
        arrays["offset"] * np.nan,
    ):
        with pytest.raises(ValueError, match="scores are"):
            GraphPR.restore({**arrays, "offset": damaged}, facts)


@pytest.mark.parametrize(
    "options", [{"penalty": "label_in_sentence", "required_label": "A"}, {"decoding": "viterbi"}]
)
def test_it_needs_a_graph_and_marginals(options: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="decode_from"):
        fitted(random_problem(7), decode_from="q", **options)


def test_without_unlabeled_text_there_is_no_q() -> None:
    problem = random_problem(7)
    (text, *_) = problem.unlabeled
    empty = replace(problem, unlabeled=CorpusShards(text.select(np.empty(0, np.int64))))
    assert fitted(empty, decode_from="q").extra is None
