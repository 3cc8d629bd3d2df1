"""Self-training: label the unlabeled text with the current CRF, retrain on both, repeat.

The classic baseline (e.g. Jiao et al. 2006, section 5.1; Suzuki & Isozaki 2008): Viterbi labels of
the whole unlabeled text, warm starts, until the labels settle or repeat those of an earlier round
(docs/specs/entropy_regularization.md, section 10).
"""

from __future__ import annotations

from typing import Annotated, ClassVar

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
from sslbench.engine.types import I32

from .self_labeled import WeightScale, sentence_weight
from .shared import (
    WIDE_PRIOR,
    Notes,
    Presets,
    TaskDefaults,
    WeightsFrom,
    changed_share,
    encoded,
    hard_targets,
    labels_digest,
    train_supervised,
)


class SelfTraining(CRFMethod):
    """Viterbi self-training to a fixed point."""

    order_invariant = True

    class Params(TrainingParams, frozen=True, kw_only=True):
        """Parameters of self-training."""

        rounds: Annotated[Rounds, doc("most relabeling rounds")] = 20
        tolerance: Annotated[Share, doc("stop when at most this share of labels changes")] = 0.0
        weight: Annotated[Positive, doc("weight of self-labeled sentences")] = 0.003
        weight_scale: WeightScale = "ratio"
        share: Annotated[
            Share,
            doc(
                "a retraining stops when 5 iterations add at most this share to its"
                " gain: labels settle long before weights do; 0 = only by ftol"
            ),
        ] = 5e-3
        features_from: WeightsFrom = "labeled"
        presets: ClassVar[Presets] = {
            "paper": {"weight": 1.0, "weight_scale": "sentence", "share": 0.0}
        }
        preset_notes: ClassVar[Notes] = {
            "paper": "harms small samples: with 100 labels, 0.5 to 3.7 points below the baseline"
            " (docs/defaults.md)"
        }
        task_defaults: ClassVar[TaskDefaults] = WIDE_PRIOR
        search: ClassVar[tuple[SearchAxis, ...]] = (
            SearchAxis("rounds", low=1, high=40, log=True, integer=True),
            SearchAxis("weight", low=1e-3, high=10, log=True),
        )

    def fit(self, problem: Problem, params: Params, run: RunContext) -> SequenceModel:
        """Train, relabel, retrain; the trace has the share of changed labels of each round."""
        crf, text = encoded(problem, params, run, params.features_from)
        train_supervised(crf, text, params, run)
        guesses: list[I32] = []
        seen: set[bytes] = set()
        weight = sentence_weight(params.weight, params.weight_scale, text)
        rounds = run.rounds(params.rounds)
        for _ in rounds:
            with run.phase("decode"):
                old, guesses = guesses, [crf.decode(data) for data in text.unlabeled]
            changed, digest = changed_share(old, guesses), labels_digest(guesses)
            if changed <= params.tolerance or digest in seen:
                rounds.stop("converged" if changed <= params.tolerance else "cycle")
                break
            seen.add(digest)
            targets = [
                (data, hard_targets(labels, data.lengths, weight))
                for data, labels in zip(text.unlabeled, guesses, strict=True)
            ]
            # If few labels changed, little can be gained: stop earlier.
            options = params.options(share=min(0.5, params.share / changed))
            with run.phase("train"):
                result = run.train(crf, [text.labeled, *targets], params, options=options)
            rounds.record(
                f"{changed:.2%} of the labels changed", changed=changed, **result.record()
            )
        return crf
