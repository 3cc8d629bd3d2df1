"""The engine: linear-chain conditional random fields."""

from __future__ import annotations

from .chain import InfeasibleSentenceError, Potentials
from .lbfgs import STRICT, Options
from .model import ChainCRF, ChainModel, TrainingResult
from .objective import CliqueFeatures, EncodedCorpus, Objective
from .persist import add_facts, read_model, write_model
from .terms import HardLabels, LogPartition, PartialLabels, SoftTargets, Term

__all__ = [
    "STRICT",
    "ChainCRF",
    "ChainModel",
    "CliqueFeatures",
    "EncodedCorpus",
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
