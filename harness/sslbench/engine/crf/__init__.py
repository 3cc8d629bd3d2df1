"""The engine: linear-chain conditional random fields."""

from __future__ import annotations

from sslbench.engine.crf.chain_model import ChainModel
from sslbench.engine.crf.chain_potentials import chain_potentials, transition_slopes
from sslbench.engine.crf.data import Batch
from sslbench.engine.crf.encoded import EncodedProblem, split_tokens
from sslbench.engine.crf.encoded_corpus import EncodedCorpus
from sslbench.engine.crf.entropy import BatchEntropy, Entropy
from sslbench.engine.crf.factors import FactorFeatures
from sslbench.engine.crf.first_order.batch import (
    BatchPosterior,
    BatchPotentials,
    InfeasibleSentenceError,
)
from sslbench.engine.crf.first_order.nbest import NBest
from sslbench.engine.crf.frozen import FrozenChain
from sslbench.engine.crf.labeler import Labeled, Labeler
from sslbench.engine.crf.labeling import LabelPass
from sslbench.engine.crf.model import ChainCRF, best_sequences
from sslbench.engine.crf.objective import Objective
from sslbench.engine.crf.optim.adam import Schedule, ascend, batch_of_step, descend
from sslbench.engine.crf.optim.lbfgs import STRICT, Options, Progress
from sslbench.engine.crf.params import TrainingParams, TrainingResult
from sslbench.engine.crf.persist import SavedModel, add_facts, read_model, write_model
from sslbench.engine.crf.restoring import restored_model, saved_model
from sslbench.engine.crf.sequence import (
    EncodedText,
    Expectation,
    LogLinear,
    ModelText,
    Parts,
    Pullback,
    SequenceModel,
)
from sslbench.engine.crf.terms import (
    HardLabels,
    LogPartition,
    MaskedWords,
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
    "EncodedText",
    "Entropy",
    "Expectation",
    "FactorFeatures",
    "FrozenChain",
    "HardLabels",
    "InfeasibleSentenceError",
    "LabelPass",
    "Labeled",
    "Labeler",
    "LogLinear",
    "LogPartition",
    "MaskedWords",
    "ModelText",
    "NBest",
    "Objective",
    "Observed",
    "Options",
    "PartialLabels",
    "Parts",
    "PotentialGradient",
    "Progress",
    "Pullback",
    "SavedModel",
    "Schedule",
    "SequenceModel",
    "SoftTargets",
    "Term",
    "TrainingParams",
    "TrainingResult",
    "VirtualEvidence",
    "add_facts",
    "ascend",
    "batch_of_step",
    "best_sequences",
    "chain_potentials",
    "descend",
    "read_model",
    "restored_model",
    "saved_model",
    "split_tokens",
    "transition_slopes",
    "write_model",
]
