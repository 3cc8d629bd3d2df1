"""The index of a store: derived, never out of date, never trusted."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import warnings
from pathlib import Path

import pytest

from sslbench.experiment.records import catalog
from sslbench.experiment.records.archive import pack
from sslbench.experiment.records.cost import Prices, cost_keys
from sslbench.experiment.records.index import NAME
from sslbench.experiment.records.reading import StoreWarning
from sslbench.experiment.records.record import RunRecord, spec_key
from sslbench.experiment.records.store import Store
from support.board_records import record
from support.forks import forked
from support.packed_records import every_kind, predicted, texts
from support.suite_fakes import Made


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SSLBENCH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "runs")
    for made in every_kind():
        store.save(made)
    _age(store.folder)
    return store


def _age(folder: Path) -> None:
    """No file was changed within the last second, as far as the file system tells."""
    for path in folder.glob("*.json"):
        os.utime(path, ns=(10**18, 10**18))


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file counts as old enough."""
    monkeypatch.setattr("sslbench.experiment.records.index._SETTLED_NS", 0)


def read_files(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that the next question reads."""
    names: list[str] = []
    content_of = catalog.content_of

    def noted(path: Path) -> bytes:
        names.append(path.name)
        return content_of(path)

    with monkeypatch.context() as patch:
        patch.setattr(catalog, "content_of", noted)
        Store(store.folder).records()
    return names


@pytest.mark.usefixtures("settled")
def test_each_file_is_read_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(read_files(store, monkeypatch)) == len(every_kind())
    assert read_files(store, monkeypatch) == []
    store.save(predicted("better", 77))
    assert len(read_files(store, monkeypatch)) == 1


def test_a_file_that_has_just_been_written_is_read_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sslbench.experiment.records.index._SETTLED_NS", 10**18)
    assert read_files(store, monkeypatch)
    assert len(read_files(store, monkeypatch)) == len(every_kind())


@pytest.mark.usefixtures("settled")
def test_it_is_never_out_of_date(store: Store, tmp_path: Path) -> None:
    known = Store(store.folder)  # asked again and again, as another process would
    assert texts(known.records()) == texts(every_kind())
    run_id = known.records()[0].run_id
    path = store.path(run_id)
    status, data = path.stat(), path.read_bytes()
    # replaced by one of the same size and time
    path.write_bytes(data.replace(b'"status"', b'"statvs"'))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.warns(StoreWarning, match=path.name):
        assert run_id not in texts(known.records())
    path.write_bytes(data)  # mended
    os.utime(path, ns=(0, 0))  # by a clock that was set back
    assert texts(known.records()) == texts(every_kind())
    path.unlink()
    assert run_id not in texts(known.records())
    path.write_bytes(data)
    store.save(predicted("worse", 88))
    assert len(known.records()) == len(every_kind()) + 1
    # a segment from another machine
    other = Store(tmp_path / "other")
    other.save(predicted("worse", 89))
    pack(other)
    shutil.copytree(other.folder / "segments", store.folder / "segments")
    assert len(known.records()) == len(every_kind()) + 2
    shutil.rmtree(store.folder / "segments")
    assert len(known.records()) == len(every_kind()) + 1


def test_records_come_one_after_the_other(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "_AT_ONCE", 4)
    decoded: list[object] = []
    from_summary = catalog.from_summary

    def noted(*given: object) -> RunRecord:
        decoded.append(given)
        return from_summary(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(catalog, "from_summary", noted)
    records = store.each()
    first = next(records)
    assert len(decoded) == 4
    assert [first, *records] == store.records()


def test_counts_are_those_of_the_file_as_it_is(store: Store) -> None:
    found = next(each for each in store.records() if each.status == "ok")
    counts = dict(found.counts)
    pack(store)  # in the meantime
    assert dict(found.counts) == counts
    shutil.rmtree(store.folder / "segments")
    with pytest.raises(Exception, match="is gone"):
        dict(found.counts)


def test_counts_are_not_read_to_tell_which_there_are(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = store.records()
    monkeypatch.setattr(catalog.Catalog, "_field", None)
    assert {split for each in found for split in each.counts} == {"test", "dev"}
    assert sum("test" in each.counts for each in found) == len(found) - 3


def test_a_damaged_index_is_made_again(store: Store) -> None:
    pack(store)
    whole = texts(store.records())
    path = store.folder / NAME
    data = path.read_bytes()
    rng = random.Random(3)
    for number in range(40):
        changed = bytearray(data)
        for _ in range(1 + 20 * (number % 2)):
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        path.write_bytes(changed if number % 5 else data[: rng.randrange(len(data))])
        assert texts(Store(store.folder).records()) == whole
    for content in (b"", b"x" * 5000):
        path.write_bytes(content)
        assert texts(Store(store.folder).records()) == whole


def test_another_data_base_is_no_index(store: Store) -> None:
    whole = texts(store.records())
    path = store.folder / NAME
    path.unlink()
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE files (name TEXT)")
        base.execute("CREATE VIEW runs AS SELECT load_extension('x')")
    assert texts(Store(store.folder).records()) == whole


def test_a_store_that_cannot_be_written_has_its_index_in_the_cache(
    store: Store, tmp_path: Path
) -> None:
    (store.folder / NAME).mkdir()  # as good as read-only
    whole = texts(every_kind())
    assert texts(Store(store.folder).records()) == whole
    assert len(list((tmp_path / "cache" / "indexes").iterdir())) == 1
    shutil.rmtree(tmp_path / "cache")
    (tmp_path / "cache").write_text("no folder")
    assert texts(Store(store.folder).records()) == whole  # in memory


def test_a_missing_store_is_not_made(tmp_path: Path) -> None:
    assert Store(tmp_path / "none").records() == []
    assert not (tmp_path / "none").exists()
    assert not (tmp_path / "cache").exists()


def test_several_processes_use_it_at_once(store: Store) -> None:
    def read() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert texts(Store(store.folder).records()) == texts(every_kind())

    assert forked(*[read] * 4) == [0] * 4


def test_newest_and_costs_are_those_of_all_records(store: Store) -> None:
    records = store.records()
    again = record("supervised", 20)  # the same cell, on other data
    again.spec = _with_fingerprint(again)
    again.run_id, again.created = again.spec.run_id, "2031-01-01"
    store.save(again)
    records = store.records()
    for by_text in (False, True):
        wanted = {spec_key(each.spec, by_text): each for each in sorted(records, key=_age_of)}
        assert store.newest(wanted, by_text) == wanted
        assert store.newest(["none"], by_text) == {}
    for each in records:
        for key in cost_keys(each.spec):
            assert sorted(store.training_cpu_s(key)) == sorted(Made(records).training_cpu_s(key))
        assert Prices(store).of(each.spec) == Prices(Made(records)).of(each.spec)


def _age_of(made: object) -> tuple[str, str]:
    return made.created, made.run_id  # type: ignore[attr-defined]


def _with_fingerprint(made: object) -> object:
    import msgspec

    spec = made.spec  # type: ignore[attr-defined]
    data = msgspec.structs.replace(spec.data, fingerprint="another")
    return msgspec.structs.replace(spec, data=data)


@pytest.mark.skipif(os.name != "posix", reason="names of files are Unicode there")
def test_a_name_that_is_not_utf8_is_named_and_the_rest_goes_on(store: Store) -> None:
    whole = [made.run_id for made in store.records()]
    for name in (b"\xff\xfe.json", b"segments/\xff.segment"):
        path = Path(os.fsdecode(os.path.join(os.fsencode(store.folder), name)))
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"{}")
    for _ in range(2):  # the second one finds the index
        with pytest.warns(StoreWarning, match="ignored"):
            assert [made.run_id for made in Store(store.folder).records()] == whole
    with pytest.warns(StoreWarning, match="ignored"):
        assert pack(store).segments
    with pytest.warns(StoreWarning, match="ignored"):
        assert [made.run_id for made in Store(store.folder).records()] == whole
