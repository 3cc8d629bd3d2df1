"""Sentences of an imported file, and spans over characters as chunk tags of tokens."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from sslbench.engine.corpus.raw import RULES
from sslbench.engine.errors import UserError

_IDEOGRAPH = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_VISIBLE = re.compile(r"\S")


class Place(NamedTuple):
    """A file, and a line or a record of it, counted from 1; None = the file."""

    file: str
    line: int | None = None
    record: int | None = None

    def error(self, message: str, hint: str | None = None) -> UserError:
        """Return a UserError with this place."""
        where = "" if self.record is None else f"record {self.record}: "
        return UserError(f"{where}{message}", file=self.file, line=self.line, hint=hint)


Offsets = Sequence[tuple[int, int]]


class Item(NamedTuple):
    """A sentence.

    labels: one per word; None = the file has no labels for it.
    place: where the text stands that the sentence is a part of.
    extended: the text of the spans that ended inside a token.
    offsets: start and end of each word in the text; () = the file has words.
    """

    words: list[str]
    labels: list[str] | None
    place: Place
    extended: tuple[str, ...] = ()
    offsets: Offsets = ()


class Span(NamedTuple):
    """Characters start to end - 1 of a text, and their type.

    text: those characters as the file repeats them; None = it does not.
    """

    start: int
    end: int
    type: str
    text: str | None = None


def text_items(text: str, spans: Iterable[Span] | None, place: Place) -> Iterator[Item]:
    """Yield the lines of a text as sentences, cut into tokens as ``sslbench tag --raw`` does.

    Each character of Chinese and Japanese text is a token (``--split characters``).

    spans: None = the text has no labels.

    Raises
    ------
    UserError: as `token_item`; also for a span outside of the text or of a line.
    """
    given = None if spans is None else sorted(_trimmed(text, span, place) for span in spans)
    pattern = _VISIBLE if 2 * len(_IDEOGRAPH.findall(text)) > len(text) else RULES
    at = 0
    for line in text.splitlines(keepends=True):
        tokens = [(at + match.start(), at + match.end()) for match in pattern.finditer(line)]
        end = at + len(line)
        if tokens:
            inside = None
            if given is not None:
                inside = given[bisect_left(given, (at,)) : bisect_left(given, (end,))]
            yield token_item(text, tokens, inside, place)
        at = end


def token_item(text: str, tokens: Offsets, spans: Iterable[Span] | None, place: Place) -> Item:
    """Return a sentence of some tokens of a text, with IOB2 tags.

    A span that ends inside a token is extended to the whole token.

    Raises
    ------
    UserError: for a span without token, one that goes on behind the last token, and two spans that
        share a token.
    """
    words = [text[start:end] for start, end in tokens]
    if spans is None:
        return Item(words, None, place, offsets=tokens)
    starts, ends = zip(*tokens, strict=True)
    labels, extended, before = ["O"] * len(tokens), [], ""
    for span in spans:
        name = f"{text[span.start : span.end]!r} ({span.type})"
        first, last = bisect_right(ends, span.start), bisect_left(starts, span.end)
        if first >= last:
            raise place.error(f"the span {name} has no token")
        if text[ends[last - 1] : span.end].strip():
            raise place.error(f"the span {name} goes on in the next line", "a line is a sentence")
        if labels[first] != "O":
            message = f"the spans {before} and {name} share the token {words[first]!r}"
            raise place.error(message, "a token has one label: keep one of the spans")
        if starts[first] < span.start or span.end < ends[last - 1]:
            extended.append(text[span.start : span.end])
        labels[first:last] = [f"B-{span.type}", *[f"I-{span.type}"] * (last - first - 1)]
        before = name
    return Item(words, labels, place, tuple(extended), tokens)


def _trimmed(text: str, span: Span, place: Place) -> Span:
    """The span without white space at its ends."""
    span = _checked(text, span, place)
    inside = text[span.start : span.end]
    start = span.start + len(inside) - len(inside.lstrip())
    end = span.end - len(inside) + len(inside.rstrip())
    if start >= end:
        raise place.error(f"the span from {span.start} to {span.end} has no token")
    return Span(start, end, "_".join(span.type.split()) or "SPAN")


def _checked(text: str, span: Span, place: Place) -> Span:
    """The span if it is in the text; offsets in units of UTF-16 become those of characters."""
    if not 0 <= span.start < span.end:
        raise place.error(f"a span from {span.start} to {span.end}", "offsets count from 0")
    if span.text is not None and not _same(text[span.start : span.end], span.text):
        wide = text.encode("utf-16-le", "surrogatepass")
        units = [wide[: 2 * at].decode("utf-16-le", "ignore") for at in (span.start, span.end)]
        start, end = map(len, units)
        if not _same(text[start:end], span.text):
            message = f"the span {span.text!r} is {text[span.start : span.end]!r} in the text"
            raise place.error(f"{message}, from {span.start} to {span.end}")
        return Span(start, end, span.type)
    if span.end > len(text):
        message = f"a span from {span.start} to {span.end} in {len(text)} characters"
        raise place.error(message, "offsets count characters from 0")
    return span


def _same(one: str, other: str) -> bool:
    """Whether two texts differ in white space alone."""
    return one.split() == other.split()
