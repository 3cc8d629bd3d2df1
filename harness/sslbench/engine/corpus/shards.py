"""Text that is read one shard at a time, in bounded memory.

A shard is a `Corpus`; unlabeled shards have no column "label". Each iteration gives the same shards
in the same order.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from sslbench.engine.corpus.columns import Column, Corpus, Vocabulary
from sslbench.engine.errors import UserError
from sslbench.engine.lazy import lazy
from sslbench.engine.types import I32

SHARD_TOKENS = 2**20
_INDEX = "shards.json"
_FORMAT = 1


@runtime_checkable
class Shards(Protocol):
    """Unlabeled text: its sizes, and its shards, which may be iterated over repeatedly."""

    @property
    def n_sentences(self) -> int: ...

    @property
    def n_tokens(self) -> int: ...

    def __iter__(self) -> Iterator[Corpus]: ...


class CorpusShards:
    """A corpus in memory as views of at most `shard_tokens` tokens, cut between sentences.

    A longer sentence is one shard; a corpus without sentences has no shards.
    """

    def __init__(self, corpus: Corpus, shard_tokens: int = SHARD_TOKENS) -> None:
        if shard_tokens < 1:
            raise ValueError(f"shard_tokens must be positive, got {shard_tokens}")
        self.corpus = corpus
        self.shard_tokens = shard_tokens

    @property
    def n_sentences(self) -> int:
        return self.corpus.n_sentences

    @property
    def n_tokens(self) -> int:
        return self.corpus.n_tokens

    def __iter__(self) -> Iterator[Corpus]:
        offsets, first = self.corpus.offsets, 0
        while first < self.n_sentences:
            full = np.searchsorted(offsets, offsets[first] + self.shard_tokens, side="right") - 1
            last = max(int(full), first + 1)
            yield self.corpus.between(first, last)
            first = last


class ChainedShards:
    """The shards of several texts, in their order."""

    def __init__(self, parts: Sequence[Shards]) -> None:
        self.parts = tuple(parts)

    @property
    def n_sentences(self) -> int:
        return sum(part.n_sentences for part in self.parts)

    @property
    def n_tokens(self) -> int:
        return sum(part.n_tokens for part in self.parts)

    def __iter__(self) -> Iterator[Corpus]:
        return itertools.chain.from_iterable(self.parts)


class HeadShards:
    """The first `n_sentences` sentences of a text, or all if there are fewer.

    ValueError if `n_sentences` is negative.
    """

    def __init__(self, shards: Shards, n_sentences: int) -> None:
        if n_sentences < 0:
            raise ValueError(f"n_sentences must not be negative, got {n_sentences}")
        self._shards = shards
        self._limit = n_sentences

    @property
    def n_sentences(self) -> int:
        return min(self._limit, self._shards.n_sentences)

    @lazy
    def n_tokens(self) -> int:
        return sum(shard.n_tokens for shard in self)

    def __iter__(self) -> Iterator[Corpus]:
        left = self._limit
        for shard in self._shards if left else ():
            yield shard if shard.n_sentences <= left else shard.between(0, left)
            left -= shard.n_sentences
            if left <= 0:
                return


class HeadTokens:
    """The first sentences of a text, as many whole ones as have at most `n_tokens` tokens.

    The text is read no further. ValueError if `n_tokens` is negative.
    """

    def __init__(self, shards: Shards, n_tokens: int) -> None:
        if n_tokens < 0:
            raise ValueError(f"n_tokens must not be negative, got {n_tokens}")
        self._shards = shards
        self._limit = n_tokens

    @property
    def n_sentences(self) -> int:
        return self._size[0]

    @property
    def n_tokens(self) -> int:
        return self._size[1]

    @lazy
    def _size(self) -> tuple[int, int]:
        sizes = [(shard.n_sentences, shard.n_tokens) for shard in self]
        return sum(size[0] for size in sizes), sum(size[1] for size in sizes)

    def __iter__(self) -> Iterator[Corpus]:
        left = self._limit
        for shard in self._shards:
            ends = shard.offsets[1:] - shard.offsets[0]
            fitting = int(np.searchsorted(ends, left, side="right"))
            if fitting:
                yield shard.between(0, fitting)
            if fitting < shard.n_sentences:
                return
            left -= shard.n_tokens


class StoredShards:
    """The shards in a folder of `write_shards`: a memory-mapped int32 array per column and shard.

    vocabularies: by column, used and extended with the stored strings. Codes are translated, which
        copies one shard at a time, unless they agree. Default: new ones.
    UserError for a folder that is missing, incomplete, damaged or of another format.
    """

    def __init__(
        self, folder: str | os.PathLike[str], vocabularies: dict[str, Vocabulary] | None = None
    ) -> None:
        self.folder = Path(folder)
        index = _read_json(self.folder / _INDEX)
        if not isinstance(index, dict) or index.get("format") != _FORMAT:
            hint = "write it again with this version"
            raise UserError("shards of another format", file=self.folder, hint=hint)
        self._sizes: list[list[int]] = index["shards"]  # [sentences, tokens] each
        shared = {} if vocabularies is None else vocabularies
        self.vocabularies: dict[str, Vocabulary] = {}
        self._recode: dict[str, I32 | None] = {}
        for i, name in enumerate(index["columns"]):
            stored = _read_json(self.folder / f"vocabulary{i}.json")
            vocabulary = shared.setdefault(name, Vocabulary())
            codes = vocabulary.encode(stored)
            same = np.array_equal(codes, np.arange(len(codes)))
            self._recode[name] = None if same else codes
            self.vocabularies[name] = vocabulary

    @property
    def n_sentences(self) -> int:
        return sum(sentences for sentences, _ in self._sizes)

    @property
    def n_tokens(self) -> int:
        return sum(tokens for _, tokens in self._sizes)

    def __iter__(self) -> Iterator[Corpus]:
        for number, size in enumerate(self._sizes):
            try:
                shard = self._load(number)
            except (OSError, ValueError) as error:
                file = self.folder / _file(number, "*")
                hint = "delete the folder and write it again"
                raise UserError(f"damaged shard ({error})", file=file, hint=hint) from None
            if [shard.n_sentences, shard.n_tokens] != size:
                file = self.folder / _file(number, "offsets")
                raise UserError("damaged shard (its size is not that of the index)", file=file)
            yield shard

    def _load(self, number: int) -> Corpus:
        columns = {}
        for i, (name, recode) in enumerate(self._recode.items()):
            file = self.folder / _file(number, f"column{i}")
            # a plain array, since slices of np.memmap are slow
            codes = np.asarray(np.load(file, mmap_mode="r", allow_pickle=False))
            columns[name] = Column(
                self.vocabularies[name], codes if recode is None else recode[codes]
            )
        return Corpus(columns, np.load(self.folder / _file(number, "offsets"), allow_pickle=False))


def write_shards(folder: str | os.PathLike[str], shards: Shards) -> StoredShards:
    """Store `shards` in a new folder, which exists only once it is complete.

    If another process creates the folder in the meantime, its shards are used. Memory: one shard
    and the vocabularies.

    UserError if the folder exists already; ValueError if shards differ in columns or vocabularies.
    """
    target = Path(folder)
    if target.exists():
        raise UserError("the folder exists already", file=target)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        _write(temporary, shards)
        temporary.chmod(0o755)  # mkdtemp makes it private
        try:
            temporary.rename(target)
        except OSError:
            if not (target / _INDEX).exists():
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return StoredShards(target)


def _write(folder: Path, shards: Shards) -> None:
    vocabularies: dict[str, Vocabulary] | None = None
    sizes: list[list[int]] = []
    for number, shard in enumerate(shards):
        own = {name: column.vocabulary for name, column in shard.columns.items()}
        vocabularies = own if vocabularies is None else vocabularies
        same = all(own.get(name) is shared for name, shared in vocabularies.items())
        if list(own) != list(vocabularies) or not same:
            raise ValueError("the shards do not share columns and vocabularies")
        for i, column in enumerate(shard.columns.values()):
            np.save(folder / _file(number, f"column{i}"), column.codes, allow_pickle=False)
        np.save(folder / _file(number, "offsets"), shard.offsets, allow_pickle=False)
        sizes.append([shard.n_sentences, shard.n_tokens])
    names = list(vocabularies or ())
    # at the end, since vocabularies may grow during the iteration
    for i, vocabulary in enumerate((vocabularies or {}).values()):
        _write_json(folder / f"vocabulary{i}.json", vocabulary.strings)
    _write_json(folder / _INDEX, {"format": _FORMAT, "columns": names, "shards": sizes})


def _file(number: int, part: str) -> str:
    return f"{number:06d}.{part}.npy"


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError("no shards here", file=path) from None
    except (OSError, ValueError) as error:
        raise UserError(f"damaged shards ({error})", file=path) from None
