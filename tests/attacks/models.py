"""Saved models with flipped bytes and edited arrays or headers, loaded and used to tag.

A damaged model must be refused in one line, or predict what the original predicts. It is bad if
one predicts anything else, raises anything else, or ends the process.

Edits make sizes disagree, or put numbers out of their range. No edit replaces a weight by another
number that a weight may have: the result would be a valid model with other predictions.
"""

from __future__ import annotations

import io
import json
import multiprocessing
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attacks.command import Table
from attacks.corpus import keep
from sslbench.engine.corpus import Corpus, RawBytes, read_conll
from sslbench.engine.crf import ChainModel, add_facts
from sslbench.engine.errors import UserError
from sslbench.engine.features import TemplateFeaturizer
from sslbench.experiment.run.saved import load_tagger
from sslbench.plugins import Registry, registry
from support.command import sslbench
from support.damage import SECONDS
from support.waiting import limited

TRAIN = "the B-NP\nn1 I-NP\nran B-VP\n\nout O\n\nn2 B-NP\n. O\n\n" * 4
TEXT = b"the\nn1\nran\n\nout\n.\n\nnew\nn2\nthe\n"
METHODS = {
    "first order": ["supervised"],
    "second order": ["supervised", "--model", "crf2"],
    "symbol tables": ["jess_cm", "--labeled", "9", "--set", "rounds=2"],
    "posterior with a graph": [
        *("graph_pr", "--labeled", "9"),
        *("--set", "decoding=posterior", "--set", "decode_from=q"),
    ],
    "labels of a graph": ["graph_propagation", "--labeled", "9"],
}
DENSE = "dense columns"
KINDS = (*METHODS, DENSE)
Saved = tuple[dict[str, np.ndarray], dict[str, Any]]


def dense_columns(corpus: Corpus) -> np.ndarray:
    """Two numbers per token."""
    codes = corpus.column("word").codes
    return np.stack([codes % 3, codes % 2], axis=1).astype(float)


class _Featurizer:
    def load(self) -> Callable[[], TemplateFeaturizer]:
        return lambda: TemplateFeaturizer(["word[0]"], dense_columns)


class Plugins(Registry):
    """Those that are installed, and a featurizer with dense columns."""

    def featurizer(self, name: str) -> Any:
        return _Featurizer() if name == DENSE else registry().featurizer(name)

    def method(self, name: str) -> Any:
        return registry().method(name)


def train(kind: str, folder: Path) -> bytes:
    """A saved model of this kind."""
    data, model = folder / "t.conll", folder / "model"
    data.write_text(TRAIN, encoding="utf-8")
    if kind == DENSE:
        corpus = read_conll(data, ("word", "label"))
        labels = corpus.column("label")
        made = ChainModel().prepare(
            _Featurizer().load()(), corpus, labels.codes, labels.vocabulary.strings
        )
        made.weights = np.random.default_rng(0).normal(size=made.layout.size)
        made.save(model)
        add_facts(model, {"trained": {"featurizer": DENSE}})
        return model.read_bytes()
    words = ["train", "--data", str(data), "--columns", "word,label", "--save", str(model)]
    done = sslbench(*words, "--method", *METHODS[kind])
    if done.exit_code:
        raise RuntimeError(f"{kind}: {done.output}")
    return model.read_bytes()


def use(path: Path) -> list[str]:
    """The labels of a text."""
    tagger = load_tagger(path, Plugins())
    corpus = read_conll(RawBytes("text", TEXT), ("word",))
    return tagger.texts(corpus, tagger.tag(corpus))


# --- damage --------------------------------------------------------------------------------------


def opened(model: bytes) -> Saved:
    with np.load(io.BytesIO(model)) as archive:
        arrays = {name: archive[name] for name in archive.files}
    return arrays, json.loads(bytes(arrays.pop("header.json")))


def closed(arrays: dict[str, np.ndarray], header: object) -> bytes:
    file, text = io.BytesIO(), json.dumps(header).encode()
    np.savez(file, **{"header.json": np.frombuffer(text, np.uint8)}, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def flip_bytes(model: bytes, chance: np.random.Generator) -> bytes:
    data = bytearray(model)
    for _ in range(int(chance.integers(1, 9))):
        data[int(chance.integers(len(data)))] ^= int(chance.integers(1, 256))
    return bytes(data)


def flip_in_array(model: bytes, chance: np.random.Generator) -> bytes:
    """Flipped bytes of the header of an array, under a new checksum."""
    with zipfile.ZipFile(io.BytesIO(model)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    name = list(members)[int(chance.integers(len(members)))]
    data = bytearray(members[name])
    data[int(chance.integers(min(128, len(data))))] ^= int(chance.integers(1, 256))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for each, content in members.items():
            archive.writestr(each, bytes(data) if each == name else content)
    return file.getvalue()


def cut_or_extend(model: bytes, chance: np.random.Generator) -> bytes:
    at = int(chance.integers(len(model)))
    return model[:at] if chance.random() < 0.5 else model + chance.bytes(at)


def out_of_range(array: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    """One item that no model has there."""
    changed = array.copy().reshape(-1)
    if changed.size and changed.dtype.kind in "iuf":
        ends: list[float] = [np.nan, np.inf, -np.inf]
        if changed.dtype.kind in "iu":
            limits = np.iinfo(changed.dtype)
            ends = [limits.min, limits.max] if limits.min else [limits.max]
        changed[int(chance.integers(changed.size))] = ends[int(chance.integers(len(ends)))]
    return changed.reshape(array.shape)


def edit_array(model: bytes, chance: np.random.Generator) -> bytes:
    arrays, header = opened(model)
    name = list(arrays)[int(chance.integers(len(arrays)))]
    array = arrays[name]
    types = ["i1", "i4", "i8", "u4", "f4", "f8", ">i4", ">f8", "?", "c16", "U4", "S3", "M8[s]"]
    ways: list[Callable[[], np.ndarray]] = [
        lambda: array[:-1],
        lambda: np.concatenate([array, array[-1:]]),
        lambda: np.concatenate([array, array]),
        lambda: array[:0],
        lambda: array[None],
        lambda: array.reshape(-1)[:1].reshape(()) if array.size else array,
        lambda: array.astype(types[int(chance.integers(len(types)))]),
        lambda: out_of_range(array, chance),
        lambda: out_of_range(array, chance),
    ]
    with np.errstate(all="ignore"):
        way = int(chance.integers(len(ways) + 1))
        if way == len(ways):
            del arrays[name]
        else:
            arrays[name] = ways[way]()
    header["arrays"] = list(arrays)
    return closed(arrays, header)


def places(part: Any) -> Iterator[tuple[Any, Any]]:
    """Each container of a JSON value and the keys of its items; texts are left out."""
    items = part.items() if isinstance(part, dict) else enumerate(part)
    for key, value in items:
        if not isinstance(value, str):
            yield part, key
        if isinstance(value, dict | list):
            yield from places(value)


def edit_header(model: bytes, chance: np.random.Generator) -> bytes:
    arrays, header = opened(model)
    found = list(places(header))
    container, key = found[int(chance.integers(len(found)))]
    value = container[key]
    others: list[Any] = [None, -1, 0, 1, 2**31, 2**63, 10**400, 1.5, 1e300, True, "", [], {}, [[]]]
    if isinstance(value, bool):
        others = [not value, *others]
    elif isinstance(value, int):
        others += [value + 1, value - 1, 2 * value + 1, -value - 1]
    elif isinstance(value, list):
        others += [value[:-1], value + value[-1:], value + value, [*value, "more"], [*value, None]]
    if isinstance(container, dict) and chance.random() < 0.2:
        del container[key]
    else:
        container[key] = others[int(chance.integers(len(others)))]
    return closed(arrays, header)


DAMAGES = {
    "bytes flipped": flip_bytes,
    "cut or extended": cut_or_extend,
    "bytes of a member flipped, new checksum": flip_in_array,
    "array edited": edit_array,
    "header edited": edit_header,
}


# --- the attack ----------------------------------------------------------------------------------


@dataclass
class Target:
    """A model, what it predicts, and a file for damaged copies."""

    model: bytes
    expected: list[str]
    path: Path

    @classmethod
    def trained(cls, kind: str, folder: Path) -> Target:
        folder.mkdir()
        model = train(kind, folder)
        return cls(model, use(folder / "model"), folder / "damaged")


def outcome(target: Target, damage: str, seed: int) -> str:
    """What came of one: "refused", "same", or what went wrong."""
    data = DAMAGES[damage](target.model, np.random.default_rng([0x6D6F64, seed]))
    target.path.write_bytes(data)
    try:
        with limited(SECONDS):
            labels = use(target.path)
    except UserError as error:
        text = str(error)
        right = text.startswith(str(target.path)) and text.isprintable() and len(text) < 2500
        return "refused" if right else f"refused without a clear line: {text[:200]}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"[:300]
    return "same" if labels == target.expected else "other predictions"


_targets: dict[str, Target] = {}


def _outcome(folder: str, kind: str, damage: str, seed: int) -> str:
    """In a process of its own, which an access out of bounds may end."""
    if kind not in _targets:
        below = Path(tempfile.mkdtemp(dir=folder)) / "model"
        _targets[kind] = Target.trained(kind, below)
    return outcome(_targets[kind], damage, seed)


def _pool() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))


def attack(number: int, seed: int) -> Table:
    """`number` damaged models, of each kind and damage in turn."""
    table = Table()
    with tempfile.TemporaryDirectory() as folder:
        pool = _pool()
        for n in range(number):
            kind = KINDS[n % len(KINDS)]
            damage = list(DAMAGES)[n // len(KINDS) % len(DAMAGES)]
            try:
                result = pool.submit(_outcome, folder, kind, damage, seed + n).result()
            except BrokenProcessPool:
                result, pool = "the process was ended", _pool()
            problems = []
            if result not in ("refused", "same"):
                where = keep("model", _latest(Path(folder)))
                problems = [f"{kind}, seed {seed + n}: {result} ({where})"]
            table.add(damage, result, problems)
        pool.shutdown()
    return table


def _latest(folder: Path) -> bytes:
    """The model that was damaged last."""
    return max(folder.rglob("damaged"), key=lambda path: path.stat().st_mtime_ns).read_bytes()
