"""Spans of one sentence to tags and back, for tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from sslbench.engine.corpus import Scheme
from sslbench.engine.corpus.encodings import TagTable, mark_chunks


class Span(NamedTuple):
    """Tokens start to end - 1 of a sentence; `type` is "" for untyped tags."""

    start: int
    end: int
    type: str


def spans_of(tags: Sequence[str], scheme: Scheme) -> list[Span]:
    """The chunks of one sentence, from left to right; all tags must be legal in `scheme`."""
    table = TagTable.from_tags(tags, scheme)
    assert (table.prefix >= 0).all()
    first = np.arange(len(tags)) == 0
    chunks = mark_chunks(table.prefix, table.type, first)
    starts, ends = np.flatnonzero(chunks.start), np.flatnonzero(chunks.last) + 1
    return [
        Span(int(start), int(end), table.types.strings[table.type[start]])
        for start, end in zip(starts, ends, strict=True)
    ]


def from_spans(spans: Iterable[Span], length: int, scheme: Scheme) -> list[str]:
    """Tags of a sentence with these spans, which must not overlap."""
    tags = ["O"] * length
    previous_end, previous_type = 0, None
    for start, end, chunk_type in sorted(spans):
        assert previous_end <= start < end <= length
        adjacent = start == previous_end and chunk_type == previous_type
        prefixes = _span_prefixes(end - start, adjacent, scheme)
        tags[start:end] = [f"{p}-{chunk_type}" if chunk_type else p for p in prefixes]
        previous_end, previous_type = end, chunk_type
    return tags


def _span_prefixes(length: int, adjacent: bool, scheme: Scheme) -> str:
    if scheme == "IOB1":
        return ("B" if adjacent else "I") + "I" * (length - 1)
    if scheme == "IOB2":
        return "B" + "I" * (length - 1)
    if length == 1:
        return "S"
    return "B" + ("M" if scheme == "BMES" else "I") * (length - 2) + "E"


def to_iob2(tags: Sequence[str], scheme: Scheme) -> list[str]:
    """The tags of one sentence in well-formed IOB2."""
    return from_spans(spans_of(tags, scheme), len(tags), "IOB2")
