"""Identity of runs, and records as JSON."""

from __future__ import annotations

import base64
import json
import math
import re
import zlib
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sslbench.corpus import Column, Corpus, Vocabulary
from sslbench.errors import UserError
from sslbench.experiment.identity import code_version, corpus_hash
from sslbench.experiment.predictions import Predictions
from sslbench.experiment.record import DataSpec, RunRecord, RunSpec, decode, encode, jsonable
from sslbench.experiment.runner import failed
from support.run_fakes import task

DESIGN_KEYS = {
    "schema",
    "run_id",
    "status",
    "method",
    "dataset",
    "featurizer",
    "model",
    "params",
    "protocol",
    "metrics",
    "primary_metric",
    "timing",
    "wall_s",
    "cpu_s",
    "peak_rss_mb",
    "environment",
    "created",
    "error",
}


def record() -> RunRecord:
    made = failed(task(labeled=20, params={"weight": 0.5}), "method", "it\nbroke")
    made.metrics = {"test": {"accuracy": 0.5, "f1": None}}
    made.counts = {"test": {"n_tokens": [1, 2], "correct_tokens": [1, 0]}}
    return made


def test_round_trip_and_keys() -> None:
    first = record()
    text = encode(first)
    assert decode(text) == first
    assert encode(decode(text)) == text
    tree = json.loads(text)
    assert set(tree) >= DESIGN_KEYS
    assert tree["schema"] == 1
    assert tree["error"] == "it broke"
    assert {"labeled", "unlabeled", "seed"} <= set(tree["protocol"])


@given(st.integers(1, 40), st.data())
def test_predictions_come_back(n_labels: int, data: st.DataObject) -> None:
    codes = data.draw(st.lists(st.integers(0, n_labels - 1), max_size=50))
    packed = Predictions.pack([f"l{i}" for i in range(n_labels)], np.array(codes, np.int32))
    again = msgspec.json.decode(msgspec.json.encode(packed), type=Predictions)
    assert again == packed
    assert again.codes(len(codes)).tolist() == codes


@pytest.mark.parametrize(
    ("labels", "packed"),
    [
        (("a",), "no base 64!"),
        (("a",), base64.b64encode(b"no zlib").decode()),
        (("a", "b"), base64.b64encode(zlib.compress(b"\0\0")).decode()),  # of one token
        (("a", "b"), base64.b64encode(zlib.compress(b"\0\0\0")).decode()),
        (("a", "b"), base64.b64encode(zlib.compress(bytes(1 << 20))).decode()),  # of too many
        (("a", "b"), base64.b64encode(zlib.compress(b"\0\0\2\0")).decode()),  # label 2
        (("a", "b"), base64.b64encode(zlib.compress(b"\0\0\xff\xff")).decode()),  # label -1
    ],
)
def test_other_predictions_are_refused(labels: tuple[str, ...], packed: str) -> None:
    with pytest.raises(UserError, match="predictions"):
        Predictions(labels, packed).codes(2)


def test_the_id_is_a_hash_of_everything_that_was_asked() -> None:
    base = task().spec
    assert re.fullmatch("[0-9a-f]{16}", base.run_id)
    variants = [
        msgspec.structs.replace(base, **{name: "x"})
        for name in ("method", "dataset", "featurizer", "model", "code")
    ]
    variants += [
        task(params={"weight": 1.0}).spec,
        task(data=DataSpec({"a": "1"})).spec,
        task(data=DataSpec(options={"train": 3})).spec,
        *(task(**change).spec for change in ({"labeled": 5}, {"unlabeled": 5}, {"seed": 5})),
        task(tune=5).spec,
    ]
    ids = {spec.run_id for spec in [base, *variants]}
    assert len(ids) == len(variants) + 1


@given(st.dictionaries(st.text(max_size=5), st.integers() | st.floats(-9, 9), max_size=5))
def test_the_id_does_not_depend_on_the_order_of_keys(params: dict[str, float]) -> None:
    backwards = dict(reversed(params.items()))
    spec = RunSpec("m", "d", "f", "x", params=params)
    assert spec.run_id == RunSpec("m", "d", "f", "x", params=backwards).run_id


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tree: tree.pop("method"), "method"),
        (lambda tree: tree.update(schema=2), "schema 2"),
        (lambda tree: tree["spec"].update(dataset="another"), "is not that of its spec"),
        (lambda tree: tree.update(wall_s="long"), r"\$.wall_s"),
    ],
)
def test_a_record_that_cannot_be_right_is_refused(change: object, message: str) -> None:
    tree = json.loads(encode(record()))
    change(tree)
    with pytest.raises(UserError, match=message):
        decode(json.dumps(tree).encode())


def test_numpy_values_and_infinities_become_json() -> None:
    value = {1: np.float32(0.5), "a": np.arange(2), "t": (math.nan, np.inf), "s": {"x": True}}
    assert jsonable(value) == {"1": 0.5, "a": [0, 1], "t": [None, None], "s": {"x": True}}
    made = record()
    made.trace = jsonable({"likelihood": [np.float64(-1.5), math.inf]})
    assert decode(encode(made)).trace == {"likelihood": [-1.5, None]}


def test_code_version_follows_what_a_plugin_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "__init__.py": "raise RuntimeError('must not be imported')",
        "method.py": "import numpy\nfrom . import near\n\ndef f():\n    from .deep.far import x\n",
        "near.py": "import someplugin.deep.other as o, json\n",
        "deep/__init__.py": "",
        "deep/far.py": "from ..up import y\nx = 1\n",
        "deep/other.py": "",
        "up.py": "y = 1\n",
        "beside.py": "from . import method\n",
        "notes.txt": "no code",
    }
    for name, text in files.items():
        path = tmp_path / "someplugin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))

    def version(target: str = "someplugin.method:A") -> str:
        return code_version([target, "sslbench.crf.model:ChainModel"])

    before = version()
    assert version("someplugin.near:A") != before
    for name, text in files.items():
        path = tmp_path / "someplugin" / name
        path.write_text(f"{text}\n# edited\n")
        assert (version() == before) == (name in ("beside.py", "notes.txt")), name
        path.write_text(text)
    assert version() == before


def test_code_version_of_a_single_file_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "lonelyplugin.py"
    module.write_text("A = 1")
    monkeypatch.syspath_prepend(str(tmp_path))
    before = code_version(["lonelyplugin:A"])
    module.write_text("A = 2")
    assert code_version(["lonelyplugin:A"]) != before


def test_corpus_hash_is_of_the_text_not_of_the_codes() -> None:
    def corpus(order: list[str], text: list[str]) -> Corpus:
        words = Vocabulary(order)
        return Corpus({"word": Column(words, words.encode(text))}, np.array([0, 1, len(text)]))

    text = ["b", "a", "b"]
    assert corpus_hash(corpus([], text)) == corpus_hash(corpus(["x", "a", "b"], text))
    assert corpus_hash(corpus([], text)) != corpus_hash(corpus([], ["b", "a", "a"]))
