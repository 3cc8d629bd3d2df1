"""Records are whole or refused: no change of a byte changes a result silently."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sslbench.engine.errors import UserError
from sslbench.experiment.records.reading import decode
from sslbench.experiment.records.record import RunRecord, encode, tree_digest
from sslbench.experiment.run.runner import execute
from support.run_fakes import install, task

Tree = dict[str, Any]


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunRecord:
    install(tmp_path, monkeypatch)
    made = execute(task(labeled=20))
    assert made.status == "ok", made.error
    return made


def first_count(tree: Tree, name: str, value: int) -> None:
    tree["counts"]["test"][name][0] = value


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t["metrics"]["test"].update(accuracy=5.0), "accuracy is 5.0, its counts give"),
        (lambda t: t["metrics"]["test"].update(accuracy=0.5), "accuracy is 0.5, its counts give"),
        (lambda t: t["metrics"]["test"].update(unseen_accuracy=1.5), "not between 0 and 1"),
        (lambda t: t["metrics"]["test"].pop("accuracy"), "no accuracy of the test split"),
        (lambda t: t["metrics"].clear(), "no accuracy of the test split"),
        (lambda t: t["counts"].clear(), "without counts"),
        (lambda t: first_count(t, "correct_tokens", -1), "negative"),
        (lambda t: first_count(t, "n_tokens", 10**6), "has another sum"),
        (lambda t: first_count(t, "correct_tokens", 10**6), "above n_tokens"),
        (lambda t: t["counts"]["test"]["n_tokens"].pop(), "lists of"),
        (lambda t: [v.pop() for v in t["counts"]["test"].values()], "lists of"),
        (lambda t: t["counts"]["test"].update(unknown=[1]), "lists of"),
        (lambda t: t.update(predictions_sha256="0" * 64), "predictions_sha256"),
        (lambda t: t.update(primary_metric="f1"), "no f1"),
        (lambda t: t.update(wall_s=-1.0), "wall_s"),
        (lambda t: t.update(status="failed"), "with metrics"),
        (lambda t: t.update(method="another"), "in its spec"),
        (lambda t: t["protocol"].update(labeled=7), "in its spec"),
        (lambda t: t["spec"].update(featurizer="another"), "is not that of its spec"),
        (lambda t: t.pop("method"), "method"),
        (lambda t: t.update(wall_s="long"), r"\$.wall_s"),
    ],
)
def test_parts_that_contradict_each_other(
    record: RunRecord, change: Callable[[Tree], object], message: str
) -> None:
    tree = json.loads(encode(record))
    change(tree)
    with pytest.raises(UserError, match="the file was changed"):
        decode(json.dumps(tree).encode())
    tree["digest"] = tree_digest(tree)
    with pytest.raises(UserError, match=message):
        decode(json.dumps(tree).encode())


@pytest.mark.parametrize(
    "data", [b"", b"\xff\xfe", b"[]", b"{}", b"null", b'{"schema": 2}', b"[" * 99999]
)
def test_what_is_no_record(data: bytes) -> None:
    with pytest.raises(UserError):
        decode(data)


def test_records_of_another_schema_are_refused(record: RunRecord) -> None:
    for schema in (1, 3):
        tree = {**json.loads(encode(record)), "schema": schema}
        with pytest.raises(UserError, match=f"schema {schema}, but this version reads schema 2"):
            decode(json.dumps(tree).encode())
