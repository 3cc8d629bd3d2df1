"""``brown`` and ``masc``: part-of-speech tags of English texts of many genres.

Sources: W. N. Francis and H. Kucera, Brown corpus manual, 1979; N. Ide et al., The manually
annotated sub-corpus, 2010. Tags of ``brown``: S. Petrov, D. Das, R. McDonald, A universal
part-of-speech tagset, 2012.
"""

from __future__ import annotations

import difflib
import re
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from sslbench.engine.corpus import Corpus, CorpusShards, RawBytes, Vocabulary, read_text
from sslbench.engine.corpus.files import COPY_AGAIN, Source, source_name
from sslbench.engine.errors import UserError
from sslbench.experiment.data import DataHome, Dataset
from sslbench_datasets.chinese.text import read_tag_map
from sslbench_datasets.genres.info import (
    BROWN,
    BROWN_COUNTS,
    BROWN_GENRES,
    BROWN_MAP,
    MASC,
    MASC_COUNTS,
)
from sslbench_datasets.loading import SIZE, Counts, DocumentOptions, parse_options

Token = tuple[str, str]
Sentence = list[Token]
Reader = Callable[[RawBytes], Iterable[Sentence]]
#: genre -> its files by name
Members = Mapping[str, list[RawBytes]]

ALL, UNLISTED = "all", "unlisted"
# Place of a file in each five of its genre -> split.
_SPLITS = ("train", "train", "train", "dev", "test")
_BROWN_FILE = re.compile(r"brown/c([a-hj-npr])[0-9]{2}")
_MASC_FILE = re.compile(r"masc_tagged/((?:spoken|written)/.+\.txt)")


class GenreOptions(DocumentOptions, frozen=True, forbid_unknown_fields=True):
    """Options of ``brown`` and of ``masc``."""

    genre: Annotated[str, Meta(description="the genre of dev and test, and of train")] = ALL
    source: Annotated[
        str, Meta(description="another genre for train: domain adaptation; default: that of genre")
    ] = ""


def load_brown(home: DataHome, **options: object) -> Dataset:
    """Read the Brown corpus; options are those of `GenreOptions`.

    UserError for a bad option, a missing or malformed file or unexpected counts.
    """
    settings = parse_options("brown", options, GenreOptions)
    path, universal = home.path(BROWN), read_tag_map(home.path(BROWN_MAP))
    members: dict[str, list[RawBytes]] = defaultdict(list)
    for name, text in _members(path).items():
        if match := _BROWN_FILE.fullmatch(name):
            members[BROWN_GENRES[match[1]]].append(text)
    read = partial(brown_sentences, universal=universal)
    return _dataset("brown", settings, path, members, read, BROWN_COUNTS, BROWN.sha256)


def load_masc(home: DataHome, **options: object) -> Dataset:
    """Read MASC; options are those of `GenreOptions`.

    UserError for a bad option, a missing or malformed file or unexpected counts.
    """
    settings = parse_options("masc", options, GenreOptions)
    path = home.path(MASC)
    genres = read_genres((path, "masc_tagged/categories.txt"))
    members: dict[str, list[RawBytes]] = defaultdict(list)
    for name, text in _members(path).items():
        if match := _MASC_FILE.fullmatch(name):
            members[genres.get(match[1], UNLISTED)].append(text)
    return _dataset("masc", settings, path, members, masc_sentences, MASC_COUNTS, MASC.sha256)


def _dataset(
    name: str,
    settings: GenreOptions,
    path: Path,
    members: Members,
    read: Reader,
    counts: Mapping[str, Counts],
    sha256: str,
) -> Dataset:
    target = _chosen(name, settings.genre, members)
    source = _chosen(name, settings.source or settings.genre, members)
    vocabularies: dict[str, Vocabulary] = {}

    def part(genres: Members, split: str) -> Corpus:
        files = _of_split(genres, split)
        if not files:
            message = f"genre {settings.genre} of {name} has too few files for a part {split}"
            raise UserError(message, hint="five are needed; choose another genre")
        return _corpus(files, read, settings.documents, vocabularies)

    splits = {"train": part(source, "train"), "dev": part(target, "dev")}
    splits["test"] = part(target, "test")
    if settings.genre == ALL and not settings.source:
        SIZE.check(splits, counts, dict.fromkeys(splits, path))
    adaptation = settings.source not in ("", settings.genre)
    text = part(target, "train").drop("label") if adaptation else None
    return Dataset(
        name=name,
        task="tagging",
        metric="accuracy",
        encoding=None,
        splits=splits,
        external=None if text is None else partial(CorpusShards, text),
        adaptation=adaptation,
        metadata={"sha256": sha256},
    )


def _chosen(dataset: str, genre: str, members: Members) -> Members:
    """The files of a genre or of all; UserError for another name."""
    if genre == ALL:
        return members
    if genre not in members:
        near = difflib.get_close_matches(genre, members, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        hint += f"genres: {', '.join((ALL, *sorted(members)))}"
        raise UserError(f"dataset {dataset}: no genre {genre!r}", hint=hint)
    return {genre: members[genre]}


def _of_split(members: Members, split: str) -> list[RawBytes]:
    """The files of a split, genre by genre."""
    return [
        file
        for genre in sorted(members)
        for place, file in enumerate(members[genre])
        if _SPLITS[place % len(_SPLITS)] == split
    ]


def _corpus(
    files: list[RawBytes], read: Reader, documents: bool, vocabularies: dict[str, Vocabulary]
) -> Corpus:
    columns: dict[str, list[list[str]]] = {"word": [], "label": []}
    if documents:
        columns["document"] = []
    for file in files:
        for sentence in read(file):
            columns["word"].append([word for word, _ in sentence])
            columns["label"].append([tag for _, tag in sentence])
            if documents:
                columns["document"].append([Path(file.name).stem] * len(sentence))
    return Corpus.from_sentences(columns, vocabularies)


def _members(path: Path) -> dict[str, RawBytes]:
    """The files in a zip file by name; opened once, since there are hundreds.

    UserError if it cannot be read.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted(archive.namelist())
            return {name: RawBytes(f"{path}!{name}", archive.read(name)) for name in names}
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile) as error:
        message = f"the compressed file is damaged ({error})"
        raise UserError(message, file=path, hint=COPY_AGAIN) from None


# --- the readers --------------------------------------------------------------------------------


def brown_sentences(source: Source, universal: Mapping[str, str]) -> Iterator[Sentence]:
    """The sentences of a file of the Brown corpus, ``word/tag`` and one sentence per line.

    universal: universal tag by Brown tag in capitals.
    UserError with the line for an item that is not word/tag, a tag without universal tag and a byte
    that is not ASCII.
    """
    for number, items in _lines(source, "ascii"):
        sentence = []
        for item in items:
            word, _, tag = item.rpartition("/")
            if not word or not tag:
                raise _error(source, number, f"{item!r} is not word/tag")
            if tag.upper() not in universal:
                raise _error(source, number, f"unknown tag {tag!r}")
            sentence.append((word, universal[tag.upper()]))
        yield sentence


def masc_sentences(source: Source) -> Iterator[Sentence]:
    """The sentences of a file of MASC, ``word_TAG`` and one sentence per line.

    A sentence with a token that lacks its word or its tag is left out. UserError with the line for
    a byte that is not UTF-8.
    """
    for _, items in _lines(source, "utf-8"):
        cut = [item.rpartition("_") for item in items]
        if all(word and tag for word, _, tag in cut):
            yield [(word, tag) for word, _, tag in cut]


def read_genres(source: Source) -> dict[str, str]:
    """File -> genre: two columns; UserError with the line for any other."""
    genres = {}
    for number, items in _lines(source, "utf-8"):
        if len(items) != 2:
            raise _error(source, number, f"expected a file and its genre, got {len(items)} columns")
        genres[items[0]] = items[1]
    return genres


def _lines(source: Source, encoding: str) -> Iterator[tuple[int, list[str]]]:
    """Number and items of each line that is not blank; UserError for a file without any."""
    text = read_text(source, encoding)
    if not text.strip():
        raise UserError("the file is empty", file=source_name(source), hint=COPY_AGAIN)
    for number, line in enumerate(text.split("\n"), 1):
        if items := line.split():
            yield number, items


def _error(source: Source, line: int, message: str) -> UserError:
    return UserError(message, file=source_name(source), line=line, hint=COPY_AGAIN)
