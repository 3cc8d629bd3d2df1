"""The attributes of a few tokens: what takes milliseconds for a corpus, since it costs the same
for one sentence as for a thousand, takes microseconds here.

The symbols of a token's values are remembered, and one kernel makes the attributes from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from sslbench.engine.compilation.compiled import kernel
from sslbench.engine.features.derived import derived_value
from sslbench.engine.features.kernels import look_up, pair_keys
from sslbench.engine.features.streams import Streams
from sslbench.engine.features.symbols import ColumnSymbols
from sslbench.engine.features.templates import Template
from sslbench.engine.types import I32, I64

REMEMBERED = 50_000  # tokens


@dataclass(frozen=True)
class QuickIndex:
    """The node attributes of templates without bags.

    symbols_of: the symbols of a token's values, one per column that templates read.
    pads: int32[columns, 2 * padding], as of `ColumnSymbols`.
    steps: int64[steps, 5]: left, right, shift, low and high of each, as of `Step`; of a column, -1
        and its number.
    keys, slots: the dictionaries of pairs, as of `PairSymbols`, end to end; borders: int64[steps +
        1, 2] in both.
    templates: int64[T, 3]: the step of each (-1: the constant), its offset, and its first item in
    table: int32, the attribute of every symbol, or -1.
    """

    columns: tuple[str, ...]
    read: tuple[tuple[str, ColumnSymbols], ...]
    pads: I32
    steps: I64
    keys: I64
    slots: I32
    borders: I64
    templates: I64
    table: I32
    _seen: dict[Any, tuple[int, ...]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        streams: Streams,
        columns: Sequence[str],
        templates: Sequence[Template],
        tables: Sequence[I32],
    ) -> QuickIndex:
        """Pack the dictionaries of streams.

        columns: of the tokens.  tables: by template, the attribute of every symbol, or -1.
        """
        read, steps, keys, slots = list[tuple[str, ColumnSymbols]](), [], [], []
        for step, symbols in zip(streams.steps, streams.dictionaries, strict=True):
            if isinstance(symbols, ColumnSymbols):
                right, pairs = len(read), (np.empty(0, np.int64), np.empty(0, np.int32))
                read.append((step.pattern[0].column, symbols))
            else:
                right, pairs = step.right, (symbols.keys, symbols.slots)
            steps.append((step.left, right, step.shift, step.low, step.high))
            keys.append(pairs[0])
            slots.append(pairs[1])
        sizes = np.array([[len(k), len(s)] for k, s in zip(keys, slots, strict=True)])
        step_of = [streams.dictionary_of(t) if t.atoms else -1 for t in templates]
        first = np.cumsum([0, *map(len, tables)])[:-1]
        offsets = [t.offsets[0] for t in templates]
        return cls(
            tuple(columns),
            tuple(read),
            np.array([symbols.pads for _, symbols in read], np.int32).reshape(len(read), -1),
            np.array(steps, np.int64).reshape(-1, 5),
            np.concatenate([np.empty(0, np.int64), *keys]),
            np.concatenate([np.empty(0, np.int32), *slots]),
            np.concatenate([np.zeros((1, 2), np.int64), sizes.reshape(-1, 2).cumsum(axis=0)]),
            np.stack([step_of, offsets, first], axis=1).astype(np.int64),
            np.concatenate([np.empty(0, np.int32), *tables]),
        )

    def attributes(self, tokens: Sequence[Any], offsets: I64) -> tuple[I32, None]:
        """See `QuickEncoder`.

        tokens: a text each, of several columns a tuple of texts.
        """
        flat = chain.from_iterable(map(self._symbols_of, tokens))
        symbols = np.fromiter(flat, np.int32, len(tokens) * len(self.read))
        out = np.empty((len(tokens), len(self.templates)), np.int32)
        plan = self.steps, self.keys, self.slots, self.borders, self.templates, self.table
        _attributes(symbols.reshape(len(tokens), -1), self.pads, offsets, *plan, out)
        return out, None

    def _symbols_of(self, token: Any) -> tuple[int, ...]:
        """Return the symbols of a token's values, which are remembered; threads may call this."""
        symbols = self._seen.get(token)
        if symbols is None:
            if len(self._seen) >= REMEMBERED:
                self._seen.clear()
            texts = (token,) if isinstance(token, str) else token
            values = dict(zip(self.columns, texts, strict=True))
            symbols = self._seen[token] = tuple(
                dictionary.lookup(derived_value(values, name)) for name, dictionary in self.read
            )
        return symbols


@kernel
def _attributes(
    symbols: I32,
    pads: I32,
    offsets: I64,
    steps: I64,
    keys: I64,
    slots: I32,
    borders: I64,
    templates: I64,
    table: I32,
    out: I32,
) -> None:
    """Write the attributes int32[N, T] of tokens with the symbols int32[N, columns]."""
    padding, S = pads.shape[1] // 2, len(offsets) - 1
    codes = np.full((len(steps), len(symbols) + 2 * padding * S), np.int32(-1))
    for i in range(len(steps)):
        left, right, shift, low, high = steps[i]
        if left >= 0:
            queries = pair_keys(codes[left], shift, codes[right], offsets, padding, low, high)
            own = keys[borders[i, 0] : borders[i + 1, 0]]
            look_up(queries, own, slots[borders[i, 1] : borders[i + 1, 1]], codes[i])
            continue
        for s in range(S):
            start, length = offsets[s] + padding * (2 * s + 1), offsets[s + 1] - offsets[s]
            for t in range(low, length + high):
                if t < 0:
                    codes[i, start + t] = pads[right, -t - 1]
                elif t >= length:
                    codes[i, start + t] = pads[right, padding + t - length]
                else:
                    codes[i, start + t] = symbols[offsets[s] + t, right]
    for s in range(S):
        for n in range(offsets[s], offsets[s + 1]):
            for k in range(len(templates)):
                step, at = templates[k, 0], n + padding * (2 * s + 1) + templates[k, 1]
                code = np.int32(0) if step < 0 else codes[step, at]
                out[n, k] = table[templates[k, 2] + code] if code >= 0 else np.int32(-1)
