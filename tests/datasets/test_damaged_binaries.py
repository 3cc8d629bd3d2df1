"""Saved models and MATLAB files that lie: no code of theirs runs, no crash, one clear line."""

from __future__ import annotations

import io
import json
import pickle
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import loadmat, savemat
from scipy.sparse import csc_array

from sslbench_datasets.letters.matlab import read_cells
from support.damage import READERS, cell, check, fixed, matlab, model_reader, saved_model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A saved tagger of words."""
    return saved_model(tmp_path_factory.mktemp("model"))


class Trap:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return Path.touch, (self.path,)


def models(model: bytes, trap: Trap) -> Iterator[bytes]:
    """Files in place of a saved model."""
    objects = np.array([trap], dtype=object)
    with np.load(io.BytesIO(model)) as archive:
        arrays = dict(archive)
    header = json.loads(bytes(arrays["header.json"]))
    yield pickle.dumps(trap)
    for other in (objects, np.arange(3)):
        file = io.BytesIO()
        np.save(file, other)
        yield file.getvalue()
    new: list[Any] = [[], 1, {}, {**header, "kind": []}, {**header, "metadata": None}]
    new += [{**header, "version": 99}, {**header, "arrays": ["nosuch"]}]
    for text in ["[" * 100_000, "{", *map(json.dumps, new)]:
        yield saved({**arrays, "header.json": np.frombuffer(text.encode(), np.uint8)})
    yield saved({**arrays, "header.json": objects})
    yield saved({**arrays, "weights": objects})
    yield saved(arrays, np.savez_compressed)  # may be a bomb; no writer makes it
    yield saved({**arrays, "weights": arrays["weights"][:-1]})
    yield saved({**arrays, "weights": np.full_like(arrays["weights"], np.nan)})


def saved(arrays: dict[str, Any], save: Callable[..., None] = np.savez) -> bytes:
    file = io.BytesIO()
    save(file, **arrays)
    return file.getvalue()


def test_models(model: bytes, tmp_path: Path) -> None:
    trap = Trap(tmp_path / "sprung")
    reader = model_reader(model)
    path = tmp_path / reader.name
    n = 0
    for n, data in enumerate(models(model, trap), 1):
        path.write_bytes(data)
        assert check(reader, path) != "", n
        assert not trap.path.exists()
    assert n > 12


def altered_model(model: bytes, draw: st.DrawFn) -> bytes:
    """A model whose arrays or metadata contradict each other, under correct checksums."""
    with np.load(io.BytesIO(model)) as archive:
        arrays = dict(archive)
    header = json.loads(bytes(arrays.pop("header.json")))
    name = draw(st.sampled_from(sorted(arrays)))
    array = arrays[name].copy()
    way = draw(st.sampled_from(["shorter", "longer", "type", "shape", "value", "label", "key"]))
    if way == "shorter":
        array = array[: draw(st.integers(0, len(array)))]
    elif way == "longer":
        array = np.append(array, array)
    elif way == "type":
        array = array.astype(draw(st.sampled_from(["f8", "i8", "i4", "u1", "U5", "?", "c16"])))
    elif way == "shape":
        array = array.reshape(-1, 1)
    elif way == "value" and len(array):
        array[draw(st.integers(0, len(array) - 1))] = draw(st.sampled_from([0, 99, 127]))
    elif way == "label":
        header["metadata"]["labels"] = draw(st.sampled_from([[], ["O"] * 3, ["O", 1], "BIO", None]))
    else:
        key = draw(st.sampled_from(sorted(header["metadata"])))
        header["metadata"][key] = draw(st.sampled_from([None, -1, "x", [], {}, 10**9]))
    text = json.dumps(header).encode()
    return saved({**arrays, name: array, "header.json": np.frombuffer(text, np.uint8)})


def test_models_that_contradict_themselves(model: bytes, tmp_path: Path) -> None:
    reader = model_reader(model)
    path = tmp_path / reader.name
    actual = []

    @fixed(60)
    @given(st.data())
    def try_one(data: st.DataObject) -> None:
        path.write_bytes(data.draw(st.composite(lambda draw: altered_model(model, draw))()))
        actual.append(check(reader, path))

    try_one()
    assert sum(map(bool, actual)) > 30


def matlab_files(trap: Trap) -> Iterator[bytes]:
    """Files in place of the letters: other arrays, other versions, pickles."""
    good = np.ones((129, 2), np.uint8)
    others: list[Any] = [
        np.ones((129, 2, 1), np.uint8),
        np.ones((129, 2)),
        np.ones((129, 2), bool),
        "text",
        np.ones((129, 2), np.complex128),
        {"a": 1},
        cell([good]),
        np.empty((0, 0), np.uint8),
        csc_array(np.eye(3)),
    ]
    for labels in [*(cell([other]) for other in others), *others, cell([])]:
        file = io.BytesIO()
        savemat(file, {"patterns_train": cell([good]), "labels_train": labels})
        yield file.getvalue()
    file = io.BytesIO()
    savemat(file, {"patterns_train": good}, format="4")
    yield file.getvalue()
    head = matlab(False)[:128]
    yield head[:124] + b"\x01\x00MI" + matlab(False)[128:]
    yield pickle.dumps(trap)
    yield head + struct.pack("<II", 15, 9) + zlib.compress(b"")[:8] + b"x"
    yield head + struct.pack("<II", 14, 2**31 - 1)


def test_matlab_files(tmp_path: Path) -> None:
    trap = Trap(tmp_path / "sprung")
    reader = READERS["letters"]
    path = tmp_path / reader.name
    for n, data in enumerate(matlab_files(trap), 1):
        path.write_bytes(data)
        assert check(reader, path) != "", n
        assert not trap.path.exists()


@pytest.mark.parametrize("compressed", [False, True])
def test_cells_are_those_that_scipy_reads(compressed: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    kinds = ["u1", "i1", "u2", "i2", "i4", "u4", "i8", "f4", "f8"]
    numbers = [rng.integers(0, 99, (2, n)).astype(kind) for n, kind in enumerate(kinds)]
    numbers.append(np.eye(3, dtype=np.bool_))
    savemat(tmp_path / "f.mat", {"x": 1, "c": cell(numbers)}, do_compression=compressed)
    cells = read_cells((tmp_path / "f.mat").read_bytes(), "c")
    assert cells is not None
    expected = loadmat(tmp_path / "f.mat")["c"][0]
    for actual, other in zip(cells, expected, strict=True):
        assert actual.shape == other.shape
        assert actual.tolist() == other.tolist()
        assert other.dtype == actual.dtype
    assert read_cells((tmp_path / "f.mat").read_bytes(), "x") is None
    assert read_cells((tmp_path / "f.mat").read_bytes(), "y") is None


def test_a_matlab_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sslbench_datasets.letters.matlab.MAX_BYTES", 2**20)
    bomb = zlib.compress(struct.pack("<II", 14, 2**21) + bytes(2**21))
    path = tmp_path / "l.mat"
    path.write_bytes(matlab(True)[:128] + struct.pack("<II", 15, len(bomb)) + bomb)
    assert "a variable of more than 1048576 bytes" in check(READERS["letters"], path)
