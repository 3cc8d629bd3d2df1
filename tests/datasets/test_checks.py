"""What all families check, and CoNLL-2000, which has nothing else of its own to test."""

from __future__ import annotations

import dataclasses
import hashlib
import zipfile
from pathlib import Path

import msgspec
import pytest

from sslbench.errors import UserError
from sslbench.experiment.data import DataHome
from sslbench_datasets import checks
from sslbench_datasets.conll00 import load as conll00
from sslbench_datasets.files import CONLL2000


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    draw: int = 3


def test_options_are_given_or_the_defaults() -> None:
    assert checks.chosen("mine", {}, Options) == Options(3)
    assert checks.chosen("mine", {"draw": 4}, Options) == Options(4)


@pytest.mark.parametrize("options", [{"draw": "x"}, {"drawn": 4}])
def test_options_that_do_not_fit_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(UserError, match=r"dataset mine: .*draw.*; sslbench show mine"):
        checks.chosen("mine", options, Options)


def test_counts_are_compared_part_by_part() -> None:
    paths = {"train": Path("a"), "test": Path("b")}
    found = {"train": (1, 2), "test": (3, 4), "dev": (5, 6)}
    checks.check_counts("(words, letters)", found, {"train": (1, 2)}, paths)
    with pytest.raises(UserError) as caught:
        checks.check_counts("(words, letters)", found, {"train": (1, 2), "test": (3, 5)}, paths)
    assert str(caught.value.file) == "b"
    assert "test has (words, letters) = (3, 4), should have (3, 5)" in str(caught.value)
    assert caught.value.hint == checks.COPY_AGAIN


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
    with pytest.raises(UserError, match=r"conll2000\.zip: test has .* = \(2, 2\), should have"):
        conll00.load(home)
