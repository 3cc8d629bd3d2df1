"""Versions of code: whether a record is current, and replays of records."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from click.testing import Result

from sslbench.engine.errors import UserError
from sslbench.experiment.checks.replay import Outcome, canaries, outcome, replay_task
from sslbench.experiment.execute.grid import GridOptions, run_grid
from sslbench.experiment.identity import code_versions, is_current, processor, stale_runs
from sslbench.experiment.planning.plan import plan
from sslbench.experiment.records.predictions import Predictions
from sslbench.experiment.records.record import RunRecord
from sslbench.experiment.records.store import Store
from sslbench.experiment.request.request import RunRequest
from sslbench.experiment.run.runner import execute
from sslbench.isolation.start import isolated
from sslbench.plugins import Registry, registry
from sslbench.plugins.registrations import MethodInfo
from support.command import sslbench
from support.run_fakes import install

REQUEST = RunRequest(["majority"], ["toy"], seeds=[0, 1, 2], labeled=20, model="nothing")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Three runs of one method, made in this process."""
    install(tmp_path, monkeypatch)
    made = Store(tmp_path / "runs")
    for task in plan(REQUEST, store=None, notice=print):
        made.save(execute(task))
    return made


def made_stale(store: Store, number: int = 3) -> list[RunRecord]:
    """The records of the store; the first `number` are of an earlier engine."""
    for record in store.records()[:number]:
        record.code = {**record.code, "engine": "0"}
        store.save(record)
    return store.records()


def raised(plugins: Registry, name: str) -> Registry:
    """The plugins with a method of version 2."""
    methods = {**plugins.methods, name: replace(plugins.method(name), version=2)}
    return replace(plugins, methods=methods)


def test_a_record_of_todays_versions_is_current(store: Store) -> None:
    records = store.records()
    names = ("engine", "bench", "method", "dataset", "featurizer", "model")
    assert records[0].code == dict.fromkeys(names, "1")
    assert stale_runs(records, registry()) == frozenset()
    assert stale_runs(records, raised(registry(), "majority")) == {r.run_id for r in records}
    assert stale_runs(records, raised(registry(), "peeking")) == frozenset()
    assert stale_runs(made_stale(store, 1), registry()) == {records[0].run_id}


def test_each_plugin_of_a_run_has_a_version() -> None:
    given = {"labeled": 20, "guard": True, "text_features": ("brown_clusters",)}
    request = RunRequest(["graph_self_training"], ["synth"], **given)
    (task,) = plan(request, store=None, notice=print)
    plugins = ("method", "model", "dataset", "featurizer", "similarity", "guard")
    names = {"engine", "bench", *plugins, "with brown_clusters"}
    assert set(task.code) == names
    assert code_versions(task.spec, raised(registry(), "supervised"))["guard"] == "2"


def test_a_record_of_a_plugin_that_is_gone_is_stale(store: Store) -> None:
    record = store.records()[0]
    methods = {name: m for name, m in registry().methods.items() if name != "majority"}
    assert not is_current(record.spec, record.code, replace(registry(), methods=methods))


def test_digests_of_before_count_as_version_1(store: Store) -> None:
    record = store.records()[0]
    digests = {"engine": "0debc42bc72acf1a", "method": "00261770bc8db646"}
    assert is_current(record.spec, digests, registry())
    assert not is_current(record.spec, digests, raised(registry(), "majority"))
    never = {**digests, "dataset": "0d5373f3bd0d1072"}
    for code in ({}, {"engine": "1"}, never):
        assert not is_current(record.spec, code, registry())


@pytest.mark.parametrize("version", [0, "2", True])
def test_a_version_is_a_number_from_1(version: object) -> None:
    with pytest.raises(ValueError, match="version must be 1, 2"):
        MethodInfo(name="m", summary="", reference="", target="a:b", version=version)  # type: ignore[arg-type]


def test_runs_are_reused_as_asked(store: Store) -> None:
    made_stale(store)
    tasks = plan(REQUEST, store=None, notice=print)
    assert run_grid(tasks, store, isolated, GridOptions(reuse="stale")).stored == 3
    assert run_grid(tasks, store, isolated, GridOptions(reuse="current")).stored == 0
    assert stale_runs(store.records(), registry()) == frozenset()
    assert run_grid(tasks, store, isolated, GridOptions(reuse="verified")).stored == 3


def test_the_canary_is_the_cheapest_a_stale_one_first(store: Store) -> None:
    records = store.records()
    for record, cpu in zip(records, (3.0, 1.0, 2.0), strict=True):
        record.cpu_s = cpu
    assert canaries(records, registry()) == [records[1]]
    records[0].code = records[2].code = {**records[0].code, "engine": "0"}
    assert canaries(records, registry()) == [records[2]]
    other = msgspec.structs.replace(records[0], spec=msgspec.structs.replace(records[0].spec))
    other.spec = msgspec.structs.replace(other.spec, method="peeking")
    assert canaries([*records, other], registry()) == [records[2], other]


def test_what_cannot_be_replayed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    record = store.records()[0]
    with pytest.raises(UserError, match="there are no predictions"):
        replay_task(msgspec.structs.replace(record, status="failed"), registry(), 1)
    for change, message in (
        ({"scorer": 99}, "the scorer changed"),
        ({"featurizer_digest": "0"}, "the templates of none changed"),
        ({"data": msgspec.structs.replace(record.spec.data, fingerprint="0")}, "the data are no"),
    ):
        spec = msgspec.structs.replace(record.spec, **change)
        with pytest.raises(UserError, match=message):
            replay_task(msgspec.structs.replace(record, spec=spec), registry(), 1)


def verify(store: Store, *words: str) -> Result:
    return sslbench("verify", "--store", store.folder, *words)


def test_the_command(store: Store) -> None:
    assert verify(store).exit_code == 2
    assert "no record to verify" in verify(store, "--stale").stderr
    made_stale(store, 2)
    files = sorted(store.folder.rglob("*"))
    one = verify(store, "--canaries")
    assert one.exit_code == 0, one.output
    assert one.stdout.count(" same ") == 1
    assert "1 record: 1 same" in one.stderr
    assert verify(store, "--stale").stdout.count(" same ") == 2
    assert verify(store, store.records()[0].run_id[:8]).exit_code == 0
    assert sorted(store.folder.rglob("*")) == files  # nothing is written


def with_other_predictions(store: Store) -> RunRecord:
    """A record with the predictions of another one."""
    changed, donor = store.records()[:2]
    for name in ("predictions", "counts", "metrics", "predictions_sha256", "data", "anatomy"):
        setattr(changed, name, getattr(donor, name))
    store.save(changed)
    return changed


def test_a_replay_that_differs_is_named(store: Store) -> None:
    changed = with_other_predictions(store)
    failed = msgspec.structs.replace(
        store.records()[2], status="failed", error="no", error_kind="method", metrics={}
    )
    store.save(failed)
    result = verify(store, *(record.run_id for record in store.records()))
    assert result.exit_code == 1
    lines = {line.split()[0]: line for line in result.stdout.splitlines()}
    assert "different" in lines[changed.run_id]
    assert "labels of test differ; accuracy" in lines[changed.run_id]
    assert "processor" not in result.stdout
    assert "refused" in lines[failed.run_id]
    assert "1 different, 1 refused, 1 same" in result.stderr


@pytest.mark.parametrize("named", [True, False])
def test_a_difference_on_another_kind_of_processor_says_so(store: Store, named: bool) -> None:
    changed = with_other_predictions(store)
    if named:
        changed.environment["processor"] = "a8 wide"
    else:
        del changed.environment["processor"]
    store.save(changed)
    result = verify(store, changed.run_id)
    assert result.exit_code == 1
    ran = "a8 wide" if named else "a processor that the record does not name"
    assert f"run on {ran}, replayed on {processor()}" in result.stdout


@pytest.mark.parametrize(
    ("elsewhere", "times", "expected"),
    [
        (True, 1.0, "close"),
        (True, 0.99, "different"),
        (True, 0.0, "different"),
        (False, 1.0, "different"),
    ],
)
def test_a_model_may_declare_how_many_labels_differ_elsewhere(
    store: Store, elsewhere: bool, times: float, expected: Outcome
) -> None:
    """times: the share of labels that differ, as the tolerance."""
    again = store.find(store.records()[0].run_id)
    codes = again.predictions["test"].codes(sum(again.counts["test"]["n_tokens"]))
    codes[0] = 1 - codes[0].clip(0, 1)
    test = Predictions.pack(again.predictions["test"].labels, codes)
    changed = msgspec.structs.replace(again, predictions={**again.predictions, "test": test})
    if elsewhere:
        changed.environment = {**changed.environment, "processor": "znver9"}
    known = registry()
    numbers = re.search(r"(\d+) of (\d+) labels of test", outcome(changed, again, known)[1])
    assert numbers is not None
    share = int(numbers[1]) / int(numbers[2])
    model = replace(known.model("nothing"), tolerance=times * share)
    plugins = replace(known, models={**known.models, "nothing": model})
    found, text = outcome(changed, again, plugins)
    assert found == expected
    assert ("last bits may differ" in text) == elsewhere
    assert outcome(again, again, plugins) == ("same", "")


@pytest.mark.parametrize("tolerance", [-0.01, 0.06, float("nan")])
def test_a_tolerance_is_small(tolerance: float) -> None:
    with pytest.raises(ValueError, match="tolerance must be in"):
        replace(registry().model("crf1"), tolerance=tolerance)


def test_a_record_names_the_kind_of_processor(store: Store) -> None:
    assert {record.environment["processor"] for record in store.records()} == {processor()}


def test_the_kind_of_processor_is_the_one_that_kernels_are_compiled_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from numba.core.registry import cpu_target

    _, compiled_for, features = cpu_target.target_context.codegen().magic_tuple()
    kind = processor().split()
    assert kind[0] == compiled_for
    assert all(f"+{vectors}" in features.split(",") for vectors in kind[1:])
    monkeypatch.setenv("NUMBA_CPU_NAME", "haswell")
    monkeypatch.setenv("NUMBA_CPU_FEATURES", "+fma")
    assert processor.__wrapped__() == "haswell +fma"
