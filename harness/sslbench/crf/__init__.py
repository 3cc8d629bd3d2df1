"""The engine: linear-chain conditional random fields."""

from __future__ import annotations

from sslbench.crf.first_order.chain import InfeasibleSentenceError, Potentials
from sslbench.crf.model import ChainCRF, ChainModel, TrainingResult
from sslbench.crf.objective import EncodedCorpus, FactorFeatures, Objective
from sslbench.crf.optim.lbfgs import STRICT, Options
from sslbench.crf.persist import add_facts, read_model, write_model
from sslbench.crf.terms import HardLabels, LogPartition, PartialLabels, SoftTargets, Term

__all__ = [
    "STRICT",
    "ChainCRF",
    "ChainModel",
    "EncodedCorpus",
    "FactorFeatures",
    "HardLabels",
    "InfeasibleSentenceError",
    "LogPartition",
    "Objective",
    "Options",
    "PartialLabels",
    "Potentials",
    "SoftTargets",
    "Term",
    "TrainingResult",
    "add_facts",
    "read_model",
    "write_model",
]
