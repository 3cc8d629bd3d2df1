"""What comes with the package: suites, prices, archives by address and sha256."""

from __future__ import annotations

import hashlib
import random
import re
import shutil
from pathlib import Path

import pytest
from click.testing import Result

from sslbench.engine.errors import UserError
from sslbench.experiment.planning.published import (
    PublishedCosts,
    published_folder,
    read_results,
    results_text,
)
from sslbench.experiment.records.archive import pack
from sslbench.experiment.records.cost import Prices
from sslbench.experiment.records.remote import read_registry
from sslbench.experiment.records.store import Store
from sslbench.suite.file import read_suite
from support.command import sslbench
from support.packed_records import every_kind, texts
from support.suite_fakes import Made

ROOT = Path(__file__).parents[2]


def results(*words: object) -> Result:
    return sslbench("results", *words)


def test_a_suite_of_the_package_writes_to_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("smoke", "standard"):
        suite = read_suite(name)
        assert suite.path.is_file()
        assert (suite.store, suite.out) == (Path("runs"), Path("runs/leaderboard"))
        assert (suite.ledger, suite.include) == (None, ())
    mine = tmp_path / "leaderboards/suites/smoke.toml"
    mine.parent.mkdir(parents=True)
    shutil.copy(suite.path.with_name("smoke.toml"), mine)
    assert read_suite("smoke").path == mine.relative_to(tmp_path)
    assert read_suite("smoke").store == Path("leaderboards/suites/../../runs")
    for name in ("nothing", "../suites/standard", "suites/standard"):
        with pytest.raises(UserError, match="no such suite"):
            read_suite(name)


def test_the_wheel_has_what_is_published() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    names = re.findall(r'^"(leaderboards/\S+)" = "sslbench/published/(\S+)"$', text, re.M)
    assert {inside for _, inside in names} == {"suites", "archive.toml", "results.csv"}
    for path, inside in names:
        assert (ROOT / path).exists()
        assert (published_folder() / inside).exists()


def test_the_table_is_a_function_of_the_set_of_records_and_has_their_prices(tmp_path: Path) -> None:
    records = every_kind()
    text = results_text(records)
    random.Random(1).shuffle(records)
    assert results_text(records) == text
    path = tmp_path / "results.csv"
    path.write_text(text)
    assert sum(len(line.by_run) for line in read_results(path)) == len(records) - 3  # three failed
    published, made = Prices(PublishedCosts(path)), Prices(Made(records))
    for record in records:
        assert published.of(record.spec) == made.of(record.spec)
    assert Prices(PublishedCosts(tmp_path / "none.csv")).of(records[0].spec) is None
    path.write_text("method\nx\n")
    with pytest.raises(UserError, match=r"results\.csv: not a table of results"):
        Prices(PublishedCosts(path)).of(records[0].spec)


def test_prices_of_the_store_go_before_published_ones() -> None:
    dear, cheap = ([_with_cpu(each, cpu) for each in every_kind()] for cpu in (50.0, 2.0))
    spec = dear[-1].spec
    assert Prices(Made(dear), Made(cheap)).of(spec) == Prices(Made(dear)).of(spec)
    assert Prices(Made([]), Made(cheap)).of(spec) == Prices(Made(cheap)).of(spec)


def _with_cpu(record: object, cpu_s: float) -> object:
    record.cpu_s = cpu_s  # type: ignore[attr-defined]
    return record


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    """A registry file with an archive of made-up records."""
    store = Store(tmp_path / "made")
    for record in every_kind():
        store.save(record)
    (path,) = pack(store).segments
    shutil.copy(path, tmp_path / "segment")
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    file = tmp_path / "archive.toml"
    file.write_text(
        f'[[archive]]\nname = "toy@1"\nabout = "made up"\nruns = {len(every_kind())}\n'
        f'[[archive.files]]\nname = "{path.name}"\nurls = ["segment"]\n'
        f'sha256 = "{sha256}"\nbytes = {path.stat().st_size}\n'
    )
    return file


def test_fetch(registry: Path, tmp_path: Path) -> None:
    assert "toy@1  29 runs" in results("fetch", "--registry", registry).stdout
    words = ("fetch", "toy@1", "--registry", registry, "--store", tmp_path / "runs")
    for _ in range(2):  # the second time, it is there
        done = results(*words)
        assert done.exit_code == 0, done.output
    assert texts(Store(tmp_path / "runs").records()) == texts(every_kind())
    text = registry.read_text().replace('"segment"', f'"file://{tmp_path}/segment"')
    registry.write_text(text)
    again = results(*words[:-1], tmp_path / "again")
    assert again.exit_code == 0, again.output


def test_registered_segments_are_fetched_again(tmp_path: Path) -> None:
    store, registry = Store(tmp_path / "made"), tmp_path / "boards" / "archive.toml"
    registry.parent.mkdir()
    words = ("register", "toy@1", "--about", 'of "toys" \U0001f9f8', "--registry", registry)
    assert "no segments" in results(*words, "--store", store.folder).stderr
    for record in every_kind():
        store.save(record)
    pack(store)
    done = results(*words, "--store", store.folder)
    assert done.exit_code == 0, done.output
    again = results("fetch", "toy@1", "--registry", registry, "--store", tmp_path / "runs")
    assert again.exit_code == 0, again.output
    assert texts(Store(tmp_path / "runs").records()) == texts(every_kind())
    path = "../made/segments/"
    moved = registry.read_text().replace(f'["{path}', f'["https://example.org/", "{path}')
    registry.write_text(moved)
    results("register", "other@1", *words[2:], "--store", store.folder)
    results(*words, "--store", store.folder)
    text = registry.read_text()
    assert text.count("https://example.org/") == 1  # of the archive of this name
    assert text.count("[[archive]]") == 2
    assert read_registry(registry)["toy@1"].about == 'of "toys" \U0001f9f8'


def test_the_archive_of_the_repository_is_what_its_registry_says() -> None:
    registry = ROOT / "leaderboards/archive.toml"
    for archive in read_registry(registry).values():
        for file in archive.files:
            data = (registry.parent / file.urls[0]).read_bytes()
            assert (len(data), hashlib.sha256(data).hexdigest()) == (file.bytes, file.sha256)


def test_wrong_bytes_are_not_put_in_place(registry: Path, tmp_path: Path) -> None:
    words = ("fetch", "toy@1", "--registry", registry, "--store", tmp_path / "runs")
    data = (tmp_path / "segment").read_bytes()
    (tmp_path / "segment").write_bytes(data[:-1])
    wrong = results(*words)
    assert wrong.exit_code == 1 or isinstance(wrong.exception, UserError) or wrong.exit_code == 2
    assert "but should be" in wrong.stderr
    assert not list((tmp_path / "runs" / "segments").iterdir())
    (tmp_path / "segment").unlink()
    assert "no file" in results(*words).stderr
    unknown = results("fetch", "other", "--registry", registry)
    assert unknown.exit_code == 2
    assert "there is toy@1" in unknown.stderr
    for old, new in (
        ('name = "', 'name = "../'),
        ("[[archive]]", "[[archive"),
        ("bytes = ", "bytes = -"),
        ("about", "abuot"),
    ):
        (tmp_path / "bad.toml").write_text(registry.read_text().replace(old, new))
        bad = results("fetch", "toy@1", "--registry", tmp_path / "bad.toml")
        assert (bad.exit_code, "bad.toml" in bad.stderr) == (2, True)


def test_pack_and_publish(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs")
    for record in every_kind():
        store.save(record)
    packed = results("pack", "--store", store.folder)
    assert packed.exit_code == 0, packed.output
    assert Path(packed.stdout.strip()).is_file()
    assert "29 records packed" in packed.stderr
    out = tmp_path / "results.csv"
    assert results("publish", "--store", store.folder, "--out", out).exit_code == 0
    assert out.read_text() == results_text(every_kind())
    more = Store(tmp_path / "more")
    for record in every_kind()[10:]:
        more.save(record)
    both = ("--store", more.folder, "--store", store.folder)
    assert "29 records" in results("publish", *both, "--out", out).stderr
    assert out.read_text() == results_text(every_kind())
    none = results("publish", "--store", tmp_path / "none", "--out", out)
    assert none.exit_code == 2
