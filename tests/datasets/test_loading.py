"""Options and counts, which all loaders check, and CoNLL-2000."""

from __future__ import annotations

import dataclasses
import hashlib
import zipfile
from pathlib import Path

import msgspec
import pytest

from sslbench.engine.corpus.files import COPY_AGAIN
from sslbench.engine.errors import UserError
from sslbench.experiment.data import DataHome
from sslbench_datasets.conll00 import load as conll00
from sslbench_datasets.conll00.info import CONLL2000
from sslbench_datasets.loading import Measure, files_in, parse_options


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    draw: int = 3


def test_options_are_given_or_the_defaults() -> None:
    assert parse_options("mine", {}, Options) == Options(3)
    assert parse_options("mine", {"draw": 4}, Options) == Options(4)


@pytest.mark.parametrize("options", [{"draw": "x"}, {"drawn": 4}])
def test_options_that_do_not_fit_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(UserError, match=r"dataset mine: .*draw.*; sslbench show mine"):
        parse_options("mine", options, Options)


def test_counts_are_compared_part_by_part() -> None:
    paths = {"train": Path("a"), "test": Path("b")}
    measure = Measure[tuple[int, int]](("words", "letters"), lambda counts: counts)
    texts = {"train": (1, 2), "test": (3, 4), "dev": (5, 6)}
    measure.check(texts, {"train": (1, 2)}, paths)
    with pytest.raises(UserError) as caught:
        measure.check(texts, {"train": (1, 2), "test": (3, 1005)}, paths)
    assert str(caught.value.file) == "b"
    assert "test has 3 words, 4 letters; expected 3 words, 1,005 letters" in str(caught.value)
    assert caught.value.hint == COPY_AGAIN


def test_files_of_a_folder_without_hidden_ones(tmp_path: Path) -> None:
    for name in ("b", ".hidden", "a"):
        (tmp_path / name).touch()
    assert files_in(tmp_path) == [tmp_path / "a", tmp_path / "b"]
    assert files_in(tmp_path / "nowhere") == []


def test_conll00_of_other_counts_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nltk_data").mkdir()
    path = tmp_path / CONLL2000.path
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conll2000/train.txt", "He PRP B-NP\nran VBD B-VP\n\n")
        archive.writestr("conll2000/test.txt", "He PRP B-NP\n\nShe PRP B-NP\n\n")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setattr(conll00, "CONLL2000", dataclasses.replace(CONLL2000, sha256=digest))
    home = DataHome(tmp_path, tmp_path / "cache", offline=True)
    monkeypatch.setattr(conll00, "COUNTS", {"train": (1, 2), "test": (2, 2)})
    assert conll00.load(home).splits["test"].n_sentences == 2
    monkeypatch.setattr(conll00, "COUNTS", {"train": (1, 2), "test": (2, 3)})
    with pytest.raises(
        UserError, match=r"conll2000\.zip: test has 2 sentences, 2 tokens; expected"
    ):
        conll00.load(home)
