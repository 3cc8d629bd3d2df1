"""Which weights each token adds up, in the order in which the kernels read them.

They are the same for all evaluations of a training, so they are prepared once: absent attributes
are left out, and everything is stored token by token, so that the kernels sum the scores of a token
in registers.  Within a token the slots keep their order.  The slots are cut into *shares* of about
equal work that have no attribute in common, as many as there are threads.  Each thread adds up the
gradient of its share.  That takes no atomic operations and no copies of the gradient per thread;
and each weight gets its occurrences in token order, so results have the same bits for any number of
threads.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from sslbench.engine.compilation.compiled import chunks, kernel, parallel_kernel
from sslbench.engine.compilation.threads import number_of_threads
from sslbench.engine.crf.data import slot_groups
from sslbench.engine.crf.weights.rowtable import RowTable
from sslbench.engine.types import I16, I32, I64

CHUNK = 1024  # tokens of a task
BLOCK = 256


class Occurrences(NamedTuple):
    """Weights of N tokens, share by share; rows and lists as in `RowTable`.

    row_border: int32[N * shares + 1]: share g of token n has the dense rows row[e] for e from
    row_border[n * shares + g] up to the next border.
    list_border: int32[N * shares + 1], likewise for lists, but share by share: from
    list_border[g * N + n] up to the next border.  item[e] is the position of the first weight of a
    list and extra[e] the length of the list.  If lists are spelled out: item[e] is the position of
    one weight and extra[e] its cell in a block of tokens, (n % BLOCK) * width + column.
    """

    row_border: I32
    row: I32
    list_border: I32
    item: I32
    extra: I32
    shares: int

    @classmethod
    def build(
        cls,
        ids: I32,
        number: I32 | None,
        table: RowTable | None,
        *,
        spelled: bool,
        shares: int | None = None,
    ) -> Occurrences:
        """ids: int32[S, N] attributes; number: int32[A + 1] their codes in the table, None = the
        ids themselves; table: None = there are no lists.

        spelled: spell lists out, which is faster for lists of one or two weights. shares: None = as
        many as threads.
        Raises ValueError if there are more than 2^31 - 1 occurrences.
        """
        shares = shares or number_of_threads()
        slots = share_borders(ids, shares)
        codes = np.empty(0, np.int32) if number is None else number
        start = np.zeros(1, np.int64) if table is None else table.list_start
        column: I16 | I32 = np.empty(0, np.int16) if table is None else table.list_column
        width = table.width if table is not None and spelled else 0
        rows, lists = (np.zeros(ids.shape[1] * shares + 1, np.int32) for _ in range(2))
        _count(ids, codes, slots, start, spelled, rows, lists)
        for border in (rows, lists):
            total = np.cumsum(border, dtype=np.int64)
            if total[-1] > np.iinfo(np.int32).max:
                raise ValueError(f"{total[-1]:,} occurrences in one piece of text; cut it")
            border[:] = total
        row, item, extra = (np.empty(n, np.int32) for n in (rows[-1], lists[-1], lists[-1]))
        occurrences = cls(rows, row, lists, item, extra, shares)
        _fill(ids, codes, slots, start, column, width, occurrences)
        return occurrences


def share_borders(ids: I32, shares: int) -> I32:
    """Return int32[shares + 1], borders of runs of slots of ids int32[S, N] with about equal work.

    Slots that share attributes (those of a bag) stay together.
    """
    order, groups = slot_groups(ids)
    work = np.zeros(ids.shape[0] + 1, np.int64)
    work[1:] = np.cumsum((ids >= 0).sum(axis=1))
    free = np.ones(len(work), np.bool_)  # may a border stand before this slot?
    for lo, hi in pairwise(groups):
        members = order[lo:hi]
        free[members.min() + 1 : members.max() + 1] = False
    places = np.flatnonzero(free)
    wanted = work[-1] * np.arange(1, shares) / shares
    inner = places[np.abs(work[places][:, None] - wanted).argmin(axis=0)]
    return np.concatenate([[0], inner, [ids.shape[0]]]).astype(np.int32)


@kernel
def _code(ids: I32, number: I32, s: int, n: int) -> int:
    """Code of slot s at token n; an empty `number` means the ids themselves."""
    i: int = ids[s, n]
    code: int = i if number.shape[0] == 0 else number[i]
    return code


@parallel_kernel(lambda ids, *_: chunks(ids.shape[1], CHUNK))
def _count(
    begin: int,
    end: int,
    ids: I32,
    number: I32,
    slots: I32,
    list_start: I64,
    spelled: bool,
    n_rows: I32,
    n_lists: I32,
) -> None:
    """n_rows[n * G + g + 1], n_lists[g * N + n + 1] += dense rows, lists of share g at token n.

    slots: int32[G + 1] borders of the shares; spelled: count the weights of the lists instead.
    """
    G, N = slots.shape[0] - 1, ids.shape[1]
    for n in range(begin * CHUNK, min(N, end * CHUNK)):
        for g in range(G):
            for s in range(slots[g], slots[g + 1]):
                i = _code(ids, number, s, n)
                if i >= 0:
                    n_rows[n * G + g + 1] += 1
                elif i < -1:
                    size = list_start[-1 - i] - list_start[-2 - i]
                    n_lists[g * N + n + 1] += size if spelled else min(size, 1)


@parallel_kernel(lambda ids, *_: chunks(ids.shape[1], CHUNK))
def _fill(
    begin: int,
    end: int,
    ids: I32,
    number: I32,
    slots: I32,
    list_start: I64,
    list_column: I16 | I32,
    width: int,
    out: Occurrences,
) -> None:
    """Fill in row, item and extra; the borders of `out` are known.

    width: number of columns if lists are spelled out, else 0.
    """
    row, item, extra = out.row, out.item, out.extra
    N = ids.shape[1]
    for n in range(begin * CHUNK, min(N, end * CHUNK)):
        r, cell = out.row_border[n * out.shares], n % BLOCK * width
        for g in range(out.shares):
            p = out.list_border[g * N + n]
            for s in range(slots[g], slots[g + 1]):
                i = _code(ids, number, s, n)
                if i >= 0:
                    row[r] = i
                    r += 1
                elif i < -1:
                    first, last = list_start[-2 - i], list_start[-1 - i]
                    if width > 0:
                        for k in range(first, last):
                            item[p], extra[p] = k, cell + list_column[k]
                            p += 1
                    elif first < last:
                        item[p], extra[p] = first, last - first
                        p += 1
