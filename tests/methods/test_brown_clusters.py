"""Brown clusters against the mutual information of the whole text, recomputed for each merge."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest

from sslbench_methods.brown_clusters import kernels
from sslbench_methods.brown_clusters.method import bigrams_of, brown_paths
from sslbench_methods.text_words import TextWords


def text_of(sentences: list[str]) -> TextWords:
    """Words of sentences as `TextWords` numbers them."""
    tokens = [word for line in sentences for word in line.split()]
    count = {word: tokens.count(word) for word in tokens}
    words = sorted(count, key=lambda word: (-count[word], word))
    number = np.array([words.index(word) for word in tokens], np.int32)
    sentence = np.repeat(np.arange(len(sentences)), [len(line.split()) for line in sentences])
    return TextWords(words, np.array([count[word] for word in words]), number, sentence)


def random_text(seed: int, n_words: int = 9, n_sentences: int = 30) -> TextWords:
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(1, n_words + 1)
    share /= share.sum()
    return text_of(
        [
            " ".join(f"w{w}" for w in rng.choice(n_words, int(rng.integers(1, 9)), p=share))
            for _ in range(n_sentences)
        ]
    )


def information(text: TextWords, cluster: np.ndarray) -> float:
    """N times the average mutual information of neighboring clusters; words in -1 do not count."""
    counts: dict[tuple[int, int], int] = {}
    tokens = list(zip(cluster[text.number].tolist(), text.sentence.tolist(), strict=True))
    for (a, s), (b, t) in pairwise(tokens):
        if s == t and a >= 0 and b >= 0:
            counts[a, b] = counts.get((a, b), 0) + 1
    total = sum(counts.values())
    left, right = {}, {}
    for (a, b), n in counts.items():
        left[a] = left.get(a, 0) + n
        right[b] = right.get(b, 0) + n
    return sum(n * np.log(n * total / (left[a] * right[b])) for (a, b), n in counts.items())


def losses(text: TextWords, cluster: np.ndarray) -> dict[tuple[int, int], float]:
    """What each merge loses, computed from the text."""
    before = information(text, cluster)
    used = sorted(set(cluster[cluster >= 0].tolist()))
    return {
        (a, b): before - information(text, np.where(cluster == b, a, cluster))
        for a, b in combinations(used, 2)
    }


def check_state(text: TextWords, state: kernels.State) -> tuple[int, int]:
    """All losses are those of the text; the pair that is merged next is the first of the least."""
    expected = losses(text, state.cluster)
    for pair, loss in expected.items():
        assert state.loss[pair] == pytest.approx(loss, abs=1e-8)
    if not expected:
        return -1, -1
    least = min(expected.values())
    chosen = kernels.cheapest(state)
    assert chosen == min(pair for pair, loss in expected.items() if loss <= least + 1e-9)
    return chosen


@pytest.mark.parametrize("seed", range(4))
def test_each_merge_is_that_of_the_whole_text(seed: int) -> None:
    text, clusters = random_text(seed), 4
    state, bigrams = kernels.empty_state(len(text.words), clusters), bigrams_of(text)
    slot = 0
    for word in range(len(text.words)):
        kernels.add_word(word, slot, bigrams, state)
        a, b = check_state(text, state)
        slot += 1
        if word >= clusters:
            kernels.merge(b, a, state)
            check_state(text, state)
            slot = b
    while state.used.sum() > 1:
        a, b = check_state(text, state)
        kernels.merge(a, b, state)  # either of the two may stay
        check_state(text, state)


@pytest.mark.parametrize("seed", range(3))
def test_paths_are_those_of_brute_force(seed: int) -> None:
    text, clusters = random_text(seed, n_words=7), 4
    merged = np.full(len(text.words), -1)
    for word in range(len(text.words)):
        merged[word] = word
        if word >= clusters:
            pair = min((loss, p) for p, loss in losses(text, merged).items())[1]
            merged[merged == pair[1]] = pair[0]
    groups = brown_paths(text, clusters)
    assert len(set(groups)) == clusters
    same = merged[:, None] == merged[None, :]
    assert (np.array(groups)[:, None] == np.array(groups)[None, :]).tolist() == same.tolist()
    # the last merge is the first bit: it loses least of the two that are left
    for length in range(1, max(map(len, groups)) + 1):
        assert len({path[:length] for path in groups}) <= 2**length
    assert not any(b.startswith(a) for a in set(groups) for b in set(groups) - {a})


def test_words_in_the_same_places_share_a_cluster() -> None:
    lines = [f"the {noun} {verb} ." for noun in ("cat", "dog", "cow") for verb in ("ran", "sat")]
    text = text_of(lines * 3)
    path = dict(zip(text.words, brown_paths(text, 4), strict=True))
    assert path["cat"] == path["dog"] == path["cow"]
    assert len(set(path.values())) == 4


def test_few_words_and_no_words() -> None:
    assert brown_paths(text_of(["a"]), 5) == [""]
    assert len(set(brown_paths(text_of(["a b", "b a a"]), 5))) == 2
    assert brown_paths(text_of([]), 5) == []


def test_borders_of_sentences_are_no_bigrams() -> None:
    text = text_of(["a b", "b a"])
    assert text.pairs(1).toarray().tolist() == [[0, 1], [1, 0]]


def test_order_of_sentences_does_not_matter() -> None:
    lines = ["a b c", "c a", "b b a d", "d c"]
    first, second = text_of(lines), text_of(lines[::-1])
    assert first.words == second.words
    assert brown_paths(first, 2) == brown_paths(second, 2)
