"""Spans, probabilities and further sequences of tagged sentences, and their forms."""

from __future__ import annotations

import json
import os
from html.parser import HTMLParser
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import sslbench
from sslbench.cli import cli
from sslbench.engine.corpus.tokens import corpus_of
from sslbench.experiment.run.saved import SavedTagger, TrainedTagger
from sslbench.sklearn import SequenceTagger
from sslbench.tagging.annotated import Annotator, Sentence, Span
from sslbench.tagging.forms import Page, columns_of

WORDS = [
    ["New", "York", "is", "big"],
    ["in", "Old", "Paris"],
    ["no"],
    ["York", "is", "in", "Paris"],
]
TAGS = [["I-L", "I-L", "O", "O"], ["O", "I-L", "I-L"], ["O"], ["I-L", "O", "O", "I-L"]]  # IOB1


@pytest.fixture(scope="module")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> TrainedTagger:
    path = tmp_path_factory.mktemp("data") / "train.txt"
    rows = zip(WORDS, TAGS, strict=True)
    lines = ["".join(f"{w} {t}\n" for w, t in zip(*row, strict=True)) for row in rows]
    path.write_text("\n".join(lines))
    columns = ("word", "label")
    return sslbench.train("supervised", data=path, columns=columns, params={"sigma2": 1.0})


@pytest.fixture(scope="module")
def model(tagger: TrainedTagger, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "model"
    tagger.save(path)
    return path


def annotated(tagger: SavedTagger, words: list[list[str]], **asked: object) -> list[Sentence]:
    corpus = corpus_of(words, ["word"])
    return list(Annotator(tagger, **asked).sentences(corpus, tagger.tag(corpus)))


def test_spans_with_the_lowest_probability_in_them(tagger: SavedTagger) -> None:
    first, second, *_ = annotated(tagger, WORDS, marginals=True)
    assert first.labels == TAGS[0]
    assert first.confidence is not None
    np.testing.assert_allclose(first.confidence, first.marginals.max(axis=1))
    assert first.spans == [Span(0, 2, "L", min(first.confidence[:2]))]
    assert [(s.start, s.end) for s in second.spans or []] == [(1, 3)]
    plain = annotated(tagger, WORDS)[0]
    assert (plain.spans, plain.marginals) == ([Span(0, 2, "L", None)], None)


def test_alternatives_are_all_sequences_by_probability(tagger: SavedTagger) -> None:
    """Two tokens have nine sequences; their probabilities sum to one and to the marginals."""
    (actual,) = annotated(tagger, [["New", "York"]], marginals=True, n_best=20)
    assert len(actual.alternatives) == len(list(product(tagger.labels, repeat=2)))
    probabilities = [other.probability for other in actual.alternatives]
    assert probabilities == sorted(probabilities, reverse=True)
    assert sum(probabilities) == pytest.approx(1.0)
    assert actual.alternatives[0].labels == actual.labels


def test_columns_repeat_the_last_sequence(tagger: SavedTagger) -> None:
    one, two = annotated(tagger, [["no"], ["New", "York"]], n_best=5)
    assert [len(row) for row in columns_of(one, 5) + columns_of(two, 5)] == [5, 5, 5]
    assert len(one.alternatives) == 3
    assert columns_of(one, 5)[0][2:] == [one.alternatives[-1].labels[0]] * 3


class _Texts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts, self.tags = [], []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_a_page_escapes_its_text() -> None:
    bad = "<script>alert('&')</script>"
    names = ("O", f"B-{bad}")
    sentence = Sentence([bad, "x"], [names[1], "O"], [Span(0, 1, bad, 0.5)], names, None, None, [])
    page = Page(bad)
    parsed = _Texts()
    parsed.feed((page.head() + page.body([sentence]) + page.foot()).decode())
    assert "script" not in parsed.tags
    assert parsed.texts.count(bad) == 4  # title, heading, text and type


def run(*words: object, text: str = "") -> str:
    result = CliRunner().invoke(cli, ["tag", *map(str, words)], input=text)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_command_on_raw_text(model: Path) -> None:
    text = "New York, is\n\nin Paris\n"
    lines = run(model, "-", "--raw", text=text).splitlines()
    first = [line.partition("\t")[0] for line in lines]
    assert first == ["New", "York", ",", "is", "", "in", "Paris", ""]
    asked = ("--format", "jsonl", "--marginals", "--nbest", 2)
    rows = [json.loads(line) for line in run(model, "-", "--raw", *asked, text=text).splitlines()]
    assert [row["tokens"] for row in rows] == [["New", "York", ",", "is"], ["in", "Paris"]]
    assert rows[0]["spans"][0].items() >= {"start": 0, "end": 2, "tokens": ["New", "York"]}.items()
    assert len(rows[0]["alternatives"]) == 2
    assert sum(rows[0]["marginals"][0].values()) == pytest.approx(1.0)
    assert "<mark" in run(model, "-", "--raw", "--format", "html", text=text)


@pytest.mark.skipif(os.name != "posix", reason="names of files are Unicode there")
def test_the_page_of_a_file_whose_name_is_not_utf8(model: Path, tmp_path: Path) -> None:
    file = tmp_path / os.fsdecode(b"\xff")
    file.write_text("New York\n")
    out = tmp_path / "page.html"
    run(model, file, "--raw", "--format", "html", "--out", out)
    assert "<title>" in out.read_text(encoding="utf-8")


def test_words_are_enough_for_a_tagger_that_reads_words_alone(tmp_path: Path) -> None:
    pairs = [[(word, "X") for word in row] for row in WORDS]
    own = SequenceTagger(columns=("word", "chunk"), featurizer="basic").fit(pairs, TAGS)
    own.save(tmp_path / "model")
    tagger = sslbench.load_tagger(tmp_path / "model")
    assert (tagger.columns, tagger.needed) == (("word", "chunk"), ("word",))
    raw = run(tmp_path / "model", "-", "--raw", text="New York\n")
    assert run(tmp_path / "model", "-", text="New\nYork\n\n").split() == raw.split()
    assert run(tmp_path / "model", "-", text="New X\nYork X\n\n").split()[2::3] == raw.split()[1::2]


def test_the_command_adds_columns_to_a_file(model: Path) -> None:
    text = "New\nYork\n\n\nParis\n"
    plain = run(model, "-", text=text)
    assert plain.count("\n") == text.count("\n")
    wide = run(model, "-", "--marginals", "--nbest", 3, text=text).splitlines()
    assert [len(line.split()) for line in wide] == [5, 5, 0, 0, 5]
    labels = [[row.split()[1] for row in rows if row] for rows in (wide, plain.splitlines())]
    assert labels[0] == labels[1]


def test_what_cannot_be_told_is_an_error(model: Path, tmp_path: Path) -> None:
    second = SequenceTagger(model="crf2").fit(WORDS, TAGS)
    second.save(tmp_path / "second")
    pairs = SequenceTagger(columns=("word", "pos")).fit(
        [[(w, "X") for w in s] for s in WORDS], TAGS
    )
    pairs.save(tmp_path / "pairs")
    for words, message in [
        ([tmp_path / "second", "-", "--nbest", "2"], "first-order"),
        ([tmp_path / "pairs", "-", "--raw"], "raw text has words only"),
        ([model, "-", "--split", "words"], "--split is for raw text"),
        ([model, "-", "--raw", "--format", "html"], "no token"),
    ]:
        text = "" if message == "no token" else "a\n"
        result = CliRunner().invoke(cli, ["tag", *map(str, words)], input=text)
        assert isinstance(result.exception, sslbench.UserError) or result.exit_code == 2
        assert message in result.output + str(result.exception)
