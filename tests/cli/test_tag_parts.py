"""`sslbench tag` on text of any length: in parts, with the same result as at once."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from click.testing import Result

from support.chunk_text import chunks
from support.command import sslbench


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    (folder / "train.txt").write_text(chunks(40, "IOBES"))
    train = ["train", "--method", "supervised", "--columns", "word,label"]
    files = ["--data", str(folder / "train.txt"), "--save", str(folder / "m")]
    assert sslbench(*train, *files).exit_code == 0
    return folder / "m"


def tag(model: Path, *words: object, stdin: str | None = None) -> Result:
    return sslbench("tag", model, *words, stdin=stdin)


def test_parts_give_the_same_bytes_and_scores(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "-DOCSTART- O\n\n" + chunks(200, "IOBES", seed=1)
    (tmp_path / "text").write_text(text)
    (tmp_path / "text.gz").write_bytes(gzip.compress(text.encode()))
    whole = tag(model, tmp_path / "text")
    assert "200 sentences: accuracy" in whole.stderr
    monkeypatch.setattr("sslbench.engine.corpus.sentence_parts._PART", 100)
    monkeypatch.setattr("sslbench.cli.tag._BLOCK", 64)
    parts = tag(model, "-", stdin=text)
    assert parts.stdout == whole.stdout
    assert (
        parts.stderr.split(": ", 1)[1].split(", ", 1)[1]
        == (whole.stderr.split(": ", 1)[1].split(", ", 1)[1])
    )
    packed = tag(model, tmp_path / "text.gz", "--out", tmp_path / "out")
    assert packed.exit_code == 0
    assert (tmp_path / "out").read_text() == whole.stdout


def test_an_error_in_a_later_part_has_its_line(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sslbench.engine.corpus.sentence_parts._PART", 10)
    text = "the O\nn1 O\n\n" * 50 + "out\n"
    monkeypatch.setattr("sslbench.cli.tag._BLOCK", 16)
    result = tag(model, "-", "--out", tmp_path / "out", stdin=text)
    assert result.exit_code == 2
    assert result.stderr.startswith("sslbench: standard input:151: 1 column where 2")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("file", ["/dev/zero", "/dev/urandom"])
def test_an_endless_device_is_one_line(model: Path, file: str) -> None:
    result = tag(model, file)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"sslbench: {file}")
    assert len(result.stderr.splitlines()) == 1
    refused = tag(Path(file), file)
    assert refused.stderr == f"sslbench: {file}: this is not a saved sslbench model\n"


def test_blanks_without_end_are_refused(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sslbench.engine.corpus.sentence_parts._PART", 10)
    monkeypatch.setattr("sslbench.engine.corpus.sentence_parts.MAX_SENTENCE", 100)
    monkeypatch.setattr("sslbench.tagging.files.MAX_SENTENCE", 100)
    monkeypatch.setattr("sslbench.cli.tag._BLOCK", 16)
    late = tag(model, "-", stdin="\n" * 50 + "the O\n")
    assert late.stdout.startswith("\n" * 50 + "the O ")
    never = tag(model, "-", stdin="\n" * 500 + "the O\n")
    assert (never.exit_code, never.stdout) == (2, "")
    assert never.stderr == "sslbench: standard input: no token in the first 100 bytes\n"
