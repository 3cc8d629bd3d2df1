"""Distances of images of letters, against assignments and flows of all pixels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from sslbench_datasets.letters.emd import at_least, emd
from sslbench_datasets.letters.similarity import image_bits
from support.letter_oracle import (
    COLUMNS,
    GROUND,
    ROWS,
    by_assignment,
    by_flow,
    image_of,
    random_images,
)

# -- distances -------------------------------------------------------------------------------------


def test_g14() -> None:
    P, Q = image_of((0, 0), (0, 1)), image_of((0, 1), (2, 1), (5, 5))
    for a, b in ((P, Q), (Q, P)):
        E = emd(image_bits([a]), image_bits([b]))[0]
        np.testing.assert_allclose(E, 5.2360679775, rtol=0, atol=1e-10)
        assert math.exp(-E / 100) == pytest.approx(0.9489865249, abs=1e-10)


def test_identical_images_are_at_no_distance() -> None:
    bits = image_bits(random_images(np.random.default_rng(0), 20))
    assert not emd(bits, bits).any()


@pytest.mark.parametrize(
    ("a", "b", "want"),
    [
        ([], [], 0.0),
        ([], [(3, 3)], 3.0),
        ([(0, 0)], [(0, 0), (9, 7), (15, 0)], 6.0),  # nothing of the first left
        ([(7, 3)], [(8, 3)], 1.0),  # across the two words
        ([(6, 3)], [(8, 4)], math.sqrt(5)),
        ([(7, 0)], [(9, 2)], math.sqrt(8)),
        ([(7, 0)], [(7, 3)], 3.0),
        ([(4, 7)], [(5, 0)], 3.0),  # no way round the edge of a row
        ([(4, 6)], [(5, 0)], 3.0),
        ([(0, 0)], [(15, 0)], 3.0),
        # the middle one must leave its nearest to the other
        ([(0, 1), (0, 3)], [(0, 2), (0, 5)], 1.0 + 2.0),
        ([(0, 2), (2, 2)], [(1, 2), (0, 0)], 1.0 + 2.0),
    ],
)
def test_distances_by_hand(a: Any, b: Any, want: float) -> None:
    P, Q = image_bits([image_of(*a)]), image_bits([image_of(*b)])
    assert emd(P, Q)[0] == pytest.approx(want, abs=1e-12)
    assert emd(Q, P)[0] == emd(P, Q)[0]


def random_pairs(n: int) -> tuple[Any, Any]:
    """bool[n, 128] twice, from nearly empty to nearly full, of unequal mass."""
    rng = np.random.default_rng(3)
    share = rng.random((n, 2)) ** 2
    return tuple(rng.random((n, ROWS * COLUMNS)) < share[:, i, None] for i in range(2))  # type: ignore[return-value]


def bits_of(lit: Any) -> Any:
    return image_bits([np.packbits(row).tobytes().hex() for row in lit])


def test_distances_are_those_of_the_assignment_of_all_pixels() -> None:
    P, Q = random_pairs(400)
    found = emd(bits_of(P), bits_of(Q))
    want = [by_assignment(p, q) for p, q in zip(P, Q, strict=True)]
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(emd(bits_of(Q), bits_of(P)), found)  # the same bits


def test_distances_are_those_of_the_cheapest_flow() -> None:
    P, Q = random_pairs(25)
    found = emd(bits_of(P), bits_of(Q))
    want = [by_flow(p, q) for p, q in zip(P, Q, strict=True)]
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-7)


def test_bounds_are_the_way_to_the_nearest_and_never_above() -> None:
    P, Q = random_pairs(200)
    P, Q = P & ~Q, Q & ~P
    E = emd(bits_of(P), bits_of(Q))
    for p, q, a, b, e in zip(P, Q, bits_of(P), bits_of(Q), E, strict=True):
        n, m = p.sum(), q.sum()
        there = GROUND[p][:, q].min(axis=1, initial=3.0).sum() + 3 * max(0, m - n)
        back = GROUND[q][:, p].min(axis=1, initial=3.0).sum() + 3 * max(0, n - m)
        found = at_least(a[0], a[1], b[0], b[1])
        assert found == pytest.approx(max(there, back), abs=1e-10)
        assert found <= e + 1e-10


def test_shapes_that_do_not_match_are_refused() -> None:
    bits = image_bits(["0" * 32] * 2)
    with pytest.raises(ValueError, match="uint64"):
        emd(bits, bits[:1])
