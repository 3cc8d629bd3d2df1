"""Predictions change only together with a version; see `canaries.golden`."""

from __future__ import annotations

import msgspec
import pytest

from canaries import golden
from canaries.data import plugins
from canaries.record import updated
from canaries.runs import RUNS, make
from sslbench.experiment.records.predictions import Predictions
from sslbench.experiment.records.record import RunRecord
from sslbench.plugins import registry

ENTRIES = golden.read()


@pytest.mark.parametrize("name", RUNS)
def test_predictions_are_golden(name: str) -> None:
    wrong = golden.verdict(ENTRIES.get(name), make(name, threads=2))
    if wrong:
        pytest.fail(f"canary {name!r}: {wrong}", pytrace=False)


def test_every_method_and_text_feature_has_a_canary() -> None:
    registry.cache_clear()  # it may have the plugins of another test
    requests = RUNS.values()
    methods = {method for each in requests for method in each["method"]}
    # They need a folder with a model of the user, or a file.
    without = {"encoder", "adaptive_pretraining", "posterior_constraints"}
    assert set(plugins().methods) - methods == without
    learned = {name for each in requests for name in each.get("text_features", ())}
    assert set(plugins().text_features) - learned == {"encoder"}


def test_there_is_no_entry_without_a_canary() -> None:
    assert list(ENTRIES) == list(RUNS)


@pytest.fixture(scope="module")
def record() -> RunRecord:
    return make("pixels")


def with_code(record: RunRecord, **versions: str) -> RunRecord:
    return msgspec.structs.replace(record, code={**record.code, **versions})


def relabeled(record: RunRecord) -> RunRecord:
    """The record with another label of the first token of test."""
    packed = record.predictions["test"]
    codes = packed.codes(sum(record.counts["test"]["n_tokens"]))
    codes[0] = (codes[0] + 1) % len(packed.labels)
    test = Predictions.pack(packed.labels, codes)
    return msgspec.structs.replace(record, predictions={**record.predictions, "test": test})


def test_one_other_label_is_told_with_what_to_do(record: RunRecord) -> None:
    old = golden.entry(record, [])
    assert golden.verdict(old, record) == ""
    text = golden.verdict(old, relabeled(record))
    assert "test: 1 of " in text
    assert "token 0 first: " in text
    assert "  engine, now 1: VERSION in harness/sslbench/engine/version.py\n" in text
    assert "  method, now 1: `version` of the registration of this method\n" in text
    assert updated(old, relabeled(record)) is None


def test_a_raised_version_must_be_recorded(record: RunRecord) -> None:
    old, raised = golden.entry(record, []), with_code(relabeled(record), engine="2")
    assert "the versions are raised" in golden.verdict(old, raised)
    new = updated(old, raised)
    assert new is not None
    assert golden.verdict(new, raised) == ""
    assert new.history == [old.last, golden.recorded(raised)]
    # The version before has its digest for good.
    assert updated(new, record) is not None
    assert updated(new, relabeled(record)) is None


def test_another_run_needs_no_version(record: RunRecord) -> None:
    old, other = golden.entry(record, []), msgspec.structs.replace(relabeled(record), run_id="0")
    assert "today's run is another one" in golden.verdict(old, other)
    assert updated(old, other) is not None
    same = msgspec.structs.replace(record, run_id="0")
    assert golden.verdict(old, same) == ""
