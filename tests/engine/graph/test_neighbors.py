"""The k nearest neighbors and the edges between them.

Source: docs/specs/graph.md, oracles G2, G3, G5 and G15.
"""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from sslbench.engine.errors import UserError
from sslbench.engine.graph import neighbor_kernels as kernels
from sslbench.engine.graph.edges import symmetrize
from sslbench.engine.graph.neighbors import (
    NeighborLists,
    build_index,
    exact_rows,
    nearest,
    predicted_cost,
    recall,
)
from sslbench.engine.types import F64, I32
from support.graph_oracle import COUNTS, G2


def rows_of_norm_1(values: Any) -> Any:
    """float32 CSR of the rows, divided by their norms."""
    X = sparse.csr_matrix(values, dtype=np.float64)
    norm = np.sqrt(np.asarray(X.power(2).sum(axis=1)).ravel())
    scale = np.divide(1.0, norm, out=np.zeros_like(norm), where=norm > 0)
    return sparse.csr_matrix(sparse.diags(scale) @ X, dtype=np.float32)


def oracle() -> Any:
    """The five PMI vectors of docs/specs/graph.md, oracles G1 to G3."""
    counts = COUNTS.astype(float)
    n, c = counts.sum(1, keepdims=True), counts.sum(0)
    pmi = np.log(np.where(counts > 0, counts.sum() * counts / (n * c), 1.0))
    return rows_of_norm_1(pmi)


def zipfian(n: int, seed: int = 0, shared: int = 6) -> Any:
    """Rows with a few columns each, rare to very frequent, some below 0; empty rows."""
    rng = np.random.default_rng(seed)
    weight = 1 / np.arange(1, 2 * n + 1)
    column = rng.choice(2 * n, (n, shared), p=weight / weight.sum())
    value = np.log(n / (1 + np.bincount(column.ravel(), minlength=2 * n)[column]))
    value = np.where(value == 0, 0.1, value) + rng.normal(0, 0.3, value.shape)
    row = np.repeat(np.arange(n), shared)
    X = sparse.lil_matrix(sparse.csr_matrix((value.ravel(), (row, column.ravel())), (n, 2 * n)))
    X[rng.integers(0, n, 3)] = 0
    return rows_of_norm_1(X)


def with_ties(n: int, seed: int) -> Any:
    """Values in eighths: sums are exact in any order, and many similarities are equal."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 5, (n, 12)) * (rng.random((n, 12)) < 0.3) / 8
    X[:, 0] = rng.random(n) < 0.5
    X[n // 2 :: 5] = X[0]
    X[3::17] = 0
    return sparse.csr_matrix(X, dtype=np.float32)


def brute_force(X: Any, k: int) -> tuple[I32, F64]:
    """Dense similarities, sorted by similarity descending, then index."""
    dense = X.toarray().astype(np.float64)
    sim = dense @ dense.T
    np.fill_diagonal(sim, -1)
    index = np.full((len(sim), k), -1, np.int32)
    value = np.zeros((len(sim), k))
    for i, row in enumerate(sim):
        order = np.lexsort((np.arange(len(row)), -row))[:k]
        order = order[row[order] > 0]
        index[i, : len(order)], value[i, : len(order)] = order, row[order]
    return index, value


def all_rows(X: Any) -> Any:
    return np.arange(X.shape[0])


# -- oracles ---------------------------------------------------------------------------------------
def test_g2_similarities() -> None:
    index, _ = build_index(oracle())
    ids = np.tile(np.arange(5, dtype=np.int32), (5, 1))
    result = np.empty((5, 5))
    kernels.similarities(index, np.arange(5), ids, result)
    for (u, v), value in G2.items():
        assert result[u, v] == pytest.approx(value, abs=1e-7)  # the vectors are float32
    assert np.array_equal(result, result.T)


def edges(W: Any) -> list[tuple[int, int]]:
    return [(int(u), int(v)) for u, v in zip(*W.nonzero(), strict=True) if u < v]


def test_g3_neighbors_and_edges() -> None:
    one, two = nearest(oracle(), 1), nearest(oracle(), 2)
    assert one.index.tolist() == [[1], [0], [0], [1], [-1]]
    assert two.index.tolist() == [[1, 2], [0, 3], [0, -1], [1, -1], [-1, -1]]
    assert edges(symmetrize(one, 1, "union")) == [(0, 1), (0, 2), (1, 3)]
    assert edges(symmetrize(one, 1, "mutual")) == [(0, 1)]
    for how in ("union", "mutual"):
        assert edges(symmetrize(two, 2, how)) == [(0, 1), (0, 2), (1, 3)]
    # lists for a larger k can be cut
    assert edges(symmetrize(two, 1, "mutual")) == [(0, 1)]
    assert np.array_equal(two.index[:, :1], one.index)
    W = symmetrize(two, 2, "union")
    assert W[0, 1] == pytest.approx(0.8782378917, abs=1e-7)
    assert W.dtype == np.float64
    assert W.indices.dtype == np.int32


@pytest.mark.parametrize("k", [1, 5, 60])
def test_g5_pruned_and_full_search_have_the_same_bits(k: int) -> None:
    for X in (zipfian(200), zipfian(3000, 1), with_ties(500, 2)):
        index, _ = build_index(X)
        pruned = exact_rows(index, all_rows(X), k)
        full = exact_rows(index, all_rows(X), k, prune=False)
        assert np.array_equal(pruned.index, full.index)
        assert np.array_equal(pruned.similarity, full.similarity)


def test_rare_search_finishes_some_rows_and_stops_early() -> None:
    """Otherwise the test above would compare a search with itself."""
    X = zipfian(3000, 1)
    index, df = build_index(X)
    k, n = 5, X.shape[0]
    lists = kernels.Lists(all_rows(X), np.zeros((n, k)), np.zeros((n, k), np.int32))

    def unfinished(budget: int) -> Any:
        sizes, floors = np.zeros(n, np.int32), np.zeros(n)
        kernels.search_rare(index, lists, budget, sizes, floors)
        return sizes < 0

    assert 0 < unfinished(n // 16).sum() < n
    cost = np.add.reduceat(np.append(df[index.column], 0), index.ptr[:-1])
    cost[np.diff(index.ptr) == 0] = 0
    budget = int(np.median(cost))
    assert unfinished(budget).sum() < (cost > budget).sum()


@pytest.mark.parametrize("k", [1, 4, 60])
@pytest.mark.parametrize("prune", [True, False])
def test_brute_force_with_ties_negative_values_and_empty_rows(k: int, prune: bool) -> None:
    for seed, n in enumerate((40, 333, 500)):
        X = with_ties(n, seed)
        index, _ = build_index(X)
        result = exact_rows(index, all_rows(X), k, prune=prune)
        wanted = brute_force(X, k)
        assert np.array_equal(result.index, wanted[0])
        assert np.array_equal(result.similarity, wanted[1])


@pytest.mark.parametrize("k", [1, 4, 60])
def test_sums_that_cancel_on_the_way(k: int) -> None:
    """The search by rare columns without a budget: ties, and partial sums that are 0."""
    for seed, n in enumerate((40, 200)):
        X = with_ties(n, seed)
        index, _ = build_index(X)
        sims, ids = np.zeros((n, k)), np.full((n, k), -1, np.int32)
        sizes, floors = np.zeros(n, np.int32), np.zeros(n)
        lists = kernels.Lists(all_rows(X), sims, ids)
        kernels.search_rare(index, lists, 10**9, sizes, floors)
        wanted = brute_force(X, k)
        assert np.array_equal(ids, wanted[0])
        assert np.array_equal(sims, wanted[1])
        assert np.array_equal(sizes, (wanted[0] >= 0).sum(axis=1))
        assert (floors <= np.maximum(wanted[1][:, -1], kernels.POSITIVE)).all()


def test_brute_force_with_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    from sslbench.engine.graph import neighbors as neighbors

    monkeypatch.setattr(neighbors, "_TILE", 64)
    X = zipfian(1500, 3)
    index, _ = build_index(X)
    result = exact_rows(index, all_rows(X), 7, prune=False)
    wanted = brute_force(X, 7)
    assert np.allclose(result.similarity, wanted[1], atol=1e-6)
    assert (result.index == wanted[0]).mean() > 0.99  # near-ties may change places
    monkeypatch.setattr(neighbors, "_MOST_DENSE", 0)
    sparse_only = exact_rows(index, all_rows(X), 7, prune=False)
    assert np.array_equal(result.similarity, sparse_only.similarity)


def test_g5_threads() -> None:
    X = zipfian(3000, 1)
    for max_df in (None, 50):
        one = nearest(X, 5, max_df=max_df, threads=1)
        two = nearest(X, 5, max_df=max_df, threads=2)
        assert np.array_equal(one.index, two.index)
        assert np.array_equal(one.similarity, two.similarity)


@pytest.mark.parametrize("how", ["union", "mutual"])
def test_g15_permuted_vertices(how: Any) -> None:
    X = zipfian(600, 4)
    order = np.random.default_rng(0).permutation(600)
    W = symmetrize(nearest(X, 5), 5, how)
    permuted = symmetrize(nearest(X[order], 5), 5, how)
    assert W.nnz > 600
    assert (permuted != W[order][:, order]).nnz == 0


def test_matrices_without_shared_columns_or_rows() -> None:
    assert nearest(sparse.eye(4, format="csr", dtype=np.float32), 2).index.max() == -1
    assert nearest(sparse.csr_matrix((3, 5), dtype=np.float32), 2).index.max() == -1
    assert nearest(sparse.csr_matrix((0, 5), dtype=np.float32), 2).index.shape == (0, 2)
    assert nearest(sparse.csr_matrix([[1.0]], dtype=np.float32), 2).index.tolist() == [[-1, -1]]


def test_order_of_entries_and_stored_zeros_do_not_matter() -> None:
    X = zipfian(300, 5)
    messy = sparse.csr_matrix(
        (
            np.append(X.data[::-1], np.float32(0)),
            np.append(X.indices[::-1], 0),
            np.append(
                0, np.cumsum(np.append(np.diff(X.indptr)[::-1][:-1], np.diff(X.indptr)[0] + 1))
            ),
        ),
        X.shape,
    )
    flipped = X[np.arange(299, -1, -1)]
    a, b = nearest(messy, 5), nearest(flipped, 5)
    assert np.array_equal(a.similarity, b.similarity)
    assert np.array_equal(a.index, b.index)


# -- cut-offs and the approximate search -----------------------------------------------------------
def test_max_df_limits_candidates_not_similarities() -> None:
    X = zipfian(2000, 6)
    exact, messages = nearest(X, 5), []
    cut = nearest(X, 5, max_df=20, progress=messages.append)
    df = np.bincount(X.indices, minlength=X.shape[1])
    rare = X.multiply(sparse.csr_matrix((df <= 20).astype(np.float32))).tocsr()
    whole, light = (X @ X.T).toarray(), (rare @ rare.T).toarray()
    i, t = np.nonzero(cut.index >= 0)
    assert len(i) > 2000
    assert (light[i, cut.index[i, t]] > 0).all()
    assert np.allclose(whole[i, cut.index[i, t]], cut.similarity[i, t], atol=1e-6)
    assert cut.recall is not None
    assert 0.05 < cut.recall < 0.95
    assert "recall" in messages[-1]
    all_of_it = nearest(X, 5, max_df=10**9)
    assert np.array_equal(all_of_it.similarity, exact.similarity)
    assert all_of_it.recall == 1.0


def test_recall_counts_ties_with_the_last_neighbor() -> None:
    exact = NeighborLists(np.array([[1, 2]], np.int32), np.array([[0.9, 0.5]]))
    ids = np.array([[-1, -1], [1, 7], [9, -1]], np.int32)
    result = NeighborLists(ids, np.array([[0, 0], [0.9, 0.5], [0.4, 0]]))
    assert recall(exact, result, np.array([1])) == 1.0
    assert recall(exact, result, np.array([2])) == 0.0


class FakeDescent:
    """Returns the vertex itself, one vertex twice, and some that are not similar."""

    def __init__(self, data: Any, **_options: Any) -> None:
        norm = np.asarray(data.power(2).sum(axis=1)).ravel()
        assert np.allclose(norm, 1, atol=1e-6)  # otherwise its cosine would differ
        n = data.shape[0]
        i = np.arange(n)
        self.neighbor_graph = (np.stack([i, (i + 1) % n, (i + 1) % n, (i + 2) % n], 1), None)


def test_approximate_search_is_rescored_and_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = SimpleNamespace(NNDescent=FakeDescent)
    monkeypatch.setitem(sys.modules, "pynndescent", module)
    X = with_ties(50, 1)
    X = sparse.csr_matrix(X / 4)
    result = nearest(X, 3, search="approximate")
    sim = (X @ X.T).toarray()
    for i in range(50):
        wanted = sorted((-sim[i, j], j) for j in ((i + 1) % 50, (i + 2) % 50) if sim[i, j] > 0)
        assert [j for j in result.index[i] if j >= 0] == [j for _, j in wanted]
    assert result.index.shape == (50, 3)
    assert result.recall is not None
    assert 0 < result.recall < 0.6


def test_approximate_search_without_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynndescent", None)  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"sslbench\[graph\]"):
        nearest(oracle(), 1, search="approximate")


@pytest.mark.slow
def test_approximate_search_by_pynndescent() -> None:
    module: ModuleType = pytest.importorskip("pynndescent", reason="pynndescent is not installed")
    assert module
    result = nearest(zipfian(2000, 7), 10, search="approximate")
    assert result.recall is not None
    assert result.recall > 0.8


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "neighbors"),
        ({"k": 1, "max_df": 1}, "max_df"),
        ({"k": 1, "search": "x"}, "'x'"),
        ({"k": 1, "max_df": 9, "search": "approximate"}, "max_df"),
    ],
)
def test_options_out_of_range(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        nearest(oracle(), **options)


# -- cost ------------------------------------------------------------------------------------------
def test_nearest_does_not_modify_its_argument() -> None:
    X = zipfian(60, 8)
    entries = np.concatenate(
        [np.arange(a, b)[::-1] for a, b in zip(X.indptr, X.indptr[1:], strict=False)]
    )
    X = sparse.csr_matrix((X.data[entries], X.indices[entries], X.indptr), X.shape)
    before = (X.data.copy(), X.indices.copy(), X.indptr.copy())
    nearest(X, 4)
    nearest(X, 4, max_df=10)
    for array, copy in zip((X.data, X.indices, X.indptr), before, strict=True):
        assert array.tolist() == copy.tolist()


def test_predicted_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    from sslbench.engine.graph import neighbors as neighbors

    cost = predicted_cost(oracle(), threads=1)
    assert cost.multiply_adds == 4 + 9 + 4 + 4 + 9
    assert cost.seconds == pytest.approx(30 / neighbors._RATE)
    assert predicted_cost(zipfian(3000)).bytes > 12 * 3000 * 60
    messages: list[str] = []
    nearest(oracle(), 2, progress=messages.append)
    assert not messages
    monkeypatch.setattr(neighbors, "_LONG", 0.0)
    nearest(oracle(), 2, progress=messages.append)
    assert "30 multiply-adds" in messages[0]


# -- edges -----------------------------------------------------------------------------------------
def test_edges_are_bit_symmetric_whatever_the_lists() -> None:
    above = np.nextafter(0.5, 1)
    lists = NeighborLists(
        np.array([[1, 0, 2], [0, -1, -1], [0, 1, -1]], np.int32),
        np.array([[0.5, 0.4, 0.3], [above, 0.0, 0.0], [0.3, -0.2, 0.0]]),
    )
    union, mutual = symmetrize(lists, 3, "union"), symmetrize(lists, 3, "mutual")
    assert union.toarray().tolist() == [[0, above, 0.3], [above, 0, 0], [0.3, 0, 0]]
    assert mutual.toarray().tolist() == [[0, 0.5, 0.3], [0.5, 0, 0], [0.3, 0, 0]]
    assert union.nnz == mutual.nnz == 4
    assert union.has_sorted_indices


def test_invalid_arguments_of_symmetrize() -> None:
    lists = nearest(oracle(), 2)
    with pytest.raises(UserError, match="3 neighbors of lists of 2"):
        symmetrize(lists, 3, "union")
    with pytest.raises(UserError, match="'both'"):
        symmetrize(lists, 2, "both")  # type: ignore[arg-type]


def test_same_lists_as_sparse_dot_topn() -> None:
    peer = pytest.importorskip("sparse_dot_topn", reason="sparse_dot_topn is not installed")
    X = zipfian(2000, 8)
    theirs = peer.sp_matmul_topn(X, X.T.tocsr(), top_n=6, sort=True, threshold=0.0)
    ours = nearest(X, 5)
    for i in range(2000):
        row = theirs.getrow(i)
        row = np.sort(row.data[row.indices != i])[::-1]  # without the vertex itself
        wanted = row[row > 0][:5]
        assert np.allclose(ours.similarity[i, : len(wanted)], wanted, atol=1e-6)
