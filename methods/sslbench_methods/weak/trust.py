"""Which learner of weak labels to trust: the one that tags held-out gold sentences best.

A dictionary helps where gold labels are few, and harms where they are many; which learner makes the
most of it depends on the corpus (docs/weak.md). So the gold sentences decide: each learner, and the
gold labels alone, are cross-validated on them, with all of the unlabeled text.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
import numpy as np

from sslbench import CRFMethod, Problem, RunContext, doc
from sslbench.engine.checked import Saved
from sslbench.engine.crf import SequenceModel
from sslbench.experiment.checks.guard import METRICS, held_out_scores
from sslbench.experiment.metrics import pool
from sslbench_methods.shared import encoded, train_supervised

from .method import FuzzyCRF, NoisyChannel, WeakMethod, WeakParams, WeakSoft, WeakVote

GOLD = "gold"
LEARNERS: dict[str, type[WeakMethod]] = {
    "weak_vote": WeakVote,
    "fuzzy_crf": FuzzyCRF,
    "noisy_channel": NoisyChannel,
    "weak_soft": WeakSoft,
}


class WeakTrust(CRFMethod):
    """Cross-validates gold labels alone and each learner of weak labels; trains the best one."""

    class Params(WeakParams, frozen=True, kw_only=True):
        """Those that all learners share, which have their defaults otherwise."""

        folds: Annotated[int, doc("of the labeled sentences", ge=2, le=1_000)] = 5

    def fit(self, problem: Problem, params: Params, run: RunContext) -> SequenceModel:
        """Return the model; the trace has the scores and the choice."""
        trust = {"scores": {}, "chosen": GOLD}
        if problem.weak and problem.labeled.n_sentences > 1:
            _, trust = run.once(lambda: _judged(problem, params, run))
        run.trace["trust"] = trust
        run.progress(f"trusted: {trust['chosen']}")
        return _fit(str(trust["chosen"]), problem, params, run)


def _judged(problem: Problem, params: WeakTrust.Params, run: RunContext) -> Saved:
    """Return the score of each learner on held-out sentences, and the first of the best ones."""
    names, metric = (GOLD, *LEARNERS), METRICS[problem.task]
    fits = [lambda rest, own, name=name: _fit(name, rest, params, own) for name in names]
    with run.phase("trust"):
        by_fold = held_out_scores(problem, fits, params.folds, None, run)
    pooled = [pool(parts).metrics[metric] for parts in zip(*by_fold, strict=True)]
    best = names[int(np.argmax(pooled))]
    return {}, {"scores": dict(zip(names, pooled, strict=True)), "chosen": best}


def _fit(name: str, problem: Problem, params: WeakTrust.Params, run: RunContext) -> SequenceModel:
    if name == GOLD:
        crf, text = encoded(problem, params, run)
        train_supervised(crf, text, params, run)
        return crf
    learner = LEARNERS[name]
    shared = {each: getattr(params, each) for each in WeakParams.__struct_fields__}
    return learner().fit(problem, msgspec.convert(shared, learner.Params), run)
