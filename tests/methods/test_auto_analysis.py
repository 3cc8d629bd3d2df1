"""Lists and clusters against counting in plain Python."""

from __future__ import annotations

from collections import Counter, defaultdict
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from sslbench.engine.corpus import Corpus, CorpusShards
from sslbench.engine.features import Streams
from sslbench.engine.types import F64
from sslbench_methods.chinese.auto_analysis import (
    NGRAMS,
    NgramCounts,
    NgramLists,
    WordLists,
    by_class,
    frequency_classes,
    list_codes,
    list_names,
)
from sslbench_methods.chinese.word_clusters import directions, kmeans, neighbor_pmi
from support.texts import corpus_of

LABELS = ("B", "M", "E", "S")


# --- frequency classes ----------------------------------------------------------------------------


def test_the_top_five_and_the_next_fifteen_percent() -> None:
    counts = np.arange(1, 101)
    classes = frequency_classes(counts)
    assert classes[counts > 95].tolist() == [0] * 5
    assert classes[(counts > 80) & (counts <= 95)].tolist() == [1] * 15
    assert classes[counts <= 80].tolist() == [2] * 80
    with_more = frequency_classes(np.append(counts, [0, 0]))  # what does not occur is no entry
    assert with_more.tolist() == [*classes.tolist(), 3, 3]


def test_entries_of_one_count_share_the_lower_class() -> None:
    # 20 entries: one may be H, four H or M
    assert frequency_classes(np.array([9, *[1] * 19])).tolist() == [0] + [2] * 19
    assert frequency_classes(np.array([9, 9, *[1] * 18])).tolist() == [1, 1] + [2] * 18
    assert frequency_classes(np.array([9, 5, 5, 4, *[1] * 16])).tolist() == [0, 1, 1, 1] + [2] * 16
    assert frequency_classes(np.array([9, 5, 4, 4, 4, *[1] * 15])).tolist() == [0, 1] + [2] * 18
    assert frequency_classes(np.full(50, 7)).tolist() == [2] * 50
    assert frequency_classes(np.zeros(0, np.int64)).tolist() == []


@given(st.lists(st.integers(0, 5), max_size=60), st.randoms())
def test_classes_are_of_counts_alone(counts: list[int], random: object) -> None:
    classes = frequency_classes(np.array(counts, np.int64)).tolist()
    seen = [c for c in counts if c]
    for count, kind in zip(counts, classes, strict=True):
        as_frequent = sum(other >= count for other in seen)
        wanted = 0 if 20 * as_frequent <= len(seen) else 1 if 5 * as_frequent <= len(seen) else 2
        assert kind == (wanted if count else 3)


def test_the_most_frequent_label_and_its_class() -> None:
    counts = np.array([[0, 0], [3, 4], [2, 2], *[[0, 1]] * 18])
    names = list_names(["X", "Y"])
    assert names == ["N", "X/H", "X/M", "X/L", "Y/H", "Y/M", "Y/L"]
    found = [names[code] for code in list_codes(counts)]
    assert found == ["N", "Y/H", "X/M", *["Y/L"] * 18]
    assert by_class(list_codes(counts)) == [1, 1, 18]


# --- n-grams --------------------------------------------------------------------------------------


def brute(lines: list[str], labels: list[str]) -> dict[str, dict[tuple[str, ...], Counter[str]]]:
    """Labels of C_0 by n-gram; the ends of a sentence count as characters."""
    found: dict[str, dict[tuple[str, ...], Counter[str]]] = {
        name: defaultdict(Counter) for name in ("left", "right", "both")
    }
    for line, own in zip(lines, labels, strict=True):
        for i, label in enumerate(own):
            before = line[i - 1] if i else "<s>"
            after = line[i + 1] if i + 1 < len(line) else "</s>"
            found["left"][before, line[i]][label] += 1
            found["right"][line[i], after][label] += 1
            found["both"][before, line[i], after][label] += 1
    return found


def keys(name: str, line: str, i: int) -> tuple[str, ...]:
    before = line[i - 1] if i else "<s>"
    after = line[i + 1] if i + 1 < len(line) else "</s>"
    return {"left": (before, line[i]), "right": (line[i], after), "both": (before, line[i], after)}[
        name
    ]


def counted(text: Corpus, labels: str, shard_tokens: int = 2**20) -> NgramLists:
    shards = CorpusShards(text, shard_tokens)
    counts = NgramCounts(Streams.fit(NGRAMS.values(), shards), LABELS)
    begin = 0
    for shard in shards:
        own = labels[begin : begin + shard.n_tokens]
        counts.add(shard, np.array([LABELS.index(label) for label in own], np.int32))
        begin += shard.n_tokens
    return counts.lists()


LINES = st.lists(st.text("abc", min_size=1, max_size=12), min_size=1, max_size=12)


@given(LINES, LINES, st.integers(0, 2**32 - 1), st.integers(1, 30))
def test_ngrams(lines: list[str], others: list[str], seed: int, shard_tokens: int) -> None:
    rng = np.random.default_rng(seed)
    labels = ["".join(rng.choice(list(LABELS), len(line))) for line in lines]
    lists = counted(corpus_of(lines), "".join(labels), shard_tokens)
    text = lists.annotate(corpus_of([*others, "d"]))  # other vocabularies, a new character
    wanted = brute(lines, labels)
    for name, table in wanted.items():
        totals = sorted(sum(counter.values()) for counter in table.values())
        expected = []
        for line in [*others, "d"]:
            for i in range(len(line)):
                counter = table.get(keys(name, line, i))
                if counter is None:
                    expected.append("N")
                    continue
                most = max(LABELS, key=lambda label: (counter[label], -LABELS.index(label)))
                rank = sum(total >= sum(counter.values()) for total in totals) / len(totals)
                kind = "H" if rank <= 0.05 else "M" if rank <= 0.2 else "L"
                expected.append(f"{most}/{kind}")
        assert text.column(name).strings() == expected
        assert sum(lists.sizes()[name]) == len(table)


def test_saved_lists_of_ngrams() -> None:
    text = corpus_of(["abca", "bb", "cab"])
    lists = counted(text, "BMESBESBE")
    arrays, facts = lists.arrays()
    again = NgramLists.from_arrays(arrays, facts)
    for name in NGRAMS:
        assert (
            again.annotate(text).column(name).strings()
            == lists.annotate(text).column(name).strings()
        )
    wrong = {**arrays, "list.left": arrays["list.left"] + 13}
    with pytest.raises(ValueError, match="outside of 0 to 12"):
        NgramLists.from_arrays(wrong, facts)
    with pytest.raises(ValueError, match=r"array list\.both: int32"):
        NgramLists.from_arrays({**arrays, "list.both": arrays["list.both"][1:]}, facts)


# --- words ----------------------------------------------------------------------------------------


def test_lists_of_words() -> None:
    codes = {"lexicon": np.array([1, 0, 2], np.int32), "coarse": np.array([0, 1, 1], np.int32)}
    names = {"lexicon": ["N", "NN/H", "VV/L"], "coarse": ["N", "0"]}
    lists = WordLists(["人", "天上", "看"], codes, names)
    for one in (lists, WordLists.from_arrays(*lists.arrays())):
        text = one.annotate(corpus_of([["看", "地", "人"], ["天上", "看"]]))
        assert text.column("lexicon").strings() == ["VV/L", "N", "NN/H", "N", "VV/L"]
        assert text.column("coarse").strings() == ["0", "N", "N", "0", "0"]
    arrays, facts = lists.arrays()
    for broken in (
        {**arrays, "list.coarse": np.array([0, 1, 2], np.int32)},
        {**arrays, "list.lexicon": np.array([0, 1], np.int32)},
        {**arrays, "ends": arrays["ends"][:-1]},
    ):
        with pytest.raises(ValueError, match="array"):
            WordLists.from_arrays(broken, facts)


@given(
    st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=6), min_size=1, max_size=8),
    st.integers(1, 7),
)
def test_neighbor_pmi(lines: list[list[str]], cut: int) -> None:
    """Words a to d are described; e and f are neither described nor neighbors."""
    described = "abcd"
    text = corpus_of(lines)
    strings = text.column("word").vocabulary.strings
    number = np.array([described.find(word) for word in strings], np.int32)
    matrix = neighbor_pmi(CorpusShards(text, cut), number, 4).toarray()
    assert matrix.shape == (4, 10)
    for side in (0, 1):
        pairs = Counter[tuple[int, int]]()
        for line in lines:
            padded = ["$", *line, "$"]
            for i, word in enumerate(line, 1):
                other = padded[i - 1 + 2 * side]
                context = 4 if other == "$" else described.find(other)
                if word in described and context >= 0:
                    pairs[described.find(word), context] += 1
        wanted = np.zeros((4, 5))
        for (word, context), n in pairs.items():
            of_word = sum(m for (w, _), m in pairs.items() if w == word)
            of_context = sum(m for (_, c), m in pairs.items() if c == context)
            pmi = log(n * pairs.total() / (of_word * of_context))
            wanted[word, context] = max(0.0, pmi)
        np.testing.assert_allclose(matrix[:, 5 * side : 5 * side + 5], wanted, atol=1e-12)


def low_rank(rank: int, seed: int = 0) -> sparse.csr_array:
    rng = np.random.default_rng(seed)
    left, right = rng.random((40, rank)) < 0.3, rng.random((rank, 60)) < 0.3
    return sparse.csr_array(left.astype(float) @ right.astype(float))


@pytest.mark.parametrize("rank", [5, 40])
def test_directions_are_those_of_the_singular_vectors(rank: int) -> None:
    matrix = low_rank(rank)
    U, S, _ = np.linalg.svd(matrix.toarray(), full_matrices=False)
    wanted = (U * np.sqrt(S))[:, :4]
    wanted[np.linalg.norm(wanted, axis=1) < 1e-12] = 0.0  # empty rows: no direction
    assert (~wanted.any(axis=1)).any() == (rank == 5)
    wanted /= np.maximum(np.linalg.norm(wanted, axis=1, keepdims=True), 1e-12)
    found = directions(matrix, 4, np.random.default_rng(1))
    np.testing.assert_allclose(found @ found.T, wanted @ wanted.T, atol=1e-3)


def test_directions_are_the_same_each_time() -> None:
    """Also of a matrix whose rank is smaller than what is asked for."""
    for rank in (3, 30):
        one, two = (directions(low_rank(rank), 20, np.random.default_rng(1)) for _ in range(2))
        np.testing.assert_array_equal(one, two)
    assert (
        directions(sparse.csr_array((3, 8)), 20, np.random.default_rng(1)).tolist()
        == [[0.0] * 3] * 3
    )


def blobs() -> F64:
    rng = np.random.default_rng(0)
    return np.repeat(np.eye(4), 25, axis=0) + rng.normal(0, 0.02, (100, 4))


def test_kmeans() -> None:
    rows = blobs()
    for seed in range(3):
        cluster = kmeans(rows, 12, np.random.default_rng(seed))
        centers = np.stack([rows[cluster == c].mean(axis=0) for c in np.unique(cluster)])
        nearest = np.linalg.norm(rows[:, None] - centers, axis=2).argmin(axis=1)
        np.testing.assert_array_equal(np.unique(cluster)[nearest], cluster)
        blob = np.arange(100) // 25
        assert all(len(set(blob[cluster == c].tolist())) == 1 for c in np.unique(cluster))
        np.testing.assert_array_equal(cluster, kmeans(rows, 12, np.random.default_rng(seed)))


def test_more_clusters_than_rows() -> None:
    rows = np.array([[1.0, 0], [0, 1], [1, 0]])
    cluster = kmeans(rows, 5, np.random.default_rng(0))
    assert cluster[0] == cluster[2] != cluster[1]
    assert set(cluster.tolist()) == {0, 1}
