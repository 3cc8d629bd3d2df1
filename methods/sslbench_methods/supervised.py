"""The supervised CRF: labeled sentences only (Lafferty, McCallum & Pereira 2001).

The baseline of every comparison: same features, engine and prior as the semi-supervised methods.
"""

from __future__ import annotations

from typing import ClassVar

from sslbench import CRFMethod, Problem, RunContext, SearchAxis, TrainingParams
from sslbench.crf import ChainCRF

from .shared import SIGMA2_GRID, encoded


class Supervised(CRFMethod):
    """Log-likelihood of the labeled sentences with a Gaussian prior."""

    uses_unlabeled = False

    class Params(TrainingParams, frozen=True, kw_only=True):
        """Parameters of the supervised CRF."""

        search: ClassVar[tuple[SearchAxis, ...]] = (SearchAxis("sigma2", SIGMA2_GRID, refine=1),)

    def fit(self, problem: Problem, params: Params, run: RunContext) -> ChainCRF:
        """Train once."""
        crf, text = encoded(problem, params, run, "labeled")
        with run.phase("train"):
            run.record(crf.train([text.labeled], params))
        return crf
