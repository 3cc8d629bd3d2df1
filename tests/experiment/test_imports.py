"""Files of other programs: JSON in its kinds, brat, parquet, DocBin; each becomes the same text."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sslbench.engine.errors import UserError
from sslbench.experiment.data.layout import Reading
from sslbench.experiment.data.userdata import columns_of, load_user_data

TEXTS = ("René Lee sees Ham .", "He sleeps .", "Ham wins .")
#: characters, not bytes; the first has white space at its end
SPANS = [[(0, 9, "PER"), (14, 18, "LOC")], [], [(0, 3, "LOC")]]
TAGS = [["B-PER", "I-PER", "O", "B-LOC", "O"], ["O", "O", "O"], ["B-LOC", "O", "O"]]
WORDS = [text.split() for text in TEXTS]
NAMES = ["O", "B-PER", "I-PER", "B-LOC"]
CODES = [[NAMES.index(tag) for tag in tags] for tags in TAGS]


def load(file: Path, **said: Any) -> tuple[list[list[str]], list[list[str]], str]:
    """Words, labels and the line on the form."""
    data = load_user_data(file, ("word", "label"), cut=False, reading=Reading(**said))
    train = data.splits["train"]
    return (
        [list(words) for words in train.sentences("word")],
        [list(labels) for labels in train.sentences("label")],
        data.metadata.get("form", ""),
    )


def lines(values: list[Any]) -> str:
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)


def objects(key: str, of_span: Callable[[int, int, str], Any]) -> list[dict[str, Any]]:
    pairs = zip(TEXTS, SPANS, strict=True)
    return [{"text": text, key: [of_span(*span) for span in spans]} for text, spans in pairs]


def studio(start: int, end: int, kind: str) -> dict[str, Any]:
    return {"value": {"start": start, "end": end, "labels": [kind]}, "type": "labels"}


def tasks() -> list[dict[str, Any]]:
    """An export of Label Studio: the last annotation is one that was canceled."""
    full = []
    for each in objects("spans", studio):
        done = [{"was_cancelled": True, "result": []}, {"result": each["spans"]}]
        full.append({"id": 1, "data": {"text": each["text"]}, "annotations": done})
    return full


def prodigy() -> list[dict[str, Any]]:
    values = objects("spans", lambda start, end, kind: {"start": start, "end": end, "label": kind})
    for value in values:
        starts = [0]
        for word in value["text"].split():
            starts.append(starts[-1] + len(word) + 1)
        ends = [start - 1 for start in starts[1:]]
        pairs = zip(starts, ends, strict=False)
        value["tokens"] = [{"start": start, "end": end} for start, end in pairs]
    values.append({"text": "Wrong .", "spans": [], "answer": "reject"})
    return values


ROWS = [{"tokens": w, "ner_tags": t} for w, t in zip(WORDS, TAGS, strict=True)]
CODED = [{"tokens": w, "ner_tags": t} for w, t in zip(WORDS, CODES, strict=True)]
PAIRS = [[text, {"entities": spans}] for text, spans in zip(TEXTS, SPANS, strict=True)]

FORMS: dict[str, tuple[str, str]] = {
    "tokens and tags": ("a.jsonl", lines(ROWS)),
    "a list": ("a.json", json.dumps(ROWS)),
    "a list on many lines": ("a.json", json.dumps(ROWS, indent=2)),
    "windows": ("a.json", json.dumps(ROWS, indent=1).replace("\n", "\r\n")),
    "below a key": ("a.json", json.dumps({"version": "1", "data": ROWS}, indent=1)),
    "words and labels": (
        "a.ndjson",
        lines([{"words": w, "labels": t} for w, t in zip(WORDS, TAGS, strict=True)]),
    ),
    "two kinds of tags": ("a.jsonl", lines([{"pos_tags": ["X"], **row} for row in ROWS])),
    "doccano": ("a.jsonl", lines(objects("label", lambda *span: list(span)))),
    "doccano's relations": (
        "a.jsonl",
        lines(
            objects("entities", lambda s, e, k: {"start_offset": s, "end_offset": e, "label": k})
        ),
    ),
    "prodigy": ("a.jsonl", lines(prodigy())),
    "label studio": ("a.json", json.dumps(tasks())),
    "label studio, small": (
        "a.json",
        json.dumps(objects("label", lambda s, e, k: {"start": s, "end": e, "labels": [k]})),
    ),
    "spacy 2": ("a.json", json.dumps(PAIRS)),
    "spacy 2, a line each": ("a.jsonl", lines(PAIRS)),
    "an annotator": ("a.json", json.dumps({"classes": ["PER"], "annotations": PAIRS})),
}


@pytest.mark.parametrize("form", FORMS)
def test_all_kinds_of_json_are_the_same_text(tmp_path: Path, form: str) -> None:
    name, text = FORMS[form]
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    assert load(file) == (WORDS, TAGS, "JSON")
    assert columns_of(file, ("word", "pos", "label")) == ("word", "label")


def test_numbers_have_names(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(lines(CODED), encoding="utf-8")
    with pytest.raises(UserError, match=r"a\.jsonl:1: ner_tags are numbers.*--label-names O,B-PER"):
        load(file)
    assert load(file, label_names=tuple(NAMES))[1] == TAGS
    with pytest.raises(UserError, match=r":1: ner_tags has 3, but there are 3 names"):
        load(file, label_names=("O", "B-PER", "I-PER"))
    features = {"features": {"ner_tags": {"feature": {"names": NAMES, "_type": "ClassLabel"}}}}
    (tmp_path / "dataset_info.json").write_text(json.dumps(features))
    assert load(file)[1] == TAGS


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"tokens": ["a", "b"], "tags": ["O"]}, r"a\.jsonl:2: 2 tokens and 1 tags"),
        ({"tokens": ["a"], "tags": "O"}, r":2: 1 tokens and no list of tags"),
        ({"tokens": ["a"], "tags": [None]}, r":2: tags are neither texts nor numbers"),
        ({"tokens": ["a\nb"], "tags": ["O"]}, r":2: 'a\\nb' is no token"),
        ({"tokens": ["a"], "tags": [""]}, r":2: '' is no token and no label"),
        ({"tokens": ["\ud800"], "tags": ["O"]}, r":2: .* is half a character"),
        ({"id": 3}, r":2: an object with the keys id is no sentence; tokens with"),
        (["a"], r":2: is no JSON object"),
        ({"text": "Ham wins", "label": [[0, 3]]}, r":2: \[0, 3\] is no span"),
        ({"text": "Ham wins", "label": ["good"]}, r":2: \"good\" is no span"),
        ({"text": "Ham wins", "label": [[0, 30, "X"]]}, r":2: a span from 0 to 30 in 8 char"),
        ({"text": "Ham wins", "label": [[3, 3, "X"]]}, r":2: a span from 3 to 3"),
        ({"text": "Ham wins", "label": [[3, 4, "X"]]}, r":2: the span from 3 to 4 has no token"),
        (
            {"text": "Ham wins", "label": [[0, 8, "X"], [4, 8, "Y"]]},
            r":2: the spans 'Ham wins' \(X\) and 'wins' \(Y\) share the token 'wins'; a token has",
        ),
        ({"text": "A\nB", "label": [[0, 3, "X"]]}, r":2: the span 'A\\nB' \(X\) goes on in the"),
        (
            {"text": "Ham wins", "label": [{"start": 0, "end": 3, "label": "X", "text": "Hat"}]},
            r":2: the span 'Hat' is 'Ham' in the text, from 0 to 3",
        ),
        ({"text": "a", "tokens": [{"id": 1}], "spans": []}, r":2: a token without start and end"),
        ({"data": {"text": "a"}, "annotations": [{}]}, r":2: annotations are not those of Label"),
        ({"data": {"image": 1}, "annotations": []}, r":2: a task without a text"),
    ],
)
def test_bad_objects_are_named_with_their_place(tmp_path: Path, value: Any, message: str) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(lines(ROWS[:1]) + json.dumps(value) + "\n")
    with pytest.raises(UserError, match=message):
        load(file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (lines(ROWS) + '{"tokens": [', r"a\.json:4: is not JSON: "),
        (json.dumps(ROWS, indent=0)[:-9], r"a\.json:\d+: is not JSON: "),
        ("[" * 100_000, r"a\.json: is not JSON that can be read"),
        ('{"a": ' + "1" * 5000 + "}", r"a\.json:1: is not JSON that can be read"),
        ("", r"a\.json: no sentence with labels"),
        ("[]", r"a\.json: no sentence with labels"),
        ('{"text": "no spans"}', r"a\.json: no sentence with labels"),
        ('{"a": 1}\n', r"a\.json:1: an object with the keys a is no sentence"),
        (json.dumps([*ROWS, 7]), r"a\.json: record 4: is no JSON object"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "a.json"
    file.write_text(text)
    with pytest.raises(UserError, match=message):
        load(file)


def test_spans_that_end_inside_tokens_are_extended_and_counted(tmp_path: Path) -> None:
    values = [{"text": "Ham-like wins .", "label": [[0, 3, "X"], [9, 12, "Y"]]}, {"text": "No ."}]
    file = tmp_path / "a.jsonl"
    file.write_text(lines(values))
    words, tags, form = load(file)
    assert (words, tags) == ([["Ham-like", "wins", "."]], [["B-X", "B-Y", "O"]])
    assert form == (
        "JSON, 2 spans that end inside a token extended to the whole token (first: 'Ham'),"
        " 1 sentence without labels left out"
    )


def test_white_space_around_a_span_is_no_part_of_it(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(lines([{"text": "A Ham wins", "label": [[1, 6, "a b"]]}]))
    assert load(file)[1] == [["O", "B-a_b", "O"]]


def test_offsets_of_a_browser_count_emoji_twice(tmp_path: Path) -> None:
    text = "\U0001f600 \U0001f600 Ham wins"
    span = {"start": 6, "end": 9, "text": "Ham", "labels": ["X"]}
    file = tmp_path / "a.json"
    file.write_text(json.dumps([{"text": text, "label": [span]}]))
    assert load(file)[1] == [["O", "O", "B-X", "O"]]


def test_characters_are_the_tokens_of_chinese_text(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(lines([{"text": "我在北京。", "label": [[2, 4, "LOC"]]}]), encoding="utf-8")
    assert load(file)[:2] == ([list("我在北京。")], [["O", "O", "B-LOC", "I-LOC", "O"]])


def test_lines_of_a_text_are_sentences_of_one_document(tmp_path: Path) -> None:
    values = [{"text": "Ham .\n\nLee .\n", "label": [[7, 10, "PER"]]}, {"text": "Ham", "label": []}]
    file = tmp_path / "a.jsonl"
    file.write_text(lines(values))
    assert load(file)[1] == [["O", "O"], ["B-PER", "O"], ["O"]]
    data = load_user_data(file, ("word", "label"), cut=False)
    assert np.asarray(data.splits["train"].documents).tolist() == [0, 0, 1]


def test_a_folder_may_mix_kinds(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text(lines(ROWS), encoding="utf-8")
    (tmp_path / "test.json").write_text(json.dumps(objects("label", lambda *s: list(s))))
    (tmp_path / "unlabeled.jsonl").write_text(lines([{"text": "Lee wins."}, {"tokens": ["a"]}]))
    (tmp_path / "dataset_info.json").write_text("{}")
    data = load_user_data(tmp_path, ("word", "label"))
    assert [list(s) for s in data.splits["test"].sentences("label")] == TAGS
    assert data.external is not None
    (text,) = data.external()
    assert [list(s) for s in text.sentences("word")] == [["Lee", "wins", "."], ["a"]]


def test_labels_that_do_not_fit_are_named_with_their_line(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    rows = [*ROWS * 3, {"tokens": ["x"], "tags": ["I_PER"]}]
    file.write_text(lines(rows), encoding="utf-8")
    with pytest.raises(UserError, match=r"a\.jsonl:10: label 'I_PER'"):
        load(file)
