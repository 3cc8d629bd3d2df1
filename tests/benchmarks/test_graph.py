"""Exact nearest neighbors of sparse vectors: ours, sparse_dot_topn, and scipy's product by batches.

The matrix is generated: features of trigram types from Zipfian words, 11 a row, among them suffixes
that thousands of rows share, and about as many multiply-adds a row as trigrams of newswire have.
SSLBENCH_BENCH_VERTICES says how many rows; 170,000 is a small corpus.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from problem import OUT, ROUNDS, Figure
from scipy import sparse

from sslbench.engine.compilation.threads import number_of_threads
from sslbench.engine.graph.neighbors import nearest, predicted_cost

VERTICES = int(os.environ.get("SSLBENCH_BENCH_VERTICES", "50000" if OUT else "2000"))
WORDS = 30_000
BATCH = 500
KS = [5, 60]


def trigram_like(n: int, seed: int = 0) -> Any:
    """float32 CSR [n, F] of cosine weights; rows of norm below 1, as df-1 features are left out."""
    rng = np.random.default_rng(seed)
    weight = 1 / np.arange(1, WORDS + 1)
    a, b, c, d, e = (rng.choice(WORDS, n, p=weight / weight.sum()) for _ in range(5))
    suffix = rng.permutation(WORDS)[c]
    pairs = [a * WORDS + b, d * WORDS + e, b * WORDS + d]
    features = [
        c,
        *pairs,
        pairs[2] * WORDS + e,
        pairs[0] * WORDS + d,
        suffix % 26,
        suffix % 400,
        suffix % 3000,
        b,
        d,
    ]
    columns, size = [], 0
    for feature in features:
        values, inverse = np.unique(feature, return_inverse=True)
        columns.append(inverse + size)
        size += len(values)
    column = np.stack(columns, axis=1)
    df = np.bincount(column.ravel(), minlength=size)
    pmi = np.log(n / df[column]) + rng.normal(0, 0.3, column.shape)
    norm = np.sqrt((pmi**2).sum(axis=1) + 4 * np.log(n) ** 2)
    row = np.repeat(np.arange(n), len(features))
    data = (pmi / norm[:, None]).astype(np.float32).ravel()
    return sparse.csr_matrix((data, (row, column.ravel())), (n, size))


@pytest.fixture(scope="session")
def matrix() -> Any:
    return trigram_like(VERTICES)


def blockwise(X: Any, k: int) -> Any:
    """Similarities of the k neighbors by scipy's product of batches of rows: float[V, k]."""
    transposed, best = X.T.tocsr(), []
    for begin in range(0, X.shape[0], BATCH):
        batch = (X[begin : begin + BATCH] @ transposed).toarray()
        batch[np.arange(len(batch)), begin + np.arange(len(batch))] = 0
        best.append(-np.sort(-np.partition(batch, -k, axis=1)[:, -k:], axis=1))
    return np.maximum(np.concatenate(best), 0)


def name(k: int) -> str:
    return f"graph: exact {k} neighbors of {VERTICES:,} (peer: sparse_dot_topn)"


def timed(benchmark: Any, work: Any) -> float:
    benchmark.pedantic(work, rounds=ROUNDS, iterations=1, warmup_rounds=0)
    return float(benchmark.stats.stats.median) if benchmark.enabled else float("nan")


@pytest.mark.parametrize("k", KS)
def test_neighbors_ours(benchmark: Any, figure: Figure, matrix: Any, k: int) -> None:
    nearest(matrix[:50], k)  # compile
    seconds = timed(benchmark, lambda: nearest(matrix, k))
    figure(name(k), "s", ours=seconds)
    adds = predicted_cost(matrix).multiply_adds
    figure(
        f"graph: 1e6 multiply-adds of all pairs per second, k = {k}", "", ours=adds / seconds / 1e6
    )


@pytest.mark.parametrize("k", KS)
def test_neighbors_peer(benchmark: Any, figure: Figure, matrix: Any, k: int) -> None:
    peer = pytest.importorskip("sparse_dot_topn", reason="sparse_dot_topn is not installed")
    transposed, threads = matrix.T.tocsr(), number_of_threads()

    def work() -> Any:  # one more than k: each row finds itself
        return peer.sp_matmul_topn(
            matrix, transposed, top_n=k + 1, threshold=0.0, sort=True, n_threads=threads
        )

    figure(name(k), "s", peer=timed(benchmark, work))
    theirs, ours = work(), nearest(matrix, k)
    theirs.setdiag(0)
    for i in range(0, VERTICES, max(1, VERTICES // 500)):
        row = -np.sort(-theirs.data[theirs.indptr[i] : theirs.indptr[i + 1]])
        wanted = row[row > 0][:k]
        assert ours.similarity[i, : len(wanted)] == pytest.approx(wanted, abs=1e-6)


def test_neighbors_by_blocks(benchmark: Any, figure: Figure, matrix: Any) -> None:
    few = matrix[: min(VERTICES, 20_000)]  # a dense batch of rows for each: quadratic
    nearest(few[:50], 5)
    figure(
        f"graph: exact 5 neighbors of {few.shape[0]:,} by scipy's product",
        "s",
        peer=timed(benchmark, lambda: blockwise(few, 5)),
    )
    assert nearest(few, 5).similarity == pytest.approx(blockwise(few, 5), abs=1e-6)
