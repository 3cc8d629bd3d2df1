"""Files that are, or say that they are, larger than any memory: refused in one line, unread."""

from __future__ import annotations

import copy
import gzip
import io
import os
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from sslbench.engine.corpus.files import RATIO_FREE_BYTES, numbered_lines, read_blocks
from sslbench.engine.crf import read_model
from sslbench.engine.crf.persist import write_model
from sslbench.engine.errors import UserError
from sslbench.engine.features.crfpp import load_featurizer
from support.command import sslbench

ROWS = b"a O\n\n" * (2**24 // 5)


def bomb(file: Path) -> int:
    """Write gzip data of 3 GB of rows; returns its length."""
    data = gzip.compress(ROWS) * 200
    file.write_bytes(data)
    return len(data)


def test_a_bomb_is_refused_by_what_it_unpacks_to_so_far(tmp_path: Path) -> None:
    packed = bomb(tmp_path / "train.gz")
    assert 300 * packed > 4 * RATIO_FREE_BYTES  # the whole file would be allowed far more
    sizes: list[int] = []
    with pytest.raises(UserError, match="unpacks to more than 300 times its size"):
        sizes.extend(map(len, read_blocks(tmp_path / "train.gz")))
    ahead = 0 if sys.version_info < (3, 12) else 2**20  # since 3.12 Python reads more at a time
    assert sum(sizes) <= RATIO_FREE_BYTES + ahead


def test_a_bomb_and_an_endless_file_as_data(tmp_path: Path) -> None:
    bomb(tmp_path / "train.gz")
    (tmp_path / "large").mkdir()
    (tmp_path / "large" / "train.txt").touch()
    os.truncate(tmp_path / "large" / "train.txt", 100 * 2**30)
    for path, message in (
        (tmp_path, "train.gz: unpacks to more than 300 times its size"),
        (tmp_path / "large", "train.txt: more than 4294967296 bytes of text; split it"),
        (Path("/dev/zero"), "/dev/zero: is neither a file nor a folder"),
    ):
        words = ["run", "--method", "supervised", "--data", str(path), "--columns", "word,label"]
        result = sslbench(*words, "--store", tmp_path / "runs")
        assert (result.exit_code, result.stdout) == (2, "")
        assert message in result.stderr
        assert len(result.stderr.splitlines()) == 1


def test_a_pipe_is_read(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.write(write, b"a O\n")
    os.close(write)
    assert b"".join(read_blocks(f"/dev/fd/{read}")) == b"a O\n"
    os.close(read)


def test_a_template_file_of_megabytes(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("U00:%x[0,0]\n" * 10**5)
    with pytest.raises(UserError, match=r"t: more than 1048576 bytes of text"):
        load_featurizer(tmp_path / "t", ("word",))


def test_a_model_with_members_that_overlap(tmp_path: Path) -> None:
    write_model(tmp_path / "m", "x", {"a": np.zeros(1000)}, {})
    assert read_model(tmp_path / "m")[0] == "x"
    with zipfile.ZipFile(tmp_path / "m", "a") as archive:
        for number in range(1000):
            member = copy.copy(archive.getinfo("a.npy"))
            member.filename = f"a{number}.npy"
            archive.filelist.append(member)
        archive.comment = b"changed"  # so that the list is written
    with pytest.raises(UserError, match="not a saved sslbench model"):
        read_model(tmp_path / "m")


def test_a_model_with_an_enormous_array(tmp_path: Path) -> None:
    header = io.BytesIO()
    np.save(header, np.zeros(1))
    data = header.getvalue().replace(b"(1,), }" + b" " * 12, b"(10000000000000,), }"[:19])
    write_model(tmp_path / "m", "x", {"a": np.zeros(1)}, {})
    with (
        zipfile.ZipFile(tmp_path / "m") as old,
        zipfile.ZipFile(tmp_path / "n", "w") as new,
    ):
        for name in old.namelist():
            new.writestr(name, data if name == "a.npy" else old.read(name))
    with pytest.raises(UserError, match="not a saved sslbench model"):
        read_model(tmp_path / "n")


def test_numbered_lines_are_those_that_say_something(tmp_path: Path) -> None:
    file = tmp_path / "list.txt"
    file.write_bytes("\ufeff# a list\r\nPER\tAda\r\n \t\n\nLOC\ta\u2028b # c\n".encode())
    assert numbered_lines(file) == [(2, "PER\tAda"), (5, "LOC\ta\u2028b # c")]
