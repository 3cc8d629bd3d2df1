"""``ocr``: handwritten letters, a word a sequence, a letter a token (Kassel 1995).

Source: the selection of B. Taskar, C. Guestrin, D. Koller, Max-margin Markov networks, NIPS 2003,
as a MATLAB file of the Shogun project. Upstream dropped the first letter of every word (a capital).

Columns. ``image``: the 16 rows of 8 pixels from top to bottom, each row two hexadecimal digits, the
left pixel its highest bit. ``word``: the same, for what looks at words (templates, duplicates).
``label``: a to z.

Protocols. The file is sorted by spelling and has lost all fold numbers but one, so by default a
fixed shuffle makes a fifth of the words test. The option ``draw`` gives the set-up of He et al.
(2013): ten disjoint labeled sets with two copies of each of the 55 spellings; all other words are
both the unlabeled text and the test. The sets are not the paper's: its were drawn from nine of the
ten folds, these from all words.
"""

from __future__ import annotations

import string
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from sslbench.corpus import Column, Corpus, CorpusShards, Vocabulary, read_bytes
from sslbench.errors import UserError
from sslbench.experiment.data import DataHome, Dataset
from sslbench.types import I64, Bool
from sslbench_datasets.checks import check_counts, chosen
from sslbench_datasets.letters.info import LETTERS
from sslbench_datasets.letters.matlab import read_cells

ROWS, COLUMNS = 16, 8
N_DRAWS, COPIES, SPELLINGS = 10, 2, 55
# (words, letters) of the two parts of the file: fold 0 of the original, and folds 1 to 9.
COUNTS = {"train": (626, 4_617), "test": (6_251, 47_535)}
TEST_SHARE = 5
# Parts of the protocols: changing them changes every split, every labeled sample.
_SPLIT_STREAM, _DRAW_STREAM = 0x4F435253, 0x4F435244

_HINT = "move the file away to have the Shogun project's downloaded again"

Bytes = NDArray[np.uint8]


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of the data set."""

    draw: Annotated[
        Annotated[int, Meta(ge=0, lt=N_DRAWS)] | None,
        Meta(
            description="which of ten sets with two copies of each spelling is train; all other"
            " words are test and, with --labeled all, the unlabeled text"
        ),
    ] = None


class Words(NamedTuple):
    """Some words. pixels: uint8[16, 8, letters] of 0 and 1; letters: uint8[letters], 0 = a;
    offsets: int64[words + 1]."""

    pixels: Bytes
    letters: Bytes
    offsets: I64


def load(home: DataHome, **options: object) -> Dataset:
    """Read the letters and cut them into train and test.

    UserError for an option outside its bounds, when there is no file, for what `read_words`
    refuses, or when the file's counts are not upstream's.
    """
    draw = chosen("ocr", options, Options).draw
    pool = _pool(home.path(LETTERS))
    types = spellings(pool)
    train = _shuffled(len(types)) if draw is None else drawn(types, draw)
    splits = {"train": pool.select(train), "test": pool.select(~train)}
    return Dataset(
        name="ocr",
        task="tagging",
        metric="accuracy",
        encoding=None,
        splits=splits,
        external=None if draw is None else partial(CorpusShards, splits["test"].drop("label")),
        transductive=draw is not None,
        metadata={
            "sha256": LETTERS.sha256,
            "spellings": SPELLINGS,
            "spellings_in_train_and_test": len(np.intersect1d(types[train], types[~train])),
        },
    )


def read_words(path: Path, part: str) -> Words:
    """Read one part of the file, "train" or "test".

    UserError, naming file and word (from 1), for what is no MATLAB file, for patterns other than
    uint8[129, letters] of 0 and 1 with a last row of 1, and for labels outside 0 to 25.
    """
    names = [f"patterns_{part}", f"labels_{part}"]
    patterns, labels = (_cells(path, name) for name in names)
    if len(patterns) != len(labels):
        message = f"{names[0]} has {len(patterns)} words, {names[1]} has {len(labels)}"
        raise UserError(message, file=path)
    for i, (pattern, label) in enumerate(zip(patterns, labels, strict=True), 1):
        if trouble := _trouble(pattern, label):
            raise UserError(f"word {i} of {part}: {trouble}", file=path, hint=_HINT)
    lengths = [label.shape[1] for label in labels]
    # Column by column, as MATLAB stores a matrix; the last row is a constant.
    flat = np.concatenate(patterns, axis=1)[: ROWS * COLUMNS]
    pixels = flat.reshape((ROWS, COLUMNS, -1), order="F").astype(np.uint8)
    letters = np.concatenate(labels, axis=1)[0].astype(np.uint8)
    return Words(pixels, letters, np.cumsum([0, *lengths], dtype=np.int64))


def image_strings(pixels: Bytes) -> list[str]:
    """Images uint8[16, 8, n] of 0 and 1 as n strings of 32 hexadecimal digits."""
    rows = np.packbits(pixels, axis=1)[:, 0].T
    return [image.tobytes().hex() for image in rows]


def spellings(corpus: Corpus) -> I64:
    """int64[S]: a number for the labels of each sentence, equal for equal sequences of labels."""
    numbers: dict[bytes, int] = {}
    words = np.split(corpus.column("label").codes, corpus.offsets[1:-1])
    return np.array([numbers.setdefault(w.tobytes(), len(numbers)) for w in words], np.int64)


def drawn(types: I64, draw: int) -> Bool:
    """bool[S]: the labeled set of that number; types: int64[S] spelling of each word."""
    order = np.random.default_rng(_DRAW_STREAM).permutation(len(types))
    grouped = order[np.argsort(types[order], kind="stable")]
    start = np.searchsorted(types[grouped], types[grouped])
    copy = np.arange(len(types)) - start  # how many of this spelling came before
    chosen = np.zeros(len(types), np.bool_)
    chosen[grouped[copy // COPIES == draw]] = True
    return chosen


def _shuffled(n_words: int) -> Bool:
    """bool[S]: train, all but a random fifth."""
    order = np.random.default_rng(_SPLIT_STREAM).permutation(n_words)
    train = np.ones(n_words, np.bool_)
    train[order[: n_words // TEST_SHARE]] = False
    return train


def _cells(path: Path, name: str) -> list[NDArray[np.generic]]:
    """The words in one variable of the file, a cell array (1, n)."""
    try:
        found = read_cells(read_bytes(path), name)
    except ValueError as problem:
        message = f"not a MATLAB file of version 5: {problem}"
        raise UserError(message, file=path, hint=_HINT) from problem
    if not found:
        raise UserError(f"has no cell array {name} of one row", file=path, hint=_HINT)
    return found


def _trouble(pattern: NDArray[np.generic], label: NDArray[np.generic]) -> str:
    """What is wrong with a word, "" when nothing is."""
    size = ROWS * COLUMNS + 1
    if pattern.dtype != np.uint8 or pattern.ndim != 2 or len(pattern) != size:
        return f"pixels are {pattern.dtype} {pattern.shape}, not uint8 ({size}, letters)"
    if label.dtype != np.uint8 or label.shape != (1, pattern.shape[1]) or not label.size:
        return f"labels are {label.dtype} {label.shape}, not uint8 (1, {pattern.shape[1]})"
    if pattern.astype(np.uint8).max() > 1 or not pattern[-1].all():
        return "pixels are not 0 or 1 with a last row of 1"
    if label.astype(np.uint8).max() >= len(string.ascii_lowercase):
        return f"label {label.astype(np.uint8).max()} is not in 0 to 25"
    return ""


def _pool(path: Path) -> Corpus:
    """All words in the order of the file, checked against upstream's counts."""
    images, labels = Vocabulary(), Vocabulary(string.ascii_lowercase)
    corpora = []
    parts = {part: read_words(path, part) for part in COUNTS}
    found = {part: (len(words.offsets) - 1, len(words.letters)) for part, words in parts.items()}
    check_counts("(words, letters)", found, COUNTS, dict.fromkeys(COUNTS, path), _HINT)
    for words in parts.values():
        codes = images.encode(image_strings(words.pixels))
        columns = {name: Column(images, codes) for name in ("word", "image")}
        label = Column(labels, words.letters.astype(np.int32))
        corpora.append(Corpus({**columns, "label": label}, words.offsets))
    pool = Corpus.concatenate(corpora)
    if (n := len(np.unique(spellings(pool)))) != SPELLINGS:
        raise UserError(f"{n} spellings, should have {SPELLINGS}", file=path, hint=_HINT)
    return pool
