"""Draws, development data, tuning, and what a method can reach from its problem."""

from __future__ import annotations

import gc
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sslbench.corpus import Column, Corpus, CorpusShards, Vocabulary
from sslbench.errors import UserError
from sslbench.experiment.context import RunContext
from sslbench.experiment.data import Dataset
from sslbench.experiment.problem import Problem, labeled_part, relabeled, without_labels
from sslbench.experiment.protocol import (
    draw,
    folds,
    labeled_size,
    parse_labeled,
    sample,
    unlabeled_text,
)
from sslbench.experiment.record import ProtocolSpec
from sslbench.experiment.training import RunSetup
from sslbench.plugins import registry
from support.run_fakes import task, toy_splits


def dataset(**options: bool) -> Dataset:
    return Dataset("toy", "tagging", "accuracy", None, toy_splits(**options))


@given(st.integers(2, 300), st.integers(0, 2**31), st.data())
def test_samples_of_one_seed_are_nested_partitions(n: int, seed: int, data: st.DataObject) -> None:
    small = data.draw(st.integers(1, n))
    large = data.draw(st.integers(small, n))
    few, rest = sample(n, small, seed)
    many, _ = sample(n, large, seed)
    assert set(few) <= set(many)
    assert sorted([*few, *rest]) == list(range(n))
    assert list(few) == sorted(few)
    assert list(rest) == sorted(rest)


def test_the_sample_of_a_seed_never_changes() -> None:
    # A change here makes every published table incomparable with new runs.
    assert sample(8936, 5, 1)[0].tolist() == [507, 2094, 3108, 6627, 7554]


def test_seeds_draw_different_samples() -> None:
    assert sample(500, 50, 0)[0].tolist() != sample(500, 50, 1)[0].tolist()


@pytest.mark.parametrize(
    ("text", "size"), [("all", 1000), ("7", 7), ("10%", 100), ("0.01%", 1), ("100%", 1000)]
)
def test_labeled_sizes(text: str, size: int) -> None:
    assert labeled_size(parse_labeled(text), 1000) == size


@pytest.mark.parametrize("text", ["0", "-1", "x", "0%", "101%", "", "1.5", "10 %%"])
def test_bad_labeled_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="labeled"):
        parse_labeled(text)


def test_more_labels_than_there_are_are_refused() -> None:
    with pytest.raises(UserError, match="train has 60"):
        draw(dataset(), ProtocolSpec(labeled=61))


@given(st.integers(2, 200), st.data())
def test_folds_hold_out_each_item_once(n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(2, n))
    cut = folds(n, k)
    assert sorted(i for _, held in cut for i in held) == list(range(n))
    sizes = [len(held) for _, held in cut]
    assert len(sizes) == k
    assert max(sizes) - min(sizes) <= 1
    for train, held in cut:
        assert sorted([*train, *held]) == list(range(n))


@pytest.mark.parametrize(("n", "k"), [(4, 5), (5, 1), (0, 2)])
def test_folds_that_would_be_empty_are_refused(n: int, k: int) -> None:
    with pytest.raises(UserError, match="folds"):
        folds(n, k)


def test_folds_of_one_seed_are_nested_like_the_samples() -> None:
    few, many = (draw(dataset(), ProtocolSpec(labeled=n, tune=3, seed=4)).folds for n in (17, 41))
    for (_, held), (_, more) in zip(few, many, strict=True):
        assert set(held) < set(more)
    other = draw(dataset(), ProtocolSpec(labeled=17, tune=3, seed=5)).folds
    assert other[0][1].tolist() != few[0][1].tolist()


def test_development_data_comes_from_the_own_split_or_folds_or_nowhere() -> None:
    tuned = ProtocolSpec(labeled=22, tune=3)
    own = draw(dataset(dev=True), tuned)
    assert (own.dev_source, own.folds) == ("own", ())
    cut = draw(dataset(), tuned)
    assert cut.dev_source == "folds"
    assert [len(held) for _, held in cut.folds] == [5, 5, 4, 4, 4]
    for train, held in cut.folds:
        assert sorted([*train, *held]) == cut.labeled.tolist()
        assert list(train) == sorted(train)
    assert len(draw(dataset(), ProtocolSpec(labeled=3, tune_cpu=1.0)).folds) == 3
    assert draw(dataset(), ProtocolSpec(labeled=20)).dev_source == "none"


def test_one_sentence_cannot_be_tuned_on() -> None:
    with pytest.raises(UserError, match="at least 2"):
        draw(dataset(), ProtocolSpec(labeled=1, tune=3))


def test_the_rest_of_train_is_the_unlabeled_text() -> None:
    data = dataset()
    drawn = draw(data, ProtocolSpec(labeled=20))
    text = unlabeled_text(data, ProtocolSpec(labeled=20), drawn.hidden)
    shards = list(text)
    assert text.n_sentences == 40
    assert all("label" not in shard.columns for shard in shards)
    rest = data.splits["train"].select(drawn.hidden)
    assert shards[0].column("word").codes.tolist() == rest.column("word").codes.tolist()
    capped = unlabeled_text(data, ProtocolSpec(labeled=20, unlabeled=7), drawn.hidden)
    assert capped.n_sentences == 7


def test_external_text_is_used_when_all_is_labeled_and_refused_with_labels() -> None:
    data = dataset()
    test = data.splits["test"]
    nothing = np.empty(0, dtype=np.int64)
    assert unlabeled_text(data, ProtocolSpec(), nothing).n_sentences == 0
    fine = replace(data, external=lambda: CorpusShards(test.drop("label")))
    assert unlabeled_text(fine, ProtocolSpec(), nothing).n_sentences == 30
    assert unlabeled_text(fine, ProtocolSpec(labeled=20), np.arange(40)).n_sentences == 40
    adapting = replace(fine, adaptation=True)
    assert unlabeled_text(adapting, ProtocolSpec(labeled=20), np.arange(40)).n_sentences == 30
    joined = replace(fine, joined=True)
    text = unlabeled_text(joined, ProtocolSpec(labeled=20), np.arange(20, 60))
    assert [shard.n_sentences for shard in text] == [40, 30]
    rest = data.splits["train"].select(np.arange(20, 60)).column("word").codes
    assert next(iter(text)).column("word").codes.tolist() == rest.tolist()
    assert unlabeled_text(joined, ProtocolSpec(), nothing).n_sentences == 30
    capped = unlabeled_text(joined, ProtocolSpec(labeled=20, unlabeled=45), np.arange(20, 60))
    assert [shard.n_sentences for shard in capped] == [40, 5]
    leaking = replace(data, external=lambda: CorpusShards(test))
    for either in (leaking, replace(leaking, joined=True)):
        with pytest.raises(RuntimeError, match="has labels"):
            unlabeled_text(either, ProtocolSpec(), nothing)


def test_held_out_sentences_join_the_text_that_is_tested() -> None:
    data = dataset()
    own = replace(data, external=lambda: CorpusShards(data.splits["test"].drop("label")))
    held = np.array([3, 9, 4])
    for change, all_of in (({}, 30), ({"transductive": True}, 33)):
        text = unlabeled_text(replace(own, **change), ProtocolSpec(), np.empty(0, np.int64), held)
        assert text.n_sentences == all_of
    *_, last = text
    assert list(last.columns) == [name for name in data.splits["train"].columns if name != "label"]
    wanted = data.splits["train"].select(held).column("word").codes
    assert last.column("word").codes.tolist() == wanted.tolist()
    moving = replace(own, transductive=True)
    for fold in (None, held[:0]):
        text = unlabeled_text(moving, ProtocolSpec(), np.empty(0, np.int64), fold)
        assert text.n_sentences == 30
    capped = unlabeled_text(moving, ProtocolSpec(unlabeled=5), np.empty(0, np.int64), held)
    assert [shard.n_sentences for shard in capped] == [5, 3]


@pytest.mark.parametrize("transductive", [False, True])
def test_trials_see_the_words_of_the_fold_they_are_scored_on(transductive: bool) -> None:
    data = dataset()
    own = replace(
        data,
        external=lambda: CorpusShards(data.splits["test"].drop("label")),
        transductive=transductive,
    )
    asked = task("self_training", featurizer="basic", model="crf1", labeled="all", tune=2)
    setup = RunSetup(asked, registry(), own, draw(own, asked.spec.protocol), RunContext())
    train, held_out = setup.drawn.folds[0]
    trial = setup.problem(train, "self_training").unlabeled
    held = len(held_out)
    assert held == own.splits["train"].n_sentences // 5
    assert trial.n_sentences == 30 + held * transductive
    assert setup.problem(setup.drawn.labeled, "self_training").unlabeled.n_sentences == 30
    assert all("label" not in shard.columns for shard in trial)


def reachable(start: object) -> list[object]:
    """Every object that can be reached from `start` without going through code."""
    found, todo = {id(start): start}, [start]
    while todo:
        for item in gc.get_referents(todo.pop()):
            if id(item) not in found and not isinstance(item, type | ModuleType):
                found[id(item)] = item
                todo.append(item)
    return list(found.values())


def problem_of(data: Dataset, labeled: int) -> Problem:
    protocol = ProtocolSpec(labeled=labeled)
    drawn = draw(data, protocol)
    part = labeled_part(data.splits["train"], drawn.labeled)
    return Problem(
        data.task,
        data.encoding,
        tuple(part.column("label").vocabulary.strings),
        part,
        unlabeled_text(data, protocol, drawn.hidden),
        None,
        featurizer=None,
        model=None,
    )


def test_hidden_gold_cannot_be_reached_from_a_problem() -> None:
    data = dataset()
    gold = {split: corpus.column("label") for split, corpus in data.splits.items()}
    problem = problem_of(data, 20)
    ids = {id(item) for item in reachable(problem)}
    for column in gold.values():
        assert id(column) not in ids
        assert id(column.codes) not in ids
        assert id(column.vocabulary) not in ids
    assert "C" not in [item for item in reachable(problem) if isinstance(item, str)]
    assert problem.labels == ("A", "B")
    # The check itself must be able to see a leak.
    leak = replace(problem, labeled=data.splits["train"])
    assert id(gold["train"].codes) in {id(item) for item in reachable(leak)}


def test_problem_shares_no_memory_with_the_dataset() -> None:
    data = dataset()
    problem = problem_of(data, 20)
    for corpus in (problem.labeled, *problem.unlabeled, without_labels(data.splits["test"])):
        for source in data.splits.values():
            for column in source.columns.values():
                for own in corpus.columns.values():
                    assert not np.shares_memory(own.codes, column.codes)


def test_relabeling_keeps_the_text_of_the_labels() -> None:
    labels = Vocabulary(["z", "unused", "a", "b"])
    words = Vocabulary(["w"])
    corpus = Corpus(
        {
            "word": Column(words, np.zeros(4, dtype=np.int32)),
            "label": Column(labels, np.array([3, 0, 2, 0])),
        },
        np.array([0, 2, 4]),
    )
    new = relabeled(corpus).column("label")
    assert new.vocabulary.strings == ["a", "b", "z"]
    assert new.strings() == ["b", "z", "a", "z"]
    known = relabeled(corpus, ["z", "b"]).column("label")
    assert known.vocabulary.strings == ["z", "b", "a"]
    assert known.strings() == ["b", "z", "a", "z"]
    problem = replace(problem_of(dataset(), 20), labels=("b", "z"))
    assert problem.label_codes(corpus).tolist() == [0, 1, -1, 1]
