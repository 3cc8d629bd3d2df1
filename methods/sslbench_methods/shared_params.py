"""Parameters that several semi-supervised methods share."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

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
