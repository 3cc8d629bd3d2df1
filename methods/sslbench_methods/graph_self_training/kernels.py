"""The update of equation 3 of Subramanya et al. (2010), compiled.

A graph is CSR, as in `sslbench.engine.graph.propagation.kernels`.
"""

from __future__ import annotations

from sslbench.engine.compilation.compiled import chunks, parallel_kernel
from sslbench.engine.crf.simd import lanes
from sslbench.engine.graph.propagation.kernels import CHUNK, STRIP, neighbor_sum
from sslbench.engine.types import F64, I32, Bool


@parallel_kernel(lambda *arguments: chunks(len(arguments[-1]), CHUNK))
def jacobi_step(
    begin: int,
    end: int,
    indptr: I32,
    indices: I32,
    weights: F64,
    q: F64,
    r: F64,
    labeled: Bool,
    coupling: float,
    prior: float,
    scale: F64,
    out: F64,
) -> None:
    """out_u = scale_u (labeled_u r_u + coupling sum_v w_uv q_v + prior).

    q, r, out float64[V, K]; scale float64[V], 0 for a vertex without label, edge and prior, which
    keeps its row of q.
    """
    K, c = q.shape[1], lanes.splat(coupling)
    for u in range(begin * CHUNK, min(end * CHUNK, out.shape[0])):
        f = lanes.splat(scale[u])
        for k in range(0, K, STRIP):
            i, low, high = u * K + k, lanes.first(K - k), lanes.first(K - k - lanes.WIDTH)
            x0 = x1 = lanes.splat(prior)
            if labeled[u]:
                x0 = lanes.add(x0, lanes.load_first(r, i, low, 0.0))
                x1 = lanes.add(x1, lanes.load_first(r, i + lanes.WIDTH, high, 0.0))
            s0, s1 = neighbor_sum(u, indptr, indices, weights, q, k)
            lanes.store_first(out, i, low, lanes.multiply(f, lanes.fma(c, s0, x0)))
            x1 = lanes.multiply(f, lanes.fma(c, s1, x1))
            lanes.store_first(out, i + lanes.WIDTH, high, x1)
        if scale[u] == 0.0:
            for k in range(K):
                out[u, k] = q[u, k]
