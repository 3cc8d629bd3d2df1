"""The toy of docs/specs/virtual_evidence.md: evidence of five tokens."""

from __future__ import annotations

from typing import Any

import numpy as np

from sslbench.engine.corpus import Corpus
from sslbench.engine.crf import ChainCRF, Objective, VirtualEvidence
from sslbench.engine.crf.encoded_corpus import EncodedCorpus
from sslbench.engine.crf.terms import Term
from sslbench.engine.types import F64
from sslbench.experiment.context.context import RunContext
from sslbench_methods.shared import FeaturePruning
from sslbench_methods.virtual_evidence.em import EvidenceTrainer
from sslbench_methods.virtual_evidence.method import VirtualEvidenceTraining
from support.graph_toys import UNLABELED, Strict, encoded, pairs, toy

#: evidence of the tokens of UNLABELED, one vertex each; the third has none
Q = np.array([[0.7, 0.1], [0.2, 0.6], [0.0, 0.0], [0.3, 0.3], [0.1, 0.9]])
TOKENS = np.array([0, 1, -1, 3, 4], np.int32)
THETA = -0.3 + 0.7 * np.arange(12) / 11
OPTIMUM = np.array(
    [
        *pairs(0.5024384604, -0.5024384604, 0, 0),
        -0.3479038165,
        0.8503422770,
        -0.1545346439,
        -0.3479038165,
    ]
)
Part = tuple[EncodedCorpus, Term]


class Params(Strict, VirtualEvidenceTraining.Params, frozen=True, kw_only=True):
    """Parameters with strict trainings and M-steps, and the prior of the toy."""

    sigma2: float = 4.0
    feature_pruning: FeaturePruning = "none"
    m_iterations: int = 5000
    tolerance: float = 0.0


def trainer(crf: ChainCRF, q: F64 = Q, text: Corpus = UNLABELED, **options: Any) -> EvidenceTrainer:
    """Options are those of the method."""
    params, tokens = Params(**options), np.resize(TOKENS, text.n_tokens)
    encoded_text = encoded(crf, [text])
    term = VirtualEvidence(q, tokens, params.alpha, params.omega)
    return EvidenceTrainer(crf, encoded_text, [term], params, RunContext())


def supervised() -> EvidenceTrainer:
    """Before the first round."""
    one = trainer(toy())
    one.crf.train([one.text.labeled], one.params)
    return one


def rounds_of(one: EvidenceTrainer) -> list[dict[str, Any]]:
    """Train; what is recorded of the start and of the rounds."""
    one.train()
    trace = one.run.trace
    return [trace["start"], *trace["rounds"]]


def objective_of(one: EvidenceTrainer, weights: F64) -> tuple[float, F64]:
    gradient = np.empty(12)
    parts: list[Part] = [one.text.labeled, *one.parts]
    value = Objective(one.crf.layout, parts, 4.0).value_and_gradient(weights, gradient)
    return value, gradient
