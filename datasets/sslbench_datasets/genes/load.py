"""Gene and protein names in MEDLINE sentences: ``bc2gm`` and ``genetag``, and Jiao's cuts of them.

Sources: L. Smith et al., Overview of BioCreative II gene mention recognition, 2008 (IOB2 files of
G. Crichton et al., 2017); L. Tanabe et al., GENETAG, 2005; ``bc2gm_jiao`` and ``genetag_jiao`` are
cut as in Jiao et al. (2006).

GENETAG's files give each token one tag: NEWGENE or NEWGENE1 inside names, else an automatic part of
speech. The part of speech of a name is nowhere, so the tag as a column "pos" would hold the answer,
under whatever constant stands for a name; there is no such column.

GENETAG's list of names (Gold.format) has 54 names more in train and 1 more in dev: mostly two for
"RB2 / p130", which is one run of NEWGENE in the text. The labels here are those of the text.

BioCreative I task 1A accepts other answers for many names (Correct.Data); ``genetag`` is scored
with them. What they are and how they count: `read_alternatives`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import numpy as np
from msgspec import Meta

from sslbench.corpus import Column, Corpus, CorpusShards, Shards, Vocabulary, read_bytes, read_conll
from sslbench.corpus.files import Source, source_name
from sslbench.errors import UserError
from sslbench.experiment.data import DataHome, Dataset
from sslbench.experiment.metrics import Alternatives
from sslbench.registrations import RemoteFile
from sslbench.types import I64
from sslbench_datasets.checks import check_counts, chosen
from sslbench_datasets.genes.info import ALTERNATIVES, BC2GM, GENETAG

Counts = Mapping[str, tuple[int, int, int]]

# (sentences, tokens, mentions).
BC2GM_COUNTS: Counts = {
    "train": (12_574, 355_405, 15_197),
    "dev": (2_519, 71_042, 3_061),
    "test": (5_038, 143_465, 6_325),
}
GENETAG_COUNTS: Counts = {
    "train": (7_500, 196_620, 8_881),
    "dev": (2_500, 65_519, 2_986),
    "test": (5_000, 132_522, 5_949),
}
# Different spans in Correct.Data.
ALTERNATIVES_COUNTS = {"train": 6_591, "dev": 2_158, "test": 4_275}
# Words of the five sets of Jiao et al. (2006).
JIAO_WORDS = {"A": 5_448, "B": 5_210, "C": 10_208, "D": 25_145, "E": 138_892}

_BEGIN, _INSIDE, _OUTSIDE = "B-GENE", "I-GENE", "O"
_NAME_TAGS = ("NEWGENE", "NEWGENE1")
_SENTENCE_NAME = re.compile(r"@@[0-9]+")
_ALTERNATIVE = re.compile(r"(?P<name>@@[0-9]+)\|(?P<first>[0-9]+) (?P<last>[0-9]+)\|")
_JIAO_STREAM = 0x6A69616F  # keeps this draw apart from those of other seeded things


class JiaoOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of genetag_jiao and of bc2gm_jiao."""

    unlabeled: Annotated[
        Literal["B", "C", "D"], Meta(description="the set that is the external text")
    ] = "B"
    seed: Annotated[
        int, Meta(description="of the draw of A to E, which --seed does not change", ge=0)
    ] = 0


# --- data sets ----------------------------------------------------------------------------------


def load_bc2gm(home: DataHome) -> Dataset:
    """Read the three splits; UserError for a missing or malformed file, or unexpected counts."""
    paths = {split: home.path(file) for split, file in BC2GM.items()}
    vocabularies: dict[str, Vocabulary] = {}
    splits = {split: _read_bc2gm(path, vocabularies) for split, path in paths.items()}
    _check(splits, BC2GM_COUNTS, paths)
    return _dataset("bc2gm", splits, {f"sha256_{s}": file.sha256 for s, file in BC2GM.items()})


def _read_bc2gm(path: Path, vocabularies: dict[str, Vocabulary]) -> Corpus:
    columns = ("word", "label")
    return read_conll(path, columns, vocabularies, separator="\t", skip=(), scheme="IOB2")


def load_genetag(home: DataHome) -> Dataset:
    """Read the three splits and their alternative answers.

    UserError for a missing or malformed file, or unexpected counts.
    """
    paths = {split: home.path(file) for split, file in GENETAG.items()}
    vocabularies: dict[str, Vocabulary] = {}
    splits = {split: read_tagged(path, vocabularies) for split, path in paths.items()}
    _check(splits, GENETAG_COUNTS, paths)
    others = {split: home.path(file) for split, file in ALTERNATIVES.items()}
    alternatives = {
        split: read_alternatives(path, sentence_names(paths[split]), splits[split].offsets)
        for split, path in others.items()
    }
    for split, expected in ALTERNATIVES_COUNTS.items():
        found = len(alternatives[split].first)
        if found != expected:
            message = f"{split} has {found} alternative answers, should have {expected}"
            raise UserError(message, file=others[split])
    metadata = {f"sha256_{split}": file.sha256 for split, file in GENETAG.items()}
    metadata |= {f"sha256_alternatives_{split}": file.sha256 for split, file in ALTERNATIVES.items()}
    made = _dataset("genetag", splits, metadata)
    return replace(made, metric="alt_f1", alternatives=alternatives)


def load_genetag_jiao(home: DataHome, **options: object) -> Dataset:
    """Read GENETAG's train and cut it; `options` are those of `JiaoOptions`.

    UserError for a bad option, a missing or malformed file, or unexpected counts.
    """
    asked = chosen("genetag_jiao", options, JiaoOptions)
    path = home.path(GENETAG["train"])
    corpus = read_tagged(path, {})
    _check({"train": corpus}, {"train": GENETAG_COUNTS["train"]}, {"train": path})
    return _cut("genetag_jiao", corpus, asked, GENETAG["train"])


def load_bc2gm_jiao(home: DataHome, **options: object) -> Dataset:
    """Read BC2GM's train and cut it; `options` are those of `JiaoOptions`.

    UserError for a bad option, a missing or malformed file, or unexpected counts.
    """
    asked = chosen("bc2gm_jiao", options, JiaoOptions)
    path = home.path(BC2GM["train"])
    corpus = _read_bc2gm(path, {})
    _check({"train": corpus}, {"train": BC2GM_COUNTS["train"]}, {"train": path})
    return _cut("bc2gm_jiao", corpus, asked, BC2GM["train"])


def _cut(name: str, corpus: Corpus, asked: JiaoOptions, file: RemoteFile) -> Dataset:
    """The sets of Jiao et al.: A to learn from, a text without labels, E to test on.

    The text with its labels is the split "transductive" (the paper's table 1), which only the
    scorer sees; "test" is E (table 2).
    """
    parts = {part: corpus.select(ids) for part, ids in jiao_sets(corpus, asked.seed).items()}
    text = parts[asked.unlabeled]

    def external() -> Shards:
        return CorpusShards(text.drop("label"))

    splits = {"train": parts["A"], "test": parts["E"], "transductive": text}
    metadata = {f"{part}_words": own.n_tokens for part, own in parts.items()}
    metadata |= {f"{part}_sentences": own.n_sentences for part, own in parts.items()}
    return _dataset(name, splits, {"sha256": file.sha256, **metadata}, external)


def _dataset(
    name: str,
    splits: Mapping[str, Corpus],
    metadata: Mapping[str, float | int | str],
    external: Callable[[], Shards] | None = None,
) -> Dataset:
    """What the data sets have in common."""
    return Dataset(
        name=name,
        task="spans",
        metric="f1",
        encoding="IOB2",
        splits=splits,
        external=external,
        metadata=metadata,
    )


def _check(splits: Mapping[str, Corpus], counts: Counts, paths: Mapping[str, Path]) -> None:
    """UserError when (sentences, tokens, mentions) of a split are not those of `counts`."""
    found = {split: _counts(splits[split]) for split in counts}
    check_counts("(sentences, tokens, mentions)", found, counts, paths)


def _counts(corpus: Corpus) -> tuple[int, int, int]:
    label = corpus.column("label")
    mentions = int((label.codes == label.vocabulary.lookup(_BEGIN)).sum())
    return corpus.n_sentences, corpus.n_tokens, mentions


def jiao_sets(corpus: Corpus, seed: int) -> dict[str, I64]:
    """Sentence numbers of the sets A to E, each ascending: disjoint, drawn without replacement.

    The sets lie one after the other in a permutation of the sentences. A border is where the
    sentence ends whose end is nearest to the sum of the words of JIAO_WORDS so far.
    ValueError when the corpus has fewer words than the sets have together.
    """
    if corpus.n_tokens < sum(JIAO_WORDS.values()):
        raise ValueError(f"{corpus.n_tokens} words are not enough for the sets {JIAO_WORDS}")
    order = np.random.default_rng([seed, _JIAO_STREAM]).permutation(corpus.n_sentences)
    ends = np.cumsum(corpus.lengths[order])
    sets, first, words = {}, 0, 0
    for name, size in JIAO_WORDS.items():
        words += size
        last = int(np.abs(ends - words).argmin()) + 1
        sets[name] = np.sort(order[first:last]).astype(np.int64)
        first = last
    return sets


# --- the reader of GENETAG ----------------------------------------------------------------------


def read_tagged(source: Source, vocabularies: dict[str, Vocabulary]) -> Corpus:
    """Read TAGGED_GENE_CORPUS, one sentence a line: @@number, then word/TAG; columns word, label.

    The last slash separates, since words hold slashes. Labels are IOB2 with the one type GENE: a
    run of one of the two name tags is a name. A tag may be empty (one in round1 is).
    vocabularies: per column, used and extended, so that splits share them.
    UserError with the line for bytes that are not ASCII, a line without a sentence name or with one
    that an earlier line has, a sentence without a word, an item that is not word/TAG, and a tag
    that only looks like a name's; also for a file without a sentence.
    """
    words = vocabularies.setdefault("word", Vocabulary())
    labels = vocabularies.setdefault("label", Vocabulary())
    forms: list[str] = []
    tags: list[str] = []
    lengths: list[int] = []
    for tokens in _sentences(source):
        forms.extend(word for word, _ in tokens)
        tags.extend(_iob2(tag for _, tag in tokens))
        lengths.append(len(tokens))
    if not lengths:
        raise UserError("no sentence in the file: it is empty", file=source_name(source))
    columns = {
        "word": Column(words, words.encode(forms)),
        "label": Column(labels, labels.encode(tags)),
    }
    return Corpus(columns, np.cumsum([0, *lengths], dtype=np.int64))


def _iob2(tags: Iterable[str]) -> Iterator[str]:
    """Labels of one sentence: NEWGENE beside NEWGENE1 is another name; equal neighbors are one."""
    before = ""
    for tag in tags:
        yield _OUTSIDE if tag not in _NAME_TAGS else _INSIDE if tag == before else _BEGIN
        before = tag


def _sentences(source: Source) -> Iterator[list[tuple[str, str]]]:
    """Word and tag of each token, sentence by sentence."""
    file = source_name(source)
    seen: dict[str, int] = {}
    for number, line in enumerate(_decode(source).split("\n"), 1):
        cells = line.split()
        if not cells:
            continue
        name = cells[0]
        if not _SENTENCE_NAME.fullmatch(name):
            hint = "each line is one sentence and starts with its name, @@ and a number"
            raise UserError(f"{name!r} is no sentence name", file=file, line=number, hint=hint)
        if name in seen:
            message = f"sentence {name} stands in line {seen[name]} as well"
            raise UserError(message, file=file, line=number, hint="remove one of them")
        seen[name] = number
        if len(cells) == 1:
            raise UserError(f"sentence {name} has no word", file=file, line=number)
        yield [_token(item, file, number) for item in cells[1:]]


def _token(item: str, file: str, line: int) -> tuple[str, str]:
    word, _, tag = item.rpartition("/")
    if not word:
        hint = "the last slash of an item separates a word from its tag"
        raise UserError(f"{item!r} is not word/TAG", file=file, line=line, hint=hint)
    if "GENE" in tag.upper() and tag not in _NAME_TAGS:
        hint = f"names are tagged {' or '.join(_NAME_TAGS)}"
        raise UserError(f"unknown tag {tag!r}", file=file, line=line, hint=hint)
    return word, tag


def sentence_names(source: Source) -> list[str]:
    """The names (@@number) of the sentences of TAGGED_GENE_CORPUS, in order."""
    return [line.split(None, 1)[0] for line in _decode(source).split("\n") if line.strip()]


def read_alternatives(source: Source, names: Sequence[str], offsets: I64) -> Alternatives:
    """Read Correct.Data: ``@@number|first last|text``, tokens of the sentence counted from 0.

    names, offsets: of the corpus. As for upstream's scorer the places count, not the text: but for
    the case of letters it is that of the tokens, except once in train ("protein S7 .3" at "protein
    S7 .") and once in dev ("BamHI-F" at "but"). What a sentence has twice is one answer, and an
    answer in a sentence that the corpus has not (train has one) is none. Of two entries without a
    line end between them (once in train) only the first is read.
    UserError with the line for one of another form, or with places outside of the sentence.
    """
    file = source_name(source)
    number_of = {name: number for number, name in enumerate(names)}
    spans: set[tuple[int, int]] = set()
    for line, text in enumerate(_decode(source).split("\n"), 1):
        if not text.strip():
            continue
        found = _ALTERNATIVE.match(text)
        if found is None:
            hint = "each line is @@number|first last|text"
            raise UserError(f"{text.strip()!r} is no answer", file=file, line=line, hint=hint)
        sentence = number_of.get(found["name"])
        if sentence is None:
            continue
        first, last = int(found["first"]), int(found["last"])
        start, end = offsets[sentence : sentence + 2].tolist()
        if not first <= last < end - start:
            message = f"{first} {last} are no places in sentence {found['name']}"
            hint = f"it has the tokens 0 to {end - start - 1}"
            raise UserError(message, file=file, line=line, hint=hint)
        spans.add((start + first, start + last))
    ordered = np.array(sorted(spans), dtype=np.int64).reshape(-1, 2)
    return Alternatives(ordered[:, 0], ordered[:, 1])


def _decode(source: Source) -> str:
    raw = read_bytes(source)
    try:
        return raw.decode("ascii")
    except UnicodeDecodeError as error:
        raise UserError(
            f"byte 0x{raw[error.start]:02x} is not ASCII, as all of GENETAG is",
            file=source_name(source),
            line=raw.count(b"\n", 0, error.start) + 1,
            hint="take the file as upstream has it",
        ) from None
