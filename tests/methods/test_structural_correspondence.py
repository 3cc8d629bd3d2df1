"""Structural correspondence: pivots by hand, labeled text among that of the predictors."""

from __future__ import annotations

import numpy as np

from sslbench.engine.corpus import Column, Corpus, CorpusShards, Vocabulary
from sslbench.experiment.data import Dataset
from sslbench.experiment.inputs.problem import Problem
from sslbench.testing.cases import FittedCase, method_case
from sslbench.testing.toys import corpus_of, toy_dataset
from sslbench_methods.aso_semi.correspondence import Correspondence, occurrences

NAME = "structural_correspondence"


def fit(**params: int | float) -> FittedCase:
    given = {"aso_words": 5, "aso_size": 3, "aso_min_count": 1, **params}
    return method_case(NAME, given, ()).fit(toy_dataset(), labeled=12)


def pivots(problem: Problem, **params: int) -> list[str]:
    return Correspondence().words(problem, Correspondence.Params(**params))


def test_pivots_are_frequent_in_both_texts() -> None:
    problem = fit().problem
    labeled = problem.labeled.column("word").strings()
    text = [word for part in problem.unlabeled for word in part.column("word").strings()]
    shared = {w for w in labeled if labeled.count(w) >= 2 and text.count(w) >= 2}
    rarer = {w: min(labeled.count(w) / len(labeled), text.count(w) / len(text)) for w in shared}
    expected = sorted(shared, key=lambda word: (-rarer[word], word))
    assert len(expected) > 3
    assert pivots(problem) == expected
    assert pivots(problem, aso_words=2) == expected[:2]
    assert set(pivots(problem, pivot_count=3)) < set(expected)
    assert set(pivots(problem, pivot_count=1)) == set(labeled) & set(text)


def test_occurrences_of_columns_with_unused_words() -> None:
    words = Vocabulary(["a", "b", "unused"])
    column = Column(words, np.array([1, 0, 1], np.int32))
    corpus = Corpus({"word": column}, np.array([0, 3]))
    assert occurrences([corpus, corpus], "word") == {"a": 2, "b": 4}
    assert occurrences([], "word") == {}


def test_the_predictors_read_both_texts_and_no_label() -> None:
    problem = fit().problem
    text = Correspondence().text(problem, Correspondence.Params())
    assert [part.n_tokens for part in text] == [
        problem.labeled.n_tokens,
        *(part.n_tokens for part in problem.unlabeled),
    ]
    assert all("label" not in part.columns for part in text)


def test_columns_have_their_own_names_and_none_without_pivots() -> None:
    fitted = fit()
    learned = fitted.own_tagger.learned[NAME]
    assert learned.theta.any()
    assert learned.dense_columns[0] == "scl0:0"
    again = Correspondence.restore(*learned.arrays())
    test = toy_dataset().splits["test"]
    assert again.dense(test).tolist() == learned.dense(test).tolist()
    assert again.dense_columns == learned.dense_columns
    plain = method_case("supervised", {}, ()).fit(toy_dataset(), labeled=12)
    assert fit(pivot_count=1_000).predicted(test) == plain.predicted(test)


def test_what_is_learned_of_one_text_is_known_of_the_other() -> None:
    """The paper's figure 1: other words and other signals, beside pivots that both texts have."""
    words, labels = Vocabulary(), Vocabulary()
    news, biology, test = (
        corpus_of(sentences, words, labels)
        for sentences in (
            signals("news", 40),
            signals("biology", 600),
            signals("biology", 200, pivots=False),
        )
    )
    data = Dataset(
        name="two",
        task="tagging",
        metric="accuracy",
        encoding=None,
        splits={"train": news, "test": test},
        external=lambda: CorpusShards(biology.drop("label")),
    )
    gold, right = np.array(data.splits["test"].column("label").strings()), {}
    for method in ("supervised", NAME):
        params = {} if method == "supervised" else {"aso_min_count": 2, "aso_scale": 3.0}
        case = method_case(method, params, ()).fit(data, labeled="all")
        found = np.array(case.predicted(data.splits["test"]))
        right[method] = np.mean((found == gold)[gold != "X"])
    assert right["supervised"] < 0.65
    assert right[NAME] > 0.9


def signals(text: str, sentences: int, *, pivots: bool = True) -> list[list[tuple[str, str]]]:
    """Three tokens each: a signal of its kind, one of many words, and sometimes a pivot."""
    rng = np.random.default_rng(len(text))
    made: list[list[tuple[str, str]]] = []
    for _ in range(sentences):
        kind = "NV"[rng.integers(2)]
        signal, word = f"{text}-{kind}{rng.integers(3)}", f"{text}.{kind}.{rng.integers(20)}"
        pivot = f"pivot-{kind}{rng.integers(3)}" if pivots and rng.random() < 0.7 else "end"
        made.append([(signal, "X"), (word, kind), (pivot, "X")])
    return made
