"""Co-training: its views, its examples, and the claim of the paper on two independent views."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sslbench.engine.corpus import Column, Corpus, Vocabulary
from sslbench.engine.errors import UserError
from sslbench.engine.features import TemplateFeaturizer
from sslbench.experiment.data import Dataset
from sslbench.testing.cases import FittedCase, method_case
from sslbench.testing.toys import toy_dataset
from sslbench_methods.co_training import surest_labels, views_of

METHOD = "co_training"


def fitted(method: str, **params: Any) -> FittedCase:
    data = toy_dataset(train=40, test=40)
    return method_case(method, params, ()).fit(data, labeled=12)


def templates(*texts: str) -> list[list[str]]:
    return [[str(t) for t in view.templates] for view in views_of(TemplateFeaturizer(texts))]


def test_a_view_reads_the_token_or_the_tokens_around_it() -> None:
    own, around = templates(
        *(
            "bias",
            "word[0]",
            "word.suffix2[0]",
            "word[-1]",
            "word[-2]|word[-1]",
            "word[-1]|word[0]",
        ),
        *("edge: word[0]", "edge: word[1]", "bag: word[-2..2]", "bag: word[1..3]"),
    )
    assert own == ["bias", "word[0]", "word.suffix2[0]", "edge: word[0]"]
    assert around == [
        *("bias", "word[-1]", "word[-2]|word[-1]", "edge: word[1]", "bag: word[1..3]"),
    ]


@pytest.mark.parametrize("texts", [("bias", "word[0]"), ("word[1]",), ("word[-1]|word[0]",)])
def test_a_view_without_features_is_refused(texts: tuple[str, ...]) -> None:
    with pytest.raises(UserError, match="co-training needs templates"):
        views_of(TemplateFeaturizer(texts))


def test_the_surest_tokens_of_each_label_by_loops() -> None:
    """As many as its part of the labeled sentences, and none that ties with one left out."""
    case = fitted(METHOD, rounds=1)
    text = case.problem.encode(case.own_tagger)
    found = np.concatenate(surest_labels(case.own_tagger, text, 0.3))
    codes = np.concatenate([case.own_tagger.decode(data) for data in text.unlabeled])
    mu = np.concatenate([case.own_tagger.marginals(data) for data in text.unlabeled])
    for label in range(len(case.own_tagger.labels)):
        rows = [(mu[i, label], i) for i in range(len(codes)) if codes[i] == label]
        rows.sort(reverse=True)
        most = int(0.3 * np.mean(text.labels == label) * len(codes))
        kept = {i for p, i in rows[:most] if most >= len(rows) or p > rows[most][0]}
        assert kept == set(np.flatnonzero(found == label).tolist())


def test_without_examples_it_is_supervised() -> None:
    plain, nothing = fitted("supervised", ftol=1e-9), fitted(METHOD, share=0.0, ftol=1e-9)
    test = plain.dataset.splits["test"].drop("label")
    mine, theirs = (case.tagger.predict_marginals(test) for case in (nothing, plain))
    np.testing.assert_allclose(mine, theirs, atol=1e-3)
    assert {each["word"] for each in nothing.trained.run.trace["rounds"]} == {0.0}


def test_the_share_of_the_examples_grows() -> None:
    rounds = fitted(METHOD, share=0.8, rounds=4).trained.run.trace["rounds"]
    for view in ("word", "context"):
        shares = [each[view] for each in rounds]
        assert shares == sorted(shares)
        assert all(a <= b for a, b in zip(shares, [0.2, 0.4, 0.6, 0.8], strict=True))


def test_two_independent_views_teach_each_other() -> None:
    """Blum & Mitchell (1998): text lowers the error of views that are independent by label."""
    data = Dataset(
        name="views",
        task="tagging",
        metric="accuracy",
        encoding=None,
        splits={"train": two_views(600, seed=0), "test": two_views(300, seed=1)},
    )
    test = data.splits["test"]
    gold = np.array(test.column("label").strings())
    right = {}
    for method, params in (("supervised", {}), (METHOD, {"share": 0.95, "weight": 1.0})):
        case = method_case(method, params, ()).fit(data, labeled=15)
        right[method] = np.mean(np.array(case.predicted(test)) == gold)
    assert right["supervised"] < 0.9
    assert right[METHOD] > 0.95


def two_views(sentences: int, seed: int, kinds: int = 40) -> Corpus:
    """Words and, before each, a cue: both of one of `kinds` kinds for each label, independently."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, sentences)
    words, labels = [], []
    for each in label:
        words += [f"c{each}{rng.integers(kinds)}.", f"w{each}{rng.integers(kinds)}."]
        labels += ["C", "AB"[each]]
    vocabulary, names = Vocabulary(), Vocabulary()
    columns = {
        "word": Column(vocabulary, vocabulary.encode(words)),
        "label": Column(names, names.encode(labels)),
    }
    return Corpus(columns, np.arange(0, 2 * sentences + 1, 2))
