"""Handwritten letters: the MATLAB file, the splits and draws, pixels as features."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import loadmat, savemat

from sslbench import registry
from sslbench.engine.corpus import Column, Corpus, Vocabulary
from sslbench.engine.crf import ChainModel, HardLabels, Options, TrainingParams
from sslbench.engine.errors import UserError
from sslbench.experiment.data import DataHome, Dataset
from sslbench.experiment.inputs.protocol import unlabeled_text
from sslbench.experiment.records.record import ProtocolSpec
from sslbench_datasets.letters import load as letters
from sslbench_datasets.letters.info import DATASETS, LETTERS
from sslbench_methods.featurizers.pixels import (
    DISCOUNT,
    images,
    pixels,
    pixels3,
    pixels3_discounted,
    windows,
)
from support.real_files import real_home

Word = tuple[np.ndarray, str]
# A shape that no flip or transposition maps to itself: two rows, the second half lit.
CORNER = np.zeros((16, 8), np.uint8)
CORNER[0] = [1, 0, 0, 0, 0, 0, 1, 1]
CORNER[1, 4:] = 1
CORNER_HEX = "830f" + "00" * 14


def cell(items: list[np.ndarray]) -> np.ndarray:
    out = np.empty((1, len(items)), dtype=object)
    out[0] = [None] * len(items)
    for i, item in enumerate(items):
        out[0, i] = item
    return out


def pattern(shapes: np.ndarray) -> np.ndarray:
    """uint8[129, n] of images uint8[n, 16, 8]: pixels column by column, then a row of 1."""
    rows = [[*(shape[r, c] for c in range(8) for r in range(16)), 1] for shape in shapes]
    return np.array(rows, np.uint8).T


def variables(part: str, words: list[Word]) -> dict[str, Any]:
    codes = [np.array([[ord(c) - ord("a") for c in text]], np.uint8) for _, text in words]
    shapes = [pattern(shapes) for shapes, _ in words]
    return {f"patterns_{part}": cell(shapes), f"labels_{part}": cell(codes)}


def random_words(texts: list[str], seed: int) -> list[Word]:
    rng = np.random.default_rng(seed)
    return [(rng.integers(0, 2, (len(t), 16, 8), dtype=np.uint8), t) for t in texts]


def written(path: Path, train: list[Word], test: list[Word]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    savemat(path, variables("train", train) | variables("test", test), do_compression=True)
    return path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DataHome:
    """A data home with a small file: 3 spellings, sorted, 25 words each."""
    texts = [text for text in ("ab", "ba", "cad") for _ in range(25)]
    parts = [texts[::5], [text for i, text in enumerate(texts) if i % 5]]
    path = written(tmp_path / LETTERS.path, random_words(parts[0], 1), random_words(parts[1], 2))
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setattr(letters, "LETTERS", replace(LETTERS, sha256=sha256))
    counts = {
        name: (len(part), sum(map(len, part)))
        for name, part in zip(("train", "test"), parts, strict=True)
    }
    monkeypatch.setattr(letters, "COUNTS", counts)
    monkeypatch.setattr(letters, "SPELLINGS", 3)
    return DataHome(tmp_path, tmp_path / "cache", offline=True)


def words_of(corpus: Corpus) -> list[str]:
    """The spelling and the images of each word."""
    return [
        " ".join(["".join(corpus.sentence(i, "label")), *corpus.sentence(i, "image")])
        for i in range(corpus.n_sentences)
    ]


def spelled(corpus: Corpus) -> Counter[str]:
    return Counter(word.split()[0] for word in words_of(corpus))


def test_an_image_is_read_row_by_row_from_columns(tmp_path: Path) -> None:
    both = np.stack([CORNER, 1 - CORNER])
    path = written(tmp_path / "f.mat", [(both, "az")], random_words(["b"], 0))
    words = letters.read_words(path, "train")
    assert words.pixels.transpose(2, 0, 1).tolist() == both.tolist()
    assert words.letters.tolist() == [0, 25]
    assert words.offsets.tolist() == [0, 2]
    inverse = "7cf0" + "ff" * 14
    assert letters.image_strings(words.pixels) == [CORNER_HEX, inverse]


def broken(path: Path, name: str, word: int, change: object) -> Path:
    """A file whose `word` (from 0) in one variable was changed, or the variable replaced."""
    parts = variables("train", random_words(["ab", "cd"], 0))
    if callable(change):
        parts[f"{name}_train"][0, word] = change(parts[f"{name}_train"][0, word])
    else:
        parts[f"{name}_train"] = change
    savemat(path, parts)
    return path


def with_last(value: int) -> Any:
    def change(array: np.ndarray) -> np.ndarray:
        array[-1, -1] = value
        return array

    return change


def with_first(value: int) -> Any:
    def change(array: np.ndarray) -> np.ndarray:
        array[0, 0] = value
        return array

    return change


@pytest.mark.parametrize(
    ("name", "word", "change", "message"),
    [
        ("patterns", 1, lambda a: a[:-1], r"word 2 of train: pixels are uint8 \(128, 2\)"),
        ("patterns", 0, lambda a: a.astype(float), r"word 1 of train: pixels are float64"),
        ("patterns", 0, lambda a: a[:, :1], r"word 1 of train: labels are uint8 \(1, 2\), not"),
        ("patterns", 1, with_first(2), "word 2 of train: pixels are not 0 or 1"),
        ("patterns", 1, with_last(0), "word 2 of train: pixels are not 0 or 1 with a last row"),
        ("labels", 0, with_last(26), "word 1 of train: label 26 is not in 0 to 25"),
        ("labels", 1, lambda a: a.astype(np.int16), "word 2 of train: labels are int16"),
        ("labels", 1, lambda a: a.T, r"word 2 of train: labels are uint8 \(2, 1\)"),
        ("labels", 0, np.zeros((1, 2)), "no cell array labels_train of one row"),
        ("labels", 0, cell([np.zeros((1, 2), np.uint8)]), "has 2 words, labels_train has 1"),
    ],
)
def test_a_bad_file_is_named(
    tmp_path: Path, name: str, word: int, change: object, message: str
) -> None:
    path = broken(tmp_path / "f.mat", name, word, change)
    with pytest.raises(UserError, match=message) as caught:
        letters.read_words(path, "train")
    assert caught.value.file == str(path)


def test_a_word_without_letters_is_refused(tmp_path: Path) -> None:
    parts = variables("train", random_words(["a"], 0))
    parts["patterns_train"][0, 0] = np.zeros((129, 0), np.uint8)
    parts["labels_train"][0, 0] = np.zeros((1, 0), np.uint8)
    savemat(tmp_path / "f.mat", parts)
    with pytest.raises(UserError, match="word 1 of train"):
        letters.read_words(tmp_path / "f.mat", "train")


@pytest.mark.parametrize("keep", [0, 4, 60, 127, 200, 300])
@pytest.mark.parametrize("filler", [b"", b"x" * 1000])
def test_what_is_no_matlab_file_is_named(tmp_path: Path, keep: int, filler: bytes) -> None:
    path = written(tmp_path / "f.mat", random_words(["ab"], 0), [])
    path.write_bytes(path.read_bytes()[:keep] + filler)
    with pytest.raises(UserError, match=r"f\.mat: "):
        letters.read_words(path, "train")


def test_other_contents_than_registered_are_not_parsed(home: DataHome) -> None:
    path = home.locate(LETTERS)
    path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(UserError, match="sha256"):
        letters.load(home)


def places(home: DataHome, corpus: Corpus) -> np.ndarray:
    """The place of each word of a corpus in the file."""
    order: dict[str, int] = {}
    for part in ("train", "test"):
        actual = letters.read_words(home.locate(LETTERS), part)
        texts = letters.image_strings(actual.pixels)
        for a, b in zip(actual.offsets, actual.offsets[1:], strict=False):
            order[" ".join(texts[a:b])] = len(order)
    return np.array([order[word.split(" ", 1)[1]] for word in words_of(corpus)])


def test_the_default_split_is_a_shuffle(home: DataHome) -> None:
    data = letters.load(home)
    assert (data.name, data.task, data.metric, data.encoding) == (
        "ocr",
        "tagging",
        "accuracy",
        None,
    )
    train, test = data.splits["train"], data.splits["test"]
    assert list(data.splits) == ["train", "test"]
    assert list(train.columns) == ["word", "image", "label"]
    for name in train.columns:
        assert train.column(name).vocabulary is test.column(name).vocabulary
    assert train.column("word").codes.tolist() == train.column("image").codes.tolist()
    assert (train.n_sentences, test.n_sentences) == (60, 15)
    assert len(set(words_of(train)) | set(words_of(test))) == 75
    assert spelled(train) + spelled(test) == {"ab": 25, "ba": 25, "cad": 25}
    assert len(spelled(test)) == data.metadata["spellings_in_train_and_test"] == 3
    assert words_of(letters.load(home).splits["test"]) == words_of(test)
    assert len(set(places(home, test) // 15)) == 5  # words from every fifth of the file
    assert data.external is None
    assert not letters.load(home).transductive


def test_draws_hold_two_of_each_spelling_and_the_rest_is_test_and_text(home: DataHome) -> None:
    seen: set[str] = set()
    numbers: dict[int, str] = {}
    early = places(home, letters.load(home, draws=True).splits["train"]) < 15
    assert not early.all()  # not the copies that come first in the file
    for seed in range(10):
        data = letters.load(home, seed=seed, draws=True)
        train, test = data.splits["train"], data.splits["test"]
        assert spelled(train) == {"ab": 2, "ba": 2, "cad": 2}
        assert not seen & set(words_of(train))
        seen |= set(words_of(train))
        for split, corpus in data.splits.items():
            ids = data.sentence_ids[split].tolist()
            for number, word in zip(ids, words_of(corpus), strict=True):
                assert numbers.setdefault(number, word) == word
        assert len(set(words_of(train)) | set(words_of(test))) == 6 + test.n_sentences == 75
        text = unlabeled_text(data, ProtocolSpec(labeled="all", text="external"))
        (shard,) = text
        assert set(shard.columns) == {"word", "image"}
        assert data.transductive
        assert shard.column("image").codes.tolist() == test.column("image").codes.tolist()
    assert len(seen) == 60
    assert len(set(numbers.values())) == len(numbers) == 75
    assert not letters.load(home).sentence_ids


@pytest.mark.parametrize("options", [{"draws": 1}, {"draw": 1}])
def test_bad_options_are_refused(home: DataHome, options: dict[str, int]) -> None:
    with pytest.raises(UserError, match=r"ocr.*draw"):
        letters.load(home, **options)


def test_seeds_beyond_the_draws_are_refused(home: DataHome) -> None:
    with pytest.raises(UserError, match=r"ocr has 10 draws; there is none for seed 10") as caught:
        letters.load(home, seed=10, draws=True)
    assert "--seed 0 to 9" in str(caught.value)
    assert words_of(letters.load(home, seed=10).splits["train"]) == words_of(
        letters.load(home).splits["train"]
    )


def test_other_counts_than_upstreams_are_an_error(
    home: DataHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(letters.COUNTS, "test", (60, 141))
        with pytest.raises(UserError, match=r"ocr_taskar.* 140 letters; expected 60 words, 141"):
            letters.load(home)
    monkeypatch.setattr(letters, "SPELLINGS", 4)
    with pytest.raises(UserError, match=r"ocr_taskar.*3 spellings; expected 4 sp"):
        letters.load(home)


def corpus_of(*texts: str) -> Corpus:
    vocabulary = Vocabulary(["not an image"])  # an entry that does not occur is no error
    return Corpus(
        {"image": Column(vocabulary, vocabulary.encode(texts))}, np.array([0, len(texts)])
    )


def test_pixels_are_those_that_were_written() -> None:
    rng = np.random.default_rng(0)
    shapes = rng.integers(0, 2, (16, 8, 5), dtype=np.uint8)
    shapes[..., 0] = CORNER
    texts = letters.image_strings(shapes)
    order = [3, 0, 4, 4, 1, 2, 0]  # repeats, and not in the order of the codes
    actual = images(corpus_of(*(texts[i] for i in order)))
    assert actual.dtype == np.float64
    assert actual.reshape(-1, 16, 8).tolist() == [shapes[..., i].tolist() for i in order]
    assert images(corpus_of()).shape == (0, 128)


@pytest.mark.parametrize("text", ["", "0" * 31, "0" * 33, "0" * 31 + "g", "A" * 32, "0 " * 16])
def test_an_image_that_is_none_is_named(text: str) -> None:
    with pytest.raises(UserError, match=f"image '{text}' is not 32") as caught:
        images(corpus_of("f" * 32, text))
    assert caught.value.hint


def test_windows_end_where_the_word_does() -> None:
    rng = np.random.default_rng(1)
    texts = letters.image_strings(rng.integers(0, 2, (16, 8, 6), dtype=np.uint8))
    corpus = Corpus(corpus_of(*texts).columns, np.array([0, 1, 1, 4, 6]))
    pad, own = np.zeros(128), images(corpus)
    for start, end in ((0, 1), (1, 4), (4, 6)):
        padded = [pad, *own[start:end], pad]
        expected = [np.concatenate(padded[i : i + 3]) for i in range(end - start)]
        assert windows(corpus)[start:end].tolist() == np.stack(expected).tolist()
    assert windows(corpus_of()).shape == (0, 384)


def test_a_chain_learns_from_pixels() -> None:
    """Four letters with one telling pixel each among random ones."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, 240)
    shapes = rng.integers(0, 2, (16, 8, 240), dtype=np.uint8)
    shapes[5, 2:6] = np.arange(4)[:, None] == codes
    text = corpus_of(*letters.image_strings(shapes))
    corpus = Corpus(text.columns, np.arange(0, 241, 4))
    train, test = corpus.between(0, 40), corpus.between(40, 60)
    crf = ChainModel().prepare(pixels(), train, codes[:160].astype(np.int32), list("abcd"))
    crf.train(
        [(crf.encode(train), HardLabels(codes[:160].astype(np.int32)))],
        TrainingParams(sigma2=1.0),
        options=Options(),
    )
    assert (crf.predict(test) == codes[160:]).mean() > 0.9


def test_registrations_load() -> None:
    known = registry()
    (info,) = DATASETS
    assert known.dataset("ocr") == info
    assert info.load() is letters.load
    assert known.featurizer(info.featurizer).load() is pixels3
    assert pixels3().templates
    assert known.featurizer("pixels3_discounted").load() is pixels3_discounted


def real() -> tuple[Path, Dataset, list[Dataset]]:
    home = real_home([LETTERS])
    draws = [letters.load(home, seed=seed, draws=True) for seed in range(10)]
    return home.path(LETTERS), letters.load(home), draws


@pytest.mark.corpus
def test_the_real_file() -> None:
    path, data, draws = real()
    raw = loadmat(path)
    expected = Counter()
    for part in ("train", "test"):
        pairs = zip(raw[f"patterns_{part}"][0], raw[f"labels_{part}"][0], strict=True)
        for shapes, codes in pairs:
            text = "".join(chr(ord("a") + code) for code in codes[0])
            rows = shapes[:128].T.reshape(-1, 8, 16).transpose(0, 2, 1).reshape(-1, 128)
            bits = ["".join(map(str, row)) for row in rows.tolist()]
            expected[" ".join([text, *(f"{int(b, 2):032x}" for b in bits)])] += 1
    for actual in (data, draws[0]):
        train, test = actual.splits["train"], actual.splits["test"]
        assert Counter(words_of(train) + words_of(test)) == expected
    factors = []
    for draw in draws:  # seven transition features a letter and a word's end, by lit pixels
        own = draw.splits["train"]
        factors.append(7 * (own.n_tokens + own.n_sentences) / windows(own).sum())
    assert min(factors) == pytest.approx(0.1007, abs=5e-5)
    assert max(factors) == pytest.approx(0.1048, abs=5e-5)
    assert np.mean(factors) == pytest.approx(DISCOUNT, abs=5e-4)
    train, test = data.splits["train"], data.splits["test"]
    assert (train.n_sentences, test.n_sentences) == (5_502, 1_375)
    assert (train.n_tokens, test.n_tokens) == (41_924, 10_228)
    assert len(spelled(train)) == len(spelled(test)) == 55
    assert (min(train.lengths), max(train.lengths)) == (3, 14)
    labeled = [Counter(words_of(draw.splits["train"])) for draw in draws]
    assert all(set(spelled(d.splits["train"]).values()) == {2} for d in draws)
    assert {sum(words.values()) for words in labeled} == {110}
    assert sum(labeled, Counter()) <= expected
