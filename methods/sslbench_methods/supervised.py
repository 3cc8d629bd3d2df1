"""The supervised CRF: labeled sentences only (Lafferty, McCallum & Pereira 2001).

The baseline of every comparison: same features, engine and prior as the semi-supervised methods,
and the decoding of those that label each token on its own (`decoding=posterior`).
Model and objective: docs/specs/crf_engine.md, sections 3 and 9.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from sslbench import CRFMethod, Problem, RunContext, Tagger, TrainingParams
from sslbench.taggers import Decoding, PosteriorTagger

from .shared import WIDE_PRIOR, TaskDefaults, encoded

KIND = "supervised"


class Supervised(CRFMethod):
    """Log-likelihood of the labeled sentences with a Gaussian prior."""

    uses_unlabeled = False

    class Params(TrainingParams, frozen=True, kw_only=True):
        """Parameters of the supervised CRF."""

        decoding: Decoding = "viterbi"
        task_defaults: ClassVar[TaskDefaults] = WIDE_PRIOR

    def fit(self, problem: Problem, params: Params, run: RunContext) -> Tagger:
        """Train once."""
        crf, text = encoded(problem, params, run, "labeled")
        with run.phase("train"):
            run.record(run.train(crf, [text.labeled], params))
        return crf if params.decoding == "viterbi" else PosteriorTagger(crf, KIND)

    restore = staticmethod(partial(PosteriorTagger.from_arrays, kind=KIND))
