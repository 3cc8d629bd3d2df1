"""Chunk encodings: round trips, chunks against a plain loop, detection, conversion."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sslbench.engine.corpus import (
    SCHEMES,
    Corpus,
    Scheme,
    Vocabulary,
    convert_labels,
    detect_scheme,
    split_tag,
    tag_fits,
)
from sslbench.engine.errors import UserError
from support.chunks import Span, from_spans, spans_of, to_iob2
from support.texts import corpus_of

PREFIXES = {"IOB1": "BI", "IOB2": "BI", "IOBES": "BIES", "BMES": "BMES"}


def loop_spans(tags: list[str]) -> list[Span]:
    """Chunks by a loop over tokens: the oracle."""
    spans: list[Span] = []
    before, type_before = "O", ""
    for i, tag in enumerate(tags):
        prefix, _, kind = tag.partition("-")
        if prefix != "O":
            if prefix in "IME" and before in "BIM" and kind == type_before:
                spans[-1] = spans[-1]._replace(end=i + 1)
            else:
                spans.append(Span(i, i + 1, kind))
        before, type_before = prefix, kind
    return spans


def tags_in(scheme: str, max_size: int = 12) -> st.SearchStrategy[list[str]]:
    """Any sequence of legal tags, mostly ill-formed; also untyped and hyphenated types."""
    tags = ["O"] + [p + t for p in PREFIXES[scheme] for t in ("", "-X", "-Y", "-X-Z")]
    return st.lists(st.sampled_from(tags), max_size=max_size)


@st.composite
def layouts(draw: st.DrawFn) -> tuple[list[Span], int]:
    """Spans of a sentence and its length."""
    spans, at = [], 0
    for _ in range(draw(st.integers(0, 5))):
        start = at + draw(st.integers(0, 2))
        at = start + draw(st.integers(1, 3))
        spans.append(Span(start, at, draw(st.sampled_from(["", "X", "Y-Z"]))))
    return spans, at + draw(st.integers(0, 2))


schemes = st.sampled_from(SCHEMES)


@given(layouts(), schemes)
def test_spans_survive_any_scheme(layout: tuple[list[Span], int], scheme: Scheme) -> None:
    spans, length = layout
    tags = from_spans(spans, length, scheme)
    assert all(tag_fits(tag, scheme) for tag in tags)
    assert spans_of(tags, scheme) == spans == loop_spans(tags)
    assert to_iob2(tags, scheme) == from_spans(spans, length, "IOB2")


@given(st.data(), schemes)
def test_reading_is_the_loop_on_any_tags(data: st.DataObject, scheme: Scheme) -> None:
    tags = data.draw(tags_in(scheme))
    assert spans_of(tags, scheme) == loop_spans(tags)


@given(st.data(), schemes, schemes)
def test_columns_convert_like_sentences(
    data: st.DataObject, source: Scheme, target: Scheme
) -> None:
    sentences = data.draw(st.lists(tags_in(source, 6), max_size=5))
    corpus = labels_of(sentences)
    converted = convert_labels(corpus, source, target)
    expected = [from_spans(loop_spans(tags), len(tags), target) for tags in sentences]
    assert [converted.sentence(i, "label") for i in range(len(sentences))] == expected
    labels = converted.column("label").vocabulary.strings
    assert sorted(labels) == sorted({tag for tags in expected for tag in tags})


def labels_of(sentences: list[list[str]], vocabulary: Vocabulary | None = None) -> Corpus:
    return corpus_of(sentences, vocabulary, "label")


def test_splits_share_the_new_vocabulary() -> None:
    new = Vocabulary()
    train = convert_labels(labels_of([["I-X", "O"]]), "IOB1", "IOB2", vocabulary=new)
    test = convert_labels(labels_of([["O", "I-Y"]]), "IOB1", "IOB2", vocabulary=new)
    assert train.column("label").vocabulary is test.column("label").vocabulary
    assert test.sentence(0, "label") == ["O", "B-Y"]
    assert new.strings == ["O", "B-X", "B-Y"]


@pytest.mark.parametrize(
    ("tags", "scheme", "iob2"),
    [
        ("I-X I-X B-X I-Y O", "IOB1", "B-X I-X B-X B-Y O"),
        ("I-X I-X O I-X", "IOB2", "B-X I-X O B-X"),
        ("B-X B-X I-Y", "IOB2", "B-X B-X B-Y"),
        ("B-a-b I-a-c", "IOB2", "B-a-b B-a-c"),
        ("S-X S-X B-X E-X O", "IOBES", "B-X B-X B-X I-X O"),
        ("B-X E-X I-X E-X", "IOBES", "B-X I-X B-X I-X"),
        ("B-X I-X O E-X", "IOBES", "B-X I-X O B-X"),
        ("S E M B B E", "BMES", "B B B B B I"),
    ],
)
def test_known_readings(tags: str, scheme: Scheme, iob2: str) -> None:
    assert to_iob2(tags.split(), scheme) == iob2.split()


@given(tags_in("BMES").map(lambda tags: [tag for tag in tags if tag != "O"]))
def test_segmentation_leaves_no_token_out(tags: list[str]) -> None:
    covered = [i for span in spans_of(tags, "BMES") for i in range(span.start, span.end)]
    assert covered == list(range(len(tags)))


def test_split_at_the_first_hyphen() -> None:
    assert split_tag("B-a-b") == ("B", "a-b")
    assert split_tag("O") == ("O", "")


def test_illegal_tags_are_named() -> None:
    with pytest.raises(UserError, match="label 'S-X' does not fit IOB2; IOB2 labels are O and B-"):
        convert_labels(labels_of([["O", "S-X"]]), "IOB2", "IOB1")
    with pytest.raises(UserError, match="'I_NP' does not fit IOB1"):
        convert_labels(labels_of([["O"], ["I_NP", "X"]]), "IOB1", "IOB2")
    with pytest.raises(UserError, match="unknown chunk encoding 'BILOU'; one of IOB1"):
        convert_labels(labels_of([]), "IOB2", "BILOU")  # type: ignore[arg-type]
    unused = Vocabulary(["NN"])  # of another file: no harm while nothing uses it
    assert convert_labels(labels_of([["O"]], unused), "IOB1", "IOB2").sentence(0, "label") == ["O"]


@pytest.mark.parametrize(
    ("sentences", "scheme"),
    [
        (["B-X I-X O", "B-X B-X"], "IOB2"),
        (["I-X I-X O", "I-X B-X"], "IOB1"),
        (["B-X O", "I-X O"], "IOB2"),  # neither; read alike
        (["O I-X"], "IOB1"),
        (["O B-X"], "IOB2"),
        (["B-X E-X O S-X"], "IOBES"),
        (["B-X I-X E-X"], "IOBES"),
        (["B M E S S"], "BMES"),
        (["B E S"], "BMES"),
        (["B-NN E-NN"], "BMES"),
        (["O O"], None),
        ([], None),
        (["DT NN"], None),
        (["B-X I_X"], None),
        (["B-X I-X M-X"], None),
        (["O-X B-X"], None),
    ],
)
def test_detection(sentences: list[str], scheme: Scheme | None) -> None:
    assert detect_scheme([sentence.split() for sentence in sentences]) == scheme


@given(layouts(), schemes)
def test_detected_scheme_reads_what_was_written(
    layout: tuple[list[Span], int], scheme: Scheme
) -> None:
    spans, length = layout
    tags = from_spans(spans, length, scheme)
    detected = detect_scheme([tags])
    assert spans_of(tags, detected) == spans if detected else not spans
