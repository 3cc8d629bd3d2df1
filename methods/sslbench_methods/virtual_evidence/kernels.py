"""Block descent on equation 4 of Zeng et al. (2013), for penalties that leave few labels a vertex.

A graph is CSR, as in `sslbench.engine.graph.propagation.kernels`.
"""

from __future__ import annotations

import numpy as np

from sslbench.engine.compilation.compiled import kernel
from sslbench.engine.crf.simd import lanes
from sslbench.engine.graph.propagation.kernels import STRIP, neighbor_sum
from sslbench.engine.types import F64, I32, I64, Bool


@kernel
def shared_threshold(b: F64, ratio: float) -> float:
    """Return the t with t = ratio * sum_k max(0, b_k - t); b float64[K], ratio = lambda / kappa.

    Newton's method from the left on a convex decreasing function; the active set only shrinks.
    """
    threshold, active = 0.0, -1
    while True:
        total, n = 0.0, 0
        for k in range(b.shape[0]):
            if b[k] > threshold:
                total += b[k]
                n += 1
        if n == active or n == 0:
            return threshold
        active = n
        threshold = ratio * total / (1.0 + n * ratio)


@kernel
def sparse_sweep(
    indptr: I32,
    indices: I32,
    weights: F64,
    r: F64,
    labeled: Bool,
    coupling: float,
    curvature: F64,
    lam: float,
    shared: bool,
    order: I64,
    q: F64,
) -> float:
    """Minimize over each vertex in turn, in `order` and in place; returns the largest gradient.

    curvature: float64[V], labeled + coupling * degree (kappa). shared: the penalty is
    lam (sum_k q_k)^2, else lam sum_k q_k, both with q >= 0. The gradient is 2 kappa times the
    change, zero at the optimum. Later vertices see the new values of earlier ones.
    """
    K, worst = q.shape[1], 0.0
    sums = np.empty(K + STRIP)
    row = sums[:K]
    for u in order:
        kappa = curvature[u]
        if kappa == 0.0:  # no edge and no label: the penalty alone
            q[u] = 0.0
            continue
        for k in range(0, K, STRIP):
            s0, s1 = neighbor_sum(u, indptr, indices, weights, q, k)
            lanes.store(sums, k, s0)
            lanes.store(sums, k + lanes.WIDTH, s1)
        for k in range(K):
            label = r[u, k] if labeled[u] else 0.0
            row[k] = (label + coupling * row[k]) / kappa
        cut = shared_threshold(row, lam / kappa) if shared else 0.5 * lam / kappa
        for k in range(K):
            value = max(0.0, row[k] - cut)
            worst = max(worst, 2.0 * kappa * abs(value - q[u, k]))
            q[u, k] = value
    return worst
