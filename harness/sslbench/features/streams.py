"""Streams: every distinct relative pattern of the templates as one sequence of dense symbol ids.

The word one to the left and the word one to the right are the same stream read at two offsets, so
the 39 templates of CoNLL-2000 chunking need five streams of int32 per token. A template's value at
token n is
``codes[p, position[n] + offset]``: one table gather turns it into an attribute or a row of an HMM.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sslbench.corpus import Corpus
from sslbench.errors import UserError
from sslbench.features import kernels
from sslbench.features.derived import coded_column
from sslbench.features.symbols import ColumnSymbols, Layout, PairSymbols
from sslbench.features.templates import Atom, Template
from sslbench.types import I32, I64

Pattern = tuple[Atom, ...]
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class StreamCodes:
    """A corpus as symbol streams.

    Attributes
    ----------
    codes: int32[P, N_padded], C-contiguous; -1 for symbols outside the dictionary and for
        positions that no template reads (nor a longer pattern that begins so).
    position: int64[N], the padded position of every token.
    offsets: int64[S + 1], sentence borders in tokens.
    """

    codes: I32
    position: I64
    offsets: I64


@dataclass(frozen=True)
class _Step:
    """How one pattern is computed: from a column (left = -1), or from two earlier steps."""

    pattern: Pattern
    low: int
    high: int
    left: int = -1
    right: int = -1
    shift: int = 0


def _relative(atoms: Pattern) -> Pattern:
    return tuple(Atom(atom.column, atom.offset - atoms[-1].offset) for atom in atoms)


def _reaches(templates: Sequence[Template]) -> dict[Pattern, tuple[int, int]]:
    """Every pattern that must be computed, with the window (low, high) of offsets it is read at."""
    reach: dict[Pattern, tuple[int, int]] = {}

    def widen(pattern: Pattern, low: int, high: int) -> None:
        old = reach.get(pattern, (low, high))
        reach[pattern] = (min(low, old[0]), max(high, old[1]))

    for template in templates:
        if template.atoms:  # a bag stays inside the sentence: it reads no pads
            window = (0, 0) if template.bag else (template.offsets[0], template.offsets[0])
            widen(template.pattern, *window)
    for length in range(max(map(len, reach), default=0), 1, -1):
        for pattern in [p for p in reach if len(p) == length]:
            low, high = reach[pattern]
            shift = pattern[-2].offset
            widen(_relative(pattern[:-1]), low + shift, high + shift)
            widen(pattern[-1:], low, high)
    return reach


def _plan(templates: Sequence[Template]) -> list[_Step]:
    """The steps, shorter patterns first."""
    reach = _reaches(templates)
    order = sorted(reach, key=len)
    row = {pattern: i for i, pattern in enumerate(order)}
    steps = []
    for pattern in order:
        if len(pattern) == 1:
            steps.append(_Step(pattern, *reach[pattern]))
        else:
            left, right = row[_relative(pattern[:-1])], row[pattern[-1:]]
            steps.append(_Step(pattern, *reach[pattern], left, right, pattern[-2].offset))
    return steps


class Streams:
    """The symbol streams of a set of templates and their dictionaries.

    Attributes
    ----------
    templates: as given.
    patterns: distinct relative patterns in order of the templates; row p of the codes. The
        constant template has a stream of its own, () with the single symbol ``bias``.
    padding: pads on either side of a sentence = the largest offset.
    """

    def __init__(self, templates: Iterable[Template]) -> None:
        self.templates = tuple(templates)
        self.patterns: tuple[Pattern, ...] = tuple(dict.fromkeys(t.pattern for t in self.templates))
        self._row = {pattern: p for p, pattern in enumerate(self.patterns)}
        self._steps = _plan(self.templates)
        ends = [abs(end) for step in self._steps for end in (step.low, step.high)]
        windows = [abs(offset) for t in self.templates for offset in t.offsets]
        self.padding = max(ends + windows, default=0)
        self._symbols = [self._dictionary(step) for step in self._steps]
        self._step_of = {step.pattern: i for i, step in enumerate(self._steps)}
        self._n_tokens = 0

    def _dictionary(self, step: _Step) -> ColumnSymbols | PairSymbols:
        if step.left < 0:
            return ColumnSymbols(self.padding, step.low, step.high)
        return PairSymbols(step.shift, step.low, step.high)

    @classmethod
    def fit(
        cls, templates: Iterable[Template], shards: Iterable[Corpus], min_count: int = 1
    ) -> Streams:
        """Collect the symbols of all streams in one pass; memory grows with distinct symbols.

        Symbols get ids in order of first sight: the result does not depend on how the text is cut
            into shards.

        Parameters
        ----------
        min_count: symbols with fewer occurrences are dropped and become unknown (-1).
        """
        streams = cls(templates)
        if min_count < 1:
            raise UserError(f"min_count is {min_count}", hint="use 1 to keep every symbol")
        for shard in shards:
            streams._lay(shard, learn=True)
            streams._n_tokens += shard.n_tokens
        streams._cut(min_count)
        return streams

    def _cut(self, min_count: int) -> None:
        """Drop rare symbols, shorter patterns first, and values that no template reads."""
        renumbered: list[I32] = []
        for step, symbols in zip(self._steps, self._symbols, strict=True):
            if isinstance(symbols, ColumnSymbols):
                renumbered.append(symbols.cut(min_count))
            else:
                maps = renumbered[step.left], renumbered[step.right]
                renumbered.append(symbols.cut(min_count, *maps))

    def _lay(self, corpus: Corpus, learn: bool) -> StreamCodes:
        layout = Layout.of(corpus, self.padding)
        codes = np.zeros((len(self.patterns), layout.n_positions), np.int32)
        laid: list[I32] = []
        for step, symbols in zip(self._steps, self._symbols, strict=True):
            row = self._row.get(step.pattern)
            out = np.empty(layout.n_positions, np.int32) if row is None else codes[row]
            if isinstance(symbols, ColumnSymbols):
                symbols.lay(coded_column(corpus, step.pattern[0].column), layout, learn, out)
            else:
                symbols.lay(laid[step.left], laid[step.right], layout, learn, out)
            laid.append(out)
        return StreamCodes(codes, layout.position, layout.offsets)

    def encode(self, corpus: Corpus) -> StreamCodes:
        """The corpus as symbol ids; what was not seen in `fit` (or cut off) is -1.

        Values are matched by their text, so the corpus may come with vocabularies of its own.
        """
        return self._lay(corpus, learn=False)

    @property
    def count(self) -> int:
        """Number of streams P."""
        return len(self.patterns)

    @property
    def n_symbols(self) -> tuple[int, ...]:
        """Size of every stream's dictionary; ids are 0 .. n_symbols[p] - 1."""
        return tuple(len(self.symbol_counts(p)) for p in range(self.count))

    def symbol_counts(self, p: int) -> I64:
        """Occurrences in the fitted text of stream p, int64[n_symbols[p]], pads included."""
        if not self.patterns[p]:
            return np.array([self._n_tokens], np.int64)
        return self._symbols[self._step_of[self.patterns[p]]].counts

    def pattern_of(self, template: Template) -> tuple[int, int]:
        """Stream p and window offset: the value at token n is codes[p, position[n] + offset].

        For a bag: the stream and the first offset of the window; its values lie inside the
            sentence only.
        """
        return self._row[template.pattern], template.offsets[0]

    def values(self, codes: StreamCodes, template: Template) -> I32:
        """Symbol ids the template sees, int32[slots, N]: one slot, or one per bag position.

        A bag's positions outside the sentence are -1; repeated values stay (a multiset).
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
        """The values of a symbol, e.g. ``of|the``; pads read ``_B-1``, ``_E+1``."""
        if not 0 <= code < self.n_symbols[p]:
            raise IndexError(f"stream {p} has no symbol {code}")
        if not self.patterns[p]:
            return "bias"
        parts, at = list[str](), self._step_of[self.patterns[p]]
        while isinstance(symbols := self._symbols[at], PairSymbols):
            key, step = int(symbols.keys[code]), self._steps[at]
            last = self._symbols[step.right]
            assert isinstance(last, ColumnSymbols)
            parts.append(last.texts[key & 0x7FFFFFFF])
            at, code = step.left, key >> 32
        parts.append(symbols.texts[code])
        return "|".join(reversed(parts))

    def arrays(self) -> tuple[Arrays, dict[str, Any]]:
        """Everything to encode and inspect, for saving: arrays (no objects), JSON-able facts."""
        arrays: Arrays = {}
        for i, symbols in enumerate(self._symbols):
            arrays.update({f"{i}.{key}": array for key, array in symbols.arrays().items()})
        return arrays, {"templates": [str(t) for t in self.templates], "n_tokens": self._n_tokens}

    @classmethod
    def from_arrays(cls, arrays: Arrays, facts: dict[str, Any]) -> Streams:
        """The streams that `arrays` described."""
        streams = cls(Template.parse(text) for text in facts["templates"])
        streams._n_tokens = int(facts["n_tokens"])
        for i, symbols in enumerate(streams._symbols):
            start = f"{i}."
            mine = {k[len(start) :]: a for k, a in arrays.items() if k.startswith(start)}
            symbols.restore(mine)
        return streams
