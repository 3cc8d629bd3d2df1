"""Bundles: attributes that many tokens share are added up once per evaluation, not once per token.

Templates that look at one position depend on the word there alone, so that all tokens of a word
share these attributes.  The slots are divided into groups.  A *bundle* is what the slots of a group
hold at some token.  Where it comes often enough, its weights are summed once, and each of its
tokens adds a single row.  Gradients go the same way back: slopes are added up by bundle, then
spread to its attributes.  This is exact up to rounding.

The two groups that save most by being one are joined, as long as any do, judged by a sample of the
text.  Nothing here depends on the number of threads.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np

from sslbench.engine.compilation.compiled import kernel
from sslbench.engine.crf.weights.occurrences import Occurrences, share_borders
from sslbench.engine.crf.weights.rowtable import RowTable
from sslbench.engine.types import I32, AnyArray

#: a shorter text has no bundles, since looking for them would take longer than they save
FEWEST_TOKENS = 20_000
#: tokens that the groups are chosen by
SAMPLE = 2048
#: costs in operations on registers: a weight of a list; a register from beyond the second-level
#: cache, where the last 400 tokens are
OF_LIST, COLD, CACHED = 5, 4, 400
#: seed of the random 64-bit keys of attributes; the key of a bundle is their sum.  Two different
#: bundles have the same key with probability 2^-64.
KEY_SEED = 0xB0D1E


# read by kernels
class TokenSums(NamedTuple):
    """What N tokens add up: bundles, and attributes of their own.

    bundle: int32[N, G] rows of the table of sums, of which the last one, of zeros, stands for none.
    cut: int32[shares + 1]: share g has columns cut[g] up to cut[g + 1] of `bundle`.
    The other arrays are those of `Occurrences`.
    """

    bundle: I32
    cut: I32
    row_border: I32
    row: I32
    list_border: I32
    item: I32
    extra: I32
    shares: int

    @classmethod
    def of(cls, bundles: I32, count: int, own: Occurrences) -> TokenSums:
        """bundles: int32[G, N], below count; -1 = none."""
        present = np.where(bundles < 0, np.int32(count), bundles)
        return cls(np.ascontiguousarray(present.T), share_borders(bundles, own.shares), *own)


class Bundled(NamedTuple):
    """What N tokens add up. members: what each of B bundles adds up, without bundles of its own."""

    tokens: TokenSums
    members: TokenSums
    n_bundles: int

    @classmethod
    def build(
        cls,
        ids: I32,
        number: I32 | None,
        table: RowTable | None,
        width: int,
        *,
        spelled: bool,
        reused: bool,
    ) -> Bundled:
        """width: of a row; the other arguments are those of `Occurrences.build`.

        reused: the sums will be taken many times. There are no bundles otherwise.
        """
        slots, n = ids.shape
        bundle, members = np.empty((0, n), np.int32), np.empty((slots, 0), np.int32)
        if reused and n >= FEWEST_TOKENS:
            ids, bundle, members = _bundle(ids, *_keys_and_costs(ids, number, table, width))
        own, inner = (Occurrences.build(x, number, table, spelled=spelled) for x in (ids, members))
        count = members.shape[1]
        none = np.empty((0, count), np.int32)
        return cls(TokenSums.of(bundle, count, own), TokenSums.of(none, 0, inner), count)


def _keys_and_costs(
    ids: I32, number: I32 | None, table: RowTable | None, width: int
) -> tuple[AnyArray, I32, int]:
    """uint64[A + 1] and int32[A + 1]: keys and costs of attributes, 0 for one without weights; and
    the cost of a dense row in the cache.
    """
    code = number
    if code is None:
        code = np.append(np.arange(ids.max(initial=-1) + 1, dtype=np.int32), np.int32(-1))
    row, is_list = -(-width // 8), code < -1
    cost = np.where(code >= 0, row, 0).astype(np.int32)
    far = np.where(is_list, 2, cost) * COLD  # a list is in one line of the cache or two
    if table is not None:
        cost[is_list] = OF_LIST * np.diff(table.list_start)[-2 - code[is_list]]
    times = np.zeros(len(code), np.int64)
    for slot in ids:
        times += np.bincount(slot + 1, minlength=len(code))
    rare = np.append(times[1:] * CACHED < ids.shape[1], False)
    cost[rare] += far[rare].astype(np.int32)
    key = np.random.default_rng(KEY_SEED).integers(1, 2**64, len(code), dtype=np.uint64)
    key[code == -1] = 0
    return key, cost, row


def _bundle(ids: I32, key: AnyArray, cost: I32, row: int) -> tuple[I32, I32, I32]:
    """ids int32[S, N] less what is in bundles; int32[G, N] the bundle of each group at each token,
    -1 = none; int32[S, B] the attributes of each bundle.
    """
    own = ids.copy()
    bundles, members = [np.empty((0, ids.shape[1]), np.int32)], [np.empty((len(ids), 0), np.int32)]
    count = 0
    for group in _groups(ids[:, :SAMPLE], ids.shape[1] / SAMPLE, key, cost, row):
        slots = np.array(group)
        kinds, first = _distinct(sum(key[ids[s]] for s in slots))
        work = sum(cost[ids[s, first]] for s in slots)
        times = np.bincount(kinds)
        shared = row + np.where(times * CACHED < ids.shape[1], COLD * row, 0)
        pays = times * (row + work - shared) > work + shared  # no bundle costs a row of zeros
        chosen = np.flatnonzero(pays)
        chosen = chosen[np.argsort(-times[chosen], kind="stable")]  # the frequent ones side by side
        number = np.full(len(first), -1, np.int32)
        number[chosen] = np.arange(count, count + len(chosen))
        bundles.append(number[kinds][None])
        own[np.ix_(slots, bundles[-1][0] >= 0)] = -1
        inner = np.full((len(ids), len(chosen)), -1, np.int32)
        inner[slots] = ids[np.ix_(slots, first[chosen])]
        members.append(inner)
        count += len(chosen)
    return own, np.concatenate(bundles), np.concatenate(members, axis=1)


def _groups(sample: I32, scale: float, key: AnyArray, cost: I32, row: int) -> list[list[int]]:
    """Slots of each group of more than one. scale: tokens of the text for each of the sample."""
    slots = {s: [s] for s in range(len(sample)) if cost[sample[s]].any()}
    keys, work = {s: key[sample[s]] for s in slots}, {s: cost[sample[s]] for s in slots}
    total = {s: float(work[s].sum()) for s in slots}

    def saved(a: int, b: int) -> float:
        joined = _cost(keys[a] + keys[b], work[a] + work[b], row, max(1.0, scale))
        return total[a] + total[b] - joined

    gain = {(a, b): saved(a, b) for a, b in combinations(slots, 2)}
    while gain:
        a, b = max(gain, key=lambda pair: gain[pair])
        if gain[a, b] <= 0.0:
            break
        new = max(slots) + 1
        total[new] = total.pop(a) + total.pop(b) - gain[a, b]
        for parts in (slots, keys, work):
            parts[new] = parts.pop(a) + parts.pop(b)
        gain = {pair: x for pair, x in gain.items() if not {a, b} & set(pair)}
        gain |= {(x, new): saved(x, new) for x in slots if x != new}
    return [group for group in slots.values() if len(group) > 1]


@kernel
def _distinct(keys: AnyArray) -> tuple[I32, I32]:
    """Number of each key, in order of first occurrence, int32[n]; where each number is first."""
    n = keys.shape[0]
    size = 4
    while size < 2 * n:
        size *= 2
    table, number, first = np.full(size, -1, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    count = 0
    for i in range(n):
        place = np.int64(keys[i] & np.uint64(size - 1))
        while table[place] >= 0 and keys[first[table[place]]] != keys[i]:
            place = (place + 1) % size
        if table[place] < 0:
            table[place], first[count] = count, i
            count += 1
        number[i] = table[place]
    return number, first[:count]


@kernel
def _cost(keys: AnyArray, work: I32, row: int, scale: float) -> float:
    """Cost of the tokens of a sample, when what pays is in bundles.

    keys, work: of what a group holds at each token.  What occurs once is taken to be rare.
    """
    number, first = _distinct(keys)
    n = number.shape[0]
    times = np.zeros(first.shape[0])
    for i in range(n):
        times[number[i]] += 1.0
    total = 0.0
    for i in range(n):
        f = times[number[i]]
        own = row + (COLD * row if f * CACHED < n else 0)
        shared = own + (work[i] + own) / (f * scale) if f > 1.0 else np.inf
        total += min(float(work[i] + row), shared)  # no bundle costs a row of zeros
    return total
