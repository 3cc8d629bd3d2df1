"""Whether records are of today's code, and replays that decide it."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from sslbench import run
from sslbench.cli import cli
from sslbench.engine.errors import UserError
from sslbench.experiment.execute.grid import GridOptions, run_grid
from sslbench.experiment.identity.identity import code_digests, processor
from sslbench.experiment.identity.reference import check_checkout, replay_on
from sslbench.experiment.identity.replay import (
    as_before,
    canaries,
    compared,
    replay_task,
    verification,
)
from sslbench.experiment.identity.staleness import (
    Today,
    load_verification,
    save_verification,
    states,
)
from sslbench.experiment.planning.plan import Request, plan
from sslbench.experiment.records.record import RunRecord
from sslbench.experiment.records.store import Store
from sslbench.experiment.run.runner import execute
from sslbench.isolation.start import isolated
from sslbench.plugins import registry
from support.run_fakes import install


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Three runs of one method, made in this process."""
    install(tmp_path, monkeypatch)
    made = Store(tmp_path / "runs")
    request = Request(["majority"], ["toy"], seeds=[0, 1, 2], labeled=20, model="nothing")
    for task in plan(request, store=None, notice=print):
        made.save(execute(task))
    return made


def of_other_code(store: Store, **components: str) -> list[RunRecord]:
    records = store.records()
    for record in records:
        record.code = {**record.code, **(components or {"engine": "of another day"})}
        store.save(record)
    return store.records()


def replayed(record: RunRecord) -> RunRecord:
    return execute(replay_task(record, registry(), 1))


def replay(store: Store, record: RunRecord) -> None:
    save_verification(store, record, verification(record, replayed(record)))


def by_seed(store: Store) -> list[str]:
    records = store.records()
    found = states(records, store, registry())
    ordered = sorted(records, key=lambda record: record.spec.protocol.seed)
    return [found[record.run_id] for record in ordered]


def test_a_record_is_current_stale_verified_or_vouched_for(store: Store) -> None:
    assert by_seed(store) == ["current"] * 3
    of_other_code(store)
    assert by_seed(store) == ["stale"] * 3
    first = min(store.records(), key=lambda record: record.spec.protocol.seed)
    result = verification(first, replayed(first))
    assert (result.same, result.difference) == (True, "")
    save_verification(store, first, result)
    assert by_seed(store) == ["verified", "canary", "canary"]
    # A replay is of one record and of one day's code.
    first.wall_s += 1
    store.save(first)
    assert by_seed(store) == ["stale"] * 3


def test_guarded_runs_have_code_of_their_own() -> None:
    """The method that a guard may keep is part of it, whichever spec is looked up first."""
    plain, guarded = (
        plan(
            Request(["self_training"], ["synth"], labeled=20, guard=guard), store=None, notice=print
        )[0].spec
        for guard in (False, True)
    )
    for order in ((plain, guarded), (guarded, plain)):
        today = Today(registry())
        for spec in order:
            assert today.code(spec) == code_digests(spec, registry())
    assert code_digests(plain, registry()) != code_digests(guarded, registry())


def test_a_canary_vouches_for_records_of_its_own_code_only(store: Store) -> None:
    records = of_other_code(store)
    replay(store, records[0])
    records[1].code = {**records[1].code, "engine": "of a third day"}
    store.save(records[1])
    found = states(store.records(), store, registry())
    assert [found[record.run_id] for record in records] == ["verified", "stale", "canary"]


def test_a_record_that_was_replayed_on_two_codes_vouches_for_both(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of three runs was replayed on the code of the second, then on today's."""
    records = of_other_code(store)
    today = records[0].code
    for number, record in enumerate(records):
        record.code, record.cpu_s = {**today, "engine": f"of day {number}"}, 1.0 + number
        store.save(record)
    again = replayed(records[0])
    for code in (records[1].code, again.code):
        again.code = code
        save_verification(store, records[0], verification(records[0], again))
        if code is records[1].code:
            found = states(records, store, registry())
            assert [found[record.run_id] for record in records] == ["stale"] * 3
            assert canaries(records, found, store, registry()) == [records[0], records[2]]
    found = states(records, store, registry())
    assert [found[record.run_id] for record in records] == ["verified", "canary", "stale"]


def test_a_replay_that_differs_vouches_for_nothing(store: Store) -> None:
    records = of_other_code(store)
    for number, record in enumerate(records[:2]):
        again = replayed(record)
        if number:
            again.predictions["test"] = records[2].predictions["test"]
        save_verification(store, record, verification(record, again))
    found = states(store.records(), store, registry())
    assert [found[record.run_id] for record in records] == ["verified", "stale", "stale"]


def test_the_canary_is_the_cheapest(store: Store) -> None:
    records = of_other_code(store)
    for record, cpu in zip(records, (3.0, 1.0, 2.0), strict=True):
        record.cpu_s = cpu
    found = states(records, store, registry())
    assert canaries(records, found, store, registry()) == [records[1]]


def test_runs_are_reused_as_asked(store: Store) -> None:
    records = of_other_code(store)
    replay(store, records[0])
    request = Request(["majority"], ["toy"], seeds=[0, 1, 2], labeled=20, model="nothing")
    tasks = plan(request, store=None, notice=print)
    assert run_grid(tasks, store, isolated, GridOptions(reuse="stale")).stored == 3
    assert (
        run_grid(tasks, store, isolated, GridOptions(reuse="verified")).stored == 3
    )  # two by the canary
    assert run_grid(tasks, store, isolated, GridOptions(reuse="current")).stored == 0
    assert by_seed(store) == ["current"] * 3


def test_what_cannot_be_replayed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    record = store.records()[0]
    other = RunRecord(**{name: getattr(record, name) for name in record.__struct_fields__})
    other.status = "failed"
    with pytest.raises(UserError, match="there are no predictions"):
        replay_task(other, registry(), 1)
    monkeypatch.setattr("sslbench.experiment.identity.replay.SCORER", 99)
    with pytest.raises(UserError, match="the scorer changed"):
        replay_task(record, registry(), 1)
    monkeypatch.undo()


def verify(store: Store, *words: str) -> Result:
    return CliRunner().invoke(cli, ["verify", "--store", str(store.folder), *words])


def test_the_command(store: Store) -> None:
    assert verify(store).exit_code == 2
    assert "no record to verify" in verify(store, "--stale").stderr
    of_other_code(store)
    one = verify(store, "--canaries")
    assert one.exit_code == 0, one.output
    assert one.stdout.count("same") == 1
    assert "1 record: 1 same" in one.stderr
    path = next((store.folder / "verified").glob("*.json"))
    assert json.loads(path.read_text())["same"]
    rest = verify(store, "--stale")
    assert rest.stdout.count("same") == 2
    assert by_seed(store) == ["verified"] * 3
    named = verify(store, store.records()[0].run_id[:8])
    assert named.exit_code == 0


def with_other_predictions(store: Store, **environment: str) -> RunRecord:
    """A record of other code with the predictions of another one."""
    records = of_other_code(store)
    changed, donor = records[0], records[1]
    changed.environment.update(environment)
    changed.predictions, changed.counts, changed.metrics = (
        donor.predictions,
        donor.counts,
        donor.metrics,
    )
    changed.predictions_sha256, changed.data = donor.predictions_sha256, donor.data
    changed.anatomy = donor.anatomy
    store.save(changed)
    assert donor.predictions_sha256 != replayed(changed).predictions_sha256
    return changed


def test_a_replay_that_differs_is_named(store: Store) -> None:
    changed = with_other_predictions(store)
    result = verify(store, changed.run_id)
    assert result.exit_code == 1
    assert "different" in result.stdout
    assert "labels of" in result.stdout
    assert "processor" not in result.stdout
    assert not load_verification(store, changed).same  # type: ignore[union-attr]


def test_a_difference_on_another_kind_of_processor_is_not_one_of_the_code(store: Store) -> None:
    changed = with_other_predictions(store, processor="a8 wide")
    result = verify(store, changed.run_id)
    assert result.exit_code == 1
    assert f"run on a8 wide, replayed on {processor()}" in result.stdout
    assert load_verification(store, changed) is None


def test_a_record_may_not_name_its_processor(store: Store) -> None:
    changed = with_other_predictions(store)
    del changed.environment["processor"]
    store.save(changed)
    result = verify(store, changed.run_id)
    assert "run on a processor that the record does not name" in result.stdout
    assert load_verification(store, changed) is not None


@pytest.mark.parametrize("known", [True, False])
def test_earlier_code_tells_a_difference_of_the_processor(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    """It has today's predictions here; the record was made with that code, or with another one."""
    changed = with_other_predictions(store)
    code = changed.code if known else {**changed.code, "engine": "of a third day"}
    (tmp_path / "tree" / "harness" / "sslbench").mkdir(parents=True)

    def replay_on(tree: Path, store: Store, record: RunRecord, threads: int) -> RunRecord:
        again = replayed(record)
        again.code = code
        return again

    monkeypatch.setattr("sslbench.experiment.identity.reference.replay_on", replay_on)
    result = verify(store, changed.run_id, "--reference", str(tmp_path / "tree"))
    assert result.exit_code == (0 if known else 1)
    assert "labels of" in result.stdout
    kept = load_verification(store, changed)
    assert kept is not None
    assert (kept.same, kept.processor) == ((True, processor()) if known else (False, ""))
    again = verify(store, changed.run_id)  # what is known of this processor is enough
    assert again.exit_code == (0 if known else 1)
    assert ("as an earlier replay on" in again.stdout) == known


@pytest.mark.parametrize(
    "change", [{"processor": "a8 wide"}, {"predictions": "of others"}, {"same": False}]
)
def test_an_earlier_replay_that_differs_decides_nothing(
    store: Store, change: dict[str, object]
) -> None:
    changed = with_other_predictions(store)
    again = replayed(changed)
    before = compared(store, changed, again, msgspec.structs.replace(again, code=changed.code))
    save_verification(store, changed, before)
    known = as_before(store, changed, again)
    assert known is not None
    assert (known.same, known.predictions) == (True, again.predictions_sha256)
    save_verification(store, changed, msgspec.structs.replace(before, **change))
    assert as_before(store, changed, again) is None


def test_earlier_code_that_cannot_replay_stops_nothing(store: Store, tmp_path: Path) -> None:
    changed = with_other_predictions(store)
    (tmp_path / "tree" / "harness" / "sslbench").mkdir(parents=True)
    result = verify(store, "--stale", "--reference", str(tmp_path / "tree"))
    assert result.exit_code == 1
    assert "the replay failed" in result.stdout
    assert result.stdout.count(" same ") == 2
    assert not load_verification(store, changed).same  # type: ignore[union-attr]


def test_earlier_code_with_other_predictions_decides_nothing(store: Store) -> None:
    changed = with_other_predictions(store)
    again = replayed(changed)
    with pytest.raises(UserError, match="other predictions than today's"):
        compared(store, changed, again, changed)
    with pytest.raises(UserError, match="of other code than the reference"):
        compared(store, changed, again, msgspec.structs.replace(again, code={"engine": "other"}))


def test_a_checkout_replays_a_run_in_a_process_of_its_own(tmp_path: Path) -> None:
    run("supervised", "synth", labeled=20, tune=0, store=tmp_path)
    record = Store(tmp_path).records()[0]
    root = Path(__file__).parents[2]
    again = replay_on(root, Store(tmp_path), record, 1)
    assert (again.run_id, again.predictions) == (record.run_id, record.predictions)
    unknown = msgspec.structs.replace(record, run_id="none")
    with pytest.raises(UserError, match="the replay failed: "):
        replay_on(root, Store(tmp_path), unknown, 1)
    with pytest.raises(UserError, match="no checkout of sslbench"):
        check_checkout(tmp_path)


def test_the_same_predictions_on_another_kind_of_processor_count(store: Store) -> None:
    record = of_other_code(store)[0]
    record.environment["processor"] = "a8 wide"
    store.save(record)
    assert verify(store, record.run_id).exit_code == 0
    assert load_verification(store, record).same  # type: ignore[union-attr]


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
