"""Labels propagated on a graph as virtual evidence in CRF training.

Zeng et al. (2013).  Label distributions of labeled trigrams spread once over a similarity graph
(equation 4, unnormalized: their mass decays with the distance); they become factors beside the
labels of unlabeled text (equation 6); the CRF is trained to agree with them (equation 5).
Prediction is that of the plain CRF.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np

from sslbench.crf import ChainCRF
from sslbench.experiment.context import RunContext
from sslbench.experiment.problem import Problem
from sslbench.experiment.tune import SearchAxis
from sslbench.graph.propagation.sparse import propagate_unnormalized
from sslbench.types import F64, I32
from sslbench_methods.graph_text import (
    FeaturePruning,
    Keep,
    MaxDf,
    Neighbors,
    Symmetry,
    Templates,
    problem_graph,
)
from sslbench_methods.supervised import TrainingParams, prepare
from sslbench_methods.virtual_evidence.evidence import EvidenceTrainer, Part, VirtualEvidence


class VirtualEvidenceTraining:
    """CRF trained to agree with distributions propagated on a graph."""

    class Params(TrainingParams, frozen=True, kw_only=True):
        """Parameters of virtual evidence; sigma2 is the paper's delta squared."""

        column: Annotated[
            str, msgspec.Meta(description="column whose n-grams are the vertices")
        ] = "word"
        templates: Templates = "zeng2013"
        neighbors: Neighbors = 5
        symmetry: Symmetry = "union"
        max_df: MaxDf = None
        mu: Annotated[float, msgspec.Meta(ge=0, description="weight of the edges")] = 0.5
        lam: Annotated[
            float, msgspec.Meta(gt=0, description="weight of the penalty (lambda in the paper)")
        ] = 0.3
        penalty: Annotated[
            Literal["l2sq", "l1sq", "l1"],
            msgspec.Meta(description="on a vertex: squared l2 norm, squared l1 norm, or l1 norm"),
        ] = "l2sq"
        edge_count: Annotated[
            Literal["once", "twice"], msgspec.Meta(description="how often an edge counts")
        ] = "twice"
        normalize: Annotated[
            bool, msgspec.Meta(description="scale every propagated distribution to sum to 1")
        ] = False
        alpha: Annotated[float, msgspec.Meta(ge=0, description="scale of the evidence")] = 0.7
        omega: Annotated[
            float, msgspec.Meta(ge=0, description="weight of an unlabeled sentence (labeled: 1)")
        ] = 1.0
        solver: Annotated[
            Literal["em", "direct"],
            msgspec.Meta(description="em: the paper's rounds; direct: L-BFGS on the objective"),
        ] = "em"
        rounds: Annotated[int, msgspec.Meta(ge=1, description="most rounds of EM")] = 10
        m_iterations: Annotated[int, msgspec.Meta(ge=1, description="of L-BFGS in one M-step")] = 20
        tolerance: Annotated[
            float, msgspec.Meta(ge=0, description="EM stops at this relative gain in a round")
        ] = 1e-4
        feature_pruning: FeaturePruning = "posterior"
        keep: Keep = "last"
        min_type_count: Annotated[
            int, msgspec.Meta(ge=1, description="n-grams with fewer occurrences are no vertices")
        ] = 1
        search: ClassVar[tuple[SearchAxis, ...]] = (
            SearchAxis("sigma2", (1.0, 10.0, 100.0), via="supervised"),
            SearchAxis("alpha", (0.1, 0.3, 0.5, 0.7, 0.9)),
            SearchAxis("mu", (0.2, 0.5, 0.8)),
            SearchAxis("lam", (0.8, 0.5, 0.3, 0.1)),
        )

    def fit(self, problem: Problem, params: Params, run: RunContext) -> ChainCRF:
        """Propagate once, train on the labeled sentences, then on the evidence too."""
        graph, known = problem_graph(
            problem,
            run,
            params.column,
            templates=params.templates,
            k=params.neighbors,
            symmetry=params.symmetry,
            max_df=params.max_df,
            min_count=params.min_type_count,
        )
        with run.phase("propagation"):
            q = propagate_unnormalized(
                graph.W,
                known.r,
                known.labeled,
                params.mu,
                params.lam,
                params.penalty,
                edge_count=params.edge_count,
            )
        if params.normalize:
            q = normalized(q)
        with run.phase("features"):
            crf = prepare(problem, params, text=problem.unlabeled)
            gold = crf.encode(problem.labeled)
            parts = evidence_parts(crf, problem, params, q, known.vertex_of)
            dev = None
            if problem.dev is not None:
                dev = crf.encode(problem.dev), problem.label_codes(problem.dev)
        trainer = EvidenceTrainer(
            crf,
            gold,
            problem.label_codes(problem.labeled),
            parts,
            params.sigma2,
            params.options(),
            run,
            dev,
        )
        run.trace["virtual_evidence"] = train(trainer, params)
        return trainer.crf

    @staticmethod
    def restore(arrays: dict[str, Any], facts: dict[str, Any]) -> ChainCRF:
        """A saved tagger."""
        return ChainCRF.from_arrays(arrays, facts)


def train(trainer: EvidenceTrainer, params: VirtualEvidenceTraining.Params) -> dict[str, Any]:
    """Supervised optimum, then the chosen solver; what happened, for the record."""
    first = trainer.supervised().record()
    trainer.run.progress(f"supervised: {first['iterations']} iterations, {first['status']}")
    tokens = sum(len(term.vertex_of) for _, term in trainer.parts)
    informed = sum(term.informed() for _, term in trainer.parts)
    facts = {"first": first, "evidence_tokens": informed / max(1, tokens)}
    if params.omega == 0 or not informed:  # F is the supervised objective: this is its optimum
        return {**facts, "rounds": [], "stopped": "no evidence"}
    if params.feature_pruning == "posterior":
        trainer.prune()
        facts["plausible_weights"] = trainer.crf.layout.size
    if params.solver == "direct":
        found = trainer.direct()
    else:
        found = trainer.em(params.rounds, params.m_iterations, params.tolerance)
    if params.keep == "best" and trainer.dev is not None:
        found["kept_round"] = trainer.keep_best(found["rounds"])
    return {**facts, **found}


def evidence_parts(
    crf: ChainCRF, problem: Problem, params: VirtualEvidenceTraining.Params, q: F64, vertex_of: I32
) -> list[Part]:
    """The unlabeled shards, encoded, with their evidence; labeled sentences carry none.

    q: float64[V, L]; vertex_of: int32[N_l + N_u], the labeled tokens first.
    """
    parts, lo = [], problem.labeled.n_tokens
    for shard in problem.unlabeled:
        hi = lo + shard.n_tokens
        term = VirtualEvidence(q, vertex_of[lo:hi], params.alpha, params.omega)
        parts.append((crf.encode(shard), term))
        lo = hi
    return parts


def normalized(q: F64) -> F64:
    """Rows that sum to 1, or to 0 where there is nothing: float64[V, L]."""
    total = q.sum(axis=1, keepdims=True)
    rows: F64 = np.divide(q, total, out=np.zeros_like(q), where=total > 0)
    return rows
