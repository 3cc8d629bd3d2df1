"""Weak labels in a user's files: further columns of the unlabeled text, or of train."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from sslbench.engine.corpus import Column, Corpus, Scheme, Vocabulary, tag_fits
from sslbench.engine.corpus.encodings import describe
from sslbench.engine.errors import UserError
from sslbench.experiment.data.reading import Read
from sslbench.experiment.data.spelling import Spelling
from sslbench.experiment.data.weak import (
    ABSTAINS,
    PREFIX,
    source_names,
    tokens_with,
    unread,
    weak_labels,
)


def check_sources(columns: Sequence[str]) -> None:
    """UserError for a weak source without a name, or two of the same name."""
    names = source_names(columns)
    for name in names:
        if not name:
            hint = "write weak:NAME, e.g. --columns word,weak:gazetteer,label"
            raise UserError("a column of weak labels has no name", hint=hint)
        if names.count(name) > 1:
            raise UserError(f"two columns are called {PREFIX}{name}", hint="rename one of them")


def with_weak(
    read: Read,
    file: Path,
    columns: Sequence[str],
    schemes: tuple[Scheme | None, Scheme | None],
    spelling: Spelling,
    vocabularies: Mapping[str, Vocabulary],
) -> Corpus:
    """Return a text with a column for each weak source of `columns`, in the scheme of the program.

    schemes: of the gold labels in the files and in the program; None = plain tags.
    spelling: of the gold labels, which the weak ones have, too.
    vocabularies: of the columns, as another part of the data has them; {} = new ones.
    UserError, with file and line, for a label that does not fit.
    """
    corpus = read.corpus
    for name in source_names(columns):
        column, words = PREFIX + name, vocabularies.get(PREFIX + name, Vocabulary())
        if column not in corpus.columns:
            corpus = corpus.with_column(column, unread(corpus.n_tokens, words))
            continue
        tags = _tags(read, file, name, schemes[0], spelling)
        source, target = schemes
        if source is not None and target is not None:
            tags = weak_labels(tags, corpus.offsets, source, target, words)
        else:
            tags = Column(words, words.encode(tags.strings()))
        corpus = corpus.with_column(column, tags)
    return corpus


def _tags(read: Read, file: Path, name: str, scheme: Scheme | None, spelling: Spelling) -> Column:
    """Return the entries of a source as the program spells them."""
    column = read.corpus.column(PREFIX + name)
    if scheme is None:
        return column
    table = {entry: _tag(entry, spelling, scheme) for entry in set(column.strings())}
    wrong = [entry for entry, tag in table.items() if tag is None]
    if wrong:
        first = int(np.argmax(tokens_with(column, *wrong)))
        entry = column.vocabulary.strings[column.codes[first]]
        raise UserError(
            f"the weak label {entry!r} of {name} does not fit {spelling.renamed or scheme}",
            file=file,
            line=read.line(first),
            hint=f"{describe(scheme)}; write {ABSTAINS} where the source says nothing",
        )
    words = Vocabulary()
    return Column(words, words.encode(table[entry] or "" for entry in column.strings()))


def _tag(entry: str, spelling: Spelling, scheme: Scheme) -> str | None:
    """Return an entry as the program spells it; None if it does not fit."""
    if entry == ABSTAINS:
        return entry
    tag = spelling.read(entry)
    return tag if tag_fits(tag, scheme) else None
