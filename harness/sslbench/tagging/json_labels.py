"""Labels put into JSON: each object in its form, see `sslbench.experiment.data.imports`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sslbench.experiment.data.imports.items import Item
from sslbench.experiment.data.imports.json_files import (
    SPAN_KEYS,
    TAG_KEYS,
    JsonFile,
    Names,
    Value,
    kind_of_object,
    task_text,
    text_of,
    words_of,
)
from sslbench.tagging.annotated import Sentence

Objects = Sequence[tuple[Value, Sequence[Item]]]
_STUDIO = {"from_name": "label", "to_name": "text", "type": "labels"}


@dataclass
class JsonImport:
    """A JSON file; its objects take labels."""

    content: JsonFile
    names: Names

    @property
    def items(self) -> list[Item]:
        """The sentences of the file."""
        return self.content.items

    def write(self, sentences: Sequence[Sentence]) -> bytes:
        """Return the file with other labels, in UTF-8."""
        label_objects(self.content.objects, sentences, self.names)
        values = [json.dumps(value, ensure_ascii=False) for value in self.content.values]
        if self.content.form == "list":
            return ("[\n" + ",\n".join(values) + "\n]\n").encode()
        return "".join(f"{value}\n" for value in values).encode()


def label_objects(objects: Objects, sentences: Sequence[Sentence], names: Names) -> set[str]:
    """Put labels into objects, and return the keys that have them.

    sentences: one for each item, in their order.
    """
    like, at, keys = _Like.of(objects), 0, set()
    for value, items in objects:
        if items:
            pairs = list(zip(items, sentences[at : at + len(items)], strict=True))
            at += len(items)
            keys.add(_label(value, pairs, like, names))
    return keys


@dataclass(frozen=True)
class _Like:
    """How spans and results are written in a file: as its first one.

    result: of Label Studio.  span: () = a list.
    """

    result: Mapping[str, str]
    span: Mapping[str, Any]

    @classmethod
    def of(cls, objects: Objects) -> _Like:
        values = [value for value, items in objects if items and isinstance(value, dict)]
        results = (result for value in values for result in _results(value))
        spans = (span for value in values for key in SPAN_KEYS for span in _list(value, key))
        result = next((each for each in results if "from_name" in each), {})
        named = {key: result[key] for key in ("from_name", "to_name") if key in result}
        return cls({**_STUDIO, **named}, next((s for s in spans if isinstance(s, dict)), {}))


def _list(value: Mapping[str, Any], key: str) -> list[Any]:
    given = value.get(key)
    return given if isinstance(given, list) else []


def _results(task: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for key in ("annotations", "completions"):
        for done in _list(task, key):
            yield from done.get("result", ())


Labeled = Sequence[tuple[Item, Sentence]]


def _label(value: Value, pairs: Labeled, like: _Like, names: Names) -> str:
    """Put the labels of its sentences into an object, and return their key."""
    if isinstance(value, list):
        value[1]["entities"] = [[start, end, kind] for start, end, kind, _ in char_spans(pairs)]
        return "entities"
    match kind_of_object(value, pairs[0][0].place):
        case "words":
            there = sorted(
                (value[key] is None, at) for at, key in enumerate(TAG_KEYS) if key in value
            )
            key = TAG_KEYS[there[0][1]] if there else "tags"
            labels = [label for _, sentence in pairs for label in sentence.labels]
            value[key] = _coded(value.get(key), labels, names(key), pairs[0][0])
        case "task":
            key = "predictions"
            text = task_text(value["data"]) or ""
            result = [_result(span, text, like) for span in char_spans(pairs)]
            value[key] = [{"model_version": "sslbench", "result": result}]
        case "tokens":
            key = "spans"
            value[key] = list(_token_spans(value, pairs))
        case "text":
            key = next((key for key in SPAN_KEYS if isinstance(value.get(key), list)), "label")
            text = text_of(value) or ""
            value[key] = [_span(span, text, key, like) for span in char_spans(pairs)]
    return key


def _coded(
    given: object, labels: list[str], names: Sequence[str], item: Item
) -> list[str] | list[int]:
    """The labels as numbers if names are there, and the file has numbers or nothing."""
    texts = isinstance(given, list) and any(isinstance(each, str) for each in given)
    if texts or not names:
        return labels
    numbers = {name: number for number, name in enumerate(names)}
    for label in labels:
        if label not in numbers:
            hint = f"the names are {', '.join(names)}; --format jsonl writes labels as texts"
            raise item.place.error(f"the label {label!r} has no number", hint)
    return [numbers[label] for label in labels]


Chars = tuple[int, int, str, float | None]


def char_spans(pairs: Iterable[tuple[Item, Sentence]]) -> Iterator[Chars]:
    """Yield start, end, type and confidence of each span, in characters of the text."""
    for item, sentence in pairs:
        for span in sentence.marks():
            start, end = item.offsets[span.start][0], item.offsets[span.end - 1][1]
            yield start, end, span.type or "SPAN", span.confidence


def _span(span: Chars, text: str, key: str, like: _Like) -> list[Any] | dict[str, Any]:
    """A span as doccano or the JSON-MIN of Label Studio has it."""
    start, end, kind, _ = span
    if "start_offset" in like.span:
        return {"label": kind, "start_offset": start, "end_offset": end}
    if "labels" in like.span:
        return {"start": start, "end": end, "text": text[start:end], "labels": [kind]}
    if like.span or key == "spans":
        return {"start": start, "end": end, "label": kind}
    return [start, end, kind]


def _token_spans(value: Mapping[str, Any], pairs: Labeled) -> Iterator[dict[str, Any]]:
    """Spans of Prodigy, which has the numbers of first and last token, too."""
    tokens = words_of(value)
    starts = {int(token["start"]): number for number, token in enumerate(tokens)}
    ends = {int(token["end"]): number for number, token in enumerate(tokens)}
    for start, end, kind, _ in char_spans(pairs):
        places = {"start": start, "end": end}
        yield {**places, "token_start": starts[start], "token_end": ends[end], "label": kind}


def _result(span: Chars, text: str, like: _Like) -> dict[str, Any]:
    start, end, kind, confidence = span
    value = {"start": start, "end": end, "text": text[start:end], "labels": [kind]}
    score = {} if confidence is None else {"score": confidence}
    return {**like.result, "value": value, **score}
