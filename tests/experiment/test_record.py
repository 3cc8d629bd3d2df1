"""Identity of runs, and records as JSON."""

from __future__ import annotations

import base64
import json
import math
import re
import zlib

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sslbench.engine.corpus import Column, Corpus, Vocabulary
from sslbench.engine.errors import UserError
from sslbench.experiment.identity import corpus_hash
from sslbench.experiment.records.predictions import Predictions
from sslbench.experiment.records.reading import decode
from sslbench.experiment.records.record import DataSpec, RunRecord, RunSpec, encode, jsonable
from sslbench.experiment.run.recording import failed
from support.run_fakes import task

DESIGN_KEYS = {
    *("schema", "run_id", "status", "method", "dataset", "featurizer", "model"),
    *("params", "protocol", "metrics", "primary_metric", "timing", "wall_s", "cpu_s"),
    *("peak_rss_mb", "environment", "created", "error", "digest", "audit", "warnings"),
    *("code",),
}


def record() -> RunRecord:
    made = failed(task(labeled=20, params={"weight": 0.5}), "method", "it\nbroke")
    made.trace = {"rounds": [{"share": 0.5, "stopped": None}]}
    return made


def test_round_trip_and_keys() -> None:
    first = record()
    text = encode(first)
    again = decode(text)
    assert again == first
    assert encode(again) == text
    tree = json.loads(text)
    assert set(tree) >= DESIGN_KEYS
    assert tree["schema"] == 2
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
        for name in ("method", "dataset", "featurizer", "model", "featurizer_digest", "search")
    ]
    variants += [
        task(params={"weight": 1.0}).spec,
        task(data=DataSpec(fingerprint="1")).spec,
        task(scorer=2).spec,
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


def test_numpy_values_and_infinities_become_json() -> None:
    value = {1: np.float32(0.5), "a": np.arange(2), "t": (math.nan, np.inf), "s": {"x": True}}
    assert jsonable(value) == {"1": 0.5, "a": [0, 1], "t": [None, None], "s": {"x": True}}
    made = record()
    made.trace = jsonable({"likelihood": [np.float64(-1.5), math.inf]})
    assert decode(encode(made)).trace == {"likelihood": [-1.5, None]}


def test_corpus_hash_is_of_the_text_not_of_the_codes() -> None:
    def corpus(order: list[str], text: list[str]) -> Corpus:
        words = Vocabulary(order)
        return Corpus({"word": Column(words, words.encode(text))}, np.array([0, 1, len(text)]))

    text = ["b", "a", "b"]
    assert corpus_hash(corpus([], text)) == corpus_hash(corpus(["x", "a", "b"], text))
    assert corpus_hash(corpus([], text)) != corpus_hash(corpus([], ["b", "a", "a"]))
