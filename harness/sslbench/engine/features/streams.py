"""Symbol streams: each distinct relative pattern of the templates as a sequence of symbol ids.

The previous and the next word are the same stream at two offsets, so the 39 templates of CoNLL-2000
chunking need five streams of int32 per token. The value of a template at token n is
``codes[p, position[n] + offset]``; a table lookup gives the attribute or the row of an HMM.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sslbench.engine.checked import Saved, subset
from sslbench.engine.corpus import Corpus
from sslbench.engine.corpus.units import TextPass, TextUnits
from sslbench.engine.errors import UserError
from sslbench.engine.features import kernels
from sslbench.engine.features.derived import coded_column
from sslbench.engine.features.symbols import ColumnSymbols, PaddedPositions, PairSymbols
from sslbench.engine.features.templates import Atom, Template
from sslbench.engine.spread import over
from sslbench.engine.types import I8, I32, I64, Arrays

Pattern = tuple[Atom, ...]


@dataclass(frozen=True)
class StreamCodes:
    """A corpus as P symbol streams.

    Attributes
    ----------
    codes: int32[P, positions], C-contiguous, over the padded positions of all sentences; -1 for
        unknown symbols and for positions that no template reads.
    position: int64[N], the padded position of each token.
    offsets: int64[S + 1], sentence borders in tokens.
    """

    codes: I32
    position: I64
    offsets: I64


@dataclass(frozen=True)
class Step:
    """How one pattern is computed: from a column (left = -1), or from two earlier steps.

    Attributes
    ----------
    low, high: first and last offset at which the pattern is read.
    left, right: numbers of the steps of its beginning and its last atom.
    shift: offset of the end of the beginning.
    """

    pattern: Pattern
    low: int
    high: int
    left: int = -1
    right: int = -1
    shift: int = 0


def _relative(atoms: Pattern) -> Pattern:
    return tuple(Atom(atom.column, atom.offset - atoms[-1].offset) for atom in atoms)


def _windows(templates: Sequence[Template]) -> dict[Pattern, tuple[int, int]]:
    """Each pattern that must be computed, with the first and last offset at which it is read."""
    windows: dict[Pattern, tuple[int, int]] = {}

    def widen(pattern: Pattern, low: int, high: int) -> None:
        old = windows.get(pattern, (low, high))
        windows[pattern] = (min(low, old[0]), max(high, old[1]))

    for template in templates:
        if template.atoms:  # a bag is read inside the sentence only, not at pads
            window = (0, 0) if template.bag else (template.offsets[0], template.offsets[0])
            widen(template.pattern, *window)
    for length in range(max(map(len, windows), default=0), 1, -1):
        for pattern in [p for p in windows if len(p) == length]:
            low, high = windows[pattern]
            shift = pattern[-2].offset
            widen(_relative(pattern[:-1]), low + shift, high + shift)
            widen(pattern[-1:], low, high)
    return windows


def _plan(templates: Sequence[Template]) -> list[Step]:
    """The steps, shorter patterns first."""
    windows = _windows(templates)
    order = sorted(windows, key=len)
    number = {pattern: i for i, pattern in enumerate(order)}
    steps = []
    for pattern in order:
        if len(pattern) == 1:
            steps.append(Step(pattern, *windows[pattern]))
        else:
            left, right = number[_relative(pattern[:-1])], number[pattern[-1:]]
            steps.append(Step(pattern, *windows[pattern], left, right, pattern[-2].offset))
    return steps


class Streams:
    """The symbol streams of a set of templates, with their dictionaries.

    Attributes
    ----------
    templates: as given.
    patterns: distinct relative patterns in the order of the templates; stream p is row p of the
        codes. The stream of the constant template, (), has the single symbol ``bias``.
    padding: pads on each side of a sentence, the largest offset of a template.
    """

    def __init__(self, templates: Iterable[Template]) -> None:
        self.templates = tuple(templates)
        self.patterns: tuple[Pattern, ...] = tuple(dict.fromkeys(t.pattern for t in self.templates))
        self._stream_of = {pattern: p for p, pattern in enumerate(self.patterns)}
        self._steps = _plan(self.templates)
        ends = [abs(end) for step in self._steps for end in (step.low, step.high)]
        windows = [abs(offset) for t in self.templates for offset in t.offsets]
        self.padding = max(ends + windows, default=0)
        self._symbols = [self._dictionary(step) for step in self._steps]
        self._step_of = {step.pattern: i for i, step in enumerate(self._steps)}
        self._n_tokens = 0

    def _dictionary(self, step: Step) -> ColumnSymbols | PairSymbols:
        if step.left < 0:
            return ColumnSymbols(self.padding, step.low, step.high)
        return PairSymbols(step.shift, step.low, step.high)

    @classmethod
    def fit(
        cls, templates: Iterable[Template], text: Iterable[Corpus] | TextUnits, min_count: int = 1
    ) -> Streams:
        """Collect the symbols of all streams in one pass; memory grows with distinct symbols.

        Symbols are numbered in order of first occurrence, so the result does not depend on how the
        text is split into shards.

        min_count: symbols with fewer occurrences become unknown (-1). UserError if less than 1.
        """
        streams = cls(templates)
        if min_count < 1:
            raise UserError(f"min_count is {min_count}", hint="use 1 for all symbols")
        for found in over(SymbolPass(streams.templates), TextUnits.of(text)):
            streams._merge(found)
        streams._drop_rare(min_count)
        return streams

    def learn(self, corpus: Corpus) -> None:
        """Collect the symbols of a corpus."""
        self._encode(corpus, learn=True)
        self._n_tokens += corpus.n_tokens

    def _merge(self, other: Streams) -> None:
        """Add the symbols of text that follows; the first text's are taken over."""
        first = not self._n_tokens
        self._n_tokens += other._n_tokens
        if first:
            self._symbols = other._symbols
            return
        ids: list[I32] = []
        for step, own, more in zip(self._steps, self._symbols, other._symbols, strict=True):
            if isinstance(own, ColumnSymbols):
                assert isinstance(more, ColumnSymbols)
                ids.append(own.merge(more))
            else:
                assert isinstance(more, PairSymbols)
                ids.append(own.merge(more, ids[step.left], ids[step.right]))

    def _drop_rare(self, min_count: int) -> None:
        """Drop rare symbols, shorter patterns first, and values that no template reads."""
        new_ids: list[I32] = []
        for step, symbols in zip(self._steps, self._symbols, strict=True):
            if isinstance(symbols, ColumnSymbols):
                new_ids.append(symbols.drop_rare(min_count))
            else:
                halves = new_ids[step.left], new_ids[step.right]
                new_ids.append(symbols.drop_rare(min_count, *halves))

    def _encode(self, corpus: Corpus, learn: bool) -> StreamCodes:
        padded = PaddedPositions.of_corpus(corpus, self.padding)
        codes = np.zeros((len(self.patterns), padded.n_positions), np.int32)
        encoded: list[I32] = []
        for step, symbols in zip(self._steps, self._symbols, strict=True):
            row = self._stream_of.get(step.pattern)
            out = np.empty(padded.n_positions, np.int32) if row is None else codes[row]
            if isinstance(symbols, ColumnSymbols):
                symbols.encode(coded_column(corpus, step.pattern[0].column), padded, learn, out)
            else:
                symbols.encode(encoded[step.left], encoded[step.right], padded, learn, out)
            encoded.append(out)
        return StreamCodes(codes, padded.position, padded.offsets)

    def encode(self, corpus: Corpus) -> StreamCodes:
        """The corpus as symbol ids; symbols that `fit` did not collect are -1.

        Values are compared as text, so the corpus may have any vocabularies.
        """
        return self._encode(corpus, learn=False)

    @property
    def steps(self) -> Sequence[Step]:
        """The patterns that are computed, shorter patterns first; each has a dictionary."""
        return self._steps

    @property
    def dictionaries(self) -> Sequence[ColumnSymbols | PairSymbols]:
        """The dictionaries of the patterns that are computed, shorter patterns first."""
        return self._symbols

    def dictionary_of(self, template: Template) -> int:
        """Number of the dictionary of a template that has atoms."""
        return self._step_of[template.pattern]

    def halves(self, number: int) -> tuple[int, int]:
        """Numbers of the dictionaries whose symbols are paired in that one."""
        return self._steps[number].left, self._steps[number].right

    @property
    def count(self) -> int:
        """P, the number of streams."""
        return len(self.patterns)

    @property
    def n_symbols(self) -> tuple[int, ...]:
        """Number of symbols of each stream; their ids are 0 to n_symbols[p] - 1."""
        return tuple(len(self.symbol_counts(p)) for p in range(self.count))

    def symbol_counts(self, p: int) -> I64:
        """int64[n_symbols[p]]: occurrences of the symbols of stream p in `fit`, including pads."""
        if not self.patterns[p]:
            return np.array([self._n_tokens], np.int64)
        return self._symbols[self._step_of[self.patterns[p]]].counts

    def pattern_of(self, template: Template) -> tuple[int, int]:
        """Stream p and offset of a template; its value at token n: codes[p, position[n] + offset].

        For a bag, the offset is the first of the window; values outside of the sentence are not
        part of the bag.
        """
        return self._stream_of[template.pattern], template.offsets[0]

    def values(self, codes: StreamCodes, template: Template) -> I32:
        """int32[slots, N]: symbol ids of a template at each token, with a slot per bag position.

        Bag positions outside of the sentence are -1; repeated values are repeated.
        """
        p, offset = self.pattern_of(template)
        row, width = codes.codes[p], len(template.offsets)
        out = np.empty((width, len(codes.position)), np.int32)
        same = np.arange(self.n_symbols[p], dtype=np.int32)
        if template.bag:
            kernels.gather_bag(row, codes.position, codes.offsets, offset, same, False, out)
        else:
            kernels.gather(row, codes.position, offset, same, out[0])
        return out

    def symbol_text(self, p: int, code: int) -> str:
        """The values of a symbol as text, such as ``of|the``; pads are ``_B-1``, ``_E+1``."""
        if not 0 <= code < self.n_symbols[p]:
            raise IndexError(f"stream {p} has no symbol {code}")
        if not self.patterns[p]:
            return "bias"
        parts, number = list[str](), self._step_of[self.patterns[p]]
        while isinstance(symbols := self._symbols[number], PairSymbols):
            key, step = int(symbols.keys[code]), self._steps[number]
            last = self._symbols[step.right]
            assert isinstance(last, ColumnSymbols)
            parts.append(last.texts[key & 0x7FFFFFFF])
            number, code = step.left, key >> 32
        parts.append(symbols.texts[code])
        return "|".join(reversed(parts))

    def arrays(self) -> tuple[Arrays, dict[str, Any]]:
        """What `from_arrays` restores the streams from: arrays, and JSON-able metadata."""
        arrays: Arrays = {}
        for i, symbols in enumerate(self._symbols):
            arrays.update({f"{i}.{key}": array for key, array in symbols.arrays().items()})
        return arrays, {"templates": [str(t) for t in self.templates], "n_tokens": self._n_tokens}

    @classmethod
    def from_arrays(cls, arrays: Arrays, metadata: dict[str, Any]) -> Streams:
        """Restore what `arrays` gave; ValueError or KeyError if they cannot describe streams."""
        streams = cls(Template.parse(text) for text in metadata["templates"])
        streams._n_tokens = int(metadata["n_tokens"])
        for i, (step, symbols) in enumerate(zip(streams._steps, streams._symbols, strict=True)):
            symbols.restore(subset(arrays, f"{i}."))
            if isinstance(symbols, PairSymbols):
                symbols.check_halves(*(len(streams._symbols[k]) for k in (step.left, step.right)))
        return streams


@dataclass(frozen=True)
class SymbolPass(TextPass["Streams"]):
    """Collects the symbols of units of text."""

    templates: tuple[Template, ...]

    def run(self, unit: Corpus) -> Streams:
        found = Streams(self.templates)
        found.learn(unit)
        return found

    def packed(self) -> Saved:
        return {}, {"templates": [str(template) for template in self.templates]}

    @classmethod
    def unpacked(cls, arrays: Arrays, facts: dict[str, Any]) -> SymbolPass:
        return cls(tuple(map(Template.parse, facts["templates"])))

    def pack_result(self, result: Streams) -> Arrays:
        arrays, facts = result.arrays()
        return arrays | {"tokens": np.array([facts["n_tokens"]])}

    def unpack_result(self, arrays: Arrays) -> Streams:
        (tokens,) = arrays.pop("tokens").tolist()
        return Streams.from_arrays(arrays, {**self.packed()[1], "n_tokens": tokens})


@dataclass(frozen=True)
class SymbolRows:
    """Tables with a row per symbol of a template, end to end: which rows a token reads.

    A slot reads one row; a template has one slot, a bag one per position.  The row of the symbol
    with id i is ``start + i + unknown``; -1 = no row: outside of the sentence (bags), or an unknown
    symbol where unknown = 0.

    stream, offset, bag, start: of each slot, arrays of length G; start is the first row of its
        table.
    owner: int32[G], number of the slot's template, as given.
    first: int32[T + 1], first slot of each table, and their number.
    tables: number of each table's template. borders: int64[T + 1], first rows of the tables.
    unknown: 1 = row ``start`` is that of unknown symbols.
    """

    stream: I32
    offset: I32
    bag: I8
    start: I64
    owner: I32
    first: I32
    tables: tuple[int, ...]
    borders: I64
    unknown: int

    @classmethod
    def build(
        cls, streams: Streams, templates: Sequence[tuple[int, Template]], unknown: int
    ) -> SymbolRows:
        """Tables for (number, template) in this order."""
        slots, first, borders = list[tuple[int, int, bool, int, int]](), [0], [0]
        for number, template in templates:
            p, offset = streams.pattern_of(template)
            for place in range(len(template.offsets)):
                slots.append((p, offset + place, template.bag is not None, borders[-1], number))
            first.append(len(slots))
            borders.append(borders[-1] + streams.n_symbols[p] + unknown)
        stream, offsets, bag, start, owner = np.array(slots, np.int64).reshape(-1, 5).T.copy()
        return cls(
            stream.astype(np.int32),
            offsets.astype(np.int32),
            bag.astype(np.int8),
            start,
            owner.astype(np.int32),
            np.array(first, np.int32),
            tuple(number for number, _ in templates),
            np.array(borders, np.int64),
            unknown,
        )

    def of(self, text: StreamCodes) -> I32:
        """int32[N, G]: the row of every slot at every token."""
        lengths = np.diff(text.offsets)
        left = np.arange(len(text.position)) - np.repeat(text.offsets[:-1], lengths)
        right = np.repeat(lengths, lengths) - 1 - left
        inside = np.stack([left, right], axis=1).astype(np.int32)
        found = np.empty((len(text.position), len(self.stream)), np.int32)
        slots = self.stream, self.offset, self.bag, self.start
        kernels.slot_rows(text.codes, text.position, inside, *slots, self.unknown, found)
        return found

    def frequent(self, streams: Streams, count: int) -> I64:
        """int64[n]: rows of unknown symbols, and of those that occur more than `count` times."""
        found = [np.empty(0, np.int64)]
        for table, border in enumerate(self.borders[:-1]):
            counts = streams.symbol_counts(int(self.stream[self.first[table]]))
            found.append(np.full(self.unknown, border))
            found.append(border + self.unknown + np.flatnonzero(counts > count))
        return np.concatenate(found)

    def shares(self, threads: int) -> I32:
        """Cut the slots into a run for each thread, between tables: int32[threads + 1]."""
        wanted = len(self.stream) * np.arange(threads + 1) / threads
        nearest: I32 = self.first[np.abs(self.first[:, None] - wanted).argmin(axis=0)]
        return nearest
