"""The weight of sentences that a method has labeled itself."""

from __future__ import annotations

from typing import Annotated, Literal

from sslbench import doc
from sslbench.engine.crf import EncodedProblem

WeightScale = Annotated[
    Literal["ratio", "sentence"],
    doc(
        "the weight is of all self-labeled sentences beside all labeled ones, so that"
        " it does not grow with the text; or of each, where a labeled one has 1"
    ),
]


def sentence_weight(weight: float, scale: WeightScale, text: EncodedProblem) -> float:
    """Return the weight of a self-labeled sentence, where a labeled one has 1."""
    if scale == "sentence":
        return weight
    labeled, *unlabeled = (len(corpus.lengths) for corpus in text.corpora)
    return weight * labeled / max(1, sum(unlabeled))
