"""What methods over a graph share: the graph of a problem, its parameters, scores of rounds.

The vertices are the n-gram types of all text of the problem, labeled and unlabeled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from sslbench.corpus import Corpus
from sslbench.crf import ChainCRF, EncodedCorpus
from sslbench.experiment.context import RunContext
from sslbench.experiment.data import DataHome
from sslbench.experiment.problem import Problem
from sslbench.graph.build import Graph, GraphOptions, build_graph
from sslbench.graph.diagnostics import diagnostics
from sslbench.graph.tokens import empirical
from sslbench.types import F64, I32, Bool

Templates = Annotated[
    Literal["subramanya2010", "he2013", "zeng2013", "letters"],
    msgspec.Meta(
        description="context features of the graph: those of the paper of that name;"
        " or images of handwritten letters (He et al. 2013)"
    ),
]
Neighbors = Annotated[int, msgspec.Meta(ge=1, description="nearest neighbors per vertex (k)")]
Symmetry = Annotated[
    Literal["union", "mutual"],
    msgspec.Meta(description="an edge needs one of its ends to be the other's neighbor, or both"),
]
MaxDf = Annotated[
    Annotated[int, msgspec.Meta(ge=2)] | None,
    msgspec.Meta(description="context features of more vertices make no neighbors; None = all do"),
]

FeaturePruning = Annotated[
    Literal["none", "posterior"],
    msgspec.Meta(
        description="(attribute, label) pairs with a weight once the labeled sentences are learned:"
        " all, or those seen there or likely somewhere (posterior 0.01)"
    ),
]

Keep = Annotated[
    Literal["last", "best"],
    msgspec.Meta(description="the model of the last round, or of the best one on dev"),
]


@dataclass(frozen=True)
class GraphText:
    """What the graph knows of a problem, from its text and the gold labels of its sample.

    vertex_of: int32[N_l + N_u], the labeled tokens first, -1 = outside the graph;
    n_labeled: N_l; r: float64[V, L] label distributions of vertices; labeled: bool[V].
    """

    vertex_of: I32
    n_vertices: int
    n_labeled: int
    r: F64
    labeled: Bool

    @classmethod
    def of(cls, problem: Problem, vertex_of: I32, n_vertices: int) -> GraphText:
        n, codes = problem.labeled.n_tokens, problem.label_codes(problem.labeled)
        r, labeled = empirical(vertex_of[:n], codes, n_vertices, len(problem.labels))
        return cls(vertex_of, n_vertices, n, r, labeled)

    def facts(self) -> dict[str, float | int]:
        """Sizes for the record."""
        at = self.vertex_of[self.n_labeled :]
        known = np.append(self.labeled, False)[at]
        return {
            "vertices": self.n_vertices,
            "labeled_vertices": int(self.labeled.sum()),
            "known_tokens": float(known.mean()) if len(at) else 0.0,
        }


def graph_text(problem: Problem, column: str) -> Corpus:
    """One column of the labeled sentences, then of the unlabeled ones, end to end."""
    parts = [problem.labeled, *problem.unlabeled]
    return Corpus.concatenate(
        [Corpus({column: part.column(column)}, part.offsets) for part in parts]
    )


def problem_graph(
    problem: Problem, run: RunContext, column: str, **options: Any
) -> tuple[Graph, GraphText]:
    """Build (or find in the cache) the graph of all text of a problem; its record is in the trace.

    options: of `sslbench.graph.build.GraphOptions`.
    """
    with run.phase("graph"):
        graph = build_graph(
            graph_text(problem, column),
            GraphOptions(**options),
            column=column,
            cache=DataHome().cache,
            threads=run.threads,
            progress=run.progress,
        )
        known = GraphText.of(problem, graph.vertices.of, len(graph.vertices.count))
        run.trace["graph"] = {
            **known.facts(),
            **graph.facts,
            **diagnostics(graph.W, known.labeled),
        }
    return graph, known


def with_dev(
    entry: dict[str, Any], crf: ChainCRF, dev: tuple[EncodedCorpus, I32] | None
) -> dict[str, Any]:
    """The record of a round, with the accuracy on development text if there is any."""
    if dev is None:
        return entry
    data, labels = dev
    right = np.count_nonzero(crf.decode(data) == labels)
    return {**entry, "dev_accuracy": right / max(1, len(labels))}
