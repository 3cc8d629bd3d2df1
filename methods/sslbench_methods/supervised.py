"""The supervised CRF: labeled sentences only (Lafferty, McCallum & Pereira 2001).

The baseline of every comparison: same features, engine and prior as the semi-supervised methods.
Model and objective: docs/specs/crf_engine.md, sections 3 and 9.
"""

from __future__ import annotations

from sslbench import CRFMethod, Problem, RunContext, TrainingParams
from sslbench.crf import ChainCRF

from .shared import encoded


class Supervised(CRFMethod):
    """Log-likelihood of the labeled sentences with a Gaussian prior."""

    uses_unlabeled = False

    class Params(TrainingParams, frozen=True, kw_only=True):
        """Parameters of the supervised CRF."""

    def fit(self, problem: Problem, params: Params, run: RunContext) -> ChainCRF:
        """Train once."""
        crf, text = encoded(problem, params, run, "labeled")
        with run.phase("train"):
            run.record(run.train(crf, [text.labeled], params))
        return crf
