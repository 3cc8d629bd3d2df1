"""Attributes: the symbols that templates see in labeled text, numbered, and where they occur."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sslbench.checked import borders, vector
from sslbench.corpus import Corpus
from sslbench.errors import UserError
from sslbench.features import kernels
from sslbench.features.streams import Arrays, StreamCodes, Streams
from sslbench.features.templates import Template
from sslbench.types import F64, I32, I64

Dense = Callable[[Corpus], F64]
"""Real-valued columns of a corpus (pixels, embeddings): float64[N, D]."""


@dataclass(frozen=True)
class Attributes:
    """The attributes that fire in a corpus.

    Attributes
    ----------
    node: int32[S, N], C-contiguous (slot-major); -1 = absent. One slot per template, one per
        position of a bag.
    edge: int32[Se, N], the same for attributes of transitions into token n, in their own id space.
    dense: float64[N, D] or None.
    offsets: int64[n + 1], sentence borders in tokens.
    """

    node: I32
    edge: I32
    dense: F64 | None
    offsets: I64


class _Numbering:
    """Attribute ids of one kind (node or edge): consecutive per template, in order of its symbols.

    `start` int64[T + 1] is the id range of every template, `symbol` int32[n] the symbol behind
    every id, `tables` maps symbol -> id (or -1) per template.
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
    def of_counts(
        cls, streams: Streams, templates: tuple[Template, ...], counts: list[I64], min_count: int
    ) -> _Numbering:
        kept = [np.flatnonzero(c >= min_count).astype(np.int32) for c in counts]
        start = np.cumsum([0, *map(len, kept)], dtype=np.int64)
        if start[-1] > np.iinfo(np.int32).max:
            raise UserError(f"{start[-1]:,} attributes", hint="raise min_count: at most 2**31 - 1")
        symbol = np.concatenate([np.empty(0, np.int32), *kept])
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
    """Add the occurrences of every template's symbols; repeats inside a bag count once."""
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
    """The alphabet of attributes: encodes any corpus with the same columns.

    Attributes
    ----------
    node_templates, edge_templates: the templates of either kind, in order.
    node_start, edge_start: int64[T + 1], the ids of template t are start[t] .. start[t + 1] - 1.
    node_slots, edge_slots: int32[S], the template of every row of `Attributes.node` / `.edge`.
    """

    def __init__(
        self, streams: Streams, node: _Numbering, edge: _Numbering, dense: Dense | None = None
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
        """Number the attributes that occur in a corpus (or in shards that can be iterated twice).

        Parameters
        ----------
        min_count: attributes with fewer occurrences get no id.
        dense: adds real-valued columns to every encoded corpus; not saved.
        """
        shards = [corpus] if isinstance(corpus, Corpus) else corpus
        templates = tuple(templates)
        # a bag sees one symbol from as many tokens as it is wide
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
            _Numbering.of_counts(streams, kind, totals, min_count)
            for kind, totals in zip(kinds, counts, strict=True)
        )
        return cls(streams, node, edge, dense)

    def encode(self, corpus: Corpus) -> Attributes:
        """The attributes of a corpus; those without an id are -1. The labels are not looked at.

        Raises
        ------
        UserError: a column is missing.
        ValueError: the dense function returned something else than float64[N, D].
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

    def node_text(self, attribute: int) -> str:
        """A node attribute as text: ``word[-1]|word[0]=of|the``; pads read ``_B-1``, ``_E+1``."""
        return self._node.text(self.streams, attribute)

    def edge_text(self, attribute: int) -> str:
        """An edge attribute as text: ``edge: pos[0]=NN``."""
        return self._edge.text(self.streams, attribute)

    def arrays(self) -> tuple[Arrays, dict[str, Any]]:
        """All that `encode` and the texts need but a dense function: arrays and JSON-able facts."""
        arrays, facts = self.streams.arrays()
        arrays = {f"streams.{key}": array for key, array in arrays.items()}
        for name, kind in (("node", self._node), ("edge", self._edge)):
            arrays[f"{name}.symbol"], arrays[f"{name}.start"] = kind.symbol, kind.start
        return arrays, facts

    @classmethod
    def from_arrays(
        cls, arrays: Arrays, facts: dict[str, Any], dense: Dense | None = None
    ) -> AttributeIndex:
        """The index that `arrays` described; ValueError when it cannot be one."""
        start = "streams."
        mine = {k[len(start) :]: array for k, array in arrays.items() if k.startswith(start)}
        streams = Streams.from_arrays(mine, facts)

        def numbering(name: str, edge: bool) -> _Numbering:
            templates = tuple(t for t in streams.templates if t.edge is edge)
            symbol = vector(arrays, f"{name}.symbol", np.int32)
            start = borders(arrays, f"{name}.start", len(templates), len(symbol))
            for t, template in enumerate(templates):
                own = {f"{name}.symbol": symbol[start[t] : start[t + 1]]}
                p, _ = streams.pattern_of(template)
                vector(own, f"{name}.symbol", np.int32, None, (0, streams.n_symbols[p]))
            return _Numbering(streams, templates, symbol, start)

        return cls(streams, numbering("node", False), numbering("edge", True), dense)


class TemplateFeaturizer:
    """A set of templates, ready to index a corpus: what a featurizer plugin gives.

    Parameters
    ----------
    templates: templates, or their text form.
    dense: optional function of a corpus giving float64[N, D] real-valued columns.

    Raises
    ------
    UserError: no template at all, one that cannot be read, or one given twice.
    """

    def __init__(self, templates: Iterable[Template | str], dense: Dense | None = None) -> None:
        self.templates = tuple(Template.parse(t) if isinstance(t, str) else t for t in templates)
        self.dense = dense
        if not self.templates and dense is None:
            raise UserError("a featurizer needs at least one template")
        seen = set[Template]()
        for template in self.templates:
            if template in seen:
                raise UserError(f"template {template} is given twice")
            seen.add(template)

    def __repr__(self) -> str:
        return f"TemplateFeaturizer({len(self.templates)} templates)"

    def index(self, corpus: Corpus | Iterable[Corpus], min_count: int = 1) -> AttributeIndex:
        """Number the attributes of a labeled corpus; see `AttributeIndex.fit`."""
        return AttributeIndex.fit(self.templates, corpus, min_count, self.dense)
