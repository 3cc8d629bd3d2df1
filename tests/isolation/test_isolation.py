"""A method's process: what it is kept from, and how its end is told."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from sslbench.engine.compilation.compiled import package_folder
from sslbench.engine.corpus import (
    ChainedShards,
    Column,
    Corpus,
    CorpusShards,
    StoredShards,
    Vocabulary,
)
from sslbench.experiment.execute.pool import run_all
from sslbench.experiment.run.runner import execute
from sslbench.isolation.process import portable, without_later_words
from sslbench.isolation.restrict import Restrictions, Watch, restrict, restrict_files
from sslbench.isolation.start import isolated
from sslbench.plugins import registry
from sslbench.processes import call_apart
from support.run_fakes import LARGE_MB, install, task
from support.waiting import HANG

linux = pytest.mark.skipif(sys.platform != "linux", reason="forks and Landlock are of Linux")


def in_child(call: object) -> str:
    """What a call returns or raises in a forked process."""

    def answer() -> bytes:
        try:
            return str(call()).encode()  # type: ignore[operator]
        except Exception as error:
            return type(error).__name__.encode()

    return call_apart(answer, HANG).decode()


def restricted(hidden: list[Path], writable: list[Path], call: object) -> str:
    def both() -> object:
        if not restrict_files(hidden, writable):
            return "not available"
        return call()  # type: ignore[operator]

    found = in_child(both)
    if found == "not available":
        pytest.skip("this kernel has no Landlock")
    return found


@linux
def test_hidden_files_cannot_be_read_others_can(tmp_path: Path) -> None:
    hidden, beside = tmp_path / "hidden", tmp_path / "beside"
    hidden.mkdir()
    (hidden / "gold").write_text("A B")
    beside.write_text("text")
    (tmp_path / "link").symlink_to(hidden / "gold")
    for name in ("hidden/gold", "link"):
        path = tmp_path / name
        assert restricted([hidden], [], path.read_text) == "PermissionError"
        assert restricted([], [], path.read_text) == "A B"
    assert restricted([hidden], [], beside.read_text) == "text"
    shell = f"import subprocess; print(subprocess.call(['cat', {str(hidden / 'gold')!r}]))"
    run = lambda: subprocess.run([sys.executable, "-c", shell], capture_output=True).stdout  # noqa: E731
    assert restricted([hidden], [], run) == str(b"1\n")


@linux
def test_writing_is_for_given_folders(tmp_path: Path) -> None:
    (tmp_path / "given").mkdir()
    for name, found in (("given/new", "1"), ("new", "PermissionError")):
        path = tmp_path / name
        assert restricted([], [tmp_path / "given"], lambda p=path: p.write_text("x")) == found
    assert not (tmp_path / "new").exists()


@linux
def test_the_hook_notes_what_it_refuses(tmp_path: Path) -> None:
    gold = tmp_path / "gold"
    gold.write_text("A")

    def look() -> list[str]:
        sys.modules.pop("sslbench_datasets.synth.load", None)
        watch = Watch()
        watch.start([gold], ["sslbench_datasets.synth"])
        for attempt in (gold.read_text, lambda: __import__("sslbench_datasets.synth.load")):
            with pytest.raises(PermissionError):
                attempt()
        return watch.take()

    found = in_child(look)
    assert f"read {gold}" in found
    assert "import sslbench_datasets.synth" in found


@linux
def test_a_kernel_beside_a_hidden_dataset_keeps_its_machine_code(tmp_path: Path) -> None:
    """Its package's sources enter the name of the folder, and one of them is hidden."""
    loader = "sslbench_datasets.letters.load"
    hidden = [Path(str(find_spec(loader).origin))]  # type: ignore[union-attr]

    def import_it() -> tuple[bool, list[str]]:
        for name in [each for each in sys.modules if each.startswith("sslbench_datasets.letters")]:
            del sys.modules[name]
        package_folder.cache_clear()
        watch = Watch()
        folders = [tmp_path] * 3
        restrict(Restrictions(hidden, [tmp_path], [loader], *folders, None, None), watch)
        kernels = import_module("sslbench_datasets.letters.emd")
        return bool(kernels.count.stats.cache_path), watch.take()

    assert in_child(import_it) == str((True, []))


@linux
def test_a_folder_of_the_run_in_the_hidden_store_is_open(tmp_path: Path) -> None:
    """Checkpoints: the hook and Landlock let the process read and write there, and nowhere else."""
    own = tmp_path / "store" / "checkpoints" / "run"
    own.mkdir(parents=True)
    gold = tmp_path / "store" / "record.json"
    gold.write_text("A")

    def look() -> str:
        Watch().start([tmp_path / "store"], [], [own])
        restrict_files([tmp_path / "store"], [own])
        (own / "state").write_text("B")
        with pytest.raises(PermissionError):
            gold.read_text()
        return (own / "state").read_text()

    assert in_child(look) == "B"


def test_a_run_without_a_usable_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, each run failed: the folder could not be made."""
    (tmp_path / "cache").write_text("a file")
    monkeypatch.setenv("SSLBENCH_CACHE", str(tmp_path / "cache"))
    install(tmp_path, monkeypatch)
    (record,) = run_all([task(labeled=20)], isolated)
    registry.cache_clear()
    assert record.status == "ok", record.error


class Generated:
    """Text that only code of this module can make."""

    n_sentences, n_tokens = 2, 3

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary

    def __iter__(self) -> Iterator[Corpus]:
        for words in ("a b", "c"):
            codes = self.vocabulary.encode(words.split())
            yield Corpus({"word": Column(self.vocabulary, codes)}, np.array([0, len(codes)]))


def test_generated_text_is_sent_as_words_with_the_same_codes(tmp_path: Path) -> None:
    vocabulary = Vocabulary(["c"])
    stored = CorpusShards(next(iter(Generated(vocabulary))))
    found = portable(ChainedShards([stored, Generated(vocabulary)]), tmp_path)
    assert isinstance(found, ChainedShards)
    assert found.parts[0] is stored
    assert type(found.parts[1]) is StoredShards
    data = pickle.dumps((vocabulary, found))
    assert b"Generated" not in data
    words, text = pickle.loads(data)  # noqa: S301
    assert [shard.column("word").codes.tolist() for shard in text] == [[1, 2], [1, 2], [0]]
    assert all(shard.column("word").vocabulary is words for shard in text)


def test_a_text_to_tag_is_sent_without_the_words_of_later_text() -> None:
    vocabulary = Vocabulary(f"w{i}" for i in range(9))
    corpus = Corpus({"word": Column(vocabulary, np.array([4, 2, 4]))}, np.array([0, 1, 3]))
    sent = without_later_words(corpus).column("word")
    assert sent.vocabulary.strings == vocabulary.strings[:5]
    assert sent.codes.tolist() == [4, 2, 4]


@pytest.mark.usefixtures("fake_plugin")
def test_the_process_changes_no_result() -> None:
    asked = task(labeled=20, tune=3)
    here, (apart,) = execute(asked), run_all([asked], isolated)
    assert apart.status == "ok", apart.error
    assert apart.predictions_sha256 == here.predictions_sha256
    assert [each["score"] for each in apart.tuning] == [each["score"] for each in here.tuning]
    assert apart.params == here.params
    assert here.environment["isolation"] == "none"
    assert apart.environment["isolation"] in ("landlock", "audit hook")


@linux
@pytest.mark.usefixtures("fake_plugin")
def test_a_method_may_print_where_the_command_writes_to_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with (tmp_path / "log").open("w") as log:
        monkeypatch.setattr(sys, "stdout", log)
        method = isolated(task(labeled=20), registry(), tmp_path, None)
        try:
            record = execute(task(labeled=20), registry(), method)
        finally:
            method.close()
    assert record.status == "ok", record.error
    assert "a method that chats" in capfd.readouterr().err
    assert (tmp_path / "log").read_text() == ""


@pytest.mark.usefixtures("fake_plugin")
def test_a_run_beyond_its_memory_ends_and_the_others_go_on() -> None:
    tasks = [task("hostile", params={"how": "large"}), task(labeled=20)]
    large, other = sorted(run_all(tasks, isolated, memory=LARGE_MB * 2**20), key=lambda r: r.method)
    assert (large.status, large.error_kind) == ("memory", "memory")
    assert "--memory" in str(large.error)
    assert other.status == "ok"
