"""Corpora as coded columns: a vocabulary and one int32 code per token, sentences by offsets.

There is no string per token. Functions of a word alone (an affix, its lower case) are computed once
per vocabulary entry: see `Vocabulary.derived`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from types import MappingProxyType
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from sslbench.engine.checked import is_ascending
from sslbench.engine.errors import UserError
from sslbench.engine.types import I32, I64, AnyArray, Bool


class _Codes(dict[str, int]):
    """A dict that gives unknown strings the next free code.

    `dict.__getitem__` calls `__missing__` from C: no Python frame per token of a column.
    """

    def __init__(self, strings: list[str]) -> None:
        super().__init__(zip(strings, range(len(strings)), strict=True))
        self.strings = strings

    def __missing__(self, string: str) -> int:
        code = len(self.strings)
        self.strings.append(string)
        self[string] = code
        return code


class Vocabulary:
    """Append-only bijection between strings and the codes 0, 1, 2, ... (int32).

    Vocabularies are compared by identity: the splits of a dataset share one object per column.
    Pickling keeps the strings and drops the derived vocabularies, which are caches.
    """

    def __init__(self, strings: Iterable[str] = ()) -> None:
        """Code `strings` in their order; ValueError if one occurs twice."""
        own = list(strings)
        self._codes = _Codes(own)
        self._derived: dict[str, Derived] = {}
        if len(self._codes) != len(own):
            raise ValueError("a vocabulary cannot hold the same string twice")

    @property
    def strings(self) -> list[str]:
        """The strings in the order of their codes; do not modify the list."""
        return self._codes.strings

    def __len__(self) -> int:
        return len(self._codes)

    def __bool__(self) -> bool:
        # `given or Vocabulary()` must keep a shared vocabulary that is still empty
        return True

    def __contains__(self, string: object) -> bool:
        return string in self._codes

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} strings)"

    def __reduce__(self) -> tuple[type[Vocabulary], tuple[list[str]]]:
        return Vocabulary, (self.strings,)

    def add(self, string: str) -> int:
        """Return the code of `string`, a new one if it is unknown."""
        return self._codes[string]

    def lookup(self, string: str) -> int:
        """Return the code of `string`, -1 if it is unknown."""
        return self._codes.get(string, -1)

    def encode(self, strings: Iterable[str]) -> I32:
        """Return the codes of `strings`, int32[n]; unknown strings are added in their order."""
        return np.fromiter(map(self._codes.__getitem__, strings), dtype=np.int32)

    def derived(self, name: str, fn: Callable[[str], str]) -> Derived:
        """The values `fn(string)` of this vocabulary, cached by `name`: the first `fn` is used."""
        if name not in self._derived:
            self._derived[name] = Derived(self.strings, fn)
        return self._derived[name]


class Derived:
    """A function of the strings of a base vocabulary, with coded values.

    `fn` is called once per entry of the base, which may grow.

    Attributes
    ----------
    vocabulary: the distinct values.
    """

    def __init__(self, strings: list[str], fn: Callable[[str], str]) -> None:
        """strings: the list of the base, not the base itself: a cycle would outlive its corpus."""
        self.vocabulary = Vocabulary()
        self._strings = strings
        self._fn = fn
        self._codes: I32 = np.empty(0, dtype=np.int32)

    def codes(self) -> I32:
        """Return int32[len(base)]: code in `vocabulary` of the value of each entry of the base."""
        new = self._strings[len(self._codes) :]
        if new:
            self._codes = np.concatenate([self._codes, self.vocabulary.encode(map(self._fn, new))])
        return self._codes


def _read_only(array: AnyArray, dtype: type[np.signedinteger[Any]]) -> AnyArray:
    """A view that cannot be written to: problems, trials and splits share arrays of a corpus."""
    view = np.ascontiguousarray(array, dtype=dtype).view()
    view.setflags(write=False)
    return view


@dataclass(frozen=True, eq=False)
class Column:
    """One coded column.

    Attributes
    ----------
    codes: int32[N], indices into `vocabulary`, read-only; other integer types are cast. ValueError
        for arrays of other types or shapes, and for codes that the vocabulary lacks.
    """

    vocabulary: Vocabulary
    codes: I32

    def __post_init__(self) -> None:
        codes = np.asarray(self.codes)
        if codes.ndim != 1 or (codes.dtype.kind not in "iu" and codes.size):
            raise ValueError(f"codes must be integers [N], got {codes.dtype} {codes.shape}")
        if codes.size and not 0 <= codes.min() <= codes.max() < len(self.vocabulary):
            raise ValueError(f"codes outside of a vocabulary of {len(self.vocabulary)} strings")
        object.__setattr__(self, "codes", _read_only(codes, np.int32))

    def __reduce__(self) -> tuple[type[Column], tuple[Vocabulary, I32]]:
        return Column, (self.vocabulary, self.codes)  # which makes the codes read-only again

    def __len__(self) -> int:
        return len(self.codes)

    def strings(self) -> list[str]:
        """Return the column as text, one string per token."""
        return list(map(self.vocabulary.strings.__getitem__, self.codes.tolist()))


@dataclass(frozen=True, eq=False)
class Corpus:
    """Sentences as flat coded columns.

    Attributes
    ----------
    columns: name -> Column of N tokens. The label column is always called "label".
    offsets: int64[S + 1], read-only; sentence i has the tokens offsets[i] to offsets[i + 1] - 1.
        ValueError if they do not rise from 0 to the length of every column.
    documents: int32[S], read-only: equal for sentences of one document. None: the text says
        nothing of documents. ValueError for another length.
    """

    columns: Mapping[str, Column]
    offsets: I64
    documents: I32 | None = None

    def __post_init__(self) -> None:
        offsets = _read_only(np.asarray(self.offsets), np.int64)
        if offsets.ndim != 1 or not len(offsets) or not is_ascending(offsets, int(offsets[-1])):
            raise ValueError("offsets must be int64[S + 1], start at 0 and never decrease")
        for name, column in self.columns.items():
            if len(column) != offsets[-1]:
                raise ValueError(f"column {name!r}: {len(column)} tokens, offsets: {offsets[-1]}")
        if self.documents is not None:
            documents = _read_only(np.asarray(self.documents), np.int32)
            if documents.shape != (len(offsets) - 1,):
                raise ValueError(f"documents must be int32[{len(offsets) - 1}], one per sentence")
            object.__setattr__(self, "documents", documents)
        object.__setattr__(self, "offsets", offsets)
        object.__setattr__(self, "columns", MappingProxyType(dict(self.columns)))

    @classmethod
    def from_sentences(
        cls,
        columns: Mapping[str, Sequence[Sequence[str]]],
        vocabularies: dict[str, Vocabulary] | None = None,
    ) -> Corpus:
        """Code the sentences of each column, given as one string per token.

        vocabularies: by column, used and extended; corpora share those of one dict. Default: new
            ones.
        Raises ValueError if there is no column or if columns differ in the lengths of sentences.
        """
        lengths = {tuple(map(len, sentences)) for sentences in columns.values()}
        if len(lengths) != 1:
            raise ValueError(f"{len(columns)} columns, {len(lengths)} sequences of lengths")
        shared = {} if vocabularies is None else vocabularies
        coded = {}
        for name, sentences in columns.items():
            vocabulary = shared.setdefault(name, Vocabulary())
            coded[name] = Column(vocabulary, vocabulary.encode(chain.from_iterable(sentences)))
        return cls(coded, np.cumsum([0, *lengths.pop()], dtype=np.int64))

    def __reduce__(self) -> tuple[type[Corpus], tuple[dict[str, Column], I64, I32 | None]]:
        # a mappingproxy cannot be pickled
        return Corpus, (dict(self.columns), self.offsets, self.documents)

    def __repr__(self) -> str:
        names = ", ".join(self.columns)
        return f"Corpus({self.n_sentences} sentences, {self.n_tokens} tokens: {names})"

    @property
    def n_sentences(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_tokens(self) -> int:
        return int(self.offsets[-1])

    @property
    def lengths(self) -> I64:
        """int64[S]: tokens per sentence."""
        return np.diff(self.offsets)

    def column(self, name: str) -> Column:
        """Return the column called `name`; UserError with similar names if there is none."""
        if name in self.columns:
            return self.columns[name]
        near = difflib.get_close_matches(name, self.columns, n=3)
        hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
        have = ", ".join(self.columns) or "none"
        raise UserError(f"no column {name!r}", hint=f"{hint}columns: {have}")

    def sentence(self, i: int, name: str) -> list[str]:
        """Sentence i of one column as text; a negative i counts from the end."""
        index = range(self.n_sentences)[i]
        column = self.column(name)
        codes = column.codes[self.offsets[index] : self.offsets[index + 1]]
        return [column.vocabulary.strings[code] for code in codes]

    def sentences(self, name: str) -> list[list[str]]:
        """Return all sentences of one column, as text."""
        strings, borders = self.column(name).strings(), self.offsets.tolist()
        return [strings[first:last] for first, last in pairwise(borders)]

    def select(self, sentence_ids: npt.ArrayLike) -> Corpus:
        """Return the sentences of these numbers in that order, with the same vocabularies.

        sentence_ids: int64[n], repeats allowed, or a mask bool[S].
        IndexError for a number out of range or a mask of another length.
        """
        ids = np.asarray(sentence_ids)
        if ids.dtype == np.bool_:
            if ids.shape != (self.n_sentences,):
                raise IndexError(f"a mask must be bool[{self.n_sentences}], got {ids.shape}")
            ids = np.flatnonzero(ids)
        ids = ids.astype(np.int64, copy=False)
        lengths = self.lengths[ids]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        # token t of the result is token t + shift[t] of this corpus
        shift = np.repeat(self.offsets[:-1][ids] - offsets[:-1], lengths)
        return self._gather(shift + np.arange(offsets[-1]), offsets, ids)

    def between(self, first: SupportsIndex, last: SupportsIndex) -> Corpus:
        """Return the sentences first to last - 1, as views."""
        offsets = self.offsets[int(first) : int(last) + 1]
        sentences = slice(int(first), int(last))
        return self._gather(slice(offsets[0], offsets[-1]), offsets - offsets[0], sentences)

    def _gather(self, tokens: I64 | slice, offsets: I64, sentences: I64 | slice) -> Corpus:
        columns = {n: Column(c.vocabulary, c.codes[tokens]) for n, c in self.columns.items()}
        documents = None if self.documents is None else self.documents[sentences]
        return Corpus(columns, offsets, documents)

    def drop(self, *names: str) -> Corpus:
        """Return the corpus without these columns; names that it lacks are ignored."""
        others = {name: column for name, column in self.columns.items() if name not in names}
        return Corpus(others, self.offsets, self.documents)

    def with_column(self, name: str, column: Column) -> Corpus:
        """Return the corpus with one column added or replaced; ValueError for another length."""
        return Corpus({**self.columns, name: column}, self.offsets, self.documents)

    @staticmethod
    def concatenate(corpora: Sequence[Corpus]) -> Corpus:
        """Return all sentences of the corpora, in their order.

        Documents of different corpora are different; they are known if each corpus has them.

        Raises ValueError if there are no corpora, or if columns or their vocabulary objects differ.
        """
        if not corpora:
            raise ValueError("nothing to concatenate")
        first = corpora[0]
        for other in corpora[1:]:
            _check_same_vocabularies(first, other)
        columns = {
            name: Column(
                column.vocabulary, np.concatenate([c.columns[name].codes for c in corpora])
            )
            for name, column in first.columns.items()
        }
        lengths = np.concatenate([corpus.lengths for corpus in corpora])
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        return Corpus(columns, offsets, _joined_documents(corpora))


def _joined_documents(corpora: Sequence[Corpus]) -> I32 | None:
    """The documents of concatenated corpora, numbered so that no two corpora share one."""
    parts: list[I32] = []
    n_before = 0
    for corpus in corpora:
        if corpus.documents is None:
            return None
        distinct, number = np.unique(corpus.documents, return_inverse=True)
        parts.append(number.astype(np.int32) + np.int32(n_before))
        n_before += len(distinct)
    return np.concatenate(parts)


def _check_same_vocabularies(a: Corpus, b: Corpus) -> None:
    if a.columns.keys() != b.columns.keys():
        raise ValueError(f"columns differ: {', '.join(a.columns)} and {', '.join(b.columns)}")
    for name, column in a.columns.items():
        if column.vocabulary is not b.columns[name].vocabulary:
            raise ValueError(f"column {name!r}: the corpora do not share one vocabulary object")


def sentence_ids(offsets: I64) -> I64:
    """Return int64[N]: the sentence of each token."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def first_tokens(offsets: I64) -> Bool:
    """Return bool[N]: whether the token is the first of its sentence."""
    first = np.zeros(int(offsets[-1]), dtype=np.bool_)
    first[offsets[:-1][np.diff(offsets) > 0]] = True
    return first
