"""The engine: linear-chain conditional random fields."""

from __future__ import annotations

from sslbench.engine.crf.chain_model import ChainModel
from sslbench.engine.crf.data import Batch
from sslbench.engine.crf.encoded import EncodedProblem, split_tokens
from sslbench.engine.crf.entropy import BatchEntropy, Entropy
from sslbench.engine.crf.factors import FactorFeatures
from sslbench.engine.crf.first_order.batch import (
    BatchPosterior,
    BatchPotentials,
    InfeasibleSentenceError,
)
from sslbench.engine.crf.first_order.nbest import NBest
from sslbench.engine.crf.labeling import LabelPass
from sslbench.engine.crf.model import ChainCRF, Expectation, Parts, best_sequences
from sslbench.engine.crf.objective import EncodedCorpus, Objective
from sslbench.engine.crf.optim.lbfgs import STRICT, Options, Progress
from sslbench.engine.crf.params import TrainingParams, TrainingResult
from sslbench.engine.crf.persist import SavedModel, add_facts, read_model, write_model
from sslbench.engine.crf.symbol_counts import SymbolCounts
from sslbench.engine.crf.symbol_tables import SymbolTables
from sslbench.engine.crf.terms import (
    HardLabels,
    LogPartition,
    Observed,
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
    "Observed",
    "Options",
    "PartialLabels",
    "Parts",
    "PotentialGradient",
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
