"""Damaged files end in one clear line (exit status 2), or do no harm; never in another error."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hypothesis import given

from attacks.corpus import kept
from sslbench.engine.corpus import read_conll
from sslbench.engine.corpus.files import RATIO_FREE_BYTES
from sslbench.experiment.data.userdata import load_user_data
from support import damage
from support.command import sslbench
from support.damage import COLUMNS, READERS, Reader, altered, check, fixed, packed, symlink
from support.waiting import HANG

PER_READER = 20
NAMES = [*READERS, "model"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A saved tagger of words."""
    return damage.saved_model(tmp_path_factory.mktemp("model"))


def reader_of(name: str, model: bytes) -> Reader:
    """One of READERS, or the one of saved models."""
    return damage.model_reader(model) if name == "model" else READERS[name]


@pytest.mark.parametrize("name", NAMES)
def test_damaged_files(name: str, model: bytes, tmp_path: Path) -> None:
    """At least PER_READER different ones of each reader, the same in every run."""
    reader = reader_of(name, model)
    path = tmp_path / reader.name
    path.write_bytes(reader.valid)
    assert check(reader, path) == ""
    seen: dict[bytes, str] = {}

    @fixed(2 * PER_READER)
    @given(damage.damaged(reader.valid, reader.is_text))
    def try_one(data: bytes) -> None:
        path.write_bytes(data)
        seen[data] = check(reader, path)

    try_one()
    seen.pop(reader.valid, None)
    assert len(seen) >= PER_READER
    assert any(seen.values())


@pytest.mark.parametrize("name", NAMES)
def test_files_that_have_broken_a_reader(name: str, model: bytes, tmp_path: Path) -> None:
    """Those that the nightly attacks have added, see `attacks.corpus`."""
    reader = reader_of(name, model)
    for data in kept(name):
        (tmp_path / reader.name).write_bytes(data)
        check(reader, tmp_path / reader.name)


def test_there_are_enough_of_them() -> None:
    assert len(NAMES) * PER_READER >= 200


# --- what is not found by chance ----------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_no_file_at_all(name: str, model: bytes, tmp_path: Path) -> None:
    reader = reader_of(name, model)
    path = tmp_path / reader.name
    assert check(reader, path) != ""
    path.write_bytes(b"")
    assert check(reader, path) != ""
    path.unlink()
    path.mkdir()
    assert check(reader, path) != ""


@pytest.mark.parametrize("name", [name for name in READERS if READERS[name].is_text])
@pytest.mark.parametrize(
    "piece", [b"a", b"9", b" ", b"\t", b"(", b"#", b":", b"%x[0,", b'"', b"<BODY>", b"<A", b"A b. "]
)
def test_a_line_without_end(name: str, piece: bytes, tmp_path: Path) -> None:
    """No reader takes the square of a line's length."""
    reader = READERS[name]
    path, at = tmp_path / reader.name, reader.valid.index(b"\n", len(reader.valid) // 3) - 2
    huge = piece * (2**19 // len(piece))
    first, rest = reader.valid[:at], reader.valid[at:]
    for data in (first + huge + rest, first + huge, huge + b"\n" + reader.valid):
        path.write_bytes(data)
        check(reader, path)


@pytest.mark.parametrize("text", ["(" * 2**20, ")" * 2**20, "&#" + "9" * 5000, "&#9;" * 2**18])
def test_stories_of_megabytes(text: str, tmp_path: Path) -> None:
    reader = READERS["newswire"]
    path = tmp_path / reader.name
    path.write_text(f"<BODY>It is {text} that came today.</BODY>" + damage.NEWSWIRE)
    assert check(reader, path) == ""


#: unpacked more than the ratio allows, beyond the size up to which it is not checked
ZEROS = b"\n" * 2**21
ROWS = b"a B-NP\nb I-NP\n\nc O\n"


def archives() -> dict[str, tuple[bytes, str]]:
    """Files in place of a zip file, and what the error says ("" = it is read)."""
    plain = packed(ROWS)
    two = io.BytesIO()
    with zipfile.ZipFile(two, "w") as archive:
        archive.writestr("a\nb\x1b[31m", ROWS)
        archive.writestr("c", ROWS)
    return {
        "bomb": (packed(ZEROS), "unpacks to more than 300 times its size"),
        "bomb.gz": (gzip.compress(ZEROS), "unpacks to more than 300 times its size"),
        "bomb.bz2": (packed(ZEROS, method=zipfile.ZIP_BZIP2), "unpacks to more than 300 times"),
        "bomb that says it is small": (altered(packed(ZEROS), 24, b"\x05\0\0\0"), "damaged"),
        "small that says it is a bomb": (altered(plain, 24, b"\xff\xff\xff\x7f"), ""),
        "packed twice": (packed(packed(ROWS, method=zipfile.ZIP_STORED)), "file.zip:1: "),
        "two members": (two.getvalue(), r"name one: a\nb\x1b[31m, c"),
        "only a folder": (packed(b"", "data/"), "0 files in the archive"),
        "symbolic link": (symlink("/etc/my own passwd"), "3 columns"),
        "escaping name": (packed(ROWS, "../../escaped.conll"), ""),
        "absolute name": (packed(ROWS, "/tmp/escaped.conll"), ""),
        "encrypted": (altered(plain, 8, b"\x01\0"), "the member is encrypted"),
        "strongly encrypted": (altered(plain, 8, b"\x40\0"), "strong encryption"),
        "patched data": (altered(plain, 8, b"\x20\0"), "patched data"),
        "unknown packing": (altered(plain, 10, b"\x63\0"), "compression"),
        "future version": (altered(plain, 6, b"\xff\0"), "zip file version 25.5"),
        "name not in UTF-8": (altered(altered(plain, 8, b"\0\x08"), 46, b"\xff"), "damaged"),
        "no place": (altered(plain, 42, b"\xff\xff\0\0"), "damaged"),
        "wrong checksum": (altered(plain, 16, b"\0\0\0\0"), "damaged"),
        "gzip with rubbish behind": (gzip.compress(ROWS) + b"rubbish", "damaged"),
        "gzip of gzip": (gzip.compress(gzip.compress(ROWS)), "is not utf-8"),
    }


@pytest.mark.parametrize(("name", "case"), archives().items())
def test_archives(
    name: str,
    case: tuple[bytes, str],
    model: bytes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sslbench.engine.corpus.files.RATIO_FREE_BYTES", 2**20)
    data, message = case
    file = tmp_path / "deep" / "er" / "file.zip"
    file.parent.mkdir(parents=True)
    file.write_bytes(data)
    reader = Reader(lambda path: read_conll(path, ("word", "label")), "", b"")
    text = check(reader, file)
    assert message in text
    assert bool(text) == bool(message)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [file]  # nothing escaped
    (tmp_path / "m").write_bytes(model)
    result = sslbench("tag", tmp_path / "m", file)
    assert result.exit_code == (2 if message else 0)
    assert len(result.stderr.splitlines()) == 1


def test_bombs_of_other_kinds_are_unpacked_in_small_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """zipfile unpacks at once all that it reads of bzip2 (20000-fold) and LZMA (7000-fold)."""
    sizes = []
    read = zipfile.ZipExtFile.read

    def watched(self: zipfile.ZipExtFile, n: int | None = -1) -> bytes:
        sizes.append(n)
        return read(self, n)

    monkeypatch.setattr(zipfile.ZipExtFile, "read", watched)
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        (tmp_path / "f.zip").write_bytes(packed(ROWS * 999, method=method))
        assert read_conll(tmp_path / "f.zip", ("word", "label")).n_sentences == 2 * 999 - 998
    assert set(sizes) == {2**12}


# --- the command line ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        ["run", "--store", "runs", "--set", "nosuch=1"],
        ["train", "--save", "m", "--set", "nosuch=1"],
    ],
)
def test_commands_stop_at_a_damaged_file(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The setting that no method has keeps harmless damage from starting a run."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "train.conll"
    words = [*command, "--method", "supervised", "--data", str(path)]
    refused = 0

    @fixed(40)
    @given(damage.damaged(damage.CONLL.encode(), True))
    def try_one(data: bytes) -> None:
        nonlocal refused
        path.write_bytes(data)
        expected = check(
            Reader(lambda p: load_user_data(p, COLUMNS, cut="run" in command), "", b""), path
        )
        result = sslbench(*words)
        assert result.exit_code == 2
        assert result.stdout == ""
        if expected:
            refused += 1
            assert result.stderr == f"sslbench: {expected}\n"

    try_one()
    assert refused >= 15
    assert [file.name for file in tmp_path.iterdir()] == ["train.conll"]


def test_tag_stops_at_a_damaged_file(model: bytes, tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(model)
    path = tmp_path / "x.conll"
    valid = b"\xef\xbb\xbfthe B-NP\ncaf\xc3\xa9 I-NP\n\n-DOCSTART- x\n\nout O\n"

    @fixed(30)
    @given(damage.damaged(valid, True))
    def try_one(data: bytes) -> None:
        path.write_bytes(data)
        result = sslbench("tag", tmp_path / "m", path)
        assert result.exit_code in (0, 2), result.stderr
        form = f"sslbench: {path}: read as "
        lines = [line for line in result.stderr.splitlines() if not line.startswith(form)]
        assert len(lines) == 1
        assert str(path) in lines[0]
        assert (result.stdout_bytes == b"") == (result.exit_code == 2)

    try_one()
    for white in ("\v", "\f", "\r", "\x1c"):
        path.write_text(f"the O\n{white}-DOCSTART-{white}x\n\nout O\n", newline="")
        assert sslbench("tag", tmp_path / "m", path).exit_code in (0, 2)


def test_data_that_are_no_corpus(tmp_path: Path) -> None:
    path = tmp_path / "one.conll"
    path.write_text("a DT O\nb NN O\n")
    assert "one sentence cannot be split" in check(READERS["conll"], path)
    assert "neither a file nor a folder" in check(READERS["conll"], Path("/dev/null"))


def test_damaged_unlabeled_text_beside_good_files(tmp_path: Path) -> None:
    (tmp_path / "train.conll").write_text(damage.CONLL, encoding="utf-8")
    (tmp_path / "unlabeled.gz").write_bytes(gzip.compress(damage.CONLL.encode())[:-20])
    words = ["train", "--method", "self_training", "--data", str(tmp_path), "--save"]
    result = sslbench(*words, tmp_path / "m")
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].startswith(f"sslbench: {tmp_path / 'unlabeled.gz'}: ")
    assert not (tmp_path / "m").exists()


def test_a_real_process(model: bytes, tmp_path: Path) -> None:
    """Nothing but the line comes out of one either."""
    (tmp_path / "m").write_bytes(model)
    (tmp_path / "bad").write_bytes(model[: len(model) // 2])
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b"\n" * (RATIO_FREE_BYTES + 2**20)))
    (tmp_path / "nul.conll").write_bytes("a b c\n".encode("utf-16"))
    run = ["run", "--method", "supervised", "--data"]
    for words in (["tag", "m", "bomb.gz"], ["tag", "bad", "nul.conll"], [*run, "nul.conll"]):
        done = subprocess.run(
            [sys.executable, "-m", "sslbench", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=HANG,
            check=False,
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert len(done.stderr.splitlines()) == 1
        assert done.stderr.startswith("sslbench: ")
        assert "Traceback" not in done.stderr
