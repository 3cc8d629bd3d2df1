"""Draws, development data, tuning, and what a method can reach from its problem."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sslbench.engine.corpus import ChainedShards, Column, Corpus, CorpusShards, Shards, Vocabulary
from sslbench.engine.errors import UserError
from sslbench.engine.types import I64
from sslbench.experiment.data import Dataset
from sslbench.experiment.inputs.folding import folds
from sslbench.experiment.inputs.problem import Problem, relabeled, without_labels
from sslbench.experiment.inputs.protocol import (
    Sample,
    draw,
    draw_order,
    labeled_size,
    resolve_text,
    rest_of_train,
    unlabeled_text,
)
from sslbench.experiment.records.record import ProtocolSpec
from sslbench.experiment.request.request import parse_labeled, parse_unlabeled
from sslbench.experiment.run.fitting import Session
from sslbench.plugins import registry
from support.run_fakes import task, toy_splits


def dataset(**options: bool) -> Dataset:
    return Dataset("toy", "tagging", "accuracy", None, toy_splits(**options))


def sample(n_train: int, n_labeled: int, seed: int) -> tuple[I64, I64]:
    """The labeled sentences and the others, ascending."""
    order = draw_order(n_train, seed)
    return np.sort(order[:n_labeled]), np.sort(order[n_labeled:])


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
    ("text", "size"),
    [("all", 1000), ("7", 7), ("0", 0), ("10%", 100), ("0.01%", 1), ("100%", 1000)],
)
def test_labeled_sizes(text: str, size: int) -> None:
    assert labeled_size(parse_labeled(text), 1000) == size


@pytest.mark.parametrize("text", ["-1", "x", "0%", "101%", "", "1.5", "10 %%"])
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


@pytest.mark.parametrize(("n", "k"), [(4, 5), (5, 1), (0, 2), (20, 0), (20, -1)])
def test_folds_that_would_be_empty_are_refused(n: int, k: int) -> None:
    with pytest.raises(UserError, match=f"{n} labeled sentences cannot be cut into {k} folds"):
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
    text = unlabeled_text(data, ProtocolSpec(labeled=20))
    shards = list(text)
    assert text.n_sentences == 40
    assert all("label" not in shard.columns for shard in shards)
    rest = data.splits["train"].select(drawn.hidden)
    assert shards[0].column("word").codes.tolist() == rest.column("word").codes.tolist()


AMOUNTS = (0, 1, 7, 39, 40, 45, 69, 70, 500)


def sentences(text: Shards) -> list[str]:
    return [" ".join(shard.sentence(i, "word")) for shard in text for i in range(shard.n_sentences)]


def with_text(data: Dataset, **changes: bool) -> Dataset:
    """30 sentences of external text, in shards of a few tokens each."""
    raw = data.splits["test"].drop("label")
    return replace(data, external=lambda: CorpusShards(raw, 10), **changes)


@pytest.mark.parametrize("source", ["rest", "external", "all"])
@pytest.mark.parametrize("unit", ["", "t"])
def test_amounts_of_text_are_nested(source: str, unit: str) -> None:
    """A smaller amount is part of a larger one, and as large as it may be."""
    data = with_text(dataset())
    common = {"labeled": 20, "seed": 3, "text": source}
    whole = Counter(sentences(unlabeled_text(data, ProtocolSpec(**common))))
    assert whole.total() == {"rest": 40, "external": 30, "all": 70}[source]
    before: Counter[str] = Counter()
    for amount in AMOUNTS:
        cap = parse_unlabeled(f"{amount}{unit}")
        text = unlabeled_text(data, ProtocolSpec(unlabeled=cap, **common))
        found = sentences(text)
        assert text.n_sentences == len(found)
        assert text.n_tokens == sum(len(sentence.split()) for sentence in found)
        assert before <= Counter(found) <= whole
        if not unit:
            assert len(found) == min(amount, whole.total())
        elif len(found) < whole.total():  # toy sentences have at most 8 tokens
            assert amount - 8 < text.n_tokens <= amount
        before = Counter(found)


def test_a_capped_rest_is_a_random_part_in_the_order_of_the_draw() -> None:
    data = dataset()
    order = np.random.default_rng([5, 0x6C61626C]).permutation(60)  # as in `sample`
    capped = ProtocolSpec(labeled=20, seed=5, unlabeled=10)
    assert rest_of_train(data, capped).tolist() == sorted(order[20:30].tolist())
    words = data.splits["train"].select(np.sort(order[20:30])).column("word").codes.tolist()
    (shard,) = unlabeled_text(data, capped)
    assert shard.column("word").codes.tolist() == words
    lengths = data.splits["train"].lengths
    for n_tokens in range(0, 250, 7):
        few = rest_of_train(data, ProtocolSpec(labeled=20, seed=5, unlabeled=f"{n_tokens}t"))
        expected, left = [], n_tokens
        for sentence in order[20:].tolist():
            left -= int(lengths[sentence])
            if left < 0:
                break
            expected.append(sentence)
        assert few.tolist() == sorted(expected)


def test_external_text_is_read_no_further_than_the_cap() -> None:
    raw = dataset().splits["test"].drop("label")
    read = []

    def shards() -> Iterator[Corpus]:
        for number in range(1000):
            read.append(number)
            yield raw

    class Endless(CorpusShards):
        def __iter__(self) -> Iterator[Corpus]:
            return shards()

    data = replace(dataset(), external=lambda: Endless(raw))
    for cap in (31, f"{raw.n_tokens + 1}t"):
        read.clear()
        list(unlabeled_text(data, ProtocolSpec(text="external", unlabeled=cap)))
        assert max(read) == 1


@pytest.mark.parametrize("text", ["-1", "x", "1.5", "10%", "t", "5 t", ""])
def test_bad_amounts_are_refused(text: str) -> None:
    with pytest.raises(UserError, match="unlabeled"):
        parse_unlabeled(text)


def test_where_the_text_comes_from() -> None:
    data = dataset()
    fine = with_text(data)
    few = ProtocolSpec(labeled=20)
    sources = {"rest": [40], "external": [30], "all": [40, 30]}
    for source, sizes in sources.items():
        text = unlabeled_text(fine, msgspec.structs.replace(few, text=source))
        parts = text.parts if isinstance(text, ChainedShards) else [text]
        assert [part.n_sentences for part in parts] == sizes
    assert unlabeled_text(data, ProtocolSpec()).n_sentences == 0
    for source in ("external", "all"):
        with pytest.raises(UserError, match="toy has no external text"):
            unlabeled_text(data, ProtocolSpec(text=source))
    leaking = replace(data, external=lambda: CorpusShards(data.splits["test"]))
    for source in ("external", "all"):
        with pytest.raises(RuntimeError, match="has labels"):
            list(unlabeled_text(leaking, ProtocolSpec(text=source)))


def test_the_source_that_is_meant_without_an_option() -> None:
    data = dataset()
    fine = with_text(data)
    assert resolve_text(data, "all", None, None) == resolve_text(data, 20, None, None) == "rest"
    assert resolve_text(fine, "all", None, None) == "external"
    assert resolve_text(fine, "all", 0, None) == "rest"  # no text, so that none has to be made
    assert resolve_text(fine, 20, None, None) == "rest"
    assert resolve_text(replace(fine, adaptation=True), 20, None, None) == "external"
    assert resolve_text(replace(fine, joined=True), "all", None, None) == "all"
    assert resolve_text(replace(fine, joined=True), 20, None, None) == "all"
    assert resolve_text(replace(data, joined=True), 20, None, None) == "rest"
    assert resolve_text(fine, 20, None, "all") == "all"
    assert resolve_text(replace(fine, joined=True), 20, None, "rest") == "rest"
    for asked in ("external", "all"):
        with pytest.raises(UserError, match="toy has no external text"):
            resolve_text(data, 20, None, asked)


def test_the_protocol_in_words() -> None:
    assert ProtocolSpec(labeled=20).describe() == "labeled 20, unlabeled rest of train, no tuning"
    protocol = ProtocolSpec(text="all", unlabeled="500t", folds=5, tune=8)
    assert protocol.describe() == (
        "labeled all, 5 folds, unlabeled rest of train and external text, at most 500 tokens,"
        " 8 tuning trials"
    )


def test_held_out_sentences_join_the_text_that_is_tested() -> None:
    data = dataset()
    own = replace(data, external=lambda: CorpusShards(data.splits["test"].drop("label")))
    all_of_it, held = ProtocolSpec(text="external"), np.array([3, 9, 4])
    for change, size in (({}, 30), ({"transductive": True}, 33)):
        text = unlabeled_text(replace(own, **change), all_of_it, held)
        assert text.n_sentences == size
    *_, last = text
    assert list(last.columns) == [name for name in data.splits["train"].columns if name != "label"]
    wanted = data.splits["train"].select(held).column("word").codes
    assert last.column("word").codes.tolist() == wanted.tolist()
    moving = replace(own, transductive=True)
    for fold in (None, held[:0]):
        assert unlabeled_text(moving, all_of_it, fold).n_sentences == 30
    capped = unlabeled_text(moving, ProtocolSpec(text="external", unlabeled=5), held)
    assert [shard.n_sentences for shard in capped] == [5, 3]


@pytest.mark.parametrize("transductive", [False, True])
def test_trials_see_the_words_of_the_fold_they_are_scored_on(transductive: bool) -> None:
    data = dataset()
    own = replace(
        data,
        external=lambda: CorpusShards(data.splits["test"].drop("label")),
        transductive=transductive,
    )
    base = {"featurizer": "basic", "model": "crf1", "text": "external"}
    asked = task("self_training", **base, labeled="all", tune=2)
    session, sample = Session.open(asked, registry()), Sample.of(asked.spec, own)
    train, held_out = sample.drawn.folds[0]
    trial = session.problem(sample, train).unlabeled
    held = len(held_out)
    assert held == own.splits["train"].n_sentences // 5
    assert trial.n_sentences == 30 + held * transductive
    assert session.problem(sample, sample.drawn.labeled).unlabeled.n_sentences == 30
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
    part = relabeled(data.splits["train"].select(drawn.labeled))
    return Problem(
        data.task,
        data.encoding,
        tuple(part.column("label").vocabulary.strings),
        part,
        unlabeled_text(data, protocol),
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
