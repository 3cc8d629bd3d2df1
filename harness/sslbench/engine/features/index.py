"""Attribute indices: number the symbols that templates see in labeled text, and encode text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from sslbench.engine.checked import borders, subset, vector
from sslbench.engine.corpus import Corpus
from sslbench.engine.errors import UserError
from sslbench.engine.features import kernels
from sslbench.engine.features.quick import QuickIndex
from sslbench.engine.features.streams import StreamCodes, Streams
from sslbench.engine.features.templates import Template
from sslbench.engine.types import F64, I32, I64, Arrays

Dense = Callable[[Corpus], F64]
"""A function that gives real-valued columns of a corpus (pixels, embeddings): float64[N, D]."""


@dataclass(frozen=True)
class Attributes:
    """The attributes of a corpus.

    Attributes
    ----------
    node: int32[slots, N], C-contiguous, ids of node attributes; -1 = none. A template has one slot,
        a bag template one per position of its window.
    edge: int32[slots, N], the same for edge attributes of the transition into each token, which
        have ids of their own.
    dense: float64[N, D], real-valued columns, or None.
    offsets: int64[S + 1], sentence borders in tokens.
    """

    node: I32
    edge: I32
    dense: F64 | None
    offsets: I64


class QuickEncoder(Protocol):
    """Encodes a few tokens."""

    def attributes(self, tokens: Sequence[Any], offsets: I64) -> tuple[I32, F64 | None]:
        """Return node attributes int32[N, S] and dense columns float64[N, D], if there are any.

        tokens: as their reader gives them.  offsets: int64[S + 1], the borders of sentences.

        The attributes of a token are in the order of `Attributes.node`; -1 = absent.
        """


class Numbering:
    """Ids of node or edge attributes: by template, then in the order of its symbols.

    Attributes
    ----------
    symbol: int32[n], the symbol of each attribute.
    start: int64[T + 1], first id of each template.
    slots: int32[slots], the template of each slot.
    tables: by template, the id of each symbol of its stream, or -1.
    """

    def __init__(
        self, streams: Streams, templates: tuple[Template, ...], symbol: I32, start: I64
    ) -> None:
        self.templates, self.symbol, self.start = templates, symbol, start
        widths = [len(t.offsets) for t in templates]
        self.slots = np.repeat(np.arange(len(templates), dtype=np.int32), widths)
        self.tables: list[I32] = []
        for t, template in enumerate(templates):
            p, _ = streams.pattern_of(template)
            table = np.full(streams.n_symbols[p], -1, np.int32)
            table[symbol[start[t] : start[t + 1]]] = np.arange(start[t], start[t + 1])
            self.tables.append(table)

    @classmethod
    def from_counts(
        cls, streams: Streams, templates: tuple[Template, ...], counts: list[I64], min_count: int
    ) -> Numbering:
        frequent = [np.flatnonzero(c >= min_count).astype(np.int32) for c in counts]
        start = np.cumsum([0, *map(len, frequent)], dtype=np.int64)
        if start[-1] > np.iinfo(np.int32).max:
            raise UserError(f"{start[-1]:,} attributes", hint="raise min_count: at most 2**31 - 1")
        symbol = np.concatenate([np.empty(0, np.int32), *frequent])
        return cls(streams, templates, symbol, start)

    def encode(self, streams: Streams, codes: StreamCodes) -> I32:
        out = np.empty((len(self.slots), len(codes.position)), np.int32)
        row = 0
        for template, table in zip(self.templates, self.tables, strict=True):
            p, offset = streams.pattern_of(template)
            width = len(template.offsets)
            if template.bag:
                rows = out[row : row + width]
                kernels.gather_bag(
                    codes.codes[p], codes.position, codes.offsets, offset, table, True, rows
                )
            else:
                kernels.gather(codes.codes[p], codes.position, offset, table, out[row])
            row += width
        return out

    def text(self, streams: Streams, attribute: int) -> str:
        if not 0 <= attribute < len(self.symbol):
            raise IndexError(f"no attribute {attribute}: there are {len(self.symbol)}")
        template = self.templates[int(np.searchsorted(self.start, attribute, "right")) - 1]
        if not template.atoms:
            return str(template)
        p, _ = streams.pattern_of(template)
        return f"{template}={streams.symbol_text(p, int(self.symbol[attribute]))}"


def _add_counts(
    streams: Streams, codes: StreamCodes, templates: tuple[Template, ...], counts: list[I64]
) -> None:
    """Add the occurrences of each template's symbols; a value counts once per bag."""
    for template, total in zip(templates, counts, strict=True):
        p, offset = streams.pattern_of(template)
        if not template.bag:
            kernels.count_at(codes.codes[p], codes.position, offset, total)
            continue
        same = np.arange(len(total), dtype=np.int32)
        slots = np.empty((len(template.offsets), len(codes.position)), np.int32)
        kernels.gather_bag(codes.codes[p], codes.position, codes.offsets, offset, same, True, slots)
        kernels.count(slots.reshape(-1), total)


class AttributeIndex:
    """The numbering of all attributes of a text; encodes any corpus with the same columns.

    Attributes
    ----------
    streams: the symbol streams of all templates.
    dense: as in `TemplateFeaturizer`.
    node_templates, edge_templates: the node and edge templates, in order.
    node_start, edge_start: int64[T + 1]; template t has the ids start[t] to start[t + 1] - 1.
    node_slots, edge_slots: int32[slots], the template of each row of `Attributes.node` or `.edge`.
    """

    def __init__(
        self, streams: Streams, node: Numbering, edge: Numbering, dense: Dense | None = None
    ) -> None:
        self.streams = streams
        self.dense = dense
        self._node, self._edge = node, edge
        self.node_templates, self.edge_templates = node.templates, edge.templates
        self.node_start, self.edge_start = node.start, edge.start
        self.node_slots, self.edge_slots = node.slots, edge.slots

    @property
    def n_node(self) -> int:
        """Number of node attributes."""
        return len(self._node.symbol)

    @property
    def n_edge(self) -> int:
        """Number of edge attributes."""
        return len(self._edge.symbol)

    @classmethod
    def fit(
        cls,
        templates: Iterable[Template],
        corpus: Corpus | Iterable[Corpus],
        min_count: int = 1,
        dense: Dense | None = None,
    ) -> AttributeIndex:
        """Number the attributes of a corpus, or of shards that can be iterated over twice.

        min_count: attributes with fewer occurrences get no id.
        dense: as in `TemplateFeaturizer`; it is not saved.
        Raises UserError for an unknown column and for 2**31 or more attributes.
        """
        shards = [corpus] if isinstance(corpus, Corpus) else corpus
        templates = tuple(templates)
        # a bag of width w may contain one occurrence of a symbol at w tokens
        widest = max((len(t.offsets) for t in templates), default=1)
        streams = Streams.fit(templates, shards, -(-min_count // widest))
        kinds = [tuple(t for t in streams.templates if t.edge is edge) for edge in (False, True)]
        sizes = streams.n_symbols
        counts = [
            [np.zeros(sizes[streams.pattern_of(t)[0]], np.int64) for t in kind] for kind in kinds
        ]
        for shard in shards:
            codes = streams.encode(shard)
            for kind, totals in zip(kinds, counts, strict=True):
                _add_counts(streams, codes, kind, totals)
        node, edge = (
            Numbering.from_counts(streams, kind, totals, min_count)
            for kind, totals in zip(kinds, counts, strict=True)
        )
        return cls(streams, node, edge, dense)

    def encode(self, corpus: Corpus) -> Attributes:
        """Return the attributes of a corpus; labels are not used.

        Raises UserError for a missing column; ValueError if `dense` does not return float64[N, D].
        """
        codes = self.streams.encode(corpus)
        node = self._node.encode(self.streams, codes)
        edge = self._edge.encode(self.streams, codes)
        return Attributes(node, edge, self._dense(corpus), codes.offsets)

    def _dense(self, corpus: Corpus) -> F64 | None:
        if self.dense is None:
            return None
        dense = np.ascontiguousarray(self.dense(corpus), dtype=np.float64)
        if dense.ndim != 2 or len(dense) != corpus.n_tokens:
            raise ValueError(f"dense columns have shape {dense.shape}, not ({corpus.n_tokens}, D)")
        return dense

    def quick(self, columns: Sequence[str]) -> QuickEncoder | None:
        """Return what encodes a few tokens with these columns; None where only `encode` does."""
        simple = not any(t.bag for t in self.node_templates) and self.dense is None
        if self.edge_templates or not simple:
            return None
        return QuickIndex.of(self.streams, columns, self.node_templates, self._node.tables)

    def node_text(self, attribute: int) -> str:
        """A node attribute as text: ``word[-1]|word[0]=of|the``; pads are ``_B-1``, ``_E+1``."""
        return self._node.text(self.streams, attribute)

    def edge_text(self, attribute: int) -> str:
        """Return an edge attribute as text: ``edge: pos[0]=NN``."""
        return self._edge.text(self.streams, attribute)

    def arrays(self) -> tuple[Arrays, dict[str, Any]]:
        """What `from_arrays` restores the index from: arrays, and JSON-able metadata."""
        arrays, metadata = self.streams.arrays()
        arrays = {f"streams.{key}": array for key, array in arrays.items()}
        for name, kind in (("node", self._node), ("edge", self._edge)):
            arrays[f"{name}.symbol"], arrays[f"{name}.start"] = kind.symbol, kind.start
        return arrays, metadata

    @classmethod
    def from_arrays(
        cls, arrays: Arrays, metadata: dict[str, Any], dense: Dense | None = None
    ) -> AttributeIndex:
        """Restore what `arrays` gave; ValueError or KeyError if it cannot describe an index.

        dense: as in `TemplateFeaturizer`.
        """
        streams = Streams.from_arrays(subset(arrays, "streams."), metadata)

        def numbering(name: str, edge: bool) -> Numbering:
            templates = tuple(t for t in streams.templates if t.edge is edge)
            symbol = vector(arrays, f"{name}.symbol", np.int32)
            start = borders(arrays, f"{name}.start", len(templates), len(symbol))
            for t, template in enumerate(templates):
                own = {f"{name}.symbol": symbol[start[t] : start[t + 1]]}
                p, _ = streams.pattern_of(template)
                vector(own, f"{name}.symbol", np.int32, None, (0, streams.n_symbols[p]))
            return Numbering(streams, templates, symbol, start)

        return cls(streams, numbering("node", False), numbering("edge", True), dense)


class TemplateFeaturizer:
    """Templates and real-valued columns; the target of a featurizer registration returns one.

    UserError for a template that cannot be parsed or is repeated, and if there are neither
    templates nor `dense`.

    Parameters
    ----------
    templates: templates, also in text form.
    dense: gives real-valued columns of a corpus, float64[N, D].
    """

    def __init__(self, templates: Iterable[Template | str], dense: Dense | None = None) -> None:
        self.templates = tuple(Template.parse(t) if isinstance(t, str) else t for t in templates)
        self.dense = dense
        if not self.templates and dense is None:
            raise UserError("a featurizer needs at least one template")
        for template, n in Counter(self.templates).items():
            if n > 1:
                raise UserError(f"template {template} is given twice")

    def __repr__(self) -> str:
        return f"TemplateFeaturizer({len(self.templates)} templates)"

    def index(self, corpus: Corpus | Iterable[Corpus], min_count: int = 1) -> AttributeIndex:
        """Number the attributes of a labeled corpus; see `AttributeIndex.fit`."""
        return AttributeIndex.fit(self.templates, corpus, min_count, self.dense)
