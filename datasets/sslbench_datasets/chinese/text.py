"""Segmented Chinese text: readers of its file formats, and its conversion to characters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType

import numpy as np

from sslbench import RemoteFile
from sslbench.engine.corpus import Column, Corpus, CorpusShards, Shards, Vocabulary, read_conll
from sslbench.engine.corpus.files import Source, read_text, source_name
from sslbench.engine.errors import UserError
from sslbench.engine.types import I32, I64
from sslbench.experiment.data import DataHome, Dataset, Metadata
from sslbench_datasets.chinese.info import UNITS
from sslbench_datasets.loading import Measure

_UTF8_HINT = "corpora are also distributed in GB and Big5: take the UTF-8 version"
_CONLL_COLUMNS = ("_", "form", "_", "tag", *"______")

# Full-width forms of ASCII characters -> ASCII.
ASCII_FORMS = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}

_SINICA_NUMBER = re.compile(r"#\S{1,40}\s")
# Behind the tree: the punctuation that ended the clause, and its category.
_SINICA_END = re.compile(r"(?<=\))#.*")
# A leaf role:tag:word ends at | or ). In a leaf with a doubled role (Head:Head:Nab:word) the first
# three parts do not match.
_SINICA_LEAF = re.compile(r":([^:()|]+):([^:()|]+)(?=[|)])")

TaggedWord = tuple[str, str]  # word, tag


@dataclass(frozen=True)
class SegmentedText:
    """Segmented sentences.

    Attributes
    ----------
    words, tags: words and tags of all sentences together; a tag is "" where the corpus has none.
    lengths: words by sentence.
    """

    words: list[str]
    tags: list[str]
    lengths: list[int]

    @classmethod
    def from_sentences(
        cls, sentences: Iterable[Sequence[TaggedWord]], source: Source
    ) -> SegmentedText:
        """Collect sentences; UserError, with the name of `source`, if there are none."""
        text = cls([], [], [])
        for sentence in sentences:
            text.words.extend(word for word, _ in sentence)
            text.tags.extend(tag for _, tag in sentence)
            text.lengths.append(len(sentence))
        if not text.lengths:
            raise UserError("no sentence in the file: it is empty", file=source_name(source))
        return text

    def offsets(self) -> I64:
        """int64[S + 1]: sentence borders in characters."""
        ends = np.cumsum([0, *map(len, self.words)], dtype=np.int64)
        borders: I64 = ends[np.cumsum([0, *self.lengths])]
        return borders

    def translate(self, forms: Mapping[int, int]) -> SegmentedText:
        """The same text with some characters replaced (code point -> code point)."""
        return SegmentedText(
            [word.translate(forms) for word in self.words], self.tags, self.lengths
        )

    def select(self, sentences: Sequence[int]) -> SegmentedText:
        """The sentences of these numbers, in that order."""
        ends = list(accumulate(self.lengths))
        ranges = [range(ends[i] - self.lengths[i], ends[i]) for i in sentences]
        words = [self.words[i] for part in ranges for i in part]
        tags = [self.tags[i] for part in ranges for i in part]
        return SegmentedText(words, tags, [len(part) for part in ranges])


SIZE = Measure[SegmentedText](
    UNITS, lambda text: (len(text.lengths), len(text.words), sum(map(len, text.words)))
)


# --- readers ------------------------------------------------------------------------------------


def text_lines(source: Source) -> Iterator[tuple[int, str]]:
    """Number and text of the lines that are not blank; UserError for a byte that is not UTF-8.

    Only line feeds end lines; CRLF and a byte order mark are harmless.
    """
    for number, line in enumerate(read_text(source, hint=_UTF8_HINT).split("\n"), 1):
        if stripped := line.strip(" \r"):
            yield number, stripped


def _items(source: Source) -> Iterator[tuple[int, list[str]]]:
    """Line number and the items between spaces; UserError for other white space."""
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


def read_spaced(source: Source) -> SegmentedText:
    """One sentence per line, words separated by spaces; UserError for other white space."""
    sentences = ([(word, "") for word in items] for _, items in _items(source))
    return SegmentedText.from_sentences(sentences, source)


def read_word_tag(source: Source) -> SegmentedText:
    """One sentence per line, items word_TAG; UserError for other items."""
    sentences = (tagged_words(items, source, number) for number, items in _items(source))
    return SegmentedText.from_sentences(sentences, source)


def tagged_words(items: Sequence[str], source: Source, line: int) -> list[TaggedWord]:
    """Words and tags of items word_TAG, split at the last underscore; UserError for other items."""
    pairs = []
    for item in items:
        word, _, tag = item.rpartition("_")
        if not word or not tag:
            raise UserError(f"{item!r} is not word_TAG", file=source_name(source), line=line)
        pairs.append((word, tag))
    return pairs


def read_ud(source: Source) -> SegmentedText:
    """Ten tab-separated columns: form in the second, universal tag in the fourth."""
    corpus = read_conll(source, _CONLL_COLUMNS, separator="\t", skip=())
    form, tag = (corpus.column(name).strings() for name in ("form", "tag"))
    return SegmentedText(form, tag, corpus.lengths.tolist())


def read_sinica(source: Source, universal: Mapping[str, str]) -> SegmentedText:
    """One tree per line with leaves role:tag:word, without the punctuation behind the tree.

    universal: fine tag -> universal tag.
    UserError for a line without leaves or with a tag that is not in `universal`.
    """

    def clause(number: int, line: str) -> list[TaggedWord]:
        tree = _SINICA_END.sub("", _SINICA_NUMBER.sub("", line, count=1))
        leaves = _SINICA_LEAF.findall(tree)
        if not leaves:
            raise UserError("no leaf role:tag:word", file=source_name(source), line=number)
        for tag, _ in leaves:
            if tag not in universal:
                message = f"no universal tag for {tag!r}"
                raise UserError(message, file=source_name(source), line=number)
        return [(word, universal[tag]) for tag, word in leaves]

    clauses = (clause(number, line) for number, line in text_lines(source))
    return SegmentedText.from_sentences(clauses, source)


def read_tag_map(source: Source) -> dict[str, str]:
    """Two columns, native and universal tag; UserError for any other line and an empty file."""
    table = {}
    for number, line in text_lines(source):
        cells = line.split()
        if len(cells) != 2:
            message = f"expected a native and a universal tag, got {len(cells)} columns"
            raise UserError(message, file=source_name(source), line=number)
        table[cells[0]] = cells[1]
    if not table:
        raise UserError("no tag in the file: it is empty", file=source_name(source))
    return table


# --- characters ---------------------------------------------------------------------------------


def characters(text: SegmentedText, vocabularies: dict[str, Vocabulary]) -> Corpus:
    """One token per character, columns word and label (BMES, with "-tag" where there are tags).

    vocabularies: vocabularies by column; they are extended, so that splits share them.
    """
    word = vocabularies.setdefault("word", Vocabulary())
    label = vocabularies.setdefault("label", Vocabulary())
    lengths = np.fromiter(map(len, text.words), dtype=np.int64, count=len(text.words))
    ends = np.cumsum(lengths)
    place = np.ones(int(lengths.sum()), dtype=np.int64)  # index into "BMES"
    place[ends - lengths] = 0
    place[ends - 1] = 2
    place[(ends - 1)[lengths == 1]] = 3
    tags = Vocabulary()
    pairs = np.repeat(tags.encode(text.tags).astype(np.int64), lengths) * 4 + place
    label_codes = np.zeros(4 * len(tags), dtype=np.int32)
    for pair in np.unique(pairs).tolist():
        tag = tags.strings[pair // 4]
        label_codes[pair] = label.add("BMES"[pair % 4] + (f"-{tag}" if tag else ""))
    columns = {
        "word": Column(word, word.encode("".join(text.words))),
        "label": Column(label, label_codes[pairs]),
    }
    return Corpus(columns, text.offsets())


def segmentation_dataset(
    name: str,
    texts: Mapping[str, SegmentedText],
    external: Callable[[Vocabulary], Shards] | None = None,
    metadata: Metadata = MappingProxyType({}),
) -> Dataset:
    """The dataset of segmented splits; its task is "joint" if the words of train have tags.

    external: makes the external text, given the vocabulary of characters.
    metadata: further entries beside the words of each split.
    """
    vocabularies: dict[str, Vocabulary] = {}
    splits = {split: characters(text, vocabularies) for split, text in texts.items()}
    joint = any(texts["train"].tags)
    return Dataset(
        name=name,
        task="joint" if joint else "segmentation",
        metric="joint_f1" if joint else "seg_f1",
        encoding="BMES",
        splits=splits,
        external=None if external is None else partial(external, vocabularies["word"]),
        metadata={f"{split}_words": len(text.words) for split, text in texts.items()}
        | {**metadata},
    )


def raw_text(
    files: Sequence[RemoteFile | Path],
    home: DataHome,
    vocabulary: Vocabulary,
    *,
    forms: Mapping[int, int] = MappingProxyType({}),
) -> Shards:
    """The characters of segmented files as column word, coded by `vocabulary`.

    files: registered ones, or those of the user.
    forms: characters to replace (code point -> code point), as in the text of the dataset.
    UserError for a file that is missing and cannot be downloaded.
    """
    codes: list[I32] = []
    lengths: list[I64] = []
    for file in files:
        path = file if isinstance(file, Path) else home.path(file)
        text = read_spaced(path).translate(forms)
        codes.append(vocabulary.encode("".join(text.words)))
        lengths.append(np.diff(text.offsets()))
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    return CorpusShards(Corpus({"word": Column(vocabulary, np.concatenate(codes))}, offsets))
