"""Weak labels: those of somebody or something that may be wrong, on text without gold labels.

They are columns of the text with the name ``weak:SOURCE``. An entry is a label, `ABSTAINS`, or
`UNREAD` where the source has not seen the sentence. Only train and the external text have such
columns: `without_weak` takes them from what is predicted.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from sslbench.engine.corpus import Column, Corpus, Scheme, Vocabulary, convert_labels
from sslbench.engine.types import I64, Bool
from sslbench.experiment.data.layout import WEAK

PREFIX = WEAK
ABSTAINS = "_"
UNREAD = ""


def source_names(columns: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the weak sources among the names of columns."""
    return tuple(name.removeprefix(PREFIX) for name in columns if name.startswith(PREFIX))


def without_weak(corpus: Corpus) -> Corpus:
    """Return the corpus without weak labels."""
    return corpus.drop(*(PREFIX + name for name in source_names(corpus.columns)))


def unread(n_tokens: int, vocabulary: Vocabulary) -> Column:
    """Return the column of a source that has not read the text."""
    return Column(vocabulary, vocabulary.encode([UNREAD] * n_tokens))


def tokens_with(column: Column, *entries: str) -> Bool:
    """Return bool[N]: which tokens have one of these entries."""
    has = np.array([each in entries for each in column.vocabulary.strings], dtype=np.bool_)
    return has[column.codes] if len(has) else np.zeros(len(column), dtype=np.bool_)


def weak_labels(
    column: Column, offsets: I64, scheme: Scheme, target: Scheme, into: Vocabulary
) -> Column:
    """Return weak chunk tags of a scheme in a target scheme, coded by `into`, which is extended.

    Chunks become well-formed: one that begins with I gets a B. Tokens where the source says nothing
    end a chunk. UserError for a label that does not fit the scheme.
    """
    silent = tokens_with(column, ABSTAINS, UNREAD)
    strings = np.array([*column.vocabulary.strings, "O"], dtype=object)
    entries = strings[column.codes]
    spoken = Vocabulary()
    codes = spoken.encode(np.where(silent, "O", entries).tolist())
    corpus = convert_labels(Corpus({"label": Column(spoken, codes)}, offsets), scheme, target)
    tags = np.array(corpus.column("label").strings(), dtype=object)
    return Column(into, into.encode(np.where(silent, entries, tags).tolist()))
