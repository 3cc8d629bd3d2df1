"""The k most similar vertices of every vertex.

The similarity is the dot product of two rows. Rows are vectors divided by their norms; a row of
norm below 1 lacks columns that no other row has. Only similarities above 0 count.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy import sparse

from sslbench.engine.checked import Saved, check_array, check_borders, vector
from sslbench.engine.compilation.threads import number_of_threads, using_threads
from sslbench.engine.errors import UserError
from sslbench.engine.graph import neighbor_kernels as kernels
from sslbench.engine.graph.options import Progress, silent
from sslbench.engine.spread import Pass, is_shared, over
from sslbench.engine.types import F32, F64, I32, I64, Arrays

Matrix: TypeAlias = "sparse.csr_matrix[Any] | sparse.csr_array[Any]"

CANDIDATES = 300
"""With `max_df`, the full similarity is computed for so many of the most similar vertices, or k."""

SAMPLE = 1000
"""Number of rows on which the recall of an inexact search is measured."""

_DENSE = 4  # a column with at least V / 4 rows is added as a dense vector
_MOST_DENSE = 32  # dense columns, of 4 V bytes each
_TILE = 8192  # sums per tile, 64 kB
# the search of a row by its columns in turn stops at V / 4 multiply-adds where V sums fit into the
# second-level cache, else at V / 16: in tiles they are near, but all V of them are read
_CACHED, _BUDGET, _BUDGET_BEYOND = 2**17, 4, 16
BLOCK = 2**15  # rows that a worker does at a time
_RATE = 3e8  # multiply-adds per second and thread of an exact search, measured
_LONG = 10.0  # seconds from which on the predicted cost is reported


@dataclass(frozen=True)
class NeighborLists:
    """The k most similar vertices, best first, the smaller index first among equals.

    index: int32[V, k], padded with -1. similarity: float64[V, k], padded with 0.
    recall: share of the exact neighbors that an inexact search found, on a sample of rows.
    """

    index: I32
    similarity: F64
    recall: float | None = None

    def check(self, vertices: int) -> None:
        """ValueError unless these are lists of so many vertices, with finite similarities."""
        check_array(self.index, "neighbors", np.int32, (vertices, None), (-1, vertices))
        check_array(self.similarity, "similarities", np.float64, self.index.shape)
        if not np.isfinite(self.similarity).all():
            raise ValueError("a similarity is not finite")


@dataclass(frozen=True)
class Cost:
    """Upper bounds on the cost of an exact search: multiply-adds, seconds, bytes."""

    multiply_adds: int
    seconds: float
    bytes: int

    def __str__(self) -> str:
        return (
            f"up to {self.multiply_adds:.2g} multiply-adds, {self.seconds:,.0f} s,"
            f" {self.bytes / 2**20:,.0f} MB"
        )


def predicted_cost(X: Matrix, threads: int | None = None, k: int = 60) -> Cost:
    """Upper bound on the cost of `nearest(X, k)`, from the sum of df^2 over columns of df > 1."""
    df = np.bincount(X.indices, minlength=X.shape[1]).astype(np.int64)
    shared = df[df > 1]
    adds = int(np.sum(shared * shared))
    threads = threads or number_of_threads()
    n = X.shape[0]
    dense = min(_MOST_DENSE, int(np.sum(shared * _DENSE >= n)))
    size = 40 * int(shared.sum()) + 12 * n * (k + threads) + 4 * n * dense
    return Cost(adds, adds / (_RATE * threads), size)


def nearest(
    X: Matrix,
    k: int,
    *,
    max_df: int | None = None,
    search: Literal["exact", "approximate"] = "exact",
    threads: int | None = None,
    progress: Progress = silent,
) -> NeighborLists:
    """The k nearest neighbors of every row by dot product.

    The result does not depend on the number of threads.

    Parameters
    ----------
    X: float32 CSR [V, F]; rows of norm 1, or less if columns of one row alone are left out.
    max_df: only columns with at most so many rows produce candidates; the similarities of the best
        CANDIDATES (or k) of them are over all columns. This changes the lists, see `recall`.
    search: "approximate" uses pynndescent; similarities are exact, the lists may lack neighbors.
    progress: reports the predicted cost of a long search and the recall of an inexact one.

    Raises
    ------
    UserError: numbers out of range, or pynndescent is not installed. ValueError: X is no valid CSR
    matrix, or an entry is not finite.
    """
    X.check_format(full_check=True)
    if not np.isfinite(X.data).all():
        raise ValueError("a value of a context vector is not finite")
    _check(X, k, max_df, search)
    index, df = build_index(X)
    rows = np.arange(X.shape[0])
    with using_threads(threads):
        if search == "approximate":
            lists = _approximate(X, index, k, progress)
        elif max_df is not None:
            lists = _cut(index, df, rows, k, max_df)
        else:
            cost = predicted_cost(X, threads, k)
            if cost.seconds > _LONG:
                progress(f"neighbors of {X.shape[0]:,} vertices: {cost}")
            found = list(over(NeighborPass(index, k), Rows(len(rows))))
            parts = [(np.empty((0, k), np.int32), np.empty((0, k)))]
            parts += [(each.index, each.similarity) for each in found]
            ids, sims = map(np.concatenate, zip(*parts, strict=True))
            return NeighborLists(ids, sims)
        share = _sample_recall(index, lists)
    progress(f"recall of the {k} neighbors on {min(SAMPLE, X.shape[0]):,} vertices: {share:.3f}")
    return replace(lists, recall=share)


def _check(X: Matrix, k: int, max_df: int | None, search: str) -> None:
    if k < 1:
        raise UserError(f"{k} neighbors per vertex", hint="use 1 or more")
    if max_df is not None and max_df < 2:
        raise UserError(f"max_df = {max_df} leaves no shared feature", hint="use 2 or more")
    if search not in ("exact", "approximate"):
        raise UserError(f"no neighbor search {search!r}", hint='"exact" or "approximate"')
    if search == "approximate" and max_df is not None:
        raise UserError("max_df needs the exact search", hint="leave one of the two out")
    if X.shape[0] >= 2**31:
        raise UserError(f"{X.shape[0]:,} vertices are too many", hint="the limit is 2^31")


def build_index(X: Matrix) -> tuple[kernels.Index, I64]:
    """Rows and posting lists of the columns of df > 1, by ascending df; and int64[columns], the df.

    Columns of equal df keep their order in X. Products are summed in the order of columns.
    """
    matrix = sparse.csr_matrix(X, dtype=np.float32, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    df = np.bincount(matrix.indices, minlength=matrix.shape[1]).astype(np.int64)
    order = np.argsort(df, kind="stable")
    order = order[df[order] > 1]
    number = np.full(matrix.shape[1], -1, np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    column = number[matrix.indices]
    shared = column >= 0
    ptr = np.concatenate(([0], np.cumsum(shared)))[matrix.indptr].astype(np.int64)
    rows = sparse.csr_matrix(
        (matrix.data[shared], column[shared], ptr), shape=(matrix.shape[0], len(order))
    )
    rows.sort_indices()
    lists = rows.tocsc()
    high, low = _extremes(lists)
    column, value = rows.indices.astype(np.int32), rows.data
    index = kernels.Index(
        ptr,
        column,
        value,
        lists.indptr.astype(np.int64),
        lists.indices.astype(np.int32),
        lists.data,
        high,
        low,
        kernels.tail_norms(ptr, column, value, len(order)),
    )
    return index, df[order]


def _extremes(lists: Any) -> tuple[F64, F64]:
    """Largest and smallest value of every column, 0 included."""
    if not lists.shape[1]:
        return np.zeros(0), np.zeros(0)
    starts = lists.indptr[:-1]
    high = np.maximum(np.maximum.reduceat(lists.data, starts), 0.0)
    low = np.minimum(np.minimum.reduceat(lists.data, starts), 0.0)
    return high.astype(np.float64), low.astype(np.float64)


def exact_rows(index: kernels.Index, rows: I64, k: int, *, prune: bool = True) -> NeighborLists:
    """Exact neighbors of some rows; `prune` affects the speed only."""
    n = len(index.ptr) - 1
    lists = _lists(rows, k)
    sizes = np.full(len(rows), -1, np.int32)
    floors = np.full(len(rows), kernels.POSITIVE)
    if prune:
        budget = n // (_BUDGET if n <= _CACHED else _BUDGET_BEYOND)
        kernels.search_rare(index, lists, budget, sizes, floors)
    left = np.flatnonzero(sizes < 0)
    if len(left):
        some = _lists(rows[left], k)
        kernels.search_full(index, some, floors[left], *_dense_columns(index), _TILE)
        lists.sims[left], lists.ids[left] = some.sims, some.ids
    return NeighborLists(lists.ids, lists.sims)


@dataclass(frozen=True)
class Rows:
    """Blocks of rows as units of a pass, a single one where it is not shared out."""

    count: int
    key: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def block(self) -> int:
        return BLOCK if is_shared() else max(self.count, 1)

    @property
    def several(self) -> bool:
        return self.count > self.block

    def get(self, number: int) -> I64 | None:
        """Return the rows of a block, int64; None after the last one."""
        begin = number * self.block
        return (
            None if begin >= self.count else np.arange(begin, min(self.count, begin + self.block))
        )


@dataclass(frozen=True)
class NeighborPass(Pass[I64, NeighborLists]):
    """The exact neighbors of blocks of rows."""

    index: kernels.Index
    k: int

    def run(self, unit: I64) -> NeighborLists:
        check_array(unit, "rows", np.int64, (None,), (0, len(self.index.ptr) - 1))
        return exact_rows(self.index, unit, self.k)

    def packed(self) -> Saved:
        return dict(self.index._asdict()), {"k": self.k}

    @classmethod
    def unpacked(cls, arrays: Arrays, facts: dict[str, Any]) -> NeighborPass:
        n, columns = len(arrays["ptr"]) - 1, len(arrays["start"]) - 1
        for name, end, limit in (("ptr", "column", columns), ("start", "row", n)):
            entries = vector(arrays, end, np.int32, None, (0, limit))
            check_borders(arrays[name], name, len(entries))
        size = len(arrays["column"])
        for name in ("value", "weight"):
            vector(arrays, name, np.float32, size)
        for name, length in (("high", columns), ("low", columns), ("tail", columns + 1)):
            vector(arrays, name, np.float64, length)
        return cls(kernels.Index(**arrays), int(facts["k"]))

    @staticmethod
    def pack_unit(unit: I64) -> Saved:
        return {"rows": unit}, {}

    @staticmethod
    def unpack_unit(arrays: Arrays, facts: dict[str, Any]) -> I64:
        return arrays["rows"]

    def pack_result(self, result: NeighborLists) -> Arrays:
        return {"index": result.index, "similarity": result.similarity}

    def unpack_result(self, arrays: Arrays) -> NeighborLists:
        return NeighborLists(arrays["index"], arrays["similarity"])


def _lists(rows: I64, k: int) -> kernels.Lists:
    return kernels.Lists(rows, np.zeros((len(rows), k)), np.full((len(rows), k), -1, np.int32))


def _dense_columns(index: kernels.Index) -> tuple[int, F32]:
    """The first of the dense columns, and float32[dense columns, V]."""
    df = np.diff(index.start)
    n = len(index.ptr) - 1
    first = max(int(np.searchsorted(df * _DENSE, n)), len(df) - _MOST_DENSE)
    dense = np.zeros((len(df) - first, n), np.float32)
    for h in range(len(df) - first):
        entries = slice(index.start[first + h], index.start[first + h + 1])
        dense[h, index.row[entries]] = index.weight[entries]
    return first, dense


def _cut(index: kernels.Index, df: I64, rows: I64, k: int, max_df: int) -> NeighborLists:
    lists = _lists(rows, k)
    columns = int(np.searchsorted(df, max_df, side="right"))
    kernels.search_cut(index, lists, columns, max(CANDIDATES, k))
    return NeighborLists(lists.ids, lists.sims)


def _approximate(X: Matrix, index: kernels.Index, k: int, progress: Progress) -> NeighborLists:
    try:
        from pynndescent import NNDescent
    except ImportError as error:
        raise UserError(
            "the approximate neighbor search needs pynndescent",
            hint="pip install 'sslbench[graph]', or use the exact search",
        ) from error
    progress(f"approximate neighbors of {X.shape[0]:,} vertices by pynndescent")
    n = X.shape[0]
    searched = NNDescent(
        _unit_rows(X),
        metric="cosine",
        n_neighbors=min(2 * k + 1, n),
        random_state=0,
        compressed=True,
    )
    ids = np.sort(searched.neighbor_graph[0].astype(np.int32), axis=1)
    ids[:, 1:][ids[:, 1:] == ids[:, :-1]] = -1
    sims = np.zeros(ids.shape)
    kernels.similarities(index, np.arange(n), ids, sims)
    return _sorted_lists(ids, sims, k)


def _unit_rows(X: Matrix) -> sparse.csr_matrix[Any]:
    """X with one more column per row that makes its norm 1, so that cosine = dot product."""
    # A copy, because scipy would sort the indices of X in place without its data.
    square = np.asarray(
        sparse.csr_matrix(X, dtype=np.float64, copy=True).power(2).sum(axis=1)
    ).ravel()
    rest = np.sqrt(np.maximum(0.0, 1.0 - square))
    return sparse.csr_matrix(sparse.hstack([X, sparse.diags(rest)]), dtype=np.float32)


def _sorted_lists(ids: I32, sims: F64, k: int) -> NeighborLists:
    """Sorted lists of length k: best first, the smaller index first, similarities above 0 only."""
    ids = np.where(sims > 0, ids, np.int32(-1))
    order = np.lexsort((ids, -sims), axis=1)[:, :k]
    ids, sims = np.take_along_axis(ids, order, 1), np.take_along_axis(sims, order, 1)
    missing = ((0, 0), (0, k - ids.shape[1]))
    return NeighborLists(
        np.pad(ids, missing, constant_values=-1), np.pad(np.where(ids >= 0, sims, 0.0), missing)
    )


def _sample_recall(index: kernels.Index, lists: NeighborLists) -> float:
    n, k = lists.index.shape
    rows = np.sort(np.random.default_rng(0).permutation(n)[:SAMPLE])
    return recall(exact_rows(index, rows, k), lists, rows)


def recall(exact: NeighborLists, lists: NeighborLists, rows: I64) -> float:
    """Share of the exact neighbors of `rows` that are in the lists of the same rows.

    A neighbor as similar as the last exact one counts as exact. `exact` has one row per entry of
    `rows`, `lists` one per vertex. 1 when there are no neighbors at all.
    """
    wanted = np.sum(exact.index >= 0, axis=1)
    last = np.take_along_axis(exact.similarity, np.maximum(wanted - 1, 0)[:, None], 1)
    similar = (lists.index[rows] >= 0) & (lists.similarity[rows] >= last)
    hits = np.minimum(np.sum(similar, axis=1), wanted)
    return float(hits.sum() / wanted.sum()) if wanted.sum() else 1.0
