"""Small generated problems of every task, for checks and for tests of authors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from sslbench.engine.corpus import (
    Column,
    Corpus,
    CorpusShards,
    LabelCodec,
    LabelConstraint,
    PreviousType,
    Vocabulary,
    sentence_ids,
)
from sslbench.engine.errors import UserError
from sslbench.engine.features import TemplateFeaturizer
from sslbench.engine.types import I64
from sslbench.experiment.data import Dataset
from sslbench.experiment.data.weak import ABSTAINS, PREFIX, UNREAD, unread

#: tokens made of these characters alone have one label under the constraint of `toy_dataset`
CONSTRAINED = ".,!7"
_NEW_MARKS = ("!", "!!", "!7", "7", "77", "7!", "7!7", "77!")
TEMPLATES = ("bias", "word[-1]", "word[0]", "word[1]", "word.suffix1[0]", "edge: word[0]")

_CONSTRAINED_LABELS = {"tagging": "P", "spans": "O", "segmentation": "S", "joint": "S-PU"}
_ENCODINGS = {"tagging": None, "spans": "IOB2", "segmentation": "BMES", "joint": "BMES"}
_METRICS = {"tagging": "accuracy", "spans": "f1", "segmentation": "f1", "joint": "f1"}

Token = tuple[str, str]
Sentence = list[Token]

_STEMS = ("ba", "du", "ki", "lo", "me", "nu", "pa", "ri", "so", "ta")
_PEOPLE, _PLACES = ("Ann", "Bob", "Cid", "Dora"), ("Rome", "Lima", "Oslo", "York")
_PLAIN = ("saw", "met", "left", "in", "at", "with", "the", "old")
_CHINESE = {
    "N": ("天", "天气", "人", "人民", "大学", "大学生"),
    "V": ("来", "说", "说明", "工作"),
    "A": ("大", "好", "好看"),
}


def toy_featurizer() -> TemplateFeaturizer:
    """The neighboring words, the last letter, and transitions that depend on the word."""
    return TemplateFeaturizer(TEMPLATES)


def toy_dataset(
    task: str = "tagging",
    *,
    train: int = 36,
    dev: int = 6,
    test: int = 24,
    external: int = 0,
    constraint: bool = False,
    codec: bool = False,
    seed: int = 0,
) -> Dataset:
    """Generated sentences whose labels mostly follow the word and the label before.

    Parameters
    ----------
    task: "tagging" (labels N, V, D, P), "spans" (IOB2, types PER and LOC), "segmentation" (BMES)
        or "joint" (BMES with the types N, V, A and PU).
    train, dev, test, external: numbers of sentences; ``dev=0`` leaves the split out, and so does
        ``external=0`` for the unlabeled text from outside. Test has words that train has not.
    constraint: tokens made of the characters ``.,!7`` alone have one label (P, O, S, S-PU). Some of
        them have another one in the data, and "!" and "7" do not occur in train.
    codec: models are trained on the labels of `sslbench.engine.corpus.PreviousType`, where some
        transitions are forbidden; only for "spans".

    UserError for another task.
    """
    if task not in _MAKERS:
        raise UserError(f"no generated text for task {task!r}", hint=", ".join(_MAKERS))
    splits, raw = _texts(task, train, dev, test, external, seed)
    return Dataset(
        name="toy",
        task=task,
        metric=_METRICS[task],
        encoding=_ENCODINGS[task],
        splits=splits,
        external=(lambda: CorpusShards(raw)) if external else None,
        codec=_previous_type if codec else None,
        label_constraint=toy_constraint(task) if constraint else None,
    )


def _texts(
    task: str, train: int, dev: int, test: int, external: int, seed: int
) -> tuple[dict[str, Corpus], Corpus]:
    """The splits of a toy, and its text from outside, which share their vocabularies."""
    rng = np.random.default_rng([seed, *task.encode()])
    words, labels = Vocabulary(), Vocabulary()

    def corpus(n: int, unseen: float) -> Corpus:
        text = [_sentence(task, rng, unseen) for _ in range(n)]
        return corpus_of(text, words, labels)

    splits = {"train": corpus(train, 0.0), "test": corpus(test, 0.1)}
    if dev:
        splits["dev"] = corpus(dev, 0.1)
    return splits, corpus(external, 0.1).drop("label")


def toy_constraint(task: str) -> LabelConstraint:
    """The label constraint of `toy_dataset`."""
    return LabelConstraint("word", CONSTRAINED, _CONSTRAINED_LABELS[task])


def corpus_of(
    sentences: Sequence[Sentence], words: Vocabulary | None = None, labels: Vocabulary | None = None
) -> Corpus:
    """A corpus with the columns "word" and "label" of sentences of (word, label) pairs.

    words, labels: vocabularies to share with other corpora; they grow.
    """
    words = Vocabulary() if words is None else words
    labels = Vocabulary() if labels is None else labels
    tokens = [token for sentence in sentences for token in sentence]
    columns = {
        "word": Column(words, words.encode(word for word, _ in tokens)),
        "label": Column(labels, labels.encode(label for _, label in tokens)),
    }
    return Corpus(columns, np.cumsum([0, *map(len, sentences)], dtype=np.int64))


def with_weak_sources(dataset: Dataset) -> Dataset:
    """The dataset with weak labels of train; no source has read its text from outside.

    The source "careful" labels two thirds of the tokens of train and is right; "hasty" has read
    every other sentence and labels all of its tokens, a fifth of them by chance.
    """
    train = dataset.splits["train"]
    gold, rng = train.column("label"), np.random.default_rng(train.n_tokens)
    labels = np.unique(gold.codes)
    silent = len(gold.vocabulary)
    careful = np.where(rng.random(train.n_tokens) < 2 / 3, gold.codes, silent)
    chance = rng.choice(labels, train.n_tokens)
    hasty = np.where(rng.random(train.n_tokens) < 0.2, chance, gold.codes)
    hasty = np.where(sentence_ids(train.offsets) % 2, silent + 1, hasty)
    words = Vocabulary([*gold.vocabulary.strings, ABSTAINS, UNREAD])
    columns = {f"{PREFIX}{name}": codes for name, codes in (("careful", careful), ("hasty", hasty))}
    for name, codes in columns.items():
        train = train.with_column(name, Column(words, codes))
    if dataset.external is None:
        return replace(dataset, splits={**dataset.splits, "train": train})
    text = Corpus.concatenate(list(dataset.external()))
    for name in columns:
        text = text.with_column(name, unread(text.n_tokens, words))
    splits = {**dataset.splits, "train": train}
    return replace(dataset, splits=splits, external=lambda: CorpusShards(text))


def with_hidden_permuted(dataset: Dataset, hidden: I64, seed: int = 1) -> Dataset:
    """The dataset with permuted labels where methods must not see them.

    hidden: int64[m], the sentences of train that are unlabeled in the run. The labels of test and
    of every other split except dev are permuted too.
    """
    rng = np.random.default_rng(seed)
    splits = dict(dataset.splits)
    for name, corpus in dataset.splits.items():
        ids = hidden if name == "train" else np.arange(corpus.n_sentences)
        if name != "dev":
            splits[name] = _permuted(corpus, ids, rng)
    return replace(dataset, splits=splits)


def _permuted(corpus: Corpus, sentences: I64, rng: np.random.Generator) -> Corpus:
    column = corpus.column("label")
    here = np.isin(sentence_ids(corpus.offsets), sentences)
    codes = column.codes.copy()
    codes[here] = rng.permutation(codes[here])
    return corpus.with_column("label", Column(column.vocabulary, codes))


def _previous_type(tags: Sequence[str]) -> LabelCodec:
    return PreviousType(tags)


def _sentence(task: str, rng: np.random.Generator, unseen: float) -> Sentence:
    """Words of the task and a mark at the end; one mark in five has an unusual label.

    unseen: share of new words; when it is not 0, every second sentence begins with a new mark.
    """
    usual = _CONSTRAINED_LABELS[task]
    other = {"tagging": "N", "spans": "B-PER", "segmentation": "B", "joint": "S-N"}[task]

    def mark(marks: Sequence[str]) -> Token:
        return marks[int(rng.integers(len(marks)))], usual if rng.random() < 0.8 else other

    first = [mark(_NEW_MARKS)] if unseen and rng.random() < 0.5 else []
    return [*first, *_MAKERS[task](rng, unseen), mark(".,")]


def _tagged(rng: np.random.Generator, unseen: float) -> Sentence:
    """Words whose last letter predicts N, V or D in nine cases of ten; V mostly follows N."""
    sentence: Sentence = []
    previous = "P"
    for _ in range(int(rng.integers(1, 6))):
        weights = {"N": (0.1, 0.7, 0.2), "V": (0.4, 0.1, 0.5)}.get(previous, (0.6, 0.1, 0.3))
        label = "NVD"[rng.choice(3, p=weights)]
        ending = label if rng.random() < 0.9 else "NVD"[rng.integers(3)]
        stem = _STEMS[rng.integers(len(_STEMS))]
        new = "xy"[rng.integers(2)] if rng.random() < unseen else ""
        sentence.append((f"{stem}{new}{ending.lower()}", label))
        previous = label
    return sentence


def _spans(rng: np.random.Generator, unseen: float) -> Sentence:
    """Names of persons and places, one or two words long, between plain words."""
    sentence: Sentence = []
    for _ in range(int(rng.integers(1, 4))):
        sentence.append((_PLAIN[rng.integers(len(_PLAIN))], "O"))
        if rng.random() < 0.7:
            kind, names = (("PER", _PEOPLE), ("LOC", _PLACES))[rng.integers(2)]
            for position in range(int(rng.integers(1, 3))):
                name = names[rng.integers(len(names))]
                name = name + "x" if rng.random() < unseen else name
                sentence.append((name, f"{'BI'[position]}-{kind}"))
    return sentence


def _segmented(rng: np.random.Generator, unseen: float) -> Sentence:
    return [(character, label[0]) for character, label in _joint(rng, unseen)]


def _joint(rng: np.random.Generator, unseen: float) -> Sentence:
    """Characters of Chinese words; the label is the place in the word and the word's tag."""
    sentence: Sentence = []
    for _ in range(int(rng.integers(1, 5))):
        tag = "NVA"[rng.integers(3)]
        words = _CHINESE[tag]
        word = words[rng.integers(len(words))]
        if rng.random() < unseen:
            word += "新"
        places = "S" if len(word) == 1 else f"B{'M' * (len(word) - 2)}E"
        sentence += [(character, f"{p}-{tag}") for character, p in zip(word, places, strict=True)]
    return sentence


_MAKERS: Mapping[str, Callable[[np.random.Generator, float], Sentence]] = {
    "tagging": _tagged,
    "spans": _spans,
    "segmentation": _segmented,
    "joint": _joint,
}
