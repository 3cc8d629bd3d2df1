"""A dataset that keeps all rules, and one for each way to break a rule."""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from pathlib import Path

import numpy as np

from sslbench import Column, Corpus, DataHome, Dataset, Vocabulary
from sslbench.engine.corpus import CorpusShards, LabelConstraint, PreviousType
from sslbench.testing import toy_dataset

OTHER_FILE = "SSLBENCH_TEST_OTHER_FILE"  # variable with the path of a file


def honest(home: DataHome) -> Dataset:
    return toy_dataset("spans", external=10)


def changed(split: str, name: str, column: Column | None) -> Dataset:
    """The correct dataset with a column of a split replaced, or left out."""
    data = honest(DataHome())
    corpus = data.splits[split].drop(name)
    if column is not None:
        corpus = corpus.with_column(name, column)
    return replace(data, splits={**data.splits, split: corpus})


def other_name(home: DataHome) -> Dataset:
    return replace(honest(home), name="another")


def no_test(home: DataHome) -> Dataset:
    data = honest(home)
    return replace(data, splits={"train": data.splits["train"]})


def empty_sentence(home: DataHome) -> Dataset:
    data = honest(home)
    test = data.splits["test"]
    longer = Corpus(test.columns, np.append(test.offsets, test.n_tokens))
    return replace(data, splits={**data.splits, "test": longer})


def no_labels(home: DataHome) -> Dataset:
    return changed("test", "label", None)


def own_vocabulary(home: DataHome) -> Dataset:
    column = honest(home).splits["test"].column("word")
    return changed("test", "word", Column(Vocabulary(column.vocabulary.strings), column.codes))


def illegal_label(home: DataHome) -> Dataset:
    data = honest(home)
    column = data.splits["test"].column("label")
    codes = column.codes.copy()
    codes[3] = column.vocabulary.add("PER")
    test = data.splits["test"].with_column("label", Column(column.vocabulary, codes))
    return replace(data, splits={**data.splits, "test": test})


def unknown_metric(home: DataHome) -> Dataset:
    return replace(honest(home), metric="precison")


def random(home: DataHome) -> Dataset:
    return toy_dataset("spans", seed=int.from_bytes(os.urandom(4), "big"))


def reads_another_file(home: DataHome) -> Dataset:
    Path(os.environ[OTHER_FILE]).read_text()
    return honest(home)


def uses_the_network(home: DataHome) -> Dataset:
    with socket.socket() as connection:
        connection.connect_ex(("127.0.0.1", 9))
    return honest(home)


def accepts_any_option(home: DataHome, **options: object) -> Dataset:
    return honest(home)


def labeled_external_text(home: DataHome) -> Dataset:
    data = honest(home)
    return replace(data, external=lambda: CorpusShards(data.splits["dev"]))


class Miscounted(CorpusShards):
    @property
    def n_sentences(self) -> int:
        return 1


def miscounted_external_text(home: DataHome) -> Dataset:
    data = honest(home)
    return replace(data, external=lambda: Miscounted(data.splits["dev"].drop("label")))


def no_words(home: DataHome) -> Dataset:
    data = honest(home)
    splits = {
        name: Corpus({"form": c.column("word"), "label": c.column("label")}, c.offsets)
        for name, c in data.splits.items()
    }
    return replace(data, splits=splits, external=None)


class LossyCodec(PreviousType):
    def __init__(self, tags: list[str]) -> None:
        super().__init__(tags)
        self.tags = self.tags[::-1]


def lossy_codec(home: DataHome) -> Dataset:
    return replace(honest(home), codec=LossyCodec)


def constraint_on_nothing(home: DataHome) -> Dataset:
    return replace(honest(home), label_constraint=LabelConstraint("word", "¤", "O"))


def constraint_to_nothing(home: DataHome) -> Dataset:
    return replace(honest(home), label_constraint=LabelConstraint("word", ".", "P"))
