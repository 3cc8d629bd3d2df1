"""An attribute index of given attributes, where there is no text that they were seen in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sslbench.engine.features.index import AttributeIndex, Numbering
from sslbench.engine.features.streams import Streams
from sslbench.engine.features.symbols import ColumnSymbols
from sslbench.engine.features.templates import Template

Values = tuple[str, ...]
"""A value for each atom of a template; ``_B-1`` and ``_E+1`` are pads."""


def index_of_values(values: Mapping[Template, Sequence[Values]]) -> AttributeIndex:
    """An index whose attributes are numbered by template, node templates first, then in order.

    values: of each template, each once; one of the constant template is ().
    """
    builder = _Builder(Streams(values))
    symbols = {template: builder.symbols(template, each) for template, each in values.items()}
    builder.finish()
    node, edge = (
        _numbering(builder.streams, {t: s for t, s in symbols.items() if t.edge is edge})
        for edge in (False, True)
    )
    return AttributeIndex(builder.streams, node, edge)


def _numbering(streams: Streams, symbols: Mapping[Template, Sequence[int]]) -> Numbering:
    start = np.cumsum([0, *map(len, symbols.values())], dtype=np.int64)
    flat = [number for each in symbols.values() for number in each]
    return Numbering(streams, tuple(symbols), np.array(flat, np.int32), start)


class _Builder:
    """Numbers the symbols of streams as they are asked for."""

    def __init__(self, streams: Streams) -> None:
        self.streams = streams
        self._texts: dict[int, dict[str, int]] = {}
        self._pairs: dict[int, dict[int, int]] = {}
        for number, symbols in enumerate(streams.dictionaries):
            if isinstance(symbols, ColumnSymbols):
                self._texts[number] = {text: i for i, text in enumerate(symbols.texts)}  # the pads
            else:
                self._pairs[number] = {}

    def symbols(self, template: Template, values: Sequence[Values]) -> list[int]:
        """Return the symbol of each tuple of values."""
        if not template.atoms:
            return [0] * len(values)
        step = self.streams.dictionary_of(template)
        return [self._symbol(step, each) for each in values]

    def _symbol(self, step: int, values: Values) -> int:
        if step in self._texts:
            texts = self._texts[step]
            return texts.setdefault(values[0], len(texts))
        left, right = self.streams.halves(step)
        key = self._symbol(left, values[:-1]) << 32 | self._symbol(right, values[-1:])
        pairs = self._pairs[step]
        return pairs.setdefault(key, len(pairs))

    def finish(self) -> None:
        """Write the dictionaries."""
        for number, symbols in enumerate(self.streams.dictionaries):
            if isinstance(symbols, ColumnSymbols):
                symbols.define(list(self._texts[number])[len(symbols) :])
            else:
                symbols.define(np.array(list(self._pairs[number]), np.int64))
