"""The mixture of models as factor features: scores of CRFs, then log-probabilities of tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sslbench.engine.corpus import Corpus
from sslbench.engine.crf import ChainCRF
from sslbench.engine.features import Template, TemplateFeaturizer
from sslbench.engine.types import F64
from sslbench_methods.jess_cm.models import EmbeddedModels


def feature_sets(featurizer: TemplateFeaturizer) -> list[TemplateFeaturizer]:
    """Return I sets of features that are not empty: words, columns, affixes and shapes, the rest.

    A template belongs to the set of its columns if they are all of one kind; edge templates,
    mixed ones, the constant and dense columns are the rest.
    """
    sets: dict[str, list[Template]] = {kind: [] for kind in ("word", "other", "part", "rest")}
    for template in featurizer.templates:
        kinds = {_kind(atom.column) for atom in template.atoms}
        alone = len(kinds) == 1 and not template.edge
        sets[kinds.pop() if alone else "rest"].append(template)
    return [
        TemplateFeaturizer(templates, featurizer.dense if kind == "rest" else None)
        for kind, templates in sets.items()
        if templates or (kind == "rest" and featurizer.dense is not None)
    ]


def _kind(column: str) -> str:
    if column == "word":
        return "word"
    return "part" if "." in column else "other"


@dataclass
class MixedModels(EmbeddedModels):
    """J generative models, and I CRFs whose scores are features of the mixture, too.

    crfs: see `unmasked`.
    """

    crfs: list[ChainCRF] = field(default_factory=list)

    def with_crfs(self, crfs: Iterable[ChainCRF]) -> None:
        """Set the CRFs, whose scores do not change from here on."""
        self.crfs = unmasked(crfs)

    def bind(self, corpus: Corpus) -> Any:
        """Bind all I + J models to a corpus, as factor features."""
        scores = [Scores.of(crf, corpus) for crf in self.crfs]
        return BoundMixture(super().bind(corpus), scores)

    def bound(self, corpus: Corpus, scores: list[Scores]) -> Any:
        """Bind all models for a training, with scores of other CRFs."""
        return BoundMixture(super().bind(corpus).in_order(), scores)


def unmasked(crfs: Iterable[ChainCRF]) -> list[ChainCRF]:
    """Without masks and constraints, which the mixture has: zero times minus infinity is none."""
    return [replace(crf, transition_mask=None, label_constraint=None) for crf in crfs]


@dataclass(frozen=True)
class Scores:
    """Log-potentials of one CRF on a corpus: node float64[N, L], edge float64[1 or N, L, L]."""

    node: F64
    edge: F64

    @classmethod
    def of(cls, crf: ChainCRF, corpus: Corpus) -> Scores:
        """START transitions and stop scores are in the node scores."""
        batches = list(crf.potentials(crf.encode(corpus)))
        L = len(crf.labels)
        edges = [p.edge for p in batches]
        if not batches or len(edges[0]) == 1:
            edges = edges[:1] or [np.zeros((1, L, L))]
        nodes = [np.empty((0, L)), *(p.node for p in batches)]
        return cls(np.concatenate(nodes), np.concatenate(edges))

    def edges(self, lo: int, hi: int) -> F64:
        """Of the tokens lo to hi - 1: float64[1 or hi - lo, L, L]."""
        return self.edge if len(self.edge) == 1 else self.edge[lo:hi]


@dataclass(frozen=True)
class BoundMixture:
    """I + J models on one corpus: `sslbench.engine.crf.FactorFeatures`."""

    tables: Any
    scores: list[Scores]

    @property
    def n_weights(self) -> int:
        return len(self.scores) + int(self.tables.n_weights)

    @property
    def on_edges(self) -> bool:
        return True

    @property
    def preconditioner(self) -> float:
        return float(self.tables.preconditioner)

    def add_scores(self, weights: F64, batch: Any, node: F64, edge: F64) -> None:
        """phi += sum_i weight_i phi_i + sum_j weight_j log p_j."""
        n = len(self.scores)
        self.tables.add_scores(np.ascontiguousarray(weights[n:]), batch, node, edge)
        for weight, each in zip(weights[:n], self.scores, strict=True):
            node += weight * each.node[batch.lo : batch.hi]
            edge += weight * each.edges(batch.lo, batch.hi)  # not read at first tokens

    def expectation(self, batch: Any, node: F64, edge: F64) -> F64:
        """Return the derivatives by the weights, given those by the potentials."""
        total = edge.sum(axis=0)
        first = []
        for each in self.scores:
            edges = each.edges(batch.lo, batch.hi)
            over = float((total * edges[0]).sum() if len(edges) == 1 else (edge * edges).sum())
            first.append(float((node * each.node[batch.lo : batch.hi]).sum()) + over)
        rest: F64 = self.tables.expectation(batch, node, edge)
        return np.concatenate([np.array(first), rest])

    def count(self, batch: Any, node: F64, edge: F64, counts: Any) -> None:
        """Add the expected counts of the generative models."""
        self.tables.count(batch, node, edge, counts)
