"""Graph-based self-training, and the same without a graph (types averaged, not smoothed).

Subramanya, Petrov & Pereira (2010). The algorithm is in `algorithm`; here are its parameters, the
graph, and the paper's self-trained CRF, which leaves line 6 out. Ten propagation steps are part of
the method: the optimum of equation 2 does not depend on the posteriors
(docs/specs/graph_self_training.md, sections 3 and 4).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from sslbench import CRFMethod, Positive, Problem, RunContext, SearchAxis, Weight, doc
from sslbench.engine.corpus import Corpus
from sslbench.engine.crf import EncodedText, SequenceModel
from sslbench.engine.graph.propagation.quadratic import propagate_optimum
from sslbench.engine.graph.vertices import ngram_vertices
from sslbench.engine.types import F64, I32
from sslbench.method import (
    GraphSimilarity,
    MaxDf,
    Neighbors,
    Suffixes,
    Symmetry,
    TextVertices,
    check_similarity,
)
from sslbench_methods import shared
from sslbench_methods.graph_self_training.algorithm import (
    AXES,
    RelabelingParams,
    Smooth,
    TypeTrainer,
    decode,
    mix,
    propagate,
)

#: the values that the paper prints, the transitions in its Viterbi step among them
_PAPER = {"sigma2": 50.0, "alpha": 0.6, "eta": 0.001, "eta_scale": "sentence", "omega": 1.0}
#: chosen on the development part of `questions` in replications/subramanya2010
_REPRODUCED = {
    "sigma2": 4.0,
    "omega": 0.0,
    "alpha": 0.4,
    "eta": 0.1,
    "eta_scale": "sentence",
    "rounds": 4,
    "keep": "best",
}
_PAIRS = {"similarity": "he2013", "neighbors": 60, "symmetry": "mutual"}
_GRAPH = {**_PAIRS, "mu": 0.1}
#: more weight of the text than a default for all tasks can have: on names it harms
_STRONG = {"eta": 0.5, "alpha": 0.4, "rounds": 3}
_FOR_TAGS = (
    "for tagging: the paper's order of methods appears (replications/subramanya2010/report.md)"
)
_NOTES = {
    "paper": "collapses on small samples: with 100 labels, up to 32 points below the baseline"
    " (docs/defaults.md); preset reproduced does not on tags",
    "reproduced": f"{_FOR_TAGS}; on names of genes it is far below the baseline",
}
_SHARED_AXES = (
    *AXES,
    SearchAxis("alpha", low=0, high=1),
    SearchAxis("omega", low=0, high=2),
)


class TypeParams(RelabelingParams, frozen=True, kw_only=True):
    """Parameters of self-training through types; the paper's gamma is 1 / (2 sigma2)."""

    alpha: Annotated[float, doc("share of the CRF in the mixed posteriors", ge=0, le=1)] = 0.6
    omega: Annotated[Weight, doc("weight of the CRF's transitions in decoding")] = 0.0
    transitions: Annotated[
        Literal["raw", "centered"], doc("in decoding: as trained, or less row and column means")
    ] = "raw"

    def label(self, crf: SequenceModel, data: EncodedText, p: F64, types: F64, at: I32) -> I32:
        """Do lines 7 and 8 of the algorithm, see `algorithm.Label`."""
        mixed = mix(p, types, at, self.alpha)
        return decode(crf, data, mixed, self.omega, self.transitions == "centered")


class TypeMethod(CRFMethod):
    """A method that relabels tokens by way of their types."""

    order_invariant = True

    @abstractmethod
    def types(self, problem: Problem, params: Any, run: RunContext) -> tuple[TextVertices, Smooth]:
        """Return the types of a problem's tokens, and line 6 of the algorithm."""

    def fit(self, problem: Problem, params: Any, run: RunContext) -> SequenceModel:
        """Train, smooth, relabel and retrain until the labels settle."""
        types = self.types(problem, params, run)
        crf, text = shared.encoded(problem, params, run)
        return TypeTrainer(crf, text, *types, params.label, params, run).train()


class GraphSelfTraining(TypeMethod):
    """Self-training whose type posteriors are smoothed on a similarity graph."""

    class Params(TypeParams, frozen=True, kw_only=True):
        """Parameters of graph-based self-training."""

        similarity: GraphSimilarity = "subramanya2010"
        neighbors: Neighbors = 5
        symmetry: Symmetry = "union"
        max_df: MaxDf = None
        suffixes: Suffixes = None
        mu: Annotated[Weight, doc("weight of the edges")] = 0.5
        nu: Annotated[Positive, doc("weight of the pull to the uniform distribution")] = 0.01
        steps: Annotated[int, doc("propagation steps; 0 = type_self_training", ge=0, le=10_000)] = (
            10
        )
        propagation: Annotated[
            Literal["steps", "optimum"],
            doc("optimum: solve equation 2; the posteriors have no influence"),
        ] = "steps"
        edge_count: shared.EdgeCounts = "once"
        sentences: Annotated[
            Annotated[int, msgspec.Meta(ge=0, le=10**9)] | None,
            doc("unlabeled sentences that are labeled, the first; None = all"),
        ] = None
        count: Annotated[
            Literal["all", "graph"],
            doc("sentences in whose text contexts are counted: the others too, or not"),
        ] = "all"
        presets: ClassVar[shared.Presets] = {
            "paper": {**_PAPER, "neighbors": 5, "mu": 0.5, "nu": 0.01, "steps": 10},
            "reproduced": {**_REPRODUCED, **_GRAPH},
        }
        preset_notes: ClassVar[shared.Notes] = _NOTES
        task_defaults: ClassVar[shared.TaskDefaults] = shared.by_task(
            tagging={**_STRONG, **_PAIRS, **shared.WIDE},
            spans=shared.WIDE,
            segmentation={**_STRONG, **_PAIRS},
            joint={**_STRONG, **_PAIRS, **shared.WIDEST},
        )
        search: ClassVar[tuple[SearchAxis, ...]] = (
            *_SHARED_AXES,
            SearchAxis("mu", low=0.05, high=5, log=True),
            SearchAxis("nu", low=1e-3, high=0.1, log=True),
        )

        def __post_init__(self) -> None:
            check_similarity(self)

    def types(
        self, problem: Problem, params: Params, run: RunContext, more: Corpus | None = None
    ) -> tuple[TextVertices, Smooth]:
        """Build the graph; the contexts of more text are counted, too."""
        graph = problem.graph(params, run, counting_text=more)
        text = graph.text

        def smooth(q: F64) -> F64:
            rest = text.distribution, text.labeled, params.mu, params.nu
            if params.propagation == "optimum":
                return propagate_optimum(graph.W, *rest, edge_count=params.edge_count)
            return propagate(graph.W, q, *rest, steps=params.steps, edge_count=params.edge_count)

        return text, smooth

    def fit(self, problem: Problem, params: Params, run: RunContext) -> SequenceModel:
        """Train on all of the text, or on its first sentences if `sentences` says so."""
        if params.sentences is None:
            return super().fit(problem, params, run)
        problem, rest = problem.split_text(params.sentences, params.column)
        types = self.types(problem, params, run, rest if params.count == "all" else None)
        crf, text = shared.encoded(problem, params, run)
        return TypeTrainer(crf, text, *types, params.label, params, run).train()


class TypeSelfTraining(TypeMethod):
    """Self-training on posteriors averaged by trigram type: the paper's self-trained CRF."""

    class Params(TypeParams, frozen=True, kw_only=True):
        """Parameters of type-level self-training."""

        presets: ClassVar[shared.Presets] = {"paper": _PAPER, "reproduced": _REPRODUCED}
        preset_notes: ClassVar[shared.Notes] = {"reproduced": _FOR_TAGS}
        task_defaults: ClassVar[shared.TaskDefaults] = shared.by_task(
            tagging=shared.WIDE,
            spans=shared.WIDE,
            segmentation={**_STRONG, **shared.WIDE},
            joint=shared.WIDEST,
        )
        search: ClassVar[tuple[SearchAxis, ...]] = _SHARED_AXES

    def types(
        self, problem: Problem, params: Params, run: RunContext
    ) -> tuple[TextVertices, Smooth]:
        """Find the types of the problem's text, whose means stay as they are."""
        with run.phase("graph"):
            types = ngram_vertices(problem.text(params.column), params.column)
            codes = problem.label_codes(problem.labeled)
            vertices = TextVertices.build(types, codes, len(problem.labels))
        run.trace["graph"] = vertices.metadata()
        return vertices, lambda q: q
