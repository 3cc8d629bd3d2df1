"""The archive: nothing is lost, whatever happens while records are packed or afterwards."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import warnings
from pathlib import Path

import pytest

from sslbench.experiment.records import archive
from sslbench.experiment.records.archive import Packed, pack
from sslbench.experiment.records.reading import StoreWarning
from sslbench.experiment.records.segment import Segment
from sslbench.experiment.records.store import Store
from support.forks import forked
from support.packed_records import every_kind, predicted, texts


@pytest.fixture(scope="module")
def loose(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose records have a file each."""
    folder = tmp_path_factory.mktemp("loose")
    for record in every_kind():
        Store(folder).save(record)
    return folder


@pytest.fixture(scope="module")
def whole(loose: Path) -> dict[str, bytes]:
    """The files of its records by run id."""
    return {path.stem: path.read_bytes() for path in loose.glob("*.json")}


@pytest.fixture
def store(loose: Path, tmp_path: Path) -> Store:
    shutil.copytree(loose, tmp_path / "runs")
    return Store(tmp_path / "runs")


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(archive, "RUNS", 4)
    monkeypatch.setattr(archive, "SEGMENT_BYTES", 6_000)
    monkeypatch.setenv("SSLBENCH_CACHE", str(tmp_path / "cache"))


def own_files(store: Store) -> list[str]:
    return sorted(path.stem for path in store.folder.glob("*.json"))


def loaded(store: Store) -> dict[str, bytes]:
    """All records of a store in full."""
    ids = {*own_files(store), *store.packed_ids()}
    return texts([record for run_id in ids if (record := store.load(run_id)) is not None])


def test_every_record_comes_back(store: Store, whole: dict[str, bytes]) -> None:
    before = {record.run_id: record for record in store.records()}
    packed = pack(store)
    assert (packed.records, packed.left, own_files(store)) == (len(whole), [], [])
    assert len(packed.segments) > 1
    assert packed.after < packed.before / 3
    assert loaded(store) == whole
    records = store.records()
    assert {record.run_id: record for record in records} == before
    assert texts(records) == whole  # counts and predictions are read when they are asked for
    assert store.find(records[0].run_id[:9]) == records[0]
    again = pack(store)
    assert (again.records, again.segments) == (0, [])


def test_segments_are_named_by_their_content_and_copied_as_files(
    store: Store, whole: dict[str, bytes], tmp_path: Path
) -> None:
    names = sorted(path.name for path in pack(store).segments)
    other = Store(tmp_path / "other")
    assert other.records() == []
    shutil.copytree(store.folder / "segments", other.folder / "segments")
    assert texts(other.records()) == whole
    (other.folder / "segments" / names[0]).unlink()
    assert 0 < len(other.records()) < len(whole)


def test_a_record_of_a_file_of_its_own_counts_and_then_the_newest(store: Store) -> None:
    pack(store)
    first = store.records()[-1]
    newer = store.find(first.run_id)
    newer.created, newer.wall_s = "2030-01-01", 77.0
    store.save(newer)
    assert store.load(newer.run_id).wall_s == 77.0
    assert [r.wall_s for r in store.records([newer.run_id])] == [77.0]
    assert pack(store).records == 1
    assert own_files(store) == []
    assert store.load(newer.run_id).wall_s == 77.0
    assert [r.wall_s for r in store.records([newer.run_id])] == [77.0]
    older = store.find(first.run_id)
    older.created, older.wall_s = "2020-01-01", 66.0
    store.save(older)  # by a clock that was set back
    left = pack(store)
    assert (left.records, len(left.left), own_files(store)) == (0, 1, [older.run_id])
    assert store.load(newer.run_id).wall_s == 66.0


def test_damaged_files_are_left_alone(store: Store, whole: dict[str, bytes]) -> None:
    path = store.path(own_files(store)[0])
    path.write_bytes(path.read_bytes().replace(b'"wall_s"', b'"wail_s"'))
    with pytest.warns(StoreWarning, match=path.name):
        assert pack(store).records == len(whole) - 1
    assert own_files(store) == [path.stem]


def test_a_run_that_is_being_executed_keeps_its_file(store: Store, whole: dict[str, bytes]) -> None:
    run_id = own_files(store)[0]
    claim = store.folder / "claims" / f"{run_id}.json"
    claim.parent.mkdir(exist_ok=True)
    claim.write_text('{"host": "elsewhere", "pid": 1, "token": "x"}')
    assert pack(store).records == len(whole) - 1
    assert own_files(store) == [run_id]
    assert loaded(store) == whole
    claim.unlink()
    assert pack(store).records == 1
    assert own_files(store) == []


EVENTS = ("open", "os.rename", "os.remove", "os.mkdir", "sqlite3.connect")


def pack_until(store: Store, number: int, counted: Path | None = None) -> None:
    """Pack; kill -9 at this event of the file system, or count the events."""
    seen = 0

    def hook(event: str, _: object) -> None:
        nonlocal seen
        if event in EVENTS:
            seen += 1
            if seen == number:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    pack(store)
    if counted is not None:
        counted.write_text(str(seen))


def test_a_kill_at_any_moment_loses_nothing(
    loose: Path, whole: dict[str, bytes], tmp_path: Path
) -> None:
    shutil.copytree(loose, tmp_path / "counted")
    assert forked(lambda: pack_until(Store(tmp_path / "counted"), -1, tmp_path / "n")) == [0]
    events = int((tmp_path / "n").read_text())
    assert events > 100
    moments = [1 + i * (events - 1) // 19 for i in range(20)]
    for moment in moments:
        folder = tmp_path / f"killed-{moment}"
        shutil.copytree(loose, folder)
        store = Store(folder)
        assert forked(lambda at=moment, of=store: pack_until(of, at)) == [-signal.SIGKILL]
        assert loaded(store) == whole
        assert texts(store.records()) == whole
        for claim in (folder / "claims").glob("*.json"):
            os.utime(claim, (0, 0))  # one that was not written to its end is dead after a while
        pack(store)
        assert own_files(store) == []
        assert loaded(store) == whole
        assert not list(folder.rglob("*.tmp"))


def test_two_processes_pack_at_once(store: Store, whole: dict[str, bytes]) -> None:
    assert forked(*[lambda: pack(Store(store.folder))] * 2) == [0, 0]
    assert own_files(store) == []
    assert loaded(store) == whole
    packed = [run_id for segment in store.segments() for run_id in segment.places]
    assert len(packed) == len(whole)  # none twice


def test_damage_costs_the_block_that_it_is_in(store: Store, whole: dict[str, bytes]) -> None:
    pack(store)
    rng = random.Random(5)
    for number in range(40):
        path = rng.choice(sorted((store.folder / "segments").glob("*.segment")))
        data, has = path.read_bytes(), len(Segment(path).places)
        place = rng.randrange(len(data))
        changed = bytearray(data)
        changed[place] ^= 1 << rng.randrange(8)
        path.write_bytes(changed if rng.random() < 0.8 else data[:place])
        os.utime(path, (number, number))
        cut = path.stat().st_size < len(data)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = texts(store.records())
            one = loaded(store)
        assert found.items() <= whole.items()
        assert one == found
        lost = len(whole) - len(found)
        assert lost <= (has if cut else 4)
        if lost:
            assert any(path.name in str(each.message) for each in caught)
        path.write_bytes(data)
        os.utime(path, (1000 + number, 1000 + number))
    assert texts(store.records()) == whole


def test_a_hostile_segment_is_refused(store: Store, tmp_path: Path) -> None:
    import hashlib

    from sslbench.experiment.records.segment import MAGIC, MARK

    pack(store)
    whole = texts(store.records())
    heads = [
        b'{"runs":[["0000000000000000","",""]],"parts":{}}',
        b'{"runs":[],"parts":{"rest":[1,99999999999,"%s"]}}' % (b"0" * 64),
        b'{"runs":[["../../../../etc/x","","%s"]],"parts":{}}' % (b"0" * 64),
        b"[" * 90_000,
        b"\xff",
    ]
    for number, head in enumerate(heads):
        block = MARK + len(head).to_bytes(4, "little") + hashlib.sha256(head).digest() + head
        (store.folder / "segments" / f"{number:032}.segment").write_bytes(MAGIC + block * 2)
    (store.folder / "segments" / f"{9:032}.segment").write_bytes(MAGIC + MARK + b"\xff" * 4)
    (store.folder / "segments" / f"{8:032}.segment").mkdir()
    with pytest.warns(StoreWarning):
        assert texts(store.records()) == whole


def test_packing_twice_gives_the_same_bytes(loose: Path, tmp_path: Path) -> None:
    results: list[Packed] = []
    for name in ("a", "b"):
        shutil.copytree(loose, tmp_path / name)
        results.append(pack(Store(tmp_path / name)))
    first, second = ([path.name for path in result.segments] for result in results)
    assert first == second


def test_predictions_of_runs_with_many_labels(store: Store) -> None:
    made = predicted("better", 99)
    store.save(made)
    pack(store)
    (found,) = store.records([made.run_id])
    assert (
        found.predictions["test"].codes(600).tolist()
        == made.predictions["test"].codes(600).tolist()
    )
