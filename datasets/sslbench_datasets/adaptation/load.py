"""``questions``, ``bio`` and ``pennbioie``: taggers trained on newswire, tested on other domains.

Source: Subramanya et al. (2010). Labeled text is the Wall Street Journal, unlabeled text is of the
target domain; labels of the target domain are for choosing parameters (dev) and testing. The
paper's target texts are not public; these replace them, so scores are not comparable with its.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta

from sslbench.engine.corpus import Corpus, CorpusShards, Shards, Vocabulary
from sslbench.engine.errors import UserError
from sslbench.experiment.data import DataHome, Dataset, Metadata
from sslbench_datasets.adaptation.info import (
    EBM,
    GENIA,
    GENIA_COUNTS,
    QUESTION_CLASSES,
    QUESTION_COUNTS,
    QUESTION_SETS,
    QUESTIONBANK,
    SIMPLE_QUESTIONS,
    TRIVIA,
)
from sslbench_datasets.adaptation.text import (
    Sentence,
    ptb_words,
    read_biotrees,
    read_ebm,
    read_genia,
    read_question_classes,
    read_questionbank,
    read_simple_questions,
    read_trivia,
)
from sslbench_datasets.genes.genetag import read_tagged
from sslbench_datasets.genes.info import GENETAG
from sslbench_datasets.loading import (
    SIZE,
    CheckOptions,
    check_counts,
    digests,
    parse_options,
    read_hashed,
    read_splits,
    without_check,
)
from sslbench_datasets.treebank.info import PTB_COUNTS, PTB_SECTIONS
from sslbench_datasets.treebank.load import load_sample, read_sections

_NOT_LETTERS = re.compile(r"[^a-z0-9]+")
_ORDER_SEED = 0x61646170  # of the order of the unlabeled text


class SourceOptions(CheckOptions, frozen=True, forbid_unknown_fields=True):
    """Options of the labeled source."""

    ptb: Annotated[
        str,
        Meta(
            description="folder of your Penn Treebank: train is its sections 0-18 instead of the"
            " sample"
        ),
    ] = ""


class QuestionsOptions(SourceOptions, frozen=True, forbid_unknown_fields=True):
    """Options of questions."""

    qc: Annotated[
        bool,
        Meta(
            description="add the TREC question classification set to the unlabeled text, without"
            " QuestionBank's sentences"
        ),
    ] = False


class BioOptions(SourceOptions, frozen=True, forbid_unknown_fields=True):
    """Options of bio."""

    unlabeled: Annotated[
        Literal["all", "genia", "ebm", "genetag"], Meta(description="the unlabeled text")
    ] = "all"


class PennBioOptions(BioOptions, frozen=True, forbid_unknown_fields=True):
    """Options of pennbioie."""

    path: Annotated[str, Meta(description="your folder with .mrg files")] = ""
    dev: Annotated[
        int, Meta(description="sentences of dev; 0: those of the first half of the files", ge=0)
    ] = 0


# --- datasets -----------------------------------------------------------------------------------


def load_questions(home: DataHome, **options: object) -> Dataset:
    """Read source, QuestionBank and the unlabeled questions; options as in `QuestionsOptions`.

    Unlabeled sentences with the same letters and digits as a sentence of QuestionBank are left out;
    the metadata counts them. UserError for a bad option, a missing or malformed file, or unexpected
    counts.
    """
    settings = parse_options("questions", options, QuestionsOptions)
    vocabularies: dict[str, Vocabulary] = {}
    train, source = _source(home, settings, vocabularies, "questions")
    path = home.path(QUESTIONBANK)
    bank = read_questionbank(path, vocabularies)
    half = QUESTION_COUNTS["dev"][0]
    splits = {"dev": bank.between(0, half), "test": bank.between(half, bank.n_sentences)}
    SIZE.check(splits, QUESTION_COUNTS, dict.fromkeys(splits, path))
    sets = ["simplequestions", "opentriviaqa", *(["qc"] if settings.qc else [])]
    counts = {}
    for name in sets:
        counts[f"{name}_sentences"], counts[f"{name}_dropped"] = QUESTION_SETS[name]
    metadata = {**source, "sha256_questionbank": QUESTIONBANK.sha256, **counts}
    text = partial(_unlabeled_questions, home, sets, bank)
    return _dataset("questions", train, splits, text, metadata)


def load_bio(home: DataHome, **options: object) -> Dataset:
    """Read source, GENIA and the biomedical text; options as in `BioOptions`.

    UserError for a bad option, a missing or malformed file, or unexpected counts.
    """
    settings = parse_options("bio", options, BioOptions)
    vocabularies: dict[str, Vocabulary] = {}
    train, source = _source(home, settings, vocabularies, "bio")
    files = {split: GENIA[split] for split in GENIA_COUNTS}
    read = partial(read_genia, vocabularies=vocabularies)
    splits = read_splits(home, files, read, GENIA_COUNTS, SIZE)
    text = partial(_biomedical_text, home, settings.unlabeled)
    return _dataset("bio", train, splits, text, {**source, **digests(files)})


def load_pennbioie(home: DataHome, **options: object) -> Dataset:
    """Read source, a licence holder's PennBioIE and other text; options as in `PennBioOptions`.

    ``metadata["sha256_target"]`` is of the bytes of all files of PennBioIE, in order. Its counts
    are not published, so they are not checked. UserError for a bad option, no folder, a dev or test
    without sentences, or a missing or malformed file.
    """
    settings = parse_options("pennbioie", options, PennBioOptions)
    files = find_biotrees(settings.path)
    vocabularies: dict[str, Vocabulary] = {}
    train, source = _source(home, settings, vocabularies, "pennbioie")
    digest = hashlib.sha256()
    parts = [read_biotrees(read_hashed(file, digest), vocabularies) for file in files]
    target = Corpus.concatenate(parts)
    half = sum(part.n_sentences for part in parts[: (len(parts) + 1) // 2])
    n_dev = settings.dev or half
    if not 0 < n_dev < target.n_sentences:
        raise UserError(
            f"dev has {n_dev} of {target.n_sentences} sentences; dev or test is empty",
            file=settings.path,
            hint="give another number with --set pennbioie.dev=NUMBER",
        )
    splits = {"dev": target.between(0, n_dev), "test": target.between(n_dev, target.n_sentences)}
    metadata = {**source, "files": len(files), "sha256_target": digest.hexdigest()}
    text = partial(_biomedical_text, home, settings.unlabeled)
    return _dataset("pennbioie", train, splits, text, metadata)


def find_biotrees(folder: str) -> list[Path]:
    """All .mrg files below the user's folder, by path; UserError if there are none."""
    hint = "give the folder of LDC2008T20 or LDC2008T21 with --set pennbioie.path=FOLDER"
    if not folder:
        raise UserError("dataset pennbioie needs the copy of a licence holder", hint=hint)
    root = Path(folder).expanduser()
    if not root.is_dir():
        raise UserError("no such folder", file=root, hint=hint)
    paths = (path for path in root.rglob("*") if path.name.lower().endswith(".mrg"))
    files = sorted(path for path in paths if path.is_file() and path.name[0] != ".")
    if not files:
        raise UserError("no .mrg file in this folder or below", file=root, hint=hint)
    return files


# --- parts --------------------------------------------------------------------------------------


def _source(
    home: DataHome, options: SourceOptions, vocabularies: dict[str, Vocabulary], dataset: str
) -> tuple[Corpus, Metadata]:
    """The labeled sentences of the Wall Street Journal, and metadata about them."""
    if not options.ptb:
        sample = load_sample(home)
        train = Corpus.concatenate(list(sample.splits.values()))
        vocabularies |= {name: column.vocabulary for name, column in train.columns.items()}
        return train, {"source": sample.name, "sha256_source": sample.metadata["sha256"]}
    root = Path(options.ptb).expanduser()
    sections = {"train": PTB_SECTIONS["train"]}
    splits, sha256 = read_sections(root, sections, vocabularies, f"--set {dataset}.ptb=FOLDER")
    if options.check:
        expected = {"train": PTB_COUNTS["train"]}
        SIZE.check(splits, expected, {"train": root}, without_check(dataset))
    return splits["train"], {"source": "ptb", "sha256_source": sha256}


def _unlabeled_questions(home: DataHome, sets: Iterable[str], bank: Corpus) -> list[Sentence]:
    """Sentences of the question sets that are not in `bank`; UserError for unexpected counts."""
    in_bank = set(map(letters, bank.sentences("word")))
    text: list[Sentence] = []
    for name in sets:
        sentences = _question_set(home, name)
        new = [sentence for sentence in sentences if letters(sentence) not in in_bank]
        counts, units = (len(new), len(sentences) - len(new)), ("new sentences", "duplicates")
        check_counts(name, counts, QUESTION_SETS[name], units, None)
        text += new
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


def _biomedical_text(home: DataHome, name: str) -> list[Sentence]:
    """Sentences of GENIA's train, EBM-NLP and GENETAG, or of one of them."""
    text: list[Sentence] = []
    if name in ("all", "genia"):
        text += read_genia(home.path(GENIA["train"]), {}).sentences("word")
    if name in ("all", "ebm"):
        text += read_ebm(home.path(EBM))
    if name in ("all", "genetag"):
        for file in GENETAG.values():
            text += map(ptb_words, read_tagged(home.path(file), {}).sentences("word"))
    return text


def letters(sentence: Iterable[str]) -> str:
    """The lower-case ASCII letters and digits of a sentence, for comparing texts.

    They do not depend on tokenization, case, punctuation and encoding.
    """
    return _NOT_LETTERS.sub("", "".join(sentence).lower())


def _dataset(
    name: str,
    train: Corpus,
    target: Mapping[str, Corpus],
    text: Callable[[], list[Sentence]],
    metadata: Metadata,
) -> Dataset:
    """The dataset, with metadata on words and tags of the target that train lacks.

    text: makes the unlabeled sentences; only called when they are needed.
    """
    vocabularies = {"word": train.column("word").vocabulary}

    def external() -> Shards:
        corpus = Corpus.from_sentences({"word": text()}, vocabularies)
        # In random order the first n sentences, which a protocol may ask for, are a sample of all.
        order = np.random.default_rng(_ORDER_SEED).permutation(corpus.n_sentences)
        return CorpusShards(corpus.select(order))

    for split, corpus in target.items():
        metadata = {**metadata, **_unseen(split, train, corpus)}
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
    """Share of tokens whose word, and number of tokens whose tag, is not in train."""
    words, tags = (
        ~np.isin(corpus.column(name).codes, train.column(name).codes) for name in ("word", "label")
    )
    label = corpus.column("label")
    names = [label.vocabulary.strings[code] for code in np.unique(label.codes[tags])]
    return {
        f"{split}_unknown_words": round(float(words.mean()), 4),
        f"{split}_unseen_tags": " ".join(sorted(names)),
        f"{split}_tokens_of_unseen_tags": int(tags.sum()),
    }
