"""Word vectors: files of four forms, hostile ones, and vectors that are learned from text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from sslbench import RunContext, UserError
from sslbench.engine.features.words import WordFeatures
from sslbench_methods.singular import singular_rows
from sslbench_methods.text_words import TextWords
from sslbench_methods.word_vectors import files
from sslbench_methods.word_vectors.files import read_vectors
from sslbench_methods.word_vectors.method import WordVectors, ppmi, signs, text_vectors, unit_rows

WORDS = ["the", "of", "Köln"]
VECTORS = np.array([[0.5, -1.25], [2.0, 3.0], [0.0, 1e-3]], np.float32)


def lines_of(words: list[str] = WORDS) -> bytes:
    rows = zip(words, VECTORS.tolist(), strict=True)
    return "".join(f"{word} {' '.join(map(repr, row))}\n" for word, row in rows).encode()


def binary_of(end: bytes = b"\n") -> bytes:
    rows = zip(WORDS, VECTORS, strict=True)
    parts = [word.encode() + b" " + row.astype("<f4").tobytes() + end for word, row in rows]
    return b"3 2\n" + b"".join(parts)


@pytest.mark.parametrize(
    "content",
    [b"3 2\n" + lines_of(), lines_of(), binary_of(), binary_of(b""), lines_of().rstrip()],
    ids=["fastText", "GloVe", "binary", "binary without line feeds", "no last line feed"],
)
def test_files_are_read(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "vectors"
    path.write_bytes(content)
    words, vectors = read_vectors(str(path), 10)
    assert words == WORDS
    assert vectors.tolist() == VECTORS.tolist()
    words, vectors = read_vectors(str(path), 2)
    assert (words, vectors.tolist()) == (WORDS[:2], VECTORS[:2].tolist())


def test_words_with_spaces_and_twice(tmp_path: Path) -> None:
    path = tmp_path / "vectors"
    path.write_bytes(lines_of([". .", "a", "a"]).replace(b". . ", b". . ", 1))
    path.write_bytes(b"3 2\n" + path.read_bytes())
    words, vectors = read_vectors(str(path), 10)
    assert words == [". .", "a"]
    assert vectors.tolist() == VECTORS[:2].tolist()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no word vectors in it"),
        (b"word\n", "no word vectors"),
        (b"the 0.5 1\nof 2\n", "2: no word and 2 finite"),
        (b"the 0.5 1\nof 2 nan\n", "2: no word and 2 finite"),
        (b"the 0.5 1\nof 2 inf\n", "2: no word and 2 finite"),
        (b"the 0.5 1\n\n", "2: no word and 2 finite"),
        (b"3 0\n", "0 dimensions"),
        (b"3 99999\n", "99999 dimensions"),
        (binary_of()[:-4], "entry 3 of 3"),
        (b"9999999999 4096\n" + b"x" * 5000, "entry 1 of 9999999999"),
        (b"a " + b"1" * 10**6, "no word vectors|finite"),
        (b"x" * 5_000_000, "no word vectors"),
        (bytes(range(256)) * 100, "no word vectors|finite"),
    ],
)
def test_hostile_files(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "vectors"
    path.write_bytes(content)
    with pytest.raises(UserError, match=message):
        read_vectors(str(path), 10**6)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none", Path("/dev/zero")):
        with pytest.raises(UserError, match=r"cannot be read|no regular file"):
            read_vectors(str(path), 10)


def test_edited_files_end_in_an_answer(tmp_path: Path) -> None:
    rng, path = np.random.default_rng(0), tmp_path / "vectors"
    for content in (b"3 2\n" + lines_of(), binary_of()):
        for _ in range(200):
            data = bytearray(content)
            for _ in range(int(rng.integers(1, 4))):
                data[int(rng.integers(len(data)))] = int(rng.integers(256))
            path.write_bytes(bytes(data[: int(rng.integers(1, len(data) + 1))]))
            try:
                words, vectors = read_vectors(str(path), 10)
            except UserError:
                continue
            assert len(set(words)) == len(words) == len(vectors)
            assert np.isfinite(vectors).all()
            assert vectors.shape[1] <= files.MAX_DIMENSIONS


def text_of(codes: list[int], n_words: int) -> TextWords:
    number = np.array(codes, np.int32)
    counts = np.bincount(number, minlength=n_words)
    return TextWords([f"w{i}" for i in range(n_words)], counts, number, np.zeros(len(codes)))


@pytest.mark.parametrize("shift", [1.0, 3.0])
def test_mutual_information_by_its_definition(shift: float) -> None:
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 4, (5, 6))
    found = ppmi(sparse.csr_array(counts), shift).toarray()
    p = counts / counts.sum()
    for w in range(5):
        for c in range(6):
            expected = 0.0
            if counts[w, c]:
                expected = max(0.0, np.log(p[w, c] / (p[w].sum() * p[:, c].sum()) / shift))
            assert found[w, c] == pytest.approx(expected)


def test_learned_vectors_are_singular_vectors() -> None:
    rng = np.random.default_rng(5)
    text = text_of(rng.integers(0, 12, 400).tolist(), 12)
    params = WordVectors.Params(dimensions=3, neighbors=1)
    found = text_vectors(text, params, np.random.default_rng(1)).astype(np.float64)
    after = text.pairs(1)
    dense = np.hstack([ppmi(side, 1.0).toarray() for side in (after, after.T.tocsr())])
    U, S, _ = np.linalg.svd(dense)
    expected = U[:, :3] * np.sqrt(S[:3])
    gram = expected @ expected.T  # does not depend on signs
    assert np.allclose(found @ found.T, gram, atol=1e-5)
    again = text_vectors(text, params, np.random.default_rng(1))
    assert found.tolist() == again.astype(np.float64).tolist()
    assert (singular_rows(after.astype(float), 2, rng).max(axis=0) > 0).all()


def test_signs_of_large_numbers() -> None:
    vectors = np.array([[1.0], [3.0], [-1.0], [-5.0], [0.0]], np.float32)
    names, codes = signs(vectors)["vector0"]
    assert [names[code] for code in codes] == ["", "+", "", "-", ""]


@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
def test_unit_rows(scale: float) -> None:
    rows = np.array([[3.0, -4.0], [0.0, 0.0], [0.0, 2.0]]) * scale
    assert np.allclose(unit_rows(rows.astype(np.float32)), [[0.6, -0.8], [0, 0], [0, 1]])
    assert unit_rows(np.empty((0, 3), np.float32)).shape == (0, 3)
    assert unit_rows(np.empty((3, 0), np.float32)).shape == (3, 0)


def test_all_vectors_have_the_same_length(tmp_path: Path) -> None:
    path = tmp_path / "vectors"
    path.write_bytes(lines_of())
    params = WordVectors.Params(vector_file=str(path), vector_length=0.5)
    problem: Any = None  # a file needs no text
    features = WordVectors().learn(problem, params, RunContext())
    assert features.vectors is not None
    assert np.linalg.norm(features.vectors, axis=1).tolist() == pytest.approx([0.5] * 3)
    cosine = features.vectors @ VECTORS.T / np.linalg.norm(VECTORS, axis=1) / 0.5
    assert np.diag(cosine).tolist() == pytest.approx([1.0] * 3)


def test_a_word_without_a_vector_is_looked_up_in_lower_case() -> None:
    from sslbench.testing.toys import corpus_of

    features = WordFeatures("word", ["the", "IBM"], (-1, 0), {}, VECTORS[:2])
    text = corpus_of([[("The", "X"), ("ibm", "X"), ("IBM", "X")], [("the", "X")]])
    found = features.dense(text).tolist()
    a, b, none = VECTORS[0].tolist(), VECTORS[1].tolist(), [0.0, 0.0]
    assert found == [[*none, *a], [*a, *none], [*none, *b], [*none, *a]]
