"""Functions of one chain that the engine itself does not need, for comparison in tests."""

from __future__ import annotations

import numpy as np

from sslbench.engine.types import F64, I32
from support.log_space_chain import Potentials, infer, viterbi


def max_expected_accuracy(potentials: Potentials) -> I32:
    """int32[T]: the allowed sequence with the largest expected number of correct labels.

    Viterbi with node scores mu (docs/specs/crf_engine.md, section 7.5).
    """
    mu = infer(potentials).node
    allowed = np.where(np.isfinite(potentials.edge), 0.0, -np.inf)
    return viterbi(Potentials(np.where(np.isfinite(potentials.node), mu, -np.inf), allowed))[1]


def kl_divergence(p: Potentials, q: Potentials) -> float:
    """KL(p || q) of two chains over the same labels and length: E_p[S_p - S_q] - log Z_p + log Z_q.

    An additive constant on all potentials of a position has no effect.
    """
    T = len(p.node)
    posterior = infer(p)
    mu, xi = posterior.node, posterior.edges()
    node_gap = np.where(mu > 0, _finite(p.node) - q.node, 0.0)
    p_edge, q_edge = (np.broadcast_to(x.edge, (T, *x.edge.shape[1:])) for x in (p, q))
    edge_gap = np.where(xi > 0, _finite(p_edge) - q_edge, 0.0)
    expected = float((mu * node_gap).sum() + (xi * edge_gap).sum())
    return expected - posterior.log_z + infer(q).log_z


def _finite(x: F64) -> F64:
    return np.where(np.isfinite(x), x, 0.0)
