"""Licences to be accepted before a download, and the audit of a dataset."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import Result

from sslbench.engine.corpus import Column, Corpus, CorpusShards, Vocabulary
from sslbench.engine.errors import UserError
from sslbench.experiment.data import DataHome, Dataset
from sslbench.plugins import Registry
from sslbench.plugins.registrations import RemoteFile
from support.command import sslbench
from support.file_server import Served, registration, serving
from support.texts import corpus_of

CONTENT = b"some bytes\n"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    """Serves free.bin, mine.bin and other.bin."""
    files = {f"{name}.bin": CONTENT for name in ("free", "mine", "other")}
    with serving(tmp_path / "www", files) as served:
        yield served


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DataHome:
    monkeypatch.setenv("SSLBENCH_DATA", str(tmp_path / "home"))
    monkeypatch.setenv("SSLBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SSLBENCH_OFFLINE", "0")
    return DataHome(dataset="mine")


def remote(base: str, name: str, licence: str = "") -> RemoteFile:
    return RemoteFile(
        path=f"{name}.bin",
        urls=(f"{base}/{name}.bin",),
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        licence=licence or "free",
        bytes=len(CONTENT),
        agreement=bool(licence),
    )


Data = Callable[..., Result]


@pytest.fixture
def data(home: DataHome, server: Served, monkeypatch: pytest.MonkeyPatch) -> Data:
    """Call ``sslbench data``, where the data set "mine" has a free file and two restricted."""
    base = server[0]
    files = (
        remote(base, "free"),
        remote(base, "mine", "research use only"),
        remote(base, "other", "no commercial use"),
    )
    known = Registry(datasets={"mine": registration(*files, licence="as the files")})
    monkeypatch.setattr("sslbench.cli.data.registry", lambda: known)
    return lambda *arguments, given="": sslbench("data", *arguments, stdin=given)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sslbench.cli.data.can_ask", lambda: True)


def test_a_script_has_to_say_that_it_accepts(data: Data, server: Served) -> None:
    result = data("fetch", "mine")
    assert result.exit_code == 2
    assert result.stderr == (
        "sslbench: licence to accept before the download: research use only; no commercial use;"
        " sslbench data fetch --accept-licence mine does so\n"
    )
    assert server[1] == []


@pytest.mark.parametrize("option", ["--accept-licence", "--yes"])
def test_with_the_option_nothing_is_asked(data: Data, home: DataHome, option: str) -> None:
    result = data("fetch", option, "mine")
    assert result.exit_code == 0
    names = ("free.bin", "mine.bin", "other.bin")
    assert result.stdout == "".join(f"{home.root / name}\n" for name in names)
    assert "accept" not in result.stderr


@pytest.mark.usefixtures("terminal")
def test_on_a_terminal_each_licence_is_shown_and_asked_for_once(
    data: Data, server: Served, home: DataHome
) -> None:
    result = data("fetch", "mine", given="y\ny\n")
    assert result.exit_code == 0
    assert result.stderr.count("Do you accept this licence?") == 2
    assert "research use only" in result.stderr
    assert "no commercial use" in result.stderr
    assert len(server[1]) == 3
    # What is in the data home needs no agreement any more.
    (home.root / "free.bin").unlink()
    again = data("fetch", "mine")
    assert again.exit_code == 0
    assert "accept" not in again.stderr


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("given", ["n\n", "\n", "y\nn\n"])
def test_refused_nothing_is_downloaded(data: Data, server: Served, given: str) -> None:
    result = data("fetch", "mine", given=given)
    assert result.exit_code == 2
    assert "licence not accepted; nothing was downloaded" in result.stderr
    assert server[1] == []


@pytest.mark.usefixtures("terminal")
def test_offline_nothing_is_asked(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSLBENCH_OFFLINE", "1")
    result = data("fetch", "mine")
    assert result.exit_code == 2
    assert "accept" not in result.stderr
    assert "free.bin is not in the data home" in result.stderr


def test_without_agreement_there_is_no_download(home: DataHome, server: Served) -> None:
    file = remote(server[0], "mine", "research use only")
    with pytest.raises(UserError, match=r"\(research use only\); sslbench data fetch mine asks"):
        home.path(file)
    assert server[1] == []
    assert home.path(file, agreed=True).read_bytes() == CONTENT
    assert home.path(file).read_bytes() == CONTENT
    assert server[1] == ["/mine.bin"]


def test_a_run_says_which_command_to_give(home: DataHome, tmp_path: Path) -> None:
    arguments = [
        *("--method", "supervised", "--dataset", "conll02", "--store"),
        str(tmp_path / "runs"),
    ]
    result = sslbench("run", *arguments)
    assert result.exit_code in (1, 2)
    lines = [line for line in result.stderr.splitlines() if line.startswith("sslbench: ")]
    assert "shared task only" in lines[0]
    assert "sslbench data fetch conll02 asks for it" in lines[0]
    assert not home.root.exists()


def test_info_tells_what_has_to_be_accepted(data: Data, server: Served) -> None:
    text = " ".join(data("info", "mine").stdout.split())
    assert "research use only (must be accepted before the download)" in text
    assert "free (to be" not in text
    assert server[1] == []


def sentences(words: Vocabulary, *rows: str) -> Corpus:
    corpus = corpus_of([row.split() for row in rows], words)
    labels = Column(Vocabulary(["O"]), np.zeros(corpus.n_tokens, dtype=np.int32))
    return corpus.with_column("label", labels)


@pytest.fixture
def made_up(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    words = Vocabulary()
    splits = {
        "train": sentences(words, "a b", "c", "c", "d"),
        "dev": sentences(words, "c", "x y z"),
        "test": sentences(words, "a b", "a b", "b a", "c"),
    }
    text = CorpusShards(sentences(words, "d", "e", "x y z").drop("label"))
    actual = Dataset("mine", "spans", "f1", None, splits, external=lambda: text)
    module = SimpleNamespace(load=lambda home: actual)
    monkeypatch.setitem(sys.modules, "made_up_data", module)  # type: ignore[arg-type]


@pytest.mark.usefixtures("made_up")
def test_the_audit_counts_sentences_that_stand_in_several_splits(data: Data) -> None:
    assert data("fetch", "--yes", "mine").exit_code == 0
    assert "duplicates" not in data("info", "mine").stdout
    result = data("info", "--audit", "mine")
    assert result.exit_code == 0
    actual = [line.split(maxsplit=1) for line in result.stdout.splitlines()[-10:]]
    assert actual == [
        ["train", "4 sentences, 5 tokens"],
        ["dev", "2 sentences, 4 tokens"],
        ["test", "4 sentences, 7 tokens"],
        ["external", "3 sentences, 5 tokens"],
        ["duplicates", "1 of 2 sentences of dev are in train"],
        ["duplicates", "3 of 4 sentences of test are in train"],
        ["duplicates", "1 of 4 sentences of test are in dev"],
        ["duplicates", "1 of 4 sentences of train are in external text"],
        ["duplicates", "1 of 2 sentences of dev are in external text"],
        ["duplicates", "0 of 4 sentences of test are in external text"],
    ]


@pytest.mark.usefixtures("made_up")
def test_the_audit_of_what_is_not_there_downloads_nothing(data: Data, server: Served) -> None:
    result = data("info", "--audit", "mine")
    assert result.exit_code == 1
    assert "mine: free.bin is not in the data home; sslbench data fetch mine" in result.stderr
    assert server[1] == []


def test_the_audit_of_a_generated_data_set() -> None:
    result = sslbench("data", "info", "--audit", "synth")
    assert result.exit_code == 0
    assert "3,000 sentences" in result.stdout
    assert "of 400 sentences of test are in external text" in result.stdout
