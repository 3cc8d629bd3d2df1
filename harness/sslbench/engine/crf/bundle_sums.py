"""Sums of the weights of bundles, taken once per evaluation, and the way back of their slopes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sslbench.engine.crf.encoded_corpus import EncodedCorpus
from sslbench.engine.crf.simd import rows
from sslbench.engine.crf.weights import scores
from sslbench.engine.crf.weights.scores import EdgeTokens
from sslbench.engine.crf.weights.tables import WeightTables
from sslbench.engine.types import F64


class BundleSums(NamedTuple):
    """Sums of the weights of bundles, or of the slopes of their tokens; the last row is of zeros.

    node: float64[B + 1, L]; edge: float64[B' + 1, P], of edge attributes, as wide as
    the rows of their weights.
    """

    node: F64
    edge: F64

    @classmethod
    def zeros(cls, tables: WeightTables, data: EncodedCorpus) -> BundleSums:
        n_edges = data.edges.n_bundles if data.varying else 0
        node = np.zeros((data.states.n_bundles + 1, tables.layout.n_labels))
        return cls(node, rows.aligned(n_edges + 1, tables.edges.table.shape[1]))

    @classmethod
    def of_weights(cls, tables: WeightTables, data: EncodedCorpus) -> BundleSums:
        sums = cls.zeros(tables, data)
        node, edge = sums.node[:-1], sums.edge[:-1]
        if len(node):
            members = data.states.members
            scores.node_scores(members, 0, tables.table, tables.lists, sums.node[-1:], node)
        if len(edge):
            scores.edge_sums(sums._members(tables, data), edge)
        return sums

    def spread(self, gradient: WeightTables, data: EncodedCorpus) -> None:
        """Add the slopes of each bundle to the gradient of its attributes."""
        node, edge = self.node[:-1], self.edge[:-1]
        if len(node):
            members, none = data.states.members, self.node[-1:]
            scores.node_gradient(members, 0, node, gradient.table, gradient.lists, none)
        if len(edge):
            scores.spread_edge_sums(self._members(gradient, data), edge)

    def _members(self, tables: WeightTables, data: EncodedCorpus) -> EdgeTokens:
        """Return the members of the bundles of edge attributes, which read all columns."""
        everything, none = np.empty(0, np.bool_), self.edge[-1:]
        return EdgeTokens(data.edges.members, 0, everything, tables.edges, none)
