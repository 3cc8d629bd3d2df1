"""Self-training: label the unlabeled text with the current CRF, retrain on both, repeat.

The classic baseline (e.g. Jiao et al. 2006, section 5.1; Suzuki & Isozaki 2008): Viterbi labels of
the whole unlabeled text, warm starts, until the labels settle or repeat those of an earlier round.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, ClassVar

import msgspec
import numpy as np

from sslbench import CRFMethod, Problem, RunContext, SearchAxis, TrainingParams
from sslbench.crf import ChainCRF, HardLabels
from sslbench.method import FeaturesFrom
from sslbench.types import F64, I32

from .supervised import SIGMA2_GRID


class SelfTraining(CRFMethod):
    """Viterbi self-training to a fixed point."""

    order_invariant = True

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
            FeaturesFrom, msgspec.Meta(description="which sentences' attributes get weights")
        ] = "labeled"
        search: ClassVar[tuple[SearchAxis, ...]] = (
            SearchAxis("sigma2", SIGMA2_GRID, refine=1, via="supervised"),
        )

    def fit(self, problem: Problem, params: Params, run: RunContext) -> ChainCRF:
        """Train, relabel, retrain; the trace has the share of changed labels of each round."""
        with run.phase("features"):
            crf = problem.crf(params, features_from=params.features_from)
            text = problem.encode(crf)
        with run.phase("train"):
            run.record(crf.train([text.labeled], params), "supervised")
        guesses: list[I32] = []
        seen: set[bytes] = set()
        rounds = run.rounds(params.rounds)
        for _ in rounds:
            with run.phase("decode"):
                old, guesses = guesses, [crf.decode(data) for data in text.unlabeled]
            changed, digest = changed_share(old, guesses), _digest(guesses)
            if changed <= params.tolerance or digest in seen:
                rounds.stop("converged" if changed <= params.tolerance else "cycle")
                break
            seen.add(digest)
            targets = [
                (data, hard_targets(labels, data.lengths, params.weight))
                for data, labels in zip(text.unlabeled, guesses, strict=True)
            ]
            with run.phase("train"):
                result = crf.train([text.labeled, *targets], params)
            rounds.record(
                f"{changed:.2%} of the labels changed", changed=changed, **result.record()
            )
        return crf


def changed_share(old: list[I32], new: list[I32]) -> float:
    """Share of tokens whose label changed (1 in the first round, 0 without unlabeled text)."""
    total = sum(len(labels) for labels in new)
    if not old:
        return 1.0 if total else 0.0
    changed = sum(int(np.count_nonzero(a != b)) for a, b in zip(old, new, strict=True))
    return changed / max(1, total)


def _digest(labels: list[I32]) -> bytes:
    """Sha256 of a labeling of the whole text."""
    digest = hashlib.sha256()
    for part in labels:
        digest.update(part.tobytes())
    return digest.digest()


def hard_targets(labels: I32, lengths: F64, weight: float) -> HardLabels:
    """Labels int32[N] of sentences with the given lengths, all with one weight."""
    return HardLabels(labels, None if weight == 1.0 else np.full(len(lengths), weight))
