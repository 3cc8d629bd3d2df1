"""Task-adaptive pretraining: a pretrained network is trained on the unlabeled text, then on labels.

The network first guesses masked words of the unlabeled text of the task, then is trained on the
labeled sentences (S. Gururangan et al.: Don't stop pretraining, ACL 2020, section 4). Both take
half of the model's steps, so that no step is more than the baseline has.
"""

from __future__ import annotations

from typing import Annotated

from sslbench import CRFMethod, Problem, RunContext, TrainingParams, doc
from sslbench.engine.crf import MaskedWords, SequenceModel

from .shared import encoded, train_supervised


class AdaptivePretraining(CRFMethod):
    """Masked words of the unlabeled text, then labeled sentences."""

    class Params(TrainingParams, frozen=True, kw_only=True):
        """Parameters of task-adaptive pretraining."""

        masked: Annotated[float, doc("share of the words that are masked", gt=0, le=1)] = 0.15

    def fit(self, problem: Problem, params: Params, run: RunContext) -> SequenceModel:
        """Train on the text, then on the labels; the trace has both."""
        model, text = encoded(problem, params, run, "labeled")
        term = MaskedWords(params.masked)
        masked = [(data, term) for data in text.unlabeled if len(data.lengths)]
        if masked:
            with run.phase("adapt"):
                run.record(run.train(model, masked, params), "adaptation")
        train_supervised(model, text, params, run)
        return model
