"""Dense factor features: the interface between the engine and models that it embeds."""

from __future__ import annotations

from typing import Protocol

from sslbench.engine.crf.data import Batch
from sslbench.engine.types import F64


class FactorFeatures(Protocol):
    """Dense factor features: real values h_k on every factor, one weight each.

    Source: docs/specs/crf_engine.md, section 5.3.  Bound to one corpus.  `SymbolTables.bind`
    makes some.
    """

    @property
    def n_weights(self) -> int: ...
    @property
    def on_edges(self) -> bool:
        """Do some of them read two adjacent labels?"""
        ...

    @property
    def preconditioner(self) -> float:
        """One over the squared spread of the values, about 1 for an attribute.

        The optimizer scales the weights by it, which affects its speed alone.
        """
        ...

    def add_scores(self, weights: F64, batch: Batch, node: F64, edge: F64) -> None:
        """node += sum_k weights[k] h_k, likewise edge (edge float64[n, L, L] if on_edges)."""

    def expectation(self, batch: Batch, node: F64, edge: F64) -> F64:
        """Return float64[n_weights]: the sum over all factors of potential gradient times h_k.

        node, edge: the potential gradient of the batch.
        """
        ...
