"""``ocr``: handwritten letters; each word is a sequence, each letter a token (Kassel 1995).

Source: the selection of B. Taskar, C. Guestrin, D. Koller, Max-margin Markov networks, NIPS 2003,
as a MATLAB file of the Shogun project. Upstream dropped the first letter of every word (a capital).

Columns. ``image``: the 16 rows of 8 pixels from top to bottom, each row two hexadecimal digits, the
left pixel in the highest bit. ``word``: the same, for code that reads words (templates, the search
for duplicates). ``label``: a to z.

Protocols. The file is sorted by spelling and lacks the fold numbers of folds 1 to 9, so by default
a fixed random fifth of the words is test. The option ``draws`` gives the set-up of He et al.
(2013): ten disjoint labeled sets with two copies of each of the 55 spellings, one for each of the
seeds 0 to 9; all other words are the unlabeled text and the test set. The sets differ from the
paper's, which were drawn from nine of the ten folds; these are drawn from all words.
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

from sslbench.engine.corpus import Column, Corpus, CorpusShards, Vocabulary, read_bytes
from sslbench.engine.errors import UserError
from sslbench.engine.types import I64, Bool
from sslbench.experiment.data import DataHome, Dataset
from sslbench_datasets.letters.info import COUNTS, LETTERS, SPELLINGS
from sslbench_datasets.letters.matlab import read_cells
from sslbench_datasets.loading import (
    Measure,
    check_counts,
    check_draw,
    numbered,
    parse_options,
)

ROWS, COLUMNS = 16, 8
N_DRAWS, COPIES = 10, 2
N_TEST_PARTS = 5  # one of them is test
# Seeds. Part of the protocols: changing them changes every split and every labeled sample.
_SPLIT_SEED, _DRAW_SEED = 0x4F435253, 0x4F435244

_HINT = "move the file away to have the Shogun project's downloaded again"

U8 = NDArray[np.uint8]


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of ``ocr``."""

    draws: Annotated[
        bool,
        Meta(
            description="train is one of ten sets with two copies of each spelling, set s for"
            " --seed s; all other words are test and, with --labeled all, the unlabeled text"
        ),
    ] = False


class LetterImages(NamedTuple):
    """The letters of some words.

    Attributes
    ----------
    pixels: uint8[16, 8, N] of 0 and 1, rows from top to bottom.
    letters: uint8[N], 0 = a.
    offsets: int64[words + 1], borders of words in letters.
    """

    pixels: U8
    letters: U8
    offsets: I64


SIZE = Measure[LetterImages](
    ("words", "letters"), lambda images: (len(images.offsets) - 1, len(images.letters))
)


def load(home: DataHome, *, seed: int = 0, **options: object) -> Dataset:
    """Read the letters and split them into train and test.

    UserError for a bad option, a seed without a draw, a missing or malformed file, or unexpected
    counts.
    """
    draws = parse_options("ocr", options, Options).draws
    if draws:
        check_draw("ocr", seed, N_DRAWS)
    pool = _pool(home.path(LETTERS))
    types = spellings(pool)
    train = drawn(types, seed) if draws else _default_train(len(types))
    splits = {"train": pool.select(train), "test": pool.select(~train)}
    return Dataset(
        name="ocr",
        task="tagging",
        metric="accuracy",
        encoding=None,
        splits=splits,
        external=partial(CorpusShards, splits["test"].drop("label")) if draws else None,
        transductive=draws,
        sentence_ids=numbered(train) if draws else {},
        metadata={
            "sha256": LETTERS.sha256,
            "spellings": SPELLINGS,
            "spellings_in_train_and_test": len(np.intersect1d(types[train], types[~train])),
        },
    )


def read_words(path: Path, part: str) -> LetterImages:
    """Read one part of the file, "train" or "test".

    UserError, with file and word (from 1), for a file that is not a MATLAB file, patterns other
    than uint8[129, letters] of 0 and 1 with a last row of 1, and labels outside 0 to 25.
    """
    names = [f"patterns_{part}", f"labels_{part}"]
    patterns, labels = (_cells(path, name) for name in names)
    if len(patterns) != len(labels):
        message = f"{names[0]} has {len(patterns)} words, {names[1]} has {len(labels)}"
        raise UserError(message, file=path)
    for i, (pattern, label) in enumerate(zip(patterns, labels, strict=True), 1):
        if error := _word_error(pattern, label):
            raise UserError(f"word {i} of {part}: {error}", file=path, hint=_HINT)
    lengths = [label.shape[1] for label in labels]
    # MATLAB stores images by columns; the last row is constant.
    flat = np.concatenate(patterns, axis=1)[: ROWS * COLUMNS]
    pixels = flat.reshape((ROWS, COLUMNS, -1), order="F").astype(np.uint8)
    letters = np.concatenate(labels, axis=1)[0].astype(np.uint8)
    return LetterImages(pixels, letters, np.cumsum([0, *lengths], dtype=np.int64))


def image_strings(pixels: U8) -> list[str]:
    """Images uint8[16, 8, n] of 0 and 1 as n strings of 32 hexadecimal digits."""
    rows = np.packbits(pixels, axis=1)[:, 0].T
    return [image.tobytes().hex() for image in rows]


def spellings(corpus: Corpus) -> I64:
    """int64[S]: number of the label sequence of each sentence, in order of first occurrence."""
    numbers: dict[bytes, int] = {}
    words = np.split(corpus.column("label").codes, corpus.offsets[1:-1])
    return np.array([numbers.setdefault(w.tobytes(), len(numbers)) for w in words], np.int64)


def drawn(types: I64, draw: int) -> Bool:
    """bool[S]: the labeled set of number `draw`.

    types: int64[S], the spelling of each word.
    """
    order = np.random.default_rng(_DRAW_SEED).permutation(len(types))
    grouped = order[np.argsort(types[order], kind="stable")]
    start = np.searchsorted(types[grouped], types[grouped])
    copy = np.arange(len(types)) - start  # number of earlier words with this spelling
    labeled = np.zeros(len(types), np.bool_)
    labeled[grouped[copy // COPIES == draw]] = True
    return labeled


def _default_train(n_words: int) -> Bool:
    """bool[S]: train, all but a fixed random fifth."""
    order = np.random.default_rng(_SPLIT_SEED).permutation(n_words)
    train = np.ones(n_words, np.bool_)
    train[order[: n_words // N_TEST_PARTS]] = False
    return train


def _cells(path: Path, name: str) -> list[NDArray[np.generic]]:
    """The words in one variable of the file, a cell array (1, n)."""
    try:
        cells = read_cells(read_bytes(path), name)
    except ValueError as error:
        message = f"not a MATLAB file of version 5: {error}"
        raise UserError(message, file=path, hint=_HINT) from error
    if not cells:
        raise UserError(f"no cell array {name} of one row", file=path, hint=_HINT)
    return cells


def _word_error(pattern: NDArray[np.generic], label: NDArray[np.generic]) -> str:
    """What is wrong with a word; "" if nothing is."""
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
    """All words in the order of the file; UserError for unexpected counts."""
    images, labels = Vocabulary(), Vocabulary(string.ascii_lowercase)
    parts = {part: read_words(path, part) for part in COUNTS}
    SIZE.check(parts, COUNTS, dict.fromkeys(COUNTS, path), _HINT)
    corpora = []
    for words in parts.values():
        image = Column(images, images.encode(image_strings(words.pixels)))
        label = Column(labels, words.letters.astype(np.int32))
        corpora.append(Corpus({"word": image, "image": image, "label": label}, words.offsets))
    pool = Corpus.concatenate(corpora)
    n_spellings = len(np.unique(spellings(pool)))
    check_counts("the file", (n_spellings,), (SPELLINGS,), ("spellings",), path, _HINT)
    return pool
