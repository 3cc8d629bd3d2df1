"""Chinese corpora as sequences of characters: zh_gsd, zh_zx, sinica and sxu.

The column "word" holds characters, the column "label" the place of each in its word, B, M, E or S
(N. Xue: Chinese word segmentation as character tagging, 2003), joined with the word's tag where the
corpus has tags ("B-NN"). Characters stay as upstream wrote them: sxu and zh_zx have full-width
digits and punctuation, zh_gsd has ASCII ones, sinica both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal

import msgspec
import numpy as np
from msgspec import Meta

from sslbench import RemoteFile
from sslbench.corpus import Column, Corpus, CorpusShards, Shards, Vocabulary, read_bytes, read_conll
from sslbench.corpus.files import Source, source_name
from sslbench.errors import UserError
from sslbench.experiment.data import DataHome, Dataset
from sslbench.types import I32, I64
from sslbench_datasets.checks import check_counts, chosen
from sslbench_datasets.chinese.info import (
    MSR,
    PKU,
    RAW_TEXT,
    SINICA,
    SINICA_MAP,
    SXU,
    UDC,
    ZX,
)

# (sentences, words, characters). The words of zh_zx and sxu equal the published figures.
COUNTS = {
    "zh_gsd": {
        "train": (3_997, 98_608, 156_360),
        "dev": (500, 12_663, 20_014),
        "test": (500, 12_012, 19_212),
    },
    "zh_zx": {
        "train": (2_373, 67_648, 96_934),
        "dev": (788, 20_393, 28_309),
        "test": (1_394, 34_355, 48_075),
    },
    "sinica": {
        "train": (8_000, 72_302, 117_914),
        "dev": (1_000, 9_582, 15_888),
        "test": (1_000, 9_750, 15_849),
    },
    "sxu": {"train": (17_115, 528_238, 854_001), "test": (3_654, 113_527, 184_269)},
}

_SINICA_MEMBER = "sinica_treebank/parsed"
# Clauses per block. Neighbors come from one text, and the file changes its genre on the way (the
# last clauses are twice as long as the first): neither single clauses nor the end will do as test.
_SINICA_BLOCK = 100
_SINICA_NUMBER = re.compile(r"#\S{1,40}\s")
# What follows the tree: the punctuation that ended the clause, and its category.
_SINICA_END = re.compile(r"(?<=\))#.*")
# role:tag:word. The leaf ends at | or ), which tells it from the two with a doubled role
# (Head:Head:Nab:...), where the first three parts are no leaf.
_SINICA_LEAF = re.compile(r":([^:()|]+):([^:()|]+)(?=[|)])")

_CONLL_COLUMNS = ("_", "form", "_", "tag", *"______")

# Full-width forms of ASCII -> ASCII.
ASCII_FORMS = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
# As zh_gsd writes them.
GSD_FORMS = {**ASCII_FORMS, ord("。"): ord(".")}

Cell = tuple[str, str]  # word, tag


@dataclass(frozen=True)
class Words:
    """Segmented sentences. words, tags: one per word ("" = untagged); counts: words by sentence."""

    words: list[str]
    tags: list[str]
    counts: list[int]

    @staticmethod
    def of(sentences: Iterator[Sequence[Cell]], source: Source) -> Words:
        """Collect sentences; UserError when there is none."""
        found = Words([], [], [])
        for sentence in sentences:
            found.words.extend(word for word, _ in sentence)
            found.tags.extend(tag for _, tag in sentence)
            found.counts.append(len(sentence))
        if not found.counts:
            raise UserError("no sentence in the file: it is empty", file=source_name(source))
        return found

    def offsets(self) -> I64:
        """int64[S + 1]: sentence borders in characters."""
        ends = np.cumsum([0, *map(len, self.words)], dtype=np.int64)
        borders: I64 = ends[np.cumsum([0, *self.counts])]
        return borders

    def rewritten(self, forms: Mapping[int, int]) -> Words:
        """With other characters (code point -> code point)."""
        return Words([word.translate(forms) for word in self.words], self.tags, self.counts)

    def select(self, sentences: Sequence[int]) -> Words:
        """These sentences, in that order."""
        ends = list(accumulate(self.counts))
        ranges = [range(ends[i] - self.counts[i], ends[i]) for i in sentences]
        words = [self.words[at] for part in ranges for at in part]
        tags = [self.tags[at] for part in ranges for at in part]
        return Words(words, tags, [len(part) for part in ranges])


def characters(words: Words, vocabularies: dict[str, Vocabulary]) -> Corpus:
    """One token per character, columns word and label (BMES, with "-tag" where there are tags).

    vocabularies: per column, used and extended, so that splits share them.
    """
    word = vocabularies.setdefault("word", Vocabulary())
    label = vocabularies.setdefault("label", Vocabulary())
    lengths = np.fromiter(map(len, words.words), dtype=np.int64, count=len(words.words))
    ends = np.cumsum(lengths)
    place = np.ones(int(lengths.sum()), dtype=np.int64)  # positions in "BMES"
    place[ends - lengths] = 0
    place[ends - 1] = 2
    place[(ends - 1)[lengths == 1]] = 3
    tags = Vocabulary()
    pairs = np.repeat(tags.encode(words.tags).astype(np.int64), lengths) * 4 + place
    table = np.zeros(4 * len(tags), dtype=np.int32)
    for pair in np.unique(pairs).tolist():
        tag = tags.strings[pair // 4]
        table[pair] = label.add("BMES"[pair % 4] + (f"-{tag}" if tag else ""))
    columns = {
        "word": Column(word, word.encode("".join(words.words))),
        "label": Column(label, table[pairs]),
    }
    return Corpus(columns, words.offsets())


# --- readers ------------------------------------------------------------------------------------


def text_lines(source: Source) -> Iterator[tuple[int, str]]:
    """Number and text of the lines that are not blank; UserError at a byte that is not UTF-8.

    Only line feeds end lines; CRLF and a byte order mark are harmless.
    """
    raw = read_bytes(source)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(
            f"byte 0x{raw[error.start]:02x} is not utf-8",
            file=source_name(source),
            line=raw.count(b"\n", 0, error.start) + 1,
            hint="corpora are also distributed in GB and Big5: take the UTF-8 version",
        ) from None
    for number, line in enumerate(text.split("\n"), 1):
        if stripped := line.strip(" \r"):
            yield number, stripped


def _items(source: Source) -> Iterator[tuple[int, list[str]]]:
    """Line number and the items between spaces; other white space would be part of a word."""
    for number, line in text_lines(source):
        items = list(filter(None, line.split(" ")))
        if items != line.split():
            raise UserError(
                "white space other than a space",
                file=source_name(source),
                line=number,
                hint="separate words by spaces alone",
            )
        yield number, items


def read_spaced(source: Source) -> Words:
    """One sentence a line, words separated by spaces; UserError for what cannot be read."""
    return Words.of(([(word, "") for word in items] for _, items in _items(source)), source)


def read_word_tag(source: Source) -> Words:
    """One sentence a line of word_TAG. UserError for other items."""
    return Words.of((cells(items, source, number) for number, items in _items(source)), source)


def cells(items: Sequence[str], source: Source, line: int) -> list[Cell]:
    """Items word_TAG, where the last underscore separates; UserError for other ones."""
    found = []
    for item in items:
        word, _, tag = item.rpartition("_")
        if not word or not tag:
            raise UserError(f"{item!r} is not word_TAG", file=source_name(source), line=line)
        found.append((word, tag))
    return found


def read_ud(source: Source) -> Words:
    """Ten tab-separated columns, form in the second, universal tag in the fourth."""
    corpus = read_conll(source, _CONLL_COLUMNS, separator="\t", skip=())
    form, tag = (corpus.column(name).strings() for name in ("form", "tag"))
    return Words(form, tag, corpus.lengths.tolist())


def read_sinica(source: Source, universal: Mapping[str, str]) -> Words:
    """One tree a line, its leaves role:tag:word; the punctuation after the tree is left out.

    universal: fine tag -> tag. UserError for a line without leaves and a tag that is not in it.
    """

    def clause(number: int, line: str) -> list[Cell]:
        tree = _SINICA_END.sub("", _SINICA_NUMBER.sub("", line, count=1))
        leaves = _SINICA_LEAF.findall(tree)
        if not leaves:
            raise UserError("no leaf role:tag:word", file=source_name(source), line=number)
        for tag, _ in leaves:
            if tag not in universal:
                raise UserError(
                    f"no universal tag for {tag!r}", file=source_name(source), line=number
                )
        return [(word, universal[tag]) for tag, word in leaves]

    return Words.of((clause(number, line) for number, line in text_lines(source)), source)


def read_tag_map(source: Source) -> dict[str, str]:
    """Two columns, native and universal tag; UserError for any other line."""
    table = {}
    for number, line in text_lines(source):
        cells = line.split()
        if len(cells) != 2:
            raise UserError(
                f"{len(cells)} columns where a native and a universal tag are expected",
                file=source_name(source),
                line=number,
            )
        table[cells[0]] = cells[1]
    if not table:
        raise UserError("no tag in the file: it is empty", file=source_name(source))
    return table


# --- data sets ----------------------------------------------------------------------------------


class JointOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of zh_gsd and zh_zx."""

    text: Annotated[
        Literal["apart", "joined"],
        Meta(
            description="apart: unlabeled is the rest of train, or the external text when all of"
            " train is labeled; joined: the rest of train, then the external text"
        ),
    ] = "apart"


def load_zh_gsd(home: DataHome, **options: object) -> Dataset:
    """UD Chinese GSD; UserError for a bad option, a missing file or unexpected counts."""
    raw = partial(raw_text, RAW_TEXT, forms=GSD_FORMS)
    return _joined(_load_files(home, "zh_gsd", UDC, read_ud, raw), options)


def load_zh_zx(home: DataHome, **options: object) -> Dataset:
    """ZhuXian; UserError for a bad option, a missing file or unexpected counts."""
    raw = partial(raw_text, RAW_TEXT)
    return _joined(_load_files(home, "zh_zx", ZX, read_word_tag, raw), options)


def _joined(dataset: Dataset, options: Mapping[str, object]) -> Dataset:
    return replace(dataset, joined=chosen(dataset.name, options, JointOptions).text == "joined")


def load_sxu(home: DataHome) -> Dataset:
    """SXU of SIGHAN 2008; UserError for a missing file or unexpected counts."""
    return _load_files(home, "sxu", SXU, read_spaced, partial(raw_text, (MSR, PKU)))


def load_sinica(home: DataHome) -> Dataset:
    """Sinica sample, dealt out in blocks; UserError for a missing file or unexpected counts."""
    path = home.path(SINICA)
    clauses = read_sinica((path, _SINICA_MEMBER), read_tag_map(home.path(SINICA_MAP)))
    numbers: dict[str, list[int]] = {name: [] for name in COUNTS["sinica"]}
    for number in range(len(clauses.counts)):
        turn = number // _SINICA_BLOCK % 10
        numbers["dev" if turn == 8 else "test" if turn == 9 else "train"].append(number)
    splits = {name: clauses.select(chosen) for name, chosen in numbers.items()}
    check_words(splits, COUNTS["sinica"], dict.fromkeys(splits, path))
    return as_characters("sinica", splits)


def _load_files(
    home: DataHome,
    name: str,
    files: Mapping[str, RemoteFile],
    read: Callable[[Source], Words],
    text: Callable[[DataHome, Vocabulary], Shards],
) -> Dataset:
    """A data set with one file per split, and text from outside."""
    paths = {split: home.path(file) for split, file in files.items()}
    splits = {split: read(path) for split, path in paths.items()}
    check_words(splits, COUNTS[name], paths)
    return as_characters(name, splits, partial(text, home))


def check_words(
    splits: Mapping[str, Words],
    counts: Mapping[str, tuple[int, int, int]],
    paths: Mapping[str, Path],
) -> None:
    """UserError when a split has not the (sentences, words, characters) that it should have."""
    found = {
        split: (len(words.counts), len(words.words), sum(map(len, words.words)))
        for split, words in splits.items()
    }
    check_counts("(sentences, words, characters)", found, counts, paths)


def as_characters(
    name: str,
    words: Mapping[str, Words],
    text: Callable[[Vocabulary], Shards] | None = None,
    metadata: Mapping[str, float | int | str] = MappingProxyType({}),
) -> Dataset:
    """The data set of segmented splits; its task is "joint" when the words of train have tags.

    text: makes the external text, given the vocabulary of characters. metadata: besides the words.
    """
    vocabularies: dict[str, Vocabulary] = {}
    splits = {split: characters(found, vocabularies) for split, found in words.items()}
    joint = any(words["train"].tags)
    return Dataset(
        name=name,
        task="joint" if joint else "segmentation",
        metric="joint_f1" if joint else "seg_f1",
        encoding="BMES",
        splits=splits,
        external=None if text is None else partial(text, vocabularies["word"]),
        metadata={f"{split}_words": len(found.words) for split, found in words.items()} | {**metadata},
    )


def raw_text(
    files: Sequence[RemoteFile],
    home: DataHome,
    vocabulary: Vocabulary,
    *,
    forms: Mapping[int, int] = MappingProxyType({}),
) -> Shards:
    """The characters of segmented files without their spaces, column word, coded by `vocabulary`.

    forms: characters (code points) to write otherwise, as the corpus does.
    UserError when a file is missing and cannot be fetched.
    """
    codes: list[I32] = []
    lengths: list[I64] = []
    for file in files:
        found = read_spaced(home.path(file))
        codes.append(vocabulary.encode("".join(found.words).translate(forms)))
        lengths.append(np.diff(found.offsets()))
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    return CorpusShards(Corpus({"word": Column(vocabulary, np.concatenate(codes))}, offsets))
