"""The engine: linear-chain conditional random fields."""

from __future__ import annotations

from sslbench.crf.chain_model import ChainModel
from sslbench.crf.data import Batch
from sslbench.crf.encoded import EncodedProblem, split_tokens
from sslbench.crf.entropy import BatchEntropy, Entropy
from sslbench.crf.factors import FactorFeatures
from sslbench.crf.first_order.batch import BatchPosterior, BatchPotentials
from sslbench.crf.first_order.chain import InfeasibleSentenceError, Potentials
from sslbench.crf.first_order.nbest import NBest
from sslbench.crf.labeling import LabelPass
from sslbench.crf.model import ChainCRF, Expectation, Parts, best_sequences
from sslbench.crf.objective import EncodedCorpus, Objective
from sslbench.crf.optim.lbfgs import STRICT, Options, Progress
from sslbench.crf.params import TrainingParams, TrainingResult
from sslbench.crf.persist import SavedModel, add_facts, read_model, write_model
from sslbench.crf.symbol_counts import SymbolCounts
from sslbench.crf.symbol_tables import SymbolTables
from sslbench.crf.terms import (
    HardLabels,
    LogPartition,
    PartialLabels,
    PotentialGradient,
    SoftTargets,
    Term,
    VirtualEvidence,
)

__all__ = [
    "STRICT",
    "Batch",
    "BatchEntropy",
    "BatchPosterior",
    "BatchPotentials",
    "ChainCRF",
    "ChainModel",
    "EncodedCorpus",
    "EncodedProblem",
    "Entropy",
    "Expectation",
    "FactorFeatures",
    "HardLabels",
    "InfeasibleSentenceError",
    "LabelPass",
    "LogPartition",
    "NBest",
    "Objective",
    "Options",
    "PartialLabels",
    "Parts",
    "PotentialGradient",
    "Potentials",
    "Progress",
    "SavedModel",
    "SoftTargets",
    "SymbolCounts",
    "SymbolTables",
    "Term",
    "TrainingParams",
    "TrainingResult",
    "VirtualEvidence",
    "add_facts",
    "best_sequences",
    "read_model",
    "split_tokens",
    "write_model",
]
