"""Parameters and helpers that several methods share."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from sslbench import Problem, RunContext, SearchAxis, TrainingParams, doc
from sslbench.engine.crf import (
    ChainCRF,
    EncodedProblem,
    HardLabels,
    PartialLabels,
    SequenceModel,
    Term,
)
from sslbench.engine.types import F64, I32
from sslbench.method import FeaturesFrom

FeaturePruning = Annotated[
    Literal["none", "posterior"],
    doc(
        "(attribute, label) pairs with a weight after the supervised training: all, or"
        " those in the labeled sentences or with a posterior of 0.01 at some token"
    ),
]
EdgeCounts = Annotated[Literal["once", "twice"], doc("how often an edge counts")]
Keep = Annotated[
    Literal["last", "best"], doc("the model of the last round, or of the best one on dev")
]
WeightsFrom = Annotated[FeaturesFrom, doc("which sentences' attributes get weights")]
Presets = Mapping[str, Mapping[str, Any]]
Notes = Mapping[str, str]
Values = Mapping[str, Any]
TaskDefaults = Mapping[str, Values]
KEEP_AXIS = SearchAxis("keep", ("last", "best"))


def by_task(tagging: Values, spans: Values, segmentation: Values, joint: Values) -> TaskDefaults:
    """Defaults for tasks, see docs/defaults.md; joint: Chinese words with their tags."""
    return {"tagging": tagging, "spans": spans, "segmentation": segmentation, "joint": joint}


WIDE, WIDEST = {"sigma2": 100.0}, {"sigma2": 1000.0}
#: the default of many methods, the baseline among them
WIDE_PRIOR = by_task(WIDE, WIDE, WIDE, WIDEST)


def encoded(
    problem: Problem,
    params: TrainingParams,
    run: RunContext,
    features_from: FeaturesFrom = "labeled+unlabeled",
) -> tuple[SequenceModel, EncodedProblem]:
    """Return an untrained model of a problem, and the text encoded for it."""
    with run.phase("features"):
        crf = problem.crf(params, features_from=features_from)
        return crf, problem.encode(crf)


def encoded_for_weights(
    problem: Problem,
    params: TrainingParams,
    run: RunContext,
    features_from: FeaturesFrom = "labeled+unlabeled",
) -> tuple[ChainCRF, EncodedProblem]:
    """As `encoded`, for a method that reads the weights of a CRF."""
    with run.phase("features"):
        crf = problem.chain_crf(params, features_from=features_from)
        return crf, problem.encode(crf)


def train_supervised(
    crf: SequenceModel,
    text: EncodedProblem,
    params: TrainingParams,
    run: RunContext,
    *,
    decides: bool = False,
    most: int | None = None,
) -> dict[str, float]:
    """Train on the labeled sentences; the trace and the caller get the accuracy on dev, if any.

    decides: whether the accuracy decides something, which counts as tuning.
    most: iterations of the optimizer; None = as the parameters say.
    """
    options = None if most is None else params.options(max_iterations=most)
    with run.phase("train"):
        run.record(run.train(crf, [text.labeled], params, options=options), "supervised")
    accuracy = text.dev_accuracy(crf, record_only=not decides)
    run.trace["supervised"] |= accuracy
    return accuracy


def changed_share(old: list[I32], new: list[I32]) -> float:
    """Return the share of tokens whose label changed; 1 in the first round, 0 without text."""
    total = sum(len(labels) for labels in new)
    if not old:
        return 1.0 if total else 0.0
    changed = sum(int(np.count_nonzero(a != b)) for a, b in zip(old, new, strict=True))
    return changed / max(1, total)


def labels_digest(labels: list[I32]) -> bytes:
    """Return a sha256 of a labeling of the whole text."""
    digest = hashlib.sha256()
    for part in labels:
        digest.update(part.tobytes())
    return digest.digest()


def hard_targets(labels: I32, lengths: F64, weight: float) -> HardLabels:
    """Return labels int32[N] as a term, all sentences with one weight."""
    return HardLabels(labels, None if weight == 1.0 else np.full(len(lengths), weight))


def partial_labels(labels: I32, n_labels: int, weights: F64) -> PartialLabels:
    """Return labels int32[N], where -1 allows all, as a term of sentences with these weights."""
    allowed = np.empty((len(labels), n_labels), np.bool_)
    allowed[:] = labels[:, None] < 0
    known = np.flatnonzero(labels >= 0)
    allowed[known, labels[known]] = True
    return PartialLabels(allowed, weights=weights)


def with_examples(
    crf: SequenceModel, text: EncodedProblem, labels: list[I32], weight: float
) -> list[tuple[Any, Term]]:
    """Return unlabeled sentences of which some labels are known, as terms.

    labels: int32[N] by shard, -1 = all are allowed; none at all = no terms.
    weight: of a sentence, where a labeled one has 1.
    """
    return [
        (data, partial_labels(known, len(crf.labels), np.full(len(data.lengths), weight)))
        for data, known in zip(text.unlabeled, labels, strict=bool(labels))
    ]
