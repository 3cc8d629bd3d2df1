"""Parameters of graph-based posterior regularization."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from sslbench import GraphCRFParams, Iterations, Positive, SearchAxis, Tolerance, Weight, doc
from sslbench.taggers import Decoding
from sslbench_methods.shared import Notes, Presets

PAPER = {"sigma2": 1e4, "neighbors": 60, "lam": 1.0, "decoding": "posterior"}
#: as in replications/he2013 on the ten treebanks
REPRODUCED = {**PAPER, "ftol": 1e-5, "max_iterations": 100, "m_iterations": 30}
_FOR_TAGS = (
    "for tagging: the gains of the paper appear on ten treebanks (replications/he2013/report.md,"
    " with --model crf2); on chunks and names of genes it is below the baseline"
)


class RegularizationParams(GraphCRFParams, frozen=True, kw_only=True):
    """Parameters of graph_pr and pr1."""

    penalty: Annotated[
        Literal["graph", "label_in_sentence"],
        doc("differences of marginals over edges, or sentences lacking a label"),
    ] = "graph"
    required_label: Annotated[str, doc("the label of penalty=label_in_sentence")] = "VERB"
    lam: Annotated[Weight, doc("weight of the penalty (lambda in the paper)")] = 0.03
    beta: Annotated[Positive, doc("weight of the unlabeled text (labeled: 1)")] = 1.0
    schedule: Annotated[
        Literal["backtracking", "release"],
        doc("of the E-step: until solved, or the authors' ten steps"),
    ] = "backtracking"
    warm: Annotated[
        Literal["restart", "carry"],
        doc("E-steps start at the new model and old offsets, or at the old q"),
    ] = "restart"
    m_iterations: Annotated[Iterations, doc("of L-BFGS in one M-step")] = 300
    m_ftol: Annotated[Tolerance, doc("ftol of the M-steps")] = 1e-5
    decoding: Decoding = "viterbi"
    decode_from: Annotated[
        Literal["model", "q"], doc("the CRF alone, or with what the graph adds for known n-grams")
    ] = "model"
    presets: ClassVar[Presets] = {"paper": PAPER, "reproduced": REPRODUCED}
    preset_notes: ClassVar[Notes] = {"reproduced": _FOR_TAGS}
    search: ClassVar[tuple[SearchAxis, ...]] = (SearchAxis("lam", low=0.01, high=10, log=True),)
