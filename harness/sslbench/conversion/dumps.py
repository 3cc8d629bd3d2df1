"""What a text dump of another program's model says: labels, templates, weights."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from sslbench.engine.corpus import read_bytes
from sslbench.engine.corpus.files import decode
from sslbench.engine.errors import UserError
from sslbench.engine.features.templates import Template
from sslbench.engine.features.values import Values
from sslbench.engine.types import F64

MAX_FILE = 2**31  # bytes of a dump
MAX_STEPS = 1000  # of cutting one text into values
MAX_LABELS = 10_000  # whose transitions fit into memory


def _weights() -> defaultdict[Template, dict[Values, dict[int, float]]]:
    return defaultdict(lambda: defaultdict(lambda: defaultdict(float)))


@dataclass
class Dump:
    """A first-order CRF as text.

    states: weight by label, by template and values.  edges: weight by code a*L + b of a
    transition.  start, stop: float64[L], weights of the first and of the last label; None = none.
    columns: names of the columns that the templates read.
    """

    labels: list[str]
    transitions: F64
    columns: tuple[str, ...] = ()
    states: dict[Template, dict[Values, dict[int, float]]] = field(default_factory=_weights)
    edges: dict[Template, dict[Values, dict[int, float]]] = field(default_factory=_weights)
    start: F64 | None = None
    stop: F64 | None = None

    @classmethod
    def of_labels(cls, labels: Sequence[str]) -> Dump:
        """Without weights; UserError if a label occurs twice, or there is none."""
        if not 0 < len(labels) <= MAX_LABELS:
            raise UserError(f"{len(labels):,} labels, 1 to {MAX_LABELS:,} are possible")
        if len(set(labels)) < len(labels) or "" in labels:
            raise UserError("a label occurs twice, or is empty")
        return cls(list(labels), np.zeros((len(labels), len(labels))))


class Lines:
    """The lines of a dump, read once, with the place for errors.

    number: number of the last line read, from 1.

    UserError, from the constructor, for a file that is missing, too large, binary or not UTF-8.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path, self.number = path, 0
        data = read_bytes(path, MAX_FILE)
        if data.startswith(b"lCRF"):
            hint = f"crfsuite dump {os.fspath(path)} > model.txt, then convert model.txt"
            raise UserError("a binary model of CRFsuite", file=path, hint=hint)
        # not splitlines(), which also cuts at characters that words may have
        self._lines = decode(data, "utf-8", os.fspath(path), "save the file as UTF-8").split("\n")

    def __iter__(self) -> Iterator[str]:
        while self.number < len(self._lines):
            self.number += 1
            yield self._lines[self.number - 1].removesuffix("\r")

    def until(self, end: str) -> Iterator[str]:
        """The lines before one that is `end`, which is skipped; UserError if there is none."""
        for line in self:
            if line == end:
                return
            yield line
        raise UserError(f"the file ends where {end or 'an empty line'!r} should be")

    def at_place(self, problem: Exception) -> UserError:
        """The problem with file and line."""
        hint = problem.hint if isinstance(problem, UserError) else None
        message = problem.message if isinstance(problem, UserError) else str(problem)
        return UserError(message, file=self.path, line=self.number, hint=hint)


def number_of(text: str) -> float:
    """A finite number; UserError for anything else."""
    try:
        value = float(text)
    except ValueError:
        raise UserError(f"{text!r} is no number") from None
    if not np.isfinite(value):
        raise UserError(f"the weight {text} is not finite")
    return value


def splits(text: str, separators: Sequence[str]) -> list[Values]:
    """All ways to cut a text into parts with these separators between them.

    A value may hold the separator: each cut is a tuple of values that gives this text, and the
    other program gives all of them the same weight. UserError if there are too many.
    """
    steps = count(1)

    def cut(rest: str, ends: Sequence[str]) -> Iterator[Values]:
        if not ends:
            yield (rest,)
            return
        place = rest.find(ends[0])
        while place >= 0:
            if next(steps) > MAX_STEPS:
                raise UserError(f"{text!r} can be cut into values in too many ways")
            for others in cut(rest[place + len(ends[0]) :], ends[1:]):
                yield rest[:place], *others
            place = rest.find(ends[0], place + 1)

    return list(cut(text, separators))
