"""Parameters of virtual evidence."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from sslbench import (
    Count,
    GraphCRFParams,
    Iterations,
    Positive,
    Rounds,
    SearchAxis,
    Tolerance,
    Weight,
    doc,
)
from sslbench.method import GraphSimilarity, Neighbors, Symmetry
from sslbench_methods.shared import (
    KEEP_AXIS,
    WIDE,
    WIDEST,
    EdgeCounts,
    FeaturePruning,
    Keep,
    Notes,
    Presets,
    TaskDefaults,
    by_task,
)

_STRONG = {
    "similarity": "he2013",
    "neighbors": 60,
    "symmetry": "mutual",
    "normalize": True,
    "alpha": 2.0,
    "rounds": 6,
}


class VirtualEvidenceParams(GraphCRFParams, frozen=True, kw_only=True):
    """Parameters of virtual evidence; sigma2 is the paper's delta squared."""

    similarity: GraphSimilarity = "zeng2013"
    neighbors: Neighbors = 5
    symmetry: Symmetry = "union"
    mu: Annotated[Weight, doc("weight of the edges")] = 0.5
    lam: Annotated[Positive, doc("weight of the penalty (lambda in the paper)")] = 0.3
    penalty: Annotated[
        Literal["l2sq", "l1sq", "l1"],
        doc("on a vertex: squared l2 norm, squared l1 norm, or l1 norm"),
    ] = "l2sq"
    edge_count: EdgeCounts = "twice"
    normalize: Annotated[bool, doc("scale every propagated distribution to sum to 1")] = False
    base_rates: Annotated[
        Literal["kept", "removed"],
        doc(
            "removed: evidence is what a distribution says beyond the mean over the"
            " text; kept: the distribution itself, which also pulls to frequent labels"
        ),
    ] = "removed"
    alpha: Annotated[Weight, doc("scale of the evidence")] = 0.7
    omega: Annotated[Weight, doc("weight of an unlabeled sentence (labeled: 1)")] = 1.0
    solver: Annotated[
        Literal["em", "direct"], doc("em: the paper's rounds; direct: L-BFGS on the objective")
    ] = "em"
    rounds: Annotated[Rounds, doc("most rounds of EM")] = 10
    m_iterations: Annotated[Iterations, doc("of L-BFGS in one M-step")] = 20
    tolerance: Annotated[Tolerance, doc("EM stops at this relative gain in a round")] = 1e-4
    feature_pruning: FeaturePruning = "posterior"
    keep: Keep = "last"
    min_type_count: Annotated[Count, doc("n-grams with fewer occurrences are no vertices")] = 1
    least_mass: Annotated[Weight, doc("vertices of less propagated mass are ignored")] = 0.0
    presets: ClassVar[Presets] = {
        "paper": {
            "neighbors": 5,
            "mu": 0.5,
            "lam": 0.3,
            "alpha": 0.7,
            "omega": 1.0,
            "base_rates": "kept",
        },
        "reproduced": {
            "sigma2": 10.0,
            "similarity": "he2013",
            "neighbors": 60,
            "symmetry": "mutual",
            "normalize": True,
            "alpha": 2.0,
            "rounds": 6,
            "keep": "best",
        },
    }
    preset_notes: ClassVar[Notes] = {
        "paper": "pulls to frequent labels: with 100 labels, 2.8 points below the baseline on names"
        " of genes (docs/defaults.md)",
        "reproduced": "for Chinese words and tags: F1 gains as in the paper, recall of new words"
        " does not (replications/zeng2013/report.md)",
    }
    task_defaults: ClassVar[TaskDefaults] = by_task(
        tagging=_STRONG,
        spans={**_STRONG, **WIDE},
        segmentation={**_STRONG, **WIDE},
        joint={**_STRONG, **WIDEST},
    )
    search: ClassVar[tuple[SearchAxis, ...]] = (
        SearchAxis("alpha", low=0, high=1.5),
        SearchAxis("mu", low=0.05, high=5, log=True),
        SearchAxis("lam", low=0.05, high=5, log=True),
        SearchAxis("rounds", low=1, high=30, log=True, integer=True),
        KEEP_AXIS,
    )
