"""Self-training: label the unlabelled text with the current CRF, retrain on both, repeat.

The classic baseline (e.g. Jiao et al. 2006, section 5.1; Suzuki & Isozaki 2008): hard Viterbi
labels, the whole unlabelled text at once, warm starts, until the labels stop changing.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np

from sslbench.crf import ChainCRF, HardLabels
from sslbench.experiment.context import RunContext
from sslbench.experiment.problem import Problem
from sslbench.experiment.tune import SearchAxis
from sslbench.types import I32

from .supervised import SIGMA2_GRID, TrainingParams, prepare


class SelfTraining:
    """Viterbi self-training to a fixed point."""

    class Params(TrainingParams, frozen=True, kw_only=True):
        """Parameters of self-training."""

        rounds: Annotated[int, msgspec.Meta(ge=1, description="most relabelling rounds")] = 10
        tolerance: Annotated[
            float,
            msgspec.Meta(ge=0, lt=1, description="stop when at most this share of labels changes"),
        ] = 0.0
        weight: Annotated[
            float,
            msgspec.Meta(gt=0, description="weight of a self-labelled sentence (labelled: 1)"),
        ] = 1.0
        search: ClassVar[tuple[SearchAxis, ...]] = (
            SearchAxis("sigma2", SIGMA2_GRID, refine=1, via="supervised"),
        )

    def fit(self, problem: Problem, params: Params, run: RunContext) -> ChainCRF:
        """Train, relabel, retrain; the trace tells how many labels changed in each round."""
        with run.phase("features"):
            crf = prepare(problem, params)
            gold = crf.encode(problem.labeled)
            unlabeled = [crf.encode(shard) for shard in problem.unlabeled]
        labels = HardLabels(problem.label_codes(problem.labeled))
        with run.phase("train"):
            result = crf.train([(gold, labels)], params.sigma2, options=params.options())
        rounds: list[dict[str, Any]] = []
        run.trace["self_training"] = {"first": result.record(), "rounds": rounds}
        guesses: list[I32] = []
        for number in range(1, params.rounds + 1):
            with run.phase("decode"):
                new = [crf.decode(data) for data in unlabeled]
            changed = _changed(guesses, new)
            guesses = new
            if changed <= params.tolerance:
                break
            targets = [_target(guess, data.lengths, params.weight)
                       for guess, data in zip(guesses, unlabeled, strict=True)]  # fmt: skip
            with run.phase("train"):
                parts = [(gold, labels), *zip(unlabeled, targets, strict=True)]
                result = crf.train(parts, params.sigma2, options=params.options())
            rounds.append({"changed": changed, **result.record()})
            run.progress(f"round {number}: {changed:.2%} of the labels changed")
        return crf

    @staticmethod
    def restore(arrays: dict[str, Any], facts: dict[str, Any]) -> ChainCRF:
        """A saved tagger."""
        return ChainCRF.from_arrays(arrays, facts)


def _changed(old: list[I32], new: list[I32]) -> float:
    """Share of tokens whose label changed (1 in the first round, 0 without unlabelled text)."""
    total = sum(len(labels) for labels in new)
    if not old:
        return 1.0 if total else 0.0
    different = sum(int(np.count_nonzero(a != b)) for a, b in zip(old, new, strict=True))
    return different / total


def _target(labels: I32, lengths: Any, weight: float) -> HardLabels:
    return HardLabels(labels, None if weight == 1.0 else np.full(len(lengths), weight))
