"""Which seeds a table's rows are ranked over, and what their ranks leave open."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from sslbench.report.rows import Row
from sslbench.report.significance import LEVEL, holm

Pair = tuple[int, int]  # of places in the table, the better one first


def shared_seeds(attempted: Iterable[Collection[int]]) -> tuple[int, ...]:
    """The seeds over which most pairs of runs can be compared; attempted: seeds of each row's runs.

    Rows that have all of these seeds are ranked: the number of pairs of rows times the number of
    seeds is the largest, and among equals the number of seeds. A failed run is attempted: it costs
    the row its rank and the others nothing.
    """
    rows = [frozenset(seeds) for seeds in attempted]
    kinds = set(rows)
    candidates: set[frozenset[int]] = {a & b for a in kinds for b in kinds}
    candidates.add(frozenset.intersection(*kinds))

    def size(seeds: frozenset[int]) -> tuple[int, int, list[int]]:
        n_rows = sum(seeds <= row for row in rows)
        pairs = n_rows * (n_rows - 1) // 2
        return pairs * len(seeds), len(seeds), sorted((-seed for seed in seeds), reverse=True)

    best = max(candidates, key=size)
    return tuple(sorted(best))


def ranked(rows: Sequence[Row]) -> list[Row]:
    """Complete rows by mean, best first, then the others without a rank; equal means share one."""
    complete = sorted((r for r in rows if r.complete), key=lambda r: (-(r.mean or 0.0), r.name))
    others = sorted((r for r in rows if not r.complete), key=lambda r: r.name)
    with_rank = [
        replace(row, rank=1 + sum((other.mean or 0) > (row.mean or 0) for other in complete))
        for row in complete
    ]
    return [*with_rank, *others]


def with_groups(rows: Sequence[Row], p_values: Mapping[Pair, float]) -> list[Row]:
    """Rows with rank intervals and letters.

    p_values: p by pair, for all pairs of ranked rows; they are corrected here by Holm's method, so
        that with probability 95 % all rank intervals contain the ranks of the expected scores.
    """
    pairs = sorted(p_values)
    corrected = holm([p_values[pair] for pair in pairs])
    apart = {pair for pair, p in zip(pairs, corrected, strict=True) if p <= LEVEL}
    n = sum(row.rank is not None for row in rows)
    letters = group_letters(n, apart)
    grouped = []
    for place, row in enumerate(rows):
        if row.rank is None:
            grouped.append(row)
            continue
        low = 1 + sum(worse == place for _, worse in apart)
        high = n - sum(better == place for better, _ in apart)
        grouped.append(replace(row, rank_low=low, rank_high=high, group=letters[place]))
    return grouped


def group_letters(n: int, apart: Collection[Pair]) -> list[str]:
    """Compact letter display (H.-P. Piepho 2004): places share a letter if nothing sets them apart.

    Letters stand for the largest sets without a pair in `apart`, in the order of their first place.
    """
    groups = [frozenset(range(n))]
    for a, b in sorted(apart):
        split = []
        for group in groups:
            split += [group - {a}, group - {b}] if {a, b} <= group else [group]
        unique = list(dict.fromkeys(split))
        groups = [group for group in unique if not any(group < other for other in unique)]
    ordered = sorted(filter(None, groups), key=sorted)
    return ["".join(_letter(i) for i, group in enumerate(ordered) if p in group) for p in range(n)]


def _letter(index: int) -> str:
    return chr(ord("a") + index) if index < 26 else f"[{index}]"


def pairs_of(n: int) -> list[Pair]:
    """All pairs of the first `n` places."""
    return list(combinations(range(n), 2))
