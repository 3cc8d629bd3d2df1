"""``questions``, ``bio`` and ``pennbioie``: taggers of newswire, adapted to text of another kind.

Source: Subramanya et al. (2010). Labeled is the Wall Street Journal, unlabeled the target; labels
of the target serve to choose parameters (dev) and to test. The paper's target texts are not public;
those here stand in for them, and its numbers cannot be expected.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import numpy as np
from msgspec import Meta

from sslbench.corpus import Corpus, CorpusShards, RawBytes, Shards, Vocabulary, read_bytes
from sslbench.errors import UserError
from sslbench.experiment.data import DataHome, Dataset
from sslbench_datasets.adaptation.info import (
    EBM,
    GENIA,
    QUESTION_CLASSES,
    QUESTIONBANK,
    SIMPLE_QUESTIONS,
    TRIVIA,
)
from sslbench_datasets.adaptation.text import (
    Sentence,
    corpus_of,
    ptb_words,
    read_biotrees,
    read_ebm,
    read_genia,
    read_question_classes,
    read_questionbank,
    read_simple_questions,
    read_trivia,
    sentences_of,
)
from sslbench_datasets.checks import check_sizes, chosen
from sslbench_datasets.genes.info import GENETAG
from sslbench_datasets.genes.load import read_tagged
from sslbench_datasets.treebank.info import PTB_COUNTS, PTB_SECTIONS
from sslbench_datasets.treebank.load import load_sample, read_sections

Metadata = dict[str, float | int | str]

# (sentences, tokens) of the targets, GENIA's without field marks.
QUESTION_COUNTS = {"dev": (2_000, 17_069), "test": (2_000, 20_774)}
GENIA_COUNTS = {"dev": (1_964, 51_227), "test": (1_826, 49_086)}
# Unlabeled sentences that are kept, and dropped because they are in QuestionBank too.
QUESTION_SETS = {"simplequestions": (34_374, 0), "opentriviaqa": (11_337, 4), "qc": (2_645, 3_307)}

_NOT_LETTERS = re.compile(r"[^a-z0-9]+")
_ORDER = 0x61646170  # seed of the order of the unlabeled text


class SourceOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of the labeled source."""

    ptb: Annotated[
        str,
        Meta(description="folder of your Penn Treebank: its sections 0-18, not the sample, train"),
    ] = ""
    check: Annotated[
        bool, Meta(description="refuse other numbers of its sentences and tokens than published")
    ] = True


class QuestionsOptions(SourceOptions, frozen=True, forbid_unknown_fields=True):
    """Options of questions."""

    qc: Annotated[
        bool,
        Meta(description="unlabeled: add TREC question classification, less QuestionBank's"),
    ] = False


class BioOptions(SourceOptions, frozen=True, forbid_unknown_fields=True):
    """Options of bio."""

    unlabeled: Annotated[
        Literal["all", "genia", "ebm", "genetag"], Meta(description="the unlabeled text")
    ] = "all"


class PennBioOptions(BioOptions, frozen=True, forbid_unknown_fields=True):
    """Options of pennbioie."""

    path: Annotated[str, Meta(description="the licence holder's folder with .mrg files")] = ""
    dev: Annotated[
        int, Meta(description="dev = the first so many sentences; 0: half of the files", ge=0)
    ] = 0


# --- data sets ----------------------------------------------------------------------------------


def load_questions(home: DataHome, **options: object) -> Dataset:
    """Read source, QuestionBank and the other question sets; options as in `QuestionsOptions`.

    Of the unlabeled sentences, those with the letters and digits of one of QuestionBank are taken
    out; ``metadata`` count them. UserError for a bad option, a missing or malformed file, or counts
    that are not the known ones.
    """
    asked = chosen("questions", options, QuestionsOptions)
    vocabularies: dict[str, Vocabulary] = {}
    train, metadata = _source(home, asked, vocabularies, "questions")
    path = home.path(QUESTIONBANK)
    bank = read_questionbank(path, vocabularies)
    half = QUESTION_COUNTS["dev"][0]
    splits = {"dev": bank.between(0, half), "test": bank.between(half, bank.n_sentences)}
    check_sizes(splits, QUESTION_COUNTS, dict.fromkeys(splits, path))
    metadata |= {"sha256_questionbank": QUESTIONBANK.sha256}
    for name in question_sets(asked):
        metadata[f"{name}_sentences"], metadata[f"{name}_dropped"] = QUESTION_SETS[name]

    def text() -> list[Sentence]:
        return _new_questions(home, asked, bank)

    return _dataset("questions", train, splits, text, metadata)


def load_bio(home: DataHome, **options: object) -> Dataset:
    """Read source, GENIA and other biomedical text; options as in `BioOptions`.

    UserError for a bad option, a missing or malformed file, or counts that are not the known ones.
    """
    asked = chosen("bio", options, BioOptions)
    vocabularies: dict[str, Vocabulary] = {}
    train, metadata = _source(home, asked, vocabularies, "bio")
    paths = {split: home.path(GENIA[split]) for split in GENIA_COUNTS}
    splits = {}
    for split, path in paths.items():
        words, tags = read_genia(path)
        splits[split] = corpus_of(words, vocabularies, tags)
        metadata[f"sha256_{split}"] = GENIA[split].sha256
    check_sizes(splits, GENIA_COUNTS, paths)
    text = partial(_biomedical_text, home, asked.unlabeled)
    return _dataset("bio", train, splits, text, metadata)


def load_pennbioie(home: DataHome, **options: object) -> Dataset:
    """Read source, a licence holder's PennBioIE and other text; options as in `PennBioOptions`.

    UserError for a bad option, no folder, fewer than two files, a cut outside of the corpus, or a
    missing or malformed file. Its counts are not known, so they are not checked;
    ``metadata["sha256_target"]`` is of the bytes of all its files, in order.
    """
    asked = chosen("pennbioie", options, PennBioOptions)
    files = find_biotrees(asked.path)
    vocabularies: dict[str, Vocabulary] = {}
    train, metadata = _source(home, asked, vocabularies, "pennbioie")
    digest, parts = hashlib.sha256(), []
    for file in files:
        data = read_bytes(file)
        digest.update(data)
        parts.append(read_biotrees(RawBytes(str(file), data), vocabularies))
    whole = Corpus.concatenate(parts)
    half = sum(part.n_sentences for part in parts[: (len(parts) + 1) // 2])
    cut = asked.dev or half
    if not 0 < cut < whole.n_sentences:
        raise UserError(
            f"dev has {cut} of {whole.n_sentences} sentences, nothing is left for one of the two",
            file=asked.path,
            hint="give another number with --set pennbioie.dev=NUMBER",
        )
    splits = {"dev": whole.between(0, cut), "test": whole.between(cut, whole.n_sentences)}
    metadata |= {"files": len(files), "sha256_target": digest.hexdigest()}
    text = partial(_biomedical_text, home, asked.unlabeled)
    return _dataset("pennbioie", train, splits, text, metadata)


def find_biotrees(folder: str) -> list[Path]:
    """All .mrg files below the folder of the user, by path; UserError when there is none."""
    hint = "give the folder of LDC2008T20 or LDC2008T21 with --set pennbioie.path=FOLDER"
    if not folder:
        raise UserError("dataset pennbioie is read from a licence holder's own copy", hint=hint)
    root = Path(folder).expanduser()
    if not root.is_dir():
        raise UserError("no such folder", file=root, hint=hint)
    found = (path for path in root.rglob("*") if path.name.lower().endswith(".mrg"))
    files = sorted(path for path in found if path.is_file() and path.name[0] != ".")
    if not files:
        raise UserError("no .mrg file in this folder or below", file=root, hint=hint)
    return files


# --- parts --------------------------------------------------------------------------------------


def _source(
    home: DataHome, asked: SourceOptions, vocabularies: dict[str, Vocabulary], dataset: str
) -> tuple[Corpus, Metadata]:
    """The labeled sentences of the Wall Street Journal, and metadata about them."""
    if not asked.ptb:
        sample = load_sample(home)
        train = Corpus.concatenate(list(sample.splits.values()))
        vocabularies |= {name: column.vocabulary for name, column in train.columns.items()}
        return train, {"source": sample.name, "sha256_source": sample.metadata["sha256"]}
    root = Path(asked.ptb).expanduser()
    spans = {"train": PTB_SECTIONS["train"]}
    splits, sha256 = read_sections(root, spans, vocabularies, f"--set {dataset}.ptb=FOLDER")
    if asked.check:
        hint = f"is a file missing? --set {dataset}.check=false takes it as it is"
        check_sizes(splits, {"train": PTB_COUNTS["train"]}, {"train": root}, hint)
    return splits["train"], {"source": "ptb", "sha256_source": sha256}


def question_sets(asked: QuestionsOptions) -> tuple[str, ...]:
    """Names of the unlabeled sets that were asked for."""
    return ("simplequestions", "opentriviaqa", *(("qc",) if asked.qc else ()))


def _new_questions(home: DataHome, asked: QuestionsOptions, bank: Corpus) -> list[Sentence]:
    """Sentences of the unlabeled sets that are not in `bank`; UserError for other numbers."""
    known = set(map(letters, sentences_of(bank)))
    text: list[Sentence] = []
    for name in question_sets(asked):
        sentences = _question_set(home, name)
        kept = [sentence for sentence in sentences if letters(sentence) not in known]
        found = (len(kept), len(sentences) - len(kept))
        if found != QUESTION_SETS[name]:
            message = f"{name}: (kept, dropped) = {found}, should be {QUESTION_SETS[name]}"
            raise UserError(message, hint="copy or download its files again")
        text += kept
    return text


def _question_set(home: DataHome, name: str) -> list[Sentence]:
    """All tokenized sentences of one set."""
    if name == "simplequestions":
        return read_simple_questions(home.path(SIMPLE_QUESTIONS))
    if name == "opentriviaqa":
        return [sentence for file in TRIVIA for sentence in read_trivia(home.path(file))]
    path = home.path(QUESTION_CLASSES)
    members = ((path, f"qc/{part}.txt") for part in ("train", "test"))
    return [sentence for member in members for sentence in read_question_classes(member)]


def _biomedical_text(home: DataHome, which: str) -> list[Sentence]:
    """Sentences of GENIA's train, EBM-NLP and GENETAG, or of one of them."""
    text: list[Sentence] = []
    if which in ("all", "genia"):
        text += read_genia(home.path(GENIA["train"]))[0]
    if which in ("all", "ebm"):
        text += read_ebm(home.path(EBM))
    if which in ("all", "genetag"):
        for file in GENETAG.values():
            text += map(ptb_words, sentences_of(read_tagged(home.path(file), {})))
    return text


def letters(sentence: Iterable[str]) -> str:
    """A sentence without what tokenizers, cases, punctuation and lost encodings change."""
    return _NOT_LETTERS.sub("", "".join(sentence).lower())


def _dataset(
    name: str,
    train: Corpus,
    target: Mapping[str, Corpus],
    text: Callable[[], list[Sentence]],
    metadata: Metadata,
) -> Dataset:
    """The data set, with metadata on what the target has that train has not.

    text: makes the unlabeled sentences; called only when they are needed.
    """
    vocabularies = {"word": train.column("word").vocabulary}

    def external() -> Shards:
        corpus = corpus_of(text(), vocabularies)
        # In random order the first n sentences, as a protocol may ask for, are a sample of all.
        order = np.random.default_rng(_ORDER).permutation(corpus.n_sentences)
        return CorpusShards(corpus.select(order))

    for split, corpus in target.items():
        metadata |= _unseen(split, train, corpus)
    return Dataset(
        name=name,
        task="tagging",
        metric="accuracy",
        encoding=None,
        splits={"train": train, **target},
        external=external,
        adaptation=True,
        metadata=metadata,
    )


def _unseen(split: str, train: Corpus, corpus: Corpus) -> Metadata:
    """Share of words, and number of tokens by tag, that are not in train."""
    words, tags = (
        ~np.isin(corpus.column(name).codes, train.column(name).codes) for name in ("word", "label")
    )
    label = corpus.column("label")
    names = [label.vocabulary.strings[c] for c in np.unique(label.codes[tags])]
    return {
        f"{split}_unknown_words": round(float(words.mean()), 4),
        f"{split}_unseen_tags": " ".join(sorted(names)),
        f"{split}_tokens_of_unseen_tags": int(tags.sum()),
    }
