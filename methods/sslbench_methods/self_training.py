"""Self-training: label the unlabeled text with the current CRF, retrain on both, repeat.

The classic baseline (e.g. Jiao et al. 2006, section 5.1; Suzuki & Isozaki 2008): hard Viterbi
labels, the whole unlabeled text at once, warm starts, until the labels stop changing or come back.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np

from sslbench.crf import ChainCRF, HardLabels
from sslbench.experiment.context import RunContext
from sslbench.experiment.problem import Problem
from sslbench.experiment.tune import SearchAxis
from sslbench.types import I32
from sslbench_methods.supervised import SIGMA2_GRID, TrainingParams, prepare


class SelfTraining:
    """Viterbi self-training to a fixed point."""

    class Params(TrainingParams, frozen=True, kw_only=True):
        """Parameters of self-training."""

        rounds: Annotated[int, msgspec.Meta(ge=1, description="most relabeling rounds")] = 20
        tolerance: Annotated[
            float,
            msgspec.Meta(ge=0, lt=1, description="stop when at most this share of labels changes"),
        ] = 0.0
        weight: Annotated[
            float,
            msgspec.Meta(gt=0, description="weight of a self-labeled sentence (labeled: 1)"),
        ] = 1.0
        features_from: Annotated[
            Literal["labeled", "labeled+unlabeled"],
            msgspec.Meta(description="which sentences' attributes get weights"),
        ] = "labeled"
        search: ClassVar[tuple[SearchAxis, ...]] = (
            SearchAxis("sigma2", SIGMA2_GRID, refine=1, via="supervised"),
        )

    def fit(self, problem: Problem, params: Params, run: RunContext) -> ChainCRF:
        """Train, relabel, retrain.

        The trace tells how many labels changed in each round, and why there was no further one:
        "converged" (too few changed), "cycle" (all labels as after an earlier round) or
        "max_rounds".
        """
        with run.phase("features"):
            text = problem.unlabeled if params.features_from == "labeled+unlabeled" else ()
            crf = prepare(problem, params, text=text)
            gold = crf.encode(problem.labeled)
            unlabeled = [crf.encode(shard) for shard in problem.unlabeled]
        labels = HardLabels(problem.label_codes(problem.labeled))
        with run.phase("train"):
            result = crf.train([(gold, labels)], params.sigma2, options=params.options())
        rounds: list[dict[str, Any]] = []
        trace = {"first": result.record(), "rounds": rounds, "status": "max_rounds"}
        run.trace["self_training"] = trace
        guesses: list[I32] = []
        seen: set[bytes] = set()
        for number in range(1, params.rounds + 1):
            with run.phase("decode"):
                new = [crf.decode(data) for data in unlabeled]
            changed, digest = _changed(guesses, new), _digest(new)
            if changed <= params.tolerance or digest in seen:
                trace["status"] = "converged" if changed <= params.tolerance else "cycle"
                break
            guesses = new
            seen.add(digest)
            targets = [
                _target(guess, data.lengths, params.weight)
                for guess, data in zip(guesses, unlabeled, strict=True)
            ]
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
    """Share of tokens whose label changed (1 in the first round, 0 without unlabeled text)."""
    total = sum(len(labels) for labels in new)
    if not old:
        return 1.0 if total else 0.0
    different = sum(int(np.count_nonzero(a != b)) for a, b in zip(old, new, strict=True))
    return different / total


def _digest(labels: list[I32]) -> bytes:
    """What two labelings of the whole text share only if they are the same."""
    digest = hashlib.sha256()
    for part in labels:
        digest.update(part.tobytes())
    return digest.digest()


def _target(labels: I32, lengths: Any, weight: float) -> HardLabels:
    return HardLabels(labels, None if weight == 1.0 else np.full(len(lengths), weight))
