"""Checks of featurizers: attributes are a function of the columns of a sentence alone."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Unpack

import numpy as np

from sslbench.engine.corpus import Column, Corpus, Vocabulary
from sslbench.engine.errors import UserError
from sslbench.engine.features import TemplateFeaturizer
from sslbench.engine.features.index import AttributeIndex
from sslbench.engine.lazy import lazy
from sslbench.experiment.data import DataHome, Dataset
from sslbench.experiment.identity import corpus_hash
from sslbench.plugins import Registry, registry
from sslbench.plugins.registrations import TASKS, FeaturizerInfo

from .datasets import require_texts
from .results import (
    Check,
    CheckFailure,
    CheckResult,
    CheckSkipped,
    Selection,
    checks_in,
    checks_of,
    require,
    run_checks,
)
from .toys import toy_dataset

SENTENCES = 60
"""Sentences of a corpus that the checks look at."""


@dataclass(frozen=True)
class FeaturizerCase:
    """A featurizer under test. given: text to check it on, instead of generated text."""

    info: FeaturizerInfo
    plugins: Registry
    given: Corpus | None = None

    def make(self) -> TemplateFeaturizer:
        """The featurizer, made anew."""
        made: TemplateFeaturizer = self.info.load()()
        return made

    def text(self) -> Corpus:
        """A copy of the text, with the declared columns alone.

        Generated, unless the featurizer refuses that: then of a dataset that is there. CheckSkipped
        when none is.
        """
        text = self._text
        return text.select(np.arange(text.n_sentences))

    @lazy
    def _text(self) -> Corpus:
        if self.given is not None:
            return self.only_declared(self.given)
        generated = _generated(self.info.columns)
        try:
            self.make().index(generated).encode(generated)
        except UserError as error:
            text = self._dataset_text()
            if text is None:
                message = f"it refuses generated text: {error.message}; give a dataset"
                raise CheckSkipped(message) from error
            return text
        return _generated(self.info.columns)  # a wrong featurizer may have changed the other

    def _dataset_text(self) -> Corpus | None:
        """Text of a dataset whose default featurizer this is, if its files are there."""
        for name, info in self.plugins.datasets.items():
            if info.featurizer == self.info.name:
                with suppress(UserError):
                    dataset = info.load()(DataHome(offline=True, dataset=name))
                    return self.only_declared(dataset.splits["train"])
        return None

    def only_declared(self, corpus: Corpus) -> Corpus:
        """The first sentences of a corpus with the declared columns."""
        columns = {name: corpus.column(name) for name in self.info.columns}
        return Corpus(columns, corpus.offsets).between(0, min(SENTENCES, corpus.n_sentences))

    def index(self) -> AttributeIndex:
        """Numbers of the attributes of the text."""
        return self.make().index(self.text())


def check_registration(case: FeaturizerCase) -> None:
    """The registration has a summary, a reference and columns."""
    require_texts(case.info, ("summary", "reference"))
    require(case.info.columns, "it declares no column")


def check_load(case: FeaturizerCase) -> None:
    """Its target, called without arguments, gives a TemplateFeaturizer, the same one each time."""
    first, again = case.make(), case.make()
    require(
        isinstance(first, TemplateFeaturizer),
        f"it gives {type(first).__name__} and not a TemplateFeaturizer",
    )
    require(first.templates == again.templates, "called again, it gives other templates")


def check_columns(case: FeaturizerCase) -> None:
    """It needs no column but those that it declares; the labels are not among them."""
    require(
        "label" not in case.info.columns,
        "it declares the column 'label', which text to be tagged does not have",
    )
    generated = _generated(case.info.columns) if case.given is None else case.text()
    try:
        case.make().index(generated).encode(generated)
    except UserError as error:
        if "column" in error.message and "no column" in error.message:
            raise CheckFailure(f"{error.message}; it declares {list(case.info.columns)}") from error
    case.text()


def check_labels(case: FeaturizerCase) -> None:
    """The label column changes no attribute."""
    text = case.text()
    rng = np.random.default_rng(3)
    column = Column(Vocabulary("ABC"), rng.integers(0, 3, text.n_tokens, np.int32))
    labeled = text.with_column("label", column)
    rows = _rows(case.make().index(labeled), labeled)
    _require_same(rows, _rows(case.index(), text), "with another label column")


def check_arity(case: FeaturizerCase) -> None:
    """The numbers of node slots, edge slots and dense columns are the same for all text."""
    index, text = case.index(), case.text()
    shapes = {_shape(index, corpus) for corpus in _pieces(text)}
    same = len(shapes) == 1
    require(same, f"(node, edge, dense) slots differ between texts: {sorted(shapes)}")


def check_sentence_order(case: FeaturizerCase) -> None:
    """The attributes of a sentence do not depend on the order of the sentences."""
    text = case.text()
    order = np.random.default_rng(4).permutation(text.n_sentences)
    shuffled = text.select(order)
    expected = _by_sentence(_rows(case.index(), text), text)
    rows = _by_sentence(_rows(case.make().index(shuffled), shuffled), shuffled)
    for position, sentence in enumerate(order.tolist()):
        _require_same(rows[position], expected[sentence], "in another order of sentences")


def check_other_sentences(case: FeaturizerCase) -> None:
    """The attributes of a sentence do not depend on the other sentences of the corpus."""
    text, index = case.text(), case.index()
    expected = _by_sentence(_rows(index, text), text)
    for sentence in range(0, text.n_sentences, 5):
        alone = text.between(sentence, sentence + 1)
        _require_same(_rows(index, alone), expected[sentence], "for a sentence alone")


def check_vocabulary_order(case: FeaturizerCase) -> None:
    """The attributes do not depend on how the vocabulary numbers its strings."""
    text = case.text()
    columns = {name: _renumbered(column) for name, column in text.columns.items()}
    other = Corpus(columns, text.offsets)
    rows = _rows(case.make().index(other), other)
    _require_same(rows, _rows(case.index(), text), "with another numbering of words")


def check_unseen_words(case: FeaturizerCase) -> None:
    """Words that the index has not seen get attributes without a number, and no error."""
    text = case.text()
    half = text.n_sentences // 2
    seen, rest = text.between(0, half), text.between(half, text.n_sentences)
    index = case.make().index(seen)
    index.encode(seen)
    attributes = index.encode(rest)
    for name, ids, n in (
        ("node", attributes.node, index.n_node),
        ("edge", attributes.edge, index.n_edge),
    ):
        inside = not ids.size or -1 <= ids.min() <= ids.max() < n
        require(inside, f"{name} attributes are numbered outside -1 .. {n - 1}")


def check_dense(case: FeaturizerCase) -> None:
    """Dense columns are finite numbers, one row per token."""
    dense = case.index().encode(case.text()).dense
    if dense is None:
        raise CheckSkipped("it has no dense columns")
    right = dense.dtype == np.float64 and dense.shape[0] == case.text().n_tokens
    require(right, f"dense columns are {dense.dtype} {list(dense.shape)}")
    bad = int((~np.isfinite(dense)).sum())
    require(not bad, f"{bad} of {dense.size} dense values are not finite")


def check_inputs_unchanged(case: FeaturizerCase) -> None:
    """Neither `index` nor `encode` changes the corpus."""
    text = case.text()
    before = corpus_hash(text)
    case.make().index(text).encode(text)
    require(corpus_hash(text) == before, "the corpus that it is given is changed")


def check_same_again(case: FeaturizerCase) -> None:
    """The same text gives the same attributes again."""
    text = case.text()
    _require_same(_rows(case.index(), text), _rows(case.index(), text), "again")


FEATURIZER_CHECKS = checks_in(vars())


def featurizer_checks(
    featurizer: str | FeaturizerInfo,
    *,
    corpus: Corpus | str | None = None,
    **selection: Unpack[Selection],
) -> list[Check]:
    """Return the checks of a featurizer, to run one by one.

    featurizer: its registered name, or a registration.
    corpus: text with its columns, or the name of a registered dataset; by default generated text.
    selection: see `Selection`.

    UserError for an unknown name.
    """
    plugins = registry()
    info = plugins.featurizer(featurizer) if isinstance(featurizer, str) else featurizer
    if isinstance(corpus, str):
        dataset: Dataset = plugins.dataset(corpus).load()(DataHome(dataset=corpus))
        corpus = dataset.splits["train"]
    return checks_of(FEATURIZER_CHECKS, FeaturizerCase(info, plugins, corpus), **selection)


def check_featurizer(featurizer: str | FeaturizerInfo, **options: Any) -> list[CheckResult]:
    """Run all checks of a featurizer; options: see `featurizer_checks`.

    CheckFailure, with a line per failed check, if a check fails.
    """
    return run_checks(featurizer_checks(featurizer, **options), featurizer)


def _generated(columns: Sequence[str]) -> Corpus:
    """Generated text: words of several scripts and shapes; other columns hold short codes."""
    parts = [toy_dataset(task, train=6, dev=0, test=1).splits["train"] for task in TASKS]
    words = [word for part in parts for word in part.column("word").strings()]
    odd = ("1998", "IL-2", "U.S.", "x", "Ab3", "--", "ÄÖ", "“")
    words = [odd[i // 9 % len(odd)] if i % 9 == 8 else word for i, word in enumerate(words)]
    lengths = np.concatenate([part.lengths for part in parts])
    made = {}
    for number, name in enumerate(columns):
        values = words if name == "word" else [f"{name}{(len(w) + number) % 5}" for w in words]
        vocabulary = Vocabulary()
        made[name] = Column(vocabulary, vocabulary.encode(values))
    return Corpus(made, np.cumsum([0, *lengths]))


def _rows(index: AttributeIndex, corpus: Corpus) -> list[tuple[object, ...]]:
    """Per token its node and edge attributes as text, slot by slot, and its dense values."""
    attributes = index.encode(corpus)
    dense = np.empty((corpus.n_tokens, 0)) if attributes.dense is None else attributes.dense
    node = [["" if i < 0 else index.node_text(i) for i in row] for row in attributes.node.tolist()]
    edge = [["" if i < 0 else index.edge_text(i) for i in row] for row in attributes.edge.tolist()]
    return [
        (*(slot[n] for slot in node), *(slot[n] for slot in edge), dense[n].tobytes())
        for n in range(corpus.n_tokens)
    ]


def _by_sentence(rows: list[tuple[object, ...]], corpus: Corpus) -> list[list[tuple[object, ...]]]:
    borders = corpus.offsets.tolist()
    return [rows[a:b] for a, b in pairwise(borders)]


def _require_same(rows: list[Any], expected: list[Any], when: str) -> None:
    same_length = len(rows) == len(expected)
    require(same_length, f"{when}, {len(rows)} tokens have attributes and not {len(expected)}")
    for number, (a, b) in enumerate(zip(rows, expected, strict=True)):
        if a != b:
            pair = next((pair for pair in zip(a, b, strict=False) if pair[0] != pair[1]), None)
            if pair is None or isinstance(pair[0], bytes):
                raise CheckFailure(f"{when}, the dense columns of token {number} differ")
            raise CheckFailure(f"{when}, token {number} has {pair[0]!r} and not {pair[1]!r}")


def _shape(index: AttributeIndex, corpus: Corpus) -> tuple[int, int, int]:
    attributes = index.encode(corpus)
    return (
        len(attributes.node),
        len(attributes.edge),
        0 if attributes.dense is None else attributes.dense.shape[1],
    )


def _pieces(text: Corpus) -> list[Corpus]:
    """The text, its first and its shortest sentence, and a corpus without sentences."""
    shortest = int(np.argmin(text.lengths))
    return [text, text.between(0, 1), text.between(shortest, shortest + 1), text.select([])]


def _renumbered(column: Column) -> Column:
    """The same strings with the codes in reverse order."""
    strings = column.vocabulary.strings[::-1]
    return Column(Vocabulary(strings), len(strings) - 1 - column.codes)
