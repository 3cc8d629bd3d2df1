"""msr and pku: the user's training file beside the bakeoff's gold test text."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from pathlib import Path

import pytest

from sslbench.engine.corpus import Corpus
from sslbench.engine.errors import UserError
from sslbench.experiment.data import DataHome, Dataset
from sslbench_datasets.chinese.text import read_spaced
from sslbench_datasets.sighan import load as sighan
from sslbench_datasets.sighan.info import BAKEOFFS, DATASETS, Bakeoff
from support.chinese_fakes import rows, tiny
from support.real_files import real_home

INFOS = {info.name: info for info in DATASETS}
MSR, PKU = BAKEOFFS

# As upstream: a byte order mark at most, two spaces between words and after the last, CRLF, and a
# blank last line.
TRAIN = "\ufeff附  图片  １  张  \r\n中国  人  。  \r\n\r\n"
TEST = "图片  1  张  Ａ股  47．7万  \r\n\r\n"
FILES = {
    "icwb2-data/gold/msr_test_gold.utf8": "微软  ２  \r\n",
    "icwb2-data/gold/pku_test_gold.utf8": TEST,
    "multi-criteria-cws/sxu/train.txt": "山西  ３  。\n",
    "icwb2-data/training/pku_training.utf8": TRAIN,
}
TINY = replace(PKU, train_words=7, test_counts=(1, 5, 11))


def load(tmp_path: Path, bakeoff: Bakeoff = TINY, **options: object) -> Dataset:
    return sighan.load_bakeoff(bakeoff, tiny(tmp_path, FILES), **options)


def external(dataset: Dataset) -> list[str]:
    assert dataset.external is not None
    (shard,) = dataset.external()
    assert set(shard.columns) == {"word"}
    train = dataset.splits["train"].column("word").vocabulary
    assert shard.column("word").vocabulary is train
    return ["".join(shard.sentence(i, "word")) for i in range(shard.n_sentences)]


def test_the_splits_as_upstream_wrote_them(tmp_path: Path) -> None:
    dataset = load(tmp_path)
    assert (dataset.name, dataset.task, dataset.metric) == ("pku", "segmentation", "seg_f1")
    assert dataset.encoding == "BMES"
    assert set(dataset.splits) == {"train", "test"}
    assert rows(dataset.splits["train"]) == ["附S 图B 片E １S 张S", "中B 国E 人S 。S"]
    assert rows(dataset.splits["test"]) == ["图B 片E 1S 张S ＡB 股E 4B 7M ．M 7M 万E"]
    for name in ("word", "label"):
        train, test = (dataset.splits[split].column(name) for split in ("train", "test"))
        assert train.vocabulary is test.vocabulary
    assert dataset.metadata == {
        "train_words": 7,
        "test_words": 5,
        "train_sha256": hashlib.sha256(TRAIN.encode()).hexdigest(),
    }


def test_raw_text_is_the_other_corpora_never_the_own_test(tmp_path: Path) -> None:
    assert external(load(tmp_path)) == ["微软２", "山西３。"]
    for bakeoff in BAKEOFFS:
        gold, raw = bakeoff.test, bakeoff.raw
        assert gold.path == f"icwb2-data/gold/{bakeoff.name}_test_gold.utf8"
        assert (gold.extra, {file.extra for file in raw}) == (False, {True})
        assert gold.path not in {file.path for file in raw}


def test_digits_and_letters_can_be_made_ascii_but_not_punctuation(tmp_path: Path) -> None:
    dataset = load(tmp_path, narrow=True)
    assert rows(dataset.splits["train"])[0] == "附S 图B 片E 1S 张S"
    assert rows(dataset.splits["test"]) == ["图B 片E 1S 张S AB 股E 4B 7M ．M 7M 万E"]
    assert external(dataset) == ["微软2", "山西3。"]


def test_the_option_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.txt").write_text("人  民  国\n", encoding="utf-8")
    given = load(tmp_path, replace(TINY, train_words=3), train=str(tmp_path / "mine.txt"))
    assert rows(given.splits["train"]) == ["人S 民S 国S"]
    monkeypatch.setenv("HOME", str(tmp_path))
    assert load(tmp_path, train="~/mine.txt", check=False).metadata == given.metadata


@pytest.mark.parametrize("given", ["", "nowhere.txt"])
def test_a_missing_training_file_says_what_to_put_where(tmp_path: Path, given: str) -> None:
    home = tiny(tmp_path, FILES)
    (tmp_path / PKU.train).unlink()
    with pytest.raises(UserError) as caught:
        sighan.load.pku(home, train=given)
    assert str(caught.value.file) == (given or str(tmp_path / PKU.train))
    hint = str(caught.value.hint)
    assert "copy icwb2-data/training/pku_training.utf8 of icwb2-data.zip" in hint
    assert f" to {tmp_path / PKU.train}, or give --set pku.train=FILE" in hint


def test_another_number_of_words_is_refused_unless_asked_for(tmp_path: Path) -> None:
    other = replace(TINY, train_words=1_109_947)
    message = r"pku_training\.utf8: train has 7 words; expected 1,109,947 words; .*pku\.check=false"
    with pytest.raises(UserError, match=message):
        load(tmp_path, other)
    assert load(tmp_path, other, check=False).splits["train"].n_sentences == 2


def test_another_test_text_is_refused_even_then(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"pku_test_gold.*test has .* 11 characters; expected 2 sent"
    ):
        load(tmp_path, replace(TINY, test_counts=(2, 5, 11)), check=False)


def test_bad_lines_and_options_are_named(tmp_path: Path) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_text("人  民\n人\u3000民\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"bad\.txt:2: white space"):
        load(tmp_path, train=str(bad))
    for options in ({"trian": "x"}, {"train": 3}, {"narrow": "yes"}):
        with pytest.raises(UserError, match=r"dataset pku: .*sslbench show pku"):
            load(tmp_path, **options)


def test_registrations_load_and_name_the_published_sizes() -> None:
    assert [info.name for info in DATASETS] == ["msr", "pku"]
    assert INFOS["msr"].load().args == (MSR,)
    assert INFOS["pku"].load().args == (PKU,)
    assert "86,924 sentences, 2,368,391 words" in INFOS["msr"].protocol
    assert "19,056 sentences, 1,109,947 words" in INFOS["pku"].protocol
    assert "external text = MSR test text" in INFOS["pku"].protocol


# --- the real files -------------------------------------------------------------------------------


def real(bakeoff: Bakeoff, tmp_path: Path, **options: object) -> Dataset:
    """The real gold test text with a stand-in for the training file."""
    home = real_home([bakeoff.test])
    train = tmp_path / "train.utf8"
    train.write_text(TRAIN, encoding="utf-8")
    return sighan.load_bakeoff(bakeoff, home, train=str(train), check=False, **options)


def text_of(corpus: Corpus) -> str:
    return "".join(corpus.column("word").strings())


@pytest.mark.corpus
@pytest.mark.parametrize("bakeoff", BAKEOFFS, ids=lambda bakeoff: bakeoff.name)
def test_the_real_test_texts(bakeoff: Bakeoff, tmp_path: Path) -> None:
    """Against the bytes of the file, without the reader."""
    test = real(bakeoff, tmp_path).splits["test"]
    content = DataHome(offline=True).path(bakeoff.test).read_text(encoding="utf-8")
    assert text_of(test) == "".join(content.split())
    words = content.split()
    assert test.n_sentences == sum(bool(line.strip()) for line in content.splitlines())
    labels = "".join(label for label in test.column("label").strings())
    assert labels == "".join(
        "S" if len(word) == 1 else f"B{'M' * (len(word) - 2)}E" for word in words
    )


@pytest.mark.corpus
def test_the_widths_of_the_real_test_texts(tmp_path: Path) -> None:
    def digits(text: str) -> tuple[int, int]:
        return len(re.findall("[0-9]", text)), len(re.findall("[０-９]", text))

    actual = {b.name: digits(text_of(real(b, tmp_path).splits["test"])) for b in BAKEOFFS}
    assert actual == {"msr": (0, 4_903), "pku": (5_925, 17)}
    narrow = real(PKU, tmp_path, narrow=True).splits["test"]
    assert digits(text_of(narrow)) == (5_942, 0)


@pytest.mark.corpus
@pytest.mark.parametrize("bakeoff", BAKEOFFS, ids=lambda bakeoff: bakeoff.name)
def test_the_real_training_file(bakeoff: Bakeoff) -> None:
    home = DataHome(offline=True)
    path = home.root / bakeoff.train
    if not path.is_file():
        pytest.skip(f"{path} is the user's own, and not there")
    assert len(read_spaced(path).words) == bakeoff.train_words
