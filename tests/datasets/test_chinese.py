"""Chinese corpora as characters: tiny files in each format, then the real ones."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sslbench.engine.corpus import RawBytes, Vocabulary
from sslbench.engine.errors import UserError
from sslbench.engine.features import Template, TemplateFeaturizer
from sslbench.experiment.data import Dataset
from sslbench_datasets.chinese import load as chinese
from sslbench_datasets.chinese.info import DATASETS, RAW_TEXT
from sslbench_datasets.chinese.text import (
    SegmentedText,
    characters,
    raw_text,
    read_sinica,
    read_spaced,
    read_tag_map,
    read_ud,
    read_word_tag,
)
from sslbench_methods.featurizers.suzuki2008 import zh_char
from support.chinese_fakes import rows, tiny
from support.chunks import spans_of
from support.real_files import real_home

INFOS = {info.name: info for info in DATASETS}


def text(content: str) -> RawBytes:
    return RawBytes("tiny", content.encode())


# --- characters -----------------------------------------------------------------------------------


def test_borders_of_words_of_all_lengths() -> None:
    words = SegmentedText(["上海市", "的", "体育", "锻炼身体"], [""] * 4, [2, 2])
    corpus = characters(words, {})
    assert rows(corpus) == ["上B 海M 市E 的S", "体B 育E 锻B 炼M 身M 体E"]


def test_tags_are_joined_and_vocabularies_shared() -> None:
    shared: dict[str, Vocabulary] = {}
    first = characters(SegmentedText(["中国", "人"], ["NR", "NN"], [2]), shared)
    second = characters(SegmentedText(["人"], ["VV"], [1]), shared)
    assert rows(first) == ["中B-NR 国E-NR 人S-NN"]
    assert rows(second) == ["人S-VV"]
    for name in ("word", "label"):
        assert first.column(name).vocabulary is second.column(name).vocabulary
    assert sorted(shared["label"].strings) == ["B-NR", "E-NR", "S-NN", "S-VV"]


def test_chosen_sentences_keep_their_words() -> None:
    words = SegmentedText(list("abcdef"), list("ABCDEF"), [1, 3, 2])
    assert words.select([2, 0]) == SegmentedText(["e", "f", "a"], ["E", "F", "A"], [2, 1])


# --- readers --------------------------------------------------------------------------------------


def test_spaced_words() -> None:
    """CRLF, a byte order mark, blank lines, spaces at the ends; full-width forms stay."""
    actual = read_spaced(text("\ufeff中国  １７％  \r\n\r\n \r\nＡＢ   。"))
    assert actual == SegmentedText(["中国", "１７％", "ＡＢ", "。"], [""] * 4, [2, 2])


def test_word_and_tag() -> None:
    actual = read_word_tag(text("第六_OD 章_M\n__PU ａ_b_NN\n"))
    assert actual == SegmentedText(["第六", "章", "_", "ａ_b"], ["OD", "M", "PU", "NN"], [2, 2])


def test_ud_columns() -> None:
    lines = ["1\tNew York\t_\tPROPN\tNNP" + "\t_" * 5, "2\t#\t_\tPUNCT\t," + "\t_" * 5]
    actual = read_ud(text("\n".join([*lines, "", lines[1], ""])))
    assert actual == SegmentedText(["New York", "#", "#"], ["PROPN", "PUNCT", "PUNCT"], [2, 1])


TREES = (
    "#1:1.[4257] NP(Head:Neu:一)#。(PERIODCATEGORY)\r\n"
    "#2:2.[1] VP(property:N‧的(head:Head:Nac:鵝掌形|Head:DE:的)|Head:V_11:是)#，(COMMACATEGORY)\r\n"
)
TAGS = {"Neu": "NUM", "Nac": "NOUN", "DE": "X", "V_11": "VERB"}


def test_sinica_leaves() -> None:
    actual = read_sinica(text(TREES), TAGS)
    assert actual == SegmentedText(
        ["一", "鵝掌形", "的", "是"], ["NUM", "NOUN", "X", "VERB"], [1, 3]
    )


def test_tag_map() -> None:
    assert read_tag_map(text("Neu\tNUM\n\nCaa[P1]  CONJ\n")) == {
        "Neu": "NUM",
        "Caa[P1]": "CONJ",
    }


def sinica(source: RawBytes) -> SegmentedText:
    return read_sinica(source, {"Neu": "NUM"})


@pytest.mark.parametrize(
    ("read", "content", "line", "message"),
    [
        (read_spaced, "中国\n人\u3000民", 2, "white space"),
        (read_spaced, "中国\t人", 1, "white space"),
        (read_spaced, "\n \r\n", None, "empty"),
        (read_word_tag, "第六_OD\n\n章", 3, "'章' is not word_TAG"),
        (read_word_tag, "_OD", 1, "not word_TAG"),
        (read_word_tag, "章_", 1, "not word_TAG"),
        (read_ud, "1\t看似\t_\tVERB", 1, "4 columns"),
        (sinica, "#1:1.[1] NP(Head:Neu:一)\n#2:2.[1] NP()", 2, "no leaf"),
        (sinica, TREES, 2, "no universal tag for 'Nac'"),
        (read_tag_map, "Neu NUM\nNac", 2, "got 1 columns"),
    ],
)
def test_bad_lines_are_named(
    read: Callable[[RawBytes], object], content: str, line: int | None, message: str
) -> None:
    with pytest.raises(UserError, match=message) as caught:
        read(text(content))
    assert (str(caught.value.file), caught.value.line) == ("tiny", line)


def test_a_gb_file_is_refused() -> None:
    with pytest.raises(UserError, match="not utf-8") as caught:
        read_spaced(RawBytes("gb.txt", b"\xef\xbb\xbfabc\n" + "中国".encode("gb18030")))
    assert "byte 0xd6" in str(caught.value)
    assert caught.value.line == 2
    assert "GB" in str(caught.value.hint)


# --- datasets of tiny files -----------------------------------------------------------------------


RAW = {
    "icwb2-data/gold/msr_test_gold.utf8": "１７％  。\r\n",
    "icwb2-data/gold/pku_test_gold.utf8": "中国  人  。\r\n",
}
SXU = {"multi-criteria-cws/sxu/train.txt": "中国  人\n", "multi-criteria-cws/sxu/test.txt": "人\n"}


def test_a_segmented_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(chinese.COUNTS, "sxu", {"train": (1, 2, 3), "test": (1, 1, 1)})
    dataset = chinese.load_sxu(tiny(tmp_path, SXU | RAW))
    assert (dataset.task, dataset.metric, dataset.encoding) == ("segmentation", "seg_f1", "BMES")
    assert rows(dataset.splits["train"]) == ["中B 国E 人S"]
    assert dataset.metadata == {"train_words": 2, "test_words": 1}
    assert dataset.external is not None
    (shard,) = dataset.external()
    assert set(shard.columns) == {"word"}
    assert ["".join(shard.sentence(i, "word")) for i in range(2)] == ["１７％。", "中国人。"]
    train = dataset.splits["train"].column("word").vocabulary
    assert shard.column("word").vocabulary is train


def test_raw_text_in_ascii_forms(tmp_path: Path) -> None:
    home, vocabulary = tiny(tmp_path, SXU | RAW), Vocabulary()
    corpus = next(iter(raw_text(RAW_TEXT, home, vocabulary, forms=chinese.GSD_FORMS)))
    actual = ["".join(corpus.sentence(i, "word")) for i in range(corpus.n_sentences)]
    assert actual == ["17%.", "中国人.", "中国人"]


def test_wrong_counts_are_told(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"train has 1 sentences, 2 words, 3 characters; exp"
    ) as caught:
        chinese.load_sxu(tiny(tmp_path, SXU | RAW))
    assert str(caught.value.file).endswith("train.txt")


def test_sinica_is_dealt_out_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trees = "".join(f"#{n}:{n}.[1] NP(Head:Neu:{chr(0x4E00 + n)})#。(P)\r\n" for n in range(1_050))
    home = tiny(tmp_path, {"universal-pos-tags/zh-sinica.map": "Neu NUM\n"})
    (tmp_path / "nltk_data").mkdir()
    with zipfile.ZipFile(tmp_path / "nltk_data/sinica_treebank.zip", "w") as archive:
        archive.writestr("sinica_treebank/parsed", trees)
    counts = {"train": (850,) * 3, "dev": (100,) * 3, "test": (100,) * 3}
    monkeypatch.setitem(chinese.COUNTS, "sinica", counts)
    dataset = chinese.load_sinica(home)
    numbers = {
        name: [ord(corpus.sentence(i, "word")[0]) - 0x4E00 for i in range(corpus.n_sentences)]
        for name, corpus in dataset.splits.items()
    }
    assert numbers["dev"] == [*range(800, 900)]
    assert numbers["test"] == [*range(900, 1000)]
    assert numbers["train"] == [*range(800), *range(1000, 1050)]
    assert dataset.external is None
    monkeypatch.setitem(counts, "dev", (100, 100, 101))
    with pytest.raises(UserError, match=r"dev has 100 sent.*100 characters; expected .* 101 ch"):
        chinese.load_sinica(home)


# --- features -------------------------------------------------------------------------------------


def test_the_templates_of_zh_char() -> None:
    templates = zh_char().templates
    assert len(templates) == 12
    assert Template.parse("word[-1]|word[1]") in templates
    assert not any(template.edge for template in templates)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("1", "２", True),
        ("a", "Ｂ", True),
        (",", "。", True),
        ("中", "国", True),
        ("1", "中", False),
        ("a", "中", False),
        (",", "中", False),
        ("1", "a", False),
        ("1", ",", False),
    ],
)
@pytest.mark.parametrize("offset", [-2, 0, 2])
def test_the_types_of_characters(one: str, other: str, same: bool, offset: int) -> None:
    """Two contexts that differ in one character share the type attribute iff its type agrees."""
    types = max(zh_char().templates, key=lambda template: len(template.atoms))
    assert {atom.offset for atom in types.atoms} == {-2, -1, 0, 1, 2}
    contexts = []
    for character in (one, other):
        context = list("上下左右中")
        context[2 + offset] = character
        contexts.append("".join(context))
    corpus = characters(SegmentedText(contexts, ["", ""], [1, 1]), {})
    index = TemplateFeaturizer([types]).index(corpus)
    node = np.asarray(index.encode(corpus).node).reshape(-1)
    assert (node[2] == node[7]) is np.bool_(same)


# --- the real files -------------------------------------------------------------------------------


def real(name: str) -> Dataset:
    home = real_home(INFOS[name].files)
    dataset: Dataset = INFOS[name].load()(home)
    return dataset


@pytest.mark.corpus
@pytest.mark.parametrize("name", sorted(INFOS))
def test_real_corpora(name: str) -> None:
    """Words are counted again from the labels; load itself has compared the other counts."""
    dataset, info = real(name), INFOS[name]
    assert (dataset.task, dataset.metric) == (info.task, info.metric)
    for split, corpus in dataset.splits.items():
        labels = [corpus.sentence(i, "label") for i in range(min(corpus.n_sentences, 2_000))]
        spans = [spans_of(tags, "BMES") for tags in labels]
        assert all(
            sum(end - start for start, end, _ in actual) == len(t)
            for actual, t in zip(spans, labels, strict=True)
        )
        if len(labels) == corpus.n_sentences:
            assert sum(map(len, spans)) == dataset.metadata[f"{split}_words"]
        for column in corpus.columns:
            assert (
                corpus.column(column).vocabulary
                is dataset.splits["train"].column(column).vocabulary
            )
        assert set(map(len, corpus.column("word").vocabulary.strings)) == {1}


@pytest.mark.corpus
def test_the_real_beginnings() -> None:
    first = {name: rows(real(name).splits["train"])[0].split()[:6] for name in INFOS}
    assert first["zh_gsd"][:5] == ["看B-VERB", "似E-VERB", "简B-ADJ", "单E-ADJ", ",S-PUNCT"]
    assert first["zh_zx"] == ["第B-OD", "六E-OD", "章S-M", "戾B-NN", "气E-NN"]
    assert first["sinica"] == ["一S-DET"]
    assert first["sxu"] == ["上B", "海E", "推S", "“S", "迎S", "奥B"]


@pytest.mark.corpus
def test_the_real_raw_text_is_written_as_its_corpus() -> None:
    for name, full_width in (("zh_gsd", False), ("zh_zx", True)):
        external = real(name).external
        assert external is not None
        shards = external()
        assert (shards.n_sentences, shards.n_tokens) == (23_044, 1_211_089)
        seen: set[str] = set()
        for shard in shards:
            seen.update(
                np.array(shard.column("word").vocabulary.strings)[
                    np.unique(shard.column("word").codes)
                ]
            )
        assert ("，" in seen) is ("。" in seen) is full_width
