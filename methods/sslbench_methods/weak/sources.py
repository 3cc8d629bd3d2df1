"""Sources of weak labels: a list of phrases, and a list of regular expressions.

A line of their files has a type, a tab, and the phrase or the expression.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from sslbench import Corpus, Problem, UserError, doc
from sslbench.engine.corpus.files import numbered_lines
from sslbench.experiment.data.weak import ABSTAINS
from sslbench.experiment.inputs.weak_sources import Label
from sslbench.experiment.planning.values import UserFile

Spans = Callable[[Sequence[str]], Iterator[tuple[int, int, str]]]
File = Annotated[UserFile, doc("lines of a type, a tab, and a phrase or an expression")]
Outside = Annotated[
    Literal["O", "_"],
    doc("what other tokens get: O = in no chunk, _ = nothing; in tags without chunks always _"),
]
IgnoreCase = Annotated[bool, doc("capitals and small letters are the same")]


class SourceParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Parameters of a source that is a file."""

    file: File = ""
    ignore_case: IgnoreCase = False
    outside: Outside = "O"


class Gazetteer:
    """Labels the phrases of a file: the longest one at a place, from left to right."""

    Params = SourceParams

    def open(self, problem: Problem, params: SourceParams) -> Label:
        """Read the file; UserError, with line, for one that does not fit."""
        fold = str.casefold if params.ignore_case else str
        phrases = {
            tuple(fold(word) for word in text.split()): kind for kind, text, _ in _lines(params)
        }
        longest = max(map(len, phrases))

        def spans(words: Sequence[str]) -> Iterator[tuple[int, int, str]]:
            words, at = [fold(word) for word in words], 0
            while at < len(words):
                ends = range(min(len(words), at + longest), at, -1)
                end = next((end for end in ends if tuple(words[at:end]) in phrases), 0)
                if end:
                    yield at, end, phrases[tuple(words[at:end])]
                at = end or at + 1

        return _labels(spans, problem, params)


class Patterns:
    """Labels what regular expressions of a file match, in the words of a sentence and blanks.

    A match counts if it begins and ends with words. Of matches that overlap, that of the earlier
    line counts.
    """

    Params = SourceParams

    def open(self, problem: Problem, params: SourceParams) -> Label:
        """Read the file; UserError, with line, for one that does not fit."""
        flags = re.IGNORECASE if params.ignore_case else 0
        patterns = []
        for kind, text, line in _lines(params):
            try:
                patterns.append((re.compile(text, flags), kind))
            except re.error as error:
                message = f"the expression {text!r} is wrong: {error}"
                raise UserError(message, file=params.file, line=line) from None

        def spans(words: Sequence[str]) -> Iterator[tuple[int, int, str]]:
            text = " ".join(words)
            starts = [0, *accumulate(len(word) + 1 for word in words)]
            first = {start: i for i, start in enumerate(starts[:-1])}
            last = {start - 1: i for i, start in enumerate(starts) if i}
            taken = [False] * len(words)
            for pattern, kind in patterns:
                for match in pattern.finditer(text):
                    begin, end = first.get(match.start()), last.get(match.end())
                    if begin is None or end is None or end <= begin or any(taken[begin:end]):
                        continue
                    taken[begin:end] = [True] * (end - begin)
                    yield begin, end, kind

        return _labels(spans, problem, params)


def _lines(params: SourceParams) -> list[tuple[str, str, int]]:
    """Return type, text and line number of each line; UserError for a line of another form."""
    if not params.file:
        raise UserError("a weak source needs its file", hint="--set gazetteer.file=FILE")
    found = []
    for number, line in numbered_lines(Path(params.file)):
        kind, tab, text = line.partition("\t")
        kind, text = kind.strip(), text.strip()
        if not (kind and tab and text) or len(kind.split()) > 1:
            hint = "write a type, a tab, and a phrase or an expression, e.g. PER<tab>Ada Lovelace"
            raise UserError("the line has another form", file=params.file, line=number, hint=hint)
        found.append((kind, text, number))
    if not found:
        raise UserError("no line in the file", file=params.file)
    return found


def _labels(spans: Spans, problem: Problem, params: SourceParams) -> Label:
    """Return a function that writes spans as labels: IOB2, or the type in tags without chunks."""
    if problem.task not in ("spans", "tagging"):
        raise UserError(f"{params.file}: lists of phrases are for tags and chunks of words")
    chunks = problem.encoding is not None

    def label(corpus: Corpus) -> list[str]:
        entries = []
        for words in corpus.sentences("word"):
            own = [params.outside if chunks else ABSTAINS] * len(words)
            for begin, end, kind in spans(words):
                inside = f"I-{kind}" if chunks else kind
                own[begin:end] = [f"B-{kind}" if chunks else kind] + [inside] * (end - begin - 1)
            entries += own
        return entries

    return label
