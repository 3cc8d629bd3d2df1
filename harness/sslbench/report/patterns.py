"""Error patterns: which units a tagger misses, and which types it confuses.

As in the error analysis of Zeng et al. (2013), section 5.5: segmentation errors by type of word,
and confusions of tags on words with correct borders, of two systems. A unit is a token in tagging,
otherwise a chunk, such as a word of a segmentation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sslbench.engine.corpus import Vocabulary
from sslbench.engine.corpus.encodings import Scheme
from sslbench.engine.types import I32, I64
from sslbench.experiment.metrics.chunks import ChunkList, Labels, find_chunks, is_in


@dataclass(frozen=True)
class Pattern:
    """A type of error and its frequency.

    gold: type of the gold units.
    predicted: their predicted type; None = there is no predicted unit with these borders, which
        does not occur in tagging.
    units: number of gold units of the type.  errors: number of errors of each system.
    """

    gold: str
    predicted: str | None
    units: int
    errors: tuple[int, ...]


def patterns(
    gold: Labels, systems: Sequence[Labels], offsets: I64, encoding: Scheme | None
) -> list[Pattern]:
    """All patterns that occur, sorted by the errors of the first system, descending.

    gold, systems: (label names, int[N] codes into them) each.  offsets: int64[S + 1].
    encoding: scheme of the labels; None = every token is a unit.
    """
    kinds = Vocabulary()
    units = _units(gold, offsets, encoding, kinds)
    predicted = [_predicted(units, _units(s, offsets, encoding, kinds)) for s in systems]
    n = len(kinds)
    sizes = np.bincount(units.kind, minlength=n)
    # Column 0 counts missed units, whose predicted type is -1.
    tables = [
        np.bincount(
            units.kind.astype(np.int64) * (n + 1) + types + 1, minlength=n * (n + 1)
        ).reshape(n, n + 1)
        for types in predicted
    ]
    counts = np.stack(tables)
    counts[:, np.arange(n), np.arange(n) + 1] = 0  # correct ones
    names = kinds.strings
    rows = [
        Pattern(
            names[g], names[p - 1] if p else None, int(sizes[g]), tuple(counts[:, g, p].tolist())
        )
        for g, p in zip(*np.nonzero(counts.sum(axis=0)), strict=True)
    ]
    return sorted(rows, key=lambda row: (*(-n for n in row.errors), row.gold, row.predicted or ""))


def _units(labels: Labels, offsets: I64, encoding: Scheme | None, kinds: Vocabulary) -> ChunkList:
    if encoding is not None:
        return find_chunks(labels, offsets, encoding, kinds)
    names, codes = labels
    kind = np.array([kinds.add(name) for name in names], np.int32)[codes]
    place = np.arange(len(codes))
    return ChunkList(place, place, kind)


def _predicted(gold: ChunkList, predicted: ChunkList) -> I32:
    """int32[units]: type of the predicted unit with these borders, -1 if there is none."""
    n = 1 + int(max(gold.last.max(initial=0), predicted.last.max(initial=0)))
    kind_at = np.full(n, -1, np.int32)
    kind_at[predicted.start] = predicted.kind
    same = is_in(gold.untyped(), predicted.untyped(), n)
    return np.where(same, kind_at[gold.start], -1).astype(np.int32)
