"""Unlabeled text for another process: words alone, without the code that makes them."""

from __future__ import annotations

from pathlib import Path

from sslbench.engine.corpus import (
    ChainedShards,
    Column,
    Corpus,
    CorpusShards,
    Shards,
    StoredShards,
    Vocabulary,
    write_shards,
)


def portable(shards: Shards, folder: Path) -> Shards:
    """The same shards, of types that hold nothing but text and paths of stored text.

    Others, such as text that a dataset's code generates, are stored in the folder first.
    """
    if type(shards) in (CorpusShards, StoredShards):
        return shards
    if type(shards) is ChainedShards:
        parts = [portable(part, folder / str(at)) for at, part in enumerate(shards.parts)]
        return ChainedShards(parts)
    first = next(iter(shards), None)
    columns = {} if first is None else first.columns
    write_shards(folder / "text", shards)
    return StoredShards(
        folder / "text", {name: column.vocabulary for name, column in columns.items()}
    )


def without_later_words(corpus: Corpus) -> Corpus:
    """The same text and codes; its vocabularies end with the last string that occurs.

    Reading unlabeled text adds words to the vocabularies that the splits share with it.
    """
    columns = {}
    for name, column in corpus.columns.items():
        end = int(column.codes.max(initial=-1)) + 1
        columns[name] = Column(Vocabulary(column.vocabulary.strings[:end]), column.codes)
    return Corpus(columns, corpus.offsets)
