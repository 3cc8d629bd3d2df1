"""Parameters and helpers that several methods share."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
import numpy as np

from sslbench import SearchAxis
from sslbench.crf import HardLabels
from sslbench.types import F64, I32

FeaturePruning = Annotated[
    Literal["none", "posterior"],
    msgspec.Meta(
        description="(attribute, label) pairs with a weight after the supervised training: all, or"
        " those in the labeled sentences or with a posterior of 0.01 at some token"
    ),
]
Keep = Annotated[
    Literal["last", "best"],
    msgspec.Meta(description="the model of the last round, or of the best one on dev"),
]
KEEP_AXIS = SearchAxis("keep", ("last", "best"))


def changed_share(old: list[I32], new: list[I32]) -> float:
    """Share of tokens whose label changed (1 in the first round, 0 without unlabeled text)."""
    total = sum(len(labels) for labels in new)
    if not old:
        return 1.0 if total else 0.0
    changed = sum(int(np.count_nonzero(a != b)) for a, b in zip(old, new, strict=True))
    return changed / max(1, total)


def hard_targets(labels: I32, lengths: F64, weight: float) -> HardLabels:
    """Labels int32[N] of sentences with the given lengths, all with one weight."""
    return HardLabels(labels, None if weight == 1.0 else np.full(len(lengths), weight))
