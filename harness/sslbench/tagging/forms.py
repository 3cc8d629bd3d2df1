"""Forms of tagged text: columns, JSON lines, pages with colored spans, brat, CRFsuite."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from html import escape
from itertools import accumulate
from typing import IO, Any

import msgspec

from sslbench.engine.errors import printable
from sslbench.tagging.annotated import Sentence, Span

COLORS = (
    "#ffd6a5", "#a0e7e5", "#cdb4db", "#b9fbc0", "#ffadad", "#bde0fe", "#fdffb6", "#d8c3a5",
)  # fmt: skip
_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.9 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
p { margin: 0 0 .6rem; }
mark { color: #111; border-radius: .3em; padding: .1em .25em; white-space: pre-wrap; }
mark small, span small { font-size: .65em; margin-left: .35em; opacity: .75; }
"""


class Form:
    """Writes sentences; what it returns is UTF-8."""

    def head(self) -> bytes:
        """Return what stands before the first sentence."""
        return b""

    def body(self, sentences: Iterable[Sentence]) -> bytes:
        """Return the text of some sentences."""
        raise NotImplementedError

    def foot(self) -> bytes:
        """Return what stands after the last sentence."""
        return b""


def _token_lines(
    sentences: Iterable[tuple[list[str], list[list[str]]]], item: Callable[[str], str] = str
) -> bytes:
    """A line for each token, with tabs between its items, and a blank line after each sentence.

    sentences: first item of each token, and its other items.
    """
    lines: list[str] = []
    for first, others in sentences:
        rows = zip(first, others, strict=True)
        lines += ["\t".join(map(item, [one, *more])) for one, more in rows]
        lines.append("")
    return "".join(f"{line}\n" for line in lines).encode()


class Columns(Form):
    """One token per line: the token, then `columns_of` it; a blank line after each sentence."""

    def __init__(self, n_best: int = 0) -> None:
        self._n_best = n_best

    def body(self, sentences: Iterable[Sentence]) -> bytes:
        return _token_lines((s.tokens, columns_of(s, self._n_best)) for s in sentences)


def columns_of(sentence: Sentence, n_best: int = 0) -> list[list[str]]:
    """New columns of each token: label, its probability if asked for, labels of further sequences.

    n_best: number of sequences; of a sentence that has fewer, the last one is repeated.
    """
    columns = [sentence.labels]
    if sentence.confidence is not None:
        columns.append([f"{p:.4f}" for p in sentence.confidence])
    others = sentence.alternatives
    columns += [others[min(rank, len(others) - 1)].labels for rank in range(1, n_best)]
    return [list(values) for values in zip(*columns, strict=True)]


class JsonLines(Form):
    """One object per sentence and line; docs/tagging.md names its keys."""

    def body(self, sentences: Iterable[Sentence]) -> bytes:
        return b"".join(msgspec.json.encode(_plain(each)) + b"\n" for each in sentences)


def _plain(sentence: Sentence) -> dict[str, Any]:
    fields: dict[str, Any] = {"tokens": sentence.tokens, "labels": sentence.labels}
    if sentence.confidence is not None and sentence.marginals is not None:
        fields["confidence"] = sentence.confidence
        rows = sentence.marginals.tolist()
        fields["marginals"] = [dict(zip(sentence.names, row, strict=True)) for row in rows]
    if sentence.spans is not None:
        fields["spans"] = [_plain_span(span, sentence.tokens) for span in sentence.spans]
    if sentence.alternatives:
        fields["alternatives"] = [other._asdict() for other in sentence.alternatives]
    return fields


def _plain_span(span: Span, tokens: list[str]) -> dict[str, Any]:
    fields = {name: value for name, value in span._asdict().items() if value is not None}
    return {**fields, "tokens": tokens[span.start : span.end]}


class Page(Form):
    """One HTML file without scripts: spans in the color of their type, other labels as small text.

    The title of a span shows its type and confidence.
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._colors: dict[str, str] = {}

    def head(self) -> bytes:
        title = escape(printable(self._title))
        return (
            "<!doctype html>\n<html><head><meta charset='utf-8'>"
            "<meta name='viewport' content='width=device-width'>"
            f"<title>{title}</title><style>{_STYLE}</style></head><body>\n<h1>{title}</h1>\n"
        ).encode()

    def body(self, sentences: Iterable[Sentence]) -> bytes:
        return "".join(f"<p>{self._sentence(each)}</p>\n" for each in sentences).encode()

    def foot(self) -> bytes:
        return b"</body></html>\n"

    def _sentence(self, sentence: Sentence) -> str:
        parts: list[str] = []
        done = 0
        for span in sentence.marks():
            parts += map(escape, sentence.tokens[done : span.start])
            parts.append(self._mark(span, " ".join(sentence.tokens[span.start : span.end])))
            done = span.end
        return " ".join([*parts, *map(escape, sentence.tokens[done:])])

    def _mark(self, span: Span, text: str) -> str:
        color = self._colors.setdefault(span.type, COLORS[len(self._colors) % len(COLORS)])
        p = "" if span.confidence is None else f" {span.confidence:.2f}"
        kind = escape(span.type)
        small = f"<small>{kind}</small>" if kind else ""
        return f"<mark style='background:{color}' title='{kind}{p}'>{escape(text)}{small}</mark>"


def standoff_lines(
    number: int, kind: str, place: tuple[int, int], text: str, confidence: float | None
) -> str:
    """Return the line of brat for a span, and one for its confidence.

    number: of the span, from 1.  place: its start and end in characters.
    """
    kind = "_".join(kind.split()) or "chunk"  # brat's types are one word
    line = f"T{number}\t{kind} {place[0]} {place[1]}\t{text}\n"
    if confidence is None:
        return line
    return f"{line}#{number}\tAnnotatorNotes T{number}\tconfidence {confidence:.4f}\n"


class Standoff(Form):
    """Spans as brat reads them: a file .ann beside the text, one sentence per line.

    Confidence is a note of the span. Offsets count characters.

    text: takes the text, UTF-8.
    """

    def __init__(self, text: IO[bytes]) -> None:
        self._text = text
        self._offset = 0  # of the sentence, in characters
        self._spans = 0

    def body(self, sentences: Iterable[Sentence]) -> bytes:
        return "".join(line for each in sentences for line in self._sentence(each)).encode()

    def _sentence(self, sentence: Sentence) -> list[str]:
        lines: list[str] = []
        line = " ".join(sentence.tokens) + "\n"
        ends = list(accumulate(len(token) + 1 for token in sentence.tokens))
        for span in sentence.marks():
            self._spans += 1
            start = ends[span.start] - len(sentence.tokens[span.start]) - 1
            end = ends[span.end - 1] - 1
            place = (self._offset + start, self._offset + end)
            lines.append(
                standoff_lines(self._spans, span.type, place, line[start:end], span.confidence)
            )
        self._text.write(line.encode())
        self._offset += len(line)
        return lines


class Items(Form):
    """A token per line as CRFsuite reads it: the label, then the attributes."""

    def body(self, sentences: Iterable[Sentence]) -> bytes:
        return _token_lines(((s.labels, s.attributes or []) for s in sentences), _item)


def _item(text: str) -> str:
    """A colon would begin a value."""
    return text.replace("\\", "\\\\").replace(":", "\\:")
