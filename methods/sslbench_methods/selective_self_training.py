"""Self-training on the labels that the model is sure of; all labelings of the other tokens count.

A round labels the text with Viterbi, selects tokens by the posterior of their label, and trains
again. The term of a sentence is log sum_y p(y | x) over the label sequences that agree with the
selected tokens, so a token that is not selected teaches nothing by itself.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np

from sslbench import (
    CRFMethod,
    Positive,
    Problem,
    Rounds,
    RunContext,
    SearchAxis,
    Share,
    TrainingParams,
    doc,
)
from sslbench.engine.crf import SequenceModel
from sslbench.engine.types import F64, I32, Bool

from .self_labeled import WeightScale, sentence_weight
from .shared import (
    WIDE,
    TaskDefaults,
    WeightsFrom,
    by_task,
    changed_share,
    encoded,
    labels_digest,
    train_supervised,
    with_examples,
)

_THRESHOLD = {"select": "threshold", **WIDE}


class SelectiveSelfTraining(CRFMethod):
    """Self-training that selects tokens by the posterior of their label."""

    order_invariant = True

    class Params(TrainingParams, frozen=True, kw_only=True):
        """Parameters of selective self-training."""

        select: Annotated[
            Literal["label", "threshold", "share"],
            doc(
                "threshold: tokens with a posterior of at least `threshold`; label: of one per"
                " label, lower for labels that are seldom selected (FlexMatch); share: a share of"
                " all tokens, the surest first, that grows to 1 (curriculum)"
            ),
        ] = "label"
        threshold: Annotated[Share, doc("of the posterior; not for share")] = 0.9
        rounds: Annotated[Rounds, doc("most relabeling rounds")] = 5
        weight: Annotated[Positive, doc("weight of self-labeled sentences")] = 0.1
        weight_scale: WeightScale = "ratio"
        features_from: WeightsFrom = "labeled"
        task_defaults: ClassVar[TaskDefaults] = by_task(
            tagging=_THRESHOLD, spans=WIDE, segmentation=_THRESHOLD, joint=WIDE
        )
        search: ClassVar[tuple[SearchAxis, ...]] = (
            SearchAxis("select", ("label", "threshold", "share")),
            SearchAxis("threshold", low=0.5, high=0.99),
            SearchAxis("weight", low=1e-3, high=10, log=True),
        )

    def fit(self, problem: Problem, params: Params, run: RunContext) -> SequenceModel:
        """Train, select, retrain; the trace has the shares of selected tokens and of changes."""
        crf, text = encoded(problem, params, run, params.features_from)
        train_supervised(crf, text, params, run)
        weight = sentence_weight(params.weight, params.weight_scale, text)
        targets: list[I32] = []
        seen: set[bytes] = set()
        rounds = run.rounds(params.rounds if text.unlabeled else 0)
        for number in rounds:
            with run.phase("decode"):
                old, targets = targets, []
                labels = [crf.decode(data) for data in text.unlabeled]
                sure = [
                    _of_label(crf.marginals(data), own)
                    for data, own in zip(text.unlabeled, labels, strict=True)
                ]
                chosen = _chosen(labels, sure, len(crf.labels), params, number / params.rounds)
                targets = [np.where(c, own, -1) for c, own in zip(chosen, labels, strict=True)]
            changed, digest = changed_share(old, targets), labels_digest(targets)
            if changed == 0.0 or digest in seen:
                rounds.stop("cycle" if changed else "converged")
                break
            seen.add(digest)
            with run.phase("train"):
                parts = [text.labeled, *with_examples(crf, text, targets, weight)]
                result = run.train(crf, parts, params)
            share = float(np.concatenate(chosen).mean())
            rounds.record(
                f"{share:.2%} of the tokens selected",
                selected=share,
                changed=changed,
                **result.record(),
            )
        return crf


def _of_label(mu: F64, labels: I32) -> F64:
    """Return the posteriors float64[N] of the labels."""
    sure: F64 = mu[np.arange(len(labels)), labels]
    return sure


def _chosen(
    labels: list[I32], sure: list[F64], L: int, params: SelectiveSelfTraining.Params, share: float
) -> list[Bool]:
    """Return the selected tokens of each shard. share: of all tokens, with select = share."""
    codes, p = np.concatenate(labels), np.concatenate(sure)
    if params.select == "share":
        chosen = surest(p, share)
    elif params.select == "threshold":
        chosen = p >= params.threshold
    else:
        chosen = p >= label_thresholds(codes, p, L, params.threshold)[codes]
    return np.split(chosen, np.cumsum([len(own) for own in labels])[:-1])


def surest(p: F64, share: float) -> Bool:
    """Return the tokens with the highest p: this share of all, and those equal to the last one.

    Cascante-Bonilla et al. (2021): a share that grows with the rounds.
    """
    last = len(p) - int(np.ceil(share * len(p)))
    least = np.partition(p, last)[last] if last < len(p) else np.inf
    chosen: Bool = p >= least
    return chosen


def label_thresholds(codes: I32, p: F64, L: int, threshold: float) -> F64:
    """Return float64[L]: the threshold times x / (2 - x), where x says how far a label is learned.

    x is the number of its tokens above the threshold by that of the label with most, or by that of
    the tokens below it if they are more. Zhang et al. (2021), equations 5 to 7 and 11.
    """
    sigma = np.bincount(codes[p >= threshold], minlength=L)
    learned = sigma / max(1, int(sigma.max()), len(codes) - int(sigma.sum()))
    thresholds: F64 = threshold * learned / (2.0 - learned)
    return thresholds
