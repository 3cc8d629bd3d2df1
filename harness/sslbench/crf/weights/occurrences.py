"""Which weights each token of a corpus adds up, in the order in which the kernels read them.

The same for all evaluations of a training, so it pays to prepare it: absent attributes are left
out, and everything lies token by token, so that the scores of a
token are summed in registers.  Within a token the slots keep their order; they are cut into as
many shares of about equal work as there are threads, which have no attribute in common.  A thread
adds up the gradient of its share: no atomics, no copies per thread, and, since each weight gets its
occurrences in token order, the same bits for any number of threads.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numba import get_num_threads

from sslbench.crf.data import slot_groups
from sslbench.crf.weights import scores
from sslbench.crf.weights.rowtable import RowTable
from sslbench.types import I16, I32


class Occurrences(NamedTuple):
    """Entries of N tokens, in shares; the kernels take the fields in this order.

    row_border int32[N * shares + 1]: share g of token n has the dense rows row[e], e from
    row_border[n * shares + g] up to the next border; list_border the same for lists, each the
    position of its first weight (item) and its length (extra), or, spelled out, for single weights,
    each its position and its column.
    """

    row_border: I32
    row: I32
    list_border: I32
    item: I32
    extra: I16
    shares: int

    @classmethod
    def build(
        cls, ids: I32, number: I32 | None, table: RowTable | None, *, spelled: bool
    ) -> Occurrences:
        """ids int32[S, N] attributes; number int32[A + 1] their codes in the table.

        number None = the ids themselves; table None = no lists; spelled: spell lists out (short
        ones of one or two weights, which would cost more to look up than to read).
        """
        shares = get_num_threads()
        slots = share_borders(ids, shares)
        codes = np.empty(0, np.int32) if number is None else number
        start = np.zeros(1, np.int64) if table is None else table.list_start
        column = np.empty(0, np.int16) if table is None else table.list_column
        rows, lists = (np.zeros(ids.shape[1] * shares + 1, np.int32) for _ in range(2))
        scores.count_entries(ids, codes, slots, start, spelled, rows, lists)
        for border in (rows, lists):
            total = np.cumsum(border, dtype=np.int64)
            if total[-1] > np.iinfo(np.int32).max:
                raise ValueError(f"{total[-1]:,} occurrences in one piece of text; cut it")
            border[:] = total
        found = cls(
            rows,
            np.empty(rows[-1], np.int32),
            lists,
            np.empty(lists[-1], np.int32),
            np.empty(lists[-1], np.int16),
            shares,
        )
        scores.fill_entries(ids, codes, start, column, spelled, *found)
        return found


def share_borders(ids: I32, shares: int) -> I32:
    """Cut the slots into runs of about equal work: borders int32[shares + 1].

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
