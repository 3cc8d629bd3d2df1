"""Bundles of a stranger's runs: what is in them comes back, what is wrong with them is said."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from click.testing import Result

from sslbench.engine.errors import UserError
from sslbench.experiment.records import bundle as bundles
from sslbench.experiment.records import segment as segments
from sslbench.experiment.records.bundle import Manifest, read_bundle, write_bundle
from sslbench.experiment.records.reading import StoreWarning
from sslbench.experiment.records.record import RunRecord, encode
from sslbench.experiment.records.store import Store
from sslbench.suite.cells import Cell
from sslbench.suite.submission import sample
from support.command import sslbench
from support.packed_records import every_kind, texts
from support.suite_fakes import TOY, made, opened, suite_file

MANIFEST = Manifest(suite="toy", methods=["majority"], datasets=[], sslbench="1", plugins={})


def submit(*words: object) -> Result:
    return sslbench("submit", *words)


def test_all_records_come_back_and_equal_ones_give_equal_bytes(tmp_path: Path) -> None:
    records, path = every_kind(), tmp_path / "x.bundle"
    write_bundle(path, MANIFEST, records)
    first = path.read_bytes()
    with read_bundle(path).store() as store:
        assert texts(store.records()) == texts(records)
        folder = store.folder
    assert not folder.exists()
    write_bundle(path, MANIFEST, reversed(records))
    assert path.read_bytes() == first
    assert [each.name for each in tmp_path.iterdir()] == ["x.bundle"]


def test_a_record_that_contradicts_itself_is_not_packed(tmp_path: Path) -> None:
    """What is written under the name of the bundle is complete, or nothing is."""
    records = every_kind()
    records[-1].metrics["test"]["accuracy"] = 0.999
    with pytest.warns(StoreWarning), pytest.raises(UserError, match="cannot be packed"):
        write_bundle(tmp_path / "x.bundle", MANIFEST, records)
    assert not list(tmp_path.iterdir())


def test_the_sample_is_not_for_the_submitter_to_choose(tmp_path: Path) -> None:
    path = tmp_path / "x.bundle"
    chosen = []
    for records in (every_kind(), every_kind()[:-1]):
        write_bundle(path, MANIFEST, records)
        chosen.append([each.run_id for each in sample(read_bundle(path), every_kind(), 4)])
    assert chosen[0] != chosen[1]
    assert len(chosen[0]) == 4


@pytest.fixture
def cells(tmp_path: Path, fake_plugin: None) -> list[Cell]:
    """The cells of majority on a suite."""
    _, cells = opened(suite_file(tmp_path))
    return [cell for cell in cells if cell.line == "majority"]


def packed(folder: Path, records: list[RunRecord]) -> Path:
    """The bundle of these records of majority, as the command writes it."""
    store = Store(folder / "mine")
    for record in records:
        store.save(record)
    out = folder / "toy.bundle"
    done = submit(
        folder / "toy.toml", "--method", "majority", "--store", store.folder, "--out", out
    )
    assert done.exit_code == 0, done.output
    return out


def forged(path: Path, records: list[RunRecord], runs: int) -> Path:
    """A bundle with right hashes, whatever its records say: whoever wrote it computed them all."""
    block = segments.block([msgspec.json.decode(encode(record)) for record in records])
    data = segments.MAGIC + block
    sha256 = hashlib.sha256(data).hexdigest()
    manifest = msgspec.structs.replace(MANIFEST, runs=runs, sha256=sha256, bytes=len(data))
    path.write_bytes(bundles.MAGIC + msgspec.json.encode(manifest) + b"\n" + data)
    return path


def check(bundle: Path, *words: object) -> Result:
    store = ("--store", bundle.parent / "theirs", "--replay", 0)
    return submit(bundle.parent / "toy.toml", "--check", bundle, *store, *words)


def test_a_good_bundle_becomes_rows(tmp_path: Path, cells: list[Cell]) -> None:
    bundle = packed(tmp_path, [made(cell) for cell in cells])
    done = check(bundle)
    assert done.exit_code == 0, done.output
    assert "6 runs, each with its digest" in done.stdout
    assert "6 of 6 cells of the suite toy" in done.stdout
    assert "not compared" in done.stdout
    assert "FAILED" not in done.stdout
    assert not (tmp_path / "theirs").exists()
    assert check(bundle, "--add").exit_code == 0
    ours, theirs = (Store(tmp_path / name).records() for name in ("mine", "theirs"))
    assert texts(ours) == texts(theirs)


def test_runs_that_are_not_done_are_named(tmp_path: Path, cells: list[Cell]) -> None:
    words = (tmp_path / "toy.toml", "--method", "majority", "--store", tmp_path / "mine")
    none = submit(*words)
    assert none.exit_code == 2
    assert "no finished run to submit" in none.stderr
    assert "sslbench suite extend toy" in none.stderr
    old = made(cells[0])
    old.code = {**old.code, "method": "0"}
    for record in (old, made(cells[1])):
        Store(tmp_path / "mine").save(record)
    done = submit(*words, "--out", tmp_path / "toy.bundle")
    assert "not submitted, stale: majority on toy, labeled 10" in done.stderr
    assert done.stderr.count("not submitted, missing") == 4
    assert "1 of 6 cells of the suite toy, 5 missing" in check(tmp_path / "toy.bundle").stdout


def _stale(record: RunRecord) -> None:
    record.code = {**record.code, "engine": "0"}


def _at_a_path(record: RunRecord) -> None:
    record.data = {**record.data, "path": "/etc"}


def _better(record: RunRecord) -> None:
    record.metrics = {"test": {**record.metrics["test"], "accuracy": 0.999}}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_stale, "made by other versions of the code"),
        (_at_a_path, "not of the suite toy"),
        (_better, "accuracy is 0.999, its counts give"),
    ],
)
def test_what_is_wrong_is_said(
    tmp_path: Path, cells: list[Cell], change: Callable[[RunRecord], None], words: str
) -> None:
    records = [made(cell) for cell in cells[:2]]
    change(records[0])
    done = check(forged(tmp_path / "toy.bundle", records, 2), "--add")
    assert done.exit_code == 1
    assert any(words in line for line in done.stdout.splitlines() if line.startswith("FAILED"))
    assert "refused" in done.stderr
    assert not (tmp_path / "theirs").exists()


def test_runs_of_another_method_or_number_are_refused(tmp_path: Path, cells: list[Cell]) -> None:
    _, every = opened(tmp_path / "toy.toml")
    other = next(cell for cell in every if cell.line == "peeking")
    done = check(forged(tmp_path / "toy.bundle", [made(cells[0]), made(other)], 1))
    assert done.exit_code == 1
    assert "the manifest says 1" in done.stdout
    assert "not of the suite toy: " in done.stdout
    assert "(peeking on toy, seed 0)" in done.stdout


def test_the_data_and_predictions_are_compared_with_the_store(
    tmp_path: Path, cells: list[Cell]
) -> None:
    bundle = packed(tmp_path, [made(cell) for cell in cells])
    _, every = opened(tmp_path / "toy.toml")
    other = next(cell for cell in every if cell.line == "peeking")
    theirs = Store(tmp_path / "theirs")
    theirs.save(made(other))
    assert "the same data as the runs in" in check(bundle).stdout
    theirs.save(made(other, data="another"))
    theirs.path(made(other).run_id).unlink()
    assert "FAILED  on other data than the store: toy" in check(bundle).stdout
    again = made(cells[0])
    again.predictions_sha256 = "0" * 64
    theirs.save(again)
    assert "FAILED  other predictions than those in the store" in check(bundle).stdout


def test_damage_costs_one_line(tmp_path: Path, cells: list[Cell]) -> None:
    bundle = packed(tmp_path, [made(cells[0])])
    data = bundle.read_bytes()
    head = data.index(b"}\n") + 2
    flipped = data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]
    for damaged, words in (
        (flipped, "another sha256"),
        (data[:-1], "but should be"),
        (data + b"x", "but should be"),
        (data[: head - 2] + data[head:], "not a bundle"),
        (data.replace(b'"suite"', b'"siute"'), "not a bundle"),
        (data.replace(b'"runs":1', b'"runs":0'), "not a bundle"),
        (data.replace(b"bundle 1", b"bundle 2"), "not a bundle"),
        (b"", "not a bundle"),
    ):
        bundle.write_bytes(damaged)
        done = check(bundle, "--add")
        assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
        assert words in done.stderr
    assert not (tmp_path / "theirs").exists()
    assert check(tmp_path / "none").exit_code == 2


def test_a_bundle_names_no_path_and_no_unknown_method(tmp_path: Path, cells: list[Cell]) -> None:
    path, store = tmp_path / "x.bundle", ("--store", tmp_path / "theirs")
    for changes, words in (
        ({"suite": "../toy"}, "names the suite '../toy'"),
        ({"suite": "toy.toml"}, "names the suite 'toy.toml'"),
        ({"suite": "smoke", "methods": ["mine"], "plugins": {"p": "2"}}, "made with p==2"),
    ):
        write_bundle(path, msgspec.structs.replace(MANIFEST, **changes), [made(cells[0])])
        done = submit("--check", path, *store)
        assert done.exit_code == 2
        assert words in done.stderr


def test_options_of_the_other_use_are_refused(tmp_path: Path) -> None:
    for words in (
        ("toy", "--add"),
        ("--check", "x", "--method", "m"),
        ("--check", "x", "--out", "y"),
    ):
        done = submit(*words)
        assert done.exit_code == 2
        assert "--check" in done.stderr
    assert "give a SUITE" in submit("--method", "m").stderr


@pytest.mark.usefixtures("fake_plugin")
def test_a_sample_is_replayed(tmp_path: Path) -> None:
    text = TOY.replace("[10, 20]", "[10]").replace("seeds = 3", "seeds = 1")
    path = suite_file(tmp_path, text)
    words = (path, "--method", "majority", "--store", tmp_path / "mine")
    assert sslbench("suite", "extend", *words).exit_code == 0
    out = tmp_path / "toy.bundle"
    assert submit(*words, "--out", out).exit_code == 0
    again = submit(path, "--check", out, "--store", tmp_path / "theirs")
    assert again.exit_code == 0, again.output
    assert "same       majority on toy, labeled 10, seed 0" in again.stdout
    (record,) = Store(tmp_path / "mine").records()
    lying = made(opened(path)[1][0], data=record.spec.data.fingerprint)
    assert lying.run_id == record.run_id
    write_bundle(out, read_bundle(out).manifest, [lying])
    found = submit(path, "--check", out, "--store", tmp_path / "theirs")
    assert found.exit_code == 1
    assert f"FAILED  {record.run_id}  different" in found.stdout
