"""Parts of a block: everything comes back, and damaged or hostile bytes are refused."""

from __future__ import annotations

import base64
import lzma
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sslbench.experiment.records import packing
from sslbench.experiment.records.packing import Block, DamageError
from sslbench.experiment.records.predictions import Predictions

NUMBERS = st.one_of(st.integers(0, 300), st.integers(-(2**62), 2**62))


@st.composite
def trees(draw: st.DrawFn) -> dict[str, Any]:
    splits = draw(st.lists(st.sampled_from(["test", "dev"]), unique=True))
    tree: dict[str, Any] = {"run_id": draw(st.text(max_size=3)), "counts": {}, "predictions": {}}
    for split in splits:
        n = draw(st.integers(0, 5))
        names = draw(st.lists(st.sampled_from(["n_tokens", "gold_chunks", "x"]), unique=True))
        columns = st.lists(NUMBERS, min_size=n, max_size=n)
        tree["counts"][split] = {name: draw(columns) for name in names}
        labels = draw(st.lists(st.text(max_size=2), min_size=1, max_size=300))
        codes = draw(st.lists(st.integers(0, len(labels) - 1), max_size=9))
        packed = Predictions.pack(labels, np.array(codes, np.int32)).packed
        if draw(st.booleans()):  # as another zlib might have done it
            raw = np.array(codes, "<i2").tobytes()
            packed = base64.b64encode(zlib.compress(raw, 0)).decode()
        tree["predictions"][split] = {"labels": labels, "packed": packed}
    return tree


def unpacked(raw: dict[packing.Part, bytes], n: int) -> list[dict[str, Any]]:
    import msgspec

    counts, codes = Block(raw["counts"], "counts"), Block(raw["predictions"], "predictions")
    rest = msgspec.json.decode(raw["rest"])
    return [packing.whole(rest[i], counts.arrays(i), codes.arrays(i)) for i in range(n)]


@settings(deadline=None, max_examples=80)
@given(st.lists(trees(), min_size=1, max_size=5))
def test_what_is_packed_comes_back(given_trees: list[dict[str, Any]]) -> None:
    raw = packing.parts_of(given_trees)
    again = {part: packing.inflated(packing.deflated(raw[part]), len(raw[part])) for part in raw}
    assert unpacked(again, len(given_trees)) == given_trees


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=60), st.sampled_from(["counts", "predictions"]))
def test_other_bytes_are_damage(data: bytes, part: packing.Part) -> None:
    head = b'{"matrices":[[9999999999,9999999999,0]],"runs":[{"a":{"b":[0,0]}}]}'
    for each in (
        data,
        len(data).to_bytes(4, "little") + data,
        len(head).to_bytes(4, "little") + head,
    ):
        with pytest.raises(DamageError):
            Block(each, part).arrays(0)


def test_no_more_than_the_stated_size_is_decompressed() -> None:
    bomb = lzma.compress(bytes(2**24))
    for size in (0, 10, 2**24 - 1, 2**24 + 1):
        with pytest.raises(DamageError):
            packing.inflated(bomb, size)
    with pytest.raises(DamageError):
        packing.inflated(bomb[:-1], 2**24)
