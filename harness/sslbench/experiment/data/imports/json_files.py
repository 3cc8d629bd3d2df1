"""JSON: lines of Hugging Face, exports of Prodigy, doccano and Label Studio.

A file is a list of objects, or has an object per line. Each object says by its keys what it is:

- ``tokens`` (texts) with ``ner_tags``, ``tags``, ``labels`` or ``pos_tags``: Hugging Face
- ``text`` with ``tokens`` (objects with ``start`` and ``end``) and ``spans``: Prodigy
- ``text`` with ``label``, ``labels``, ``spans`` or ``entities``: doccano, Label Studio's JSON-MIN
- ``data`` with ``annotations`` or ``completions``: Label Studio
- a list of a text and an object with ``entities``: training data of spaCy 2
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sslbench.engine.errors import UserError
from sslbench.experiment.data.imports.items import Item, Place, Span, text_items, token_item

TAG_KEYS = ("ner_tags", "tags", "labels", "ner", "pos_tags", "upos", "chunk_tags")
_TEXT_KEYS = ("text", "sentence", "content")
SPAN_KEYS = ("label", "labels", "spans", "entities")
_LIST = re.compile(r'\s*\[(?!\s*")')  # ["text", ... is a line of spaCy 2
_SPREAD = re.compile(r'\s*\{\s*\n|\s*\{\s*"\w+"\s*:\s*[\[{]?\s*\n')  # an object on many lines

#: gives the names of labels that are numbers, by the key of the labels; [] = there are none
Names = Callable[[str], Sequence[str]]

#: an object of a file: a mapping, or a text and a mapping
Value = Any
ObjectKind = Literal["task", "words", "tokens", "text"]


@dataclass(frozen=True)
class JsonFile:
    """The content of a JSON file.

    Attributes
    ----------
    values: those of a list, of the lines, or the only one.
    form: "lines" with a value each, a "list", or one "value".
    objects: the objects in the values, and the sentences of each.
    """

    values: list[Value]
    form: Literal["lines", "list", "value"]
    objects: list[tuple[Value, list[Item]]]

    @classmethod
    def read(cls, text: str, file: str, names: Names) -> JsonFile:
        """Read a file.

        Raises
        ------
        UserError: with line or record, for text that is no JSON and an object that is none of
            those above.
        """
        values = list(_values(text, file))
        objects = [each for value, place in values for each in _objects(value, place)]
        return cls(
            [value for value, _ in values],
            _form(values[0][1] if values else Place(file, 1)),
            [(value, list(object_items(value, place, names))) for value, place in objects],
        )

    @property
    def items(self) -> list[Item]:
        """The sentences of all objects."""
        return [item for _, items in self.objects for item in items]


def _form(place: Place) -> Literal["lines", "list", "value"]:
    if place.line is not None:
        return "lines"
    return "value" if place.record is None else "list"


def _values(text: str, file: str) -> Iterator[tuple[Any, Place]]:
    """The values of a list, of the lines, or the only one."""
    if _LIST.match(text):
        values = _parsed(text, Place(file))
        yield from ((value, Place(file, record=n)) for n, value in enumerate(values, 1))
    elif _SPREAD.match(text):
        yield _parsed(text, Place(file)), Place(file)
    else:
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                yield _parsed(line, Place(file, number)), Place(file, number)


def _parsed(text: str, place: Place) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line = place.line or error.lineno
        raise UserError(f"is not JSON: {error.msg}", file=place.file, line=line) from None
    except (ValueError, RecursionError):  # a number of thousands of digits; lists in lists
        raise place.error("is not JSON that can be read") from None


def _objects(value: Value, place: Place) -> Iterator[tuple[Value, Place]]:
    """The objects in a value of a file."""
    if isinstance(value, list) and [type(each) for each in value] == [str, dict]:
        yield value, place
        return
    if not isinstance(value, dict):
        raise place.error("is no JSON object", "give one for each sentence or text")
    inner = next((value[key] for key in ("data", "annotations") if key in value), None)
    if isinstance(inner, list) and not _is_sentence(value):
        for number, each in enumerate(inner, 1):
            yield from _objects(each, place._replace(record=number))
    else:
        yield value, place


def _is_sentence(value: Mapping[str, Any]) -> bool:
    return any(key in value for key in ("tokens", "words", *_TEXT_KEYS))


def kind_of_object(value: Mapping[str, Any], place: Place) -> ObjectKind:
    """Return what an object is: a task of Label Studio, words, text with tokens, or text.

    UserError if it is none of those of the module.
    """
    if isinstance(value.get("data"), dict) and not _is_sentence(value):
        return "task"
    tokens, text = words_of(value), text_of(value)
    if isinstance(tokens, list) and all(isinstance(token, str) for token in tokens):
        return "words"
    if text is not None:
        return "tokens" if isinstance(tokens, list) else "text"
    keys = ", ".join(value) or "none"
    hint = "tokens with tags or ner_tags, or text with spans: see docs/tagging.md"
    raise place.error(f"an object with the keys {keys} is no sentence", hint)


def object_items(value: Value, place: Place, names: Names) -> Iterator[Item]:
    """Yield the sentences of an object; UserError if it is none of those of the module."""
    if isinstance(value, list):
        value = {"text": value[0], **value[1]}
    if value.get("answer", "accept") != "accept":  # Prodigy: rejected or ignored
        return
    tokens, text = words_of(value), text_of(value)
    match kind_of_object(value, place):
        case "task":
            yield from _label_studio(value, place)
        case "words":
            if tokens:
                yield Item(tokens, _tags(value, len(tokens), place, names), place)
        case "tokens":
            yield from _prodigy(text or "", tokens, value.get("spans"), place)
        case "text":
            key = next((key for key in SPAN_KEYS if isinstance(value.get(key), list)), None)
            spans = None if key is None else [_span(each, place) for each in value[key]]
            yield from text_items(text or "", spans, place)


def words_of(value: Mapping[str, Any]) -> Any:
    """Return what an object has for its tokens; None = nothing."""
    return value.get("tokens", value.get("words"))


def text_of(value: Mapping[str, Any]) -> str | None:
    """Return the text of an object; None = it has none."""
    return next((value[key] for key in _TEXT_KEYS if isinstance(value.get(key), str)), None)


def _tags(value: Mapping[str, Any], n: int, place: Place, names: Names) -> list[str] | None:
    key = next((key for key in TAG_KEYS if value.get(key) is not None), None)
    if key is None:
        return None
    tags = value[key]
    if not isinstance(tags, list) or len(tags) != n:
        size = len(tags) if isinstance(tags, list) else "no list of"
        raise place.error(f"{n} tokens and {size} {key}", "give a tag for each token")
    if all(isinstance(tag, str) for tag in tags):
        return tags
    if not all(isinstance(tag, int) and not isinstance(tag, bool) for tag in tags):
        raise place.error(f"{key} are neither texts nor numbers")
    return _named(tags, names(key), key, place)


def _named(codes: Sequence[int], names: Sequence[str], key: str, place: Place) -> list[str]:
    hint = "give --label-names O,B-PER,... in the order of the numbers"
    if not names:
        raise place.error(f"{key} are numbers, and nothing names them", hint)
    for code in codes:
        if not 0 <= code < len(names):
            raise place.error(f"{key} has {code}, but there are {len(names)} names", hint)
    return [names[code] for code in codes]


def _prodigy(text: str, tokens: Sequence[Any], spans: object, place: Place) -> Iterator[Item]:
    try:
        offsets = [(int(token["start"]), int(token["end"])) for token in tokens]
    except (TypeError, KeyError, ValueError):
        raise place.error("a token without start and end") from None
    given = sorted(_span(each, place) for each in spans) if isinstance(spans, list) else None
    visible = [(start, end) for start, end in offsets if text[start:end].strip()]
    if visible:
        yield token_item(text, visible, given, place)


def _span(value: object, place: Place) -> Span:
    """A list of start, end and type, or an object with them."""
    try:
        if isinstance(value, dict):
            start = value["start" if "start" in value else "start_offset"]
            end = value["end" if "end" in value else "end_offset"]
            labels = value.get("label", value.get("labels"))
            kind = labels[0] if isinstance(labels, list) else labels
            text = value.get("text")
        else:
            (start, end, kind), text = value, None  # type: ignore[misc]
        if not isinstance(kind, str):
            raise TypeError
        return Span(int(start), int(end), kind, text if isinstance(text, str) else None)
    except (TypeError, ValueError, LookupError):
        message = f"{json.dumps(value)} is no span"
        raise place.error(message, "a span has start, end and label") from None


def _label_studio(value: Mapping[str, Any], place: Place) -> Iterator[Item]:
    text = task_text(value["data"])
    if text is None:
        raise place.error("a task without a text", 'data needs a key "text"')
    spans = None
    try:
        given = value.get("annotations", value.get("completions")) or []
        done = [each for each in given if not each.get("was_cancelled")]
        if done:
            results = [each["value"] for each in done[0]["result"] if "value" in each]
            spans = [_span(each, place) for each in results if "start" in each]
    except (AttributeError, KeyError, TypeError):
        raise place.error("annotations are not those of Label Studio") from None
    yield from text_items(text, spans, place)


def task_text(data: Mapping[str, Any]) -> str | None:
    """Return the text of a task of Label Studio; None = it has none, or several."""
    texts = [each for each in data.values() if isinstance(each, str)]
    return texts[0] if len(texts) == 1 else text_of(data)
