"""The ledger's counts of words, sentences and labels are those of the files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from sslbench.engine.corpus import Corpus
from sslbench.experiment.data import DataHome, Dataset
from sslbench.plugins import registry
from sslbench.report.ledger import Line, number, read_ledger
from support.real_files import real_home

LEDGER = Path(__file__).resolve().parents[2] / "replications/ledger.csv"
Lines = Mapping[tuple[str, str, str], Line]


@pytest.fixture(scope="module")
def lines() -> Lines:
    actual = [line for line in read_ledger(LEDGER) if line.metric == "count" and line.ours]
    return {(line.table, line.row, line.column): line for line in actual}


def dataset(name: str) -> tuple[DataHome, Dataset]:
    info = registry().dataset(name)
    home = real_home(info.files[:3] if name == "conll03" else info.files[:2])
    return home, info.load()(DataHome(None, dataset=name))


def tags(corpus: Corpus) -> list[str]:
    """The tags that occur."""
    column = corpus.column("label")
    return [column.vocabulary.strings[code] for code in np.unique(column.codes)]


def known_sentences(corpus: Corpus, train: Corpus) -> int:
    """Sentences all of whose words are in train."""
    own, theirs = corpus.column("word"), train.column("word")
    words = {theirs.vocabulary.strings[code] for code in np.unique(theirs.codes)}
    known = np.array([text in words for text in own.vocabulary.strings])[own.codes]
    return int(np.logical_and.reduceat(known, corpus.offsets[:-1]).sum())


def hold(lines: Lines, table: str, expected: Mapping[tuple[str, str], float]) -> None:
    for (row, column), value in expected.items():
        assert number(lines[table, row, column].ours) == pytest.approx(value, abs=0.05), column


@pytest.mark.corpus
def test_chunking(lines: Lines) -> None:
    _, data = dataset("conll00")
    train, test = data.splits["train"], data.splits["test"]
    expected = {
        "labels": len({tag for part in (train, test) for tag in tags(part)}),
        "train sentences": train.n_sentences,
        "train words": train.n_tokens,
        "test sentences": test.n_sentences,
        "test words": test.n_tokens,
    }
    hold(lines, "table 1", {("chunking", name): value for name, value in expected.items()})
    share = 100 * known_sentences(test, train) / test.n_sentences
    row = "share of sentences, %"
    shares = {(row, "chunking test, L.app"): share, (row, "chunking test, not L.app"): 100 - share}
    hold(lines, "table 5", shares)


@pytest.mark.corpus
def test_named_entities_where_a_document_mark_is_a_known_sentence(lines: Lines) -> None:
    home, data = dataset("conll03")
    train = data.splits["train"]
    assert data.codec is not None
    expected = {("named entities", "labels"): len(data.codec(tags(train)).labels)}
    shares = {}
    files = registry().dataset("conll03").files
    for (name, corpus), file in zip(data.splits.items(), files, strict=False):
        marks = home.locate(file).read_text(encoding="utf-8").count("-DOCSTART-")
        n = corpus.n_sentences + marks
        expected["named entities", f"{name} sentences"] = n
        expected["named entities", f"{name} words"] = corpus.n_tokens
        share = 100 * (known_sentences(corpus, train) + marks) / n
        if name != "train":
            shares["share of sentences, %", f"NER {name}, L.app"] = share
            shares["share of sentences, %", f"NER {name}, not L.app"] = 100 - share
    hold(lines, "table 1", expected)
    hold(lines, "table 5", shares)


@pytest.mark.corpus
def test_letters(lines: Lines) -> None:
    _, data = dataset("ocr")
    parts = list(data.splits.values())
    expected = {
        "words": sum(part.n_sentences for part in parts),
        "letters": sum(part.n_tokens for part in parts),
        "distinct words": len({word for part in parts for word in spellings(part)}),
    }
    hold(lines, "text", {("letters data", name): value for name, value in expected.items()})


def spellings(part: Corpus) -> list[str]:
    labels = part.column("label")
    letters = [labels.vocabulary.strings[code] for code in labels.codes]
    return ["".join(letters[a:b]) for a, b in zip(part.offsets, part.offsets[1:], strict=False)]
