"""The generated language: its optimum against enumeration, its draws against its numbers."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from sslbench.engine.corpus import Corpus, Vocabulary
from sslbench.engine.errors import UserError
from sslbench.experiment.data import DataHome
from sslbench_datasets.synth.language import (
    N_TAGS,
    TAGS,
    Chain,
    Language,
    build_language,
    posteriors,
)
from sslbench_datasets.synth.load import GeneratedShards, bayes_accuracy, load

HOME = DataHome(Path("/nowhere"), Path("/nowhere"), offline=True)


def language(shift: float = 0.0, **options: float) -> Language:
    options = {"lexicon": 500, "ambiguity": 0.3, "noise": 0.3, "rare": 0.1, **options}
    return build_language(0, shift, **options)  # type: ignore[arg-type]


def enumerated(chain: Chain, emissions: np.ndarray) -> np.ndarray:
    """Tag posteriors of one sentence by summing over every tag sequence."""
    length, n_tags = emissions.shape
    weights = np.zeros((length, n_tags))
    for tags in itertools.product(range(n_tags), repeat=length):
        weight = chain.start[tags[0]] * emissions[0, tags[0]]
        for i in range(1, length):
            weight *= chain.transition[tags[i - 1], tags[i]] * emissions[i, tags[i]]
        weights[np.arange(length), tags] += weight
    return weights / weights.sum(axis=1, keepdims=True)


def test_posteriors_equal_enumeration() -> None:
    rng = np.random.default_rng(5)
    chain = Chain(rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3), 3))
    lengths = np.array([1, 6, 3, 2, 6])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    emissions = rng.random((offsets[-1], 3))
    emissions[2, 1] = 0.0
    actual = posteriors(chain, emissions, offsets)
    for first, last in itertools.pairwise(offsets):
        expected = enumerated(chain, emissions[first:last])
        np.testing.assert_allclose(actual[first:last], expected, rtol=1e-12)


def test_posteriors_of_the_language_itself_equal_enumeration() -> None:
    lang = language()
    sample = lang.sample(200, np.random.default_rng(1))
    lengths = np.diff(sample.offsets)
    chosen = np.flatnonzero(lengths <= 5)[:3]
    assert len(chosen) == 3
    everything = posteriors(lang.chain, lang.emissions(sample.words), sample.offsets)
    for i in chosen:
        tokens = slice(sample.offsets[i], sample.offsets[i + 1])
        expected = enumerated(lang.chain, lang.emissions(sample.words[tokens]))
        np.testing.assert_allclose(everything[tokens], expected, rtol=1e-9)


def test_long_sentences_do_not_underflow() -> None:
    lang = language()
    sample = lang.sample(1, np.random.default_rng(3))
    repeated = np.tile(sample.words, 500)
    actual = posteriors(lang.chain, lang.emissions(repeated), np.array([0, len(repeated)]))
    np.testing.assert_allclose(actual.sum(axis=1), 1.0)


def test_probabilities_are_normalized() -> None:
    for shift in (0.0, 0.4, 1.0):
        lang = language(shift)
        np.testing.assert_allclose(lang.chain.start.sum(), 1.0)
        np.testing.assert_allclose(lang.chain.transition.sum(axis=1), 1.0)
        emitted = lang.closed.sum(axis=0) + lang.lexicon.sum(axis=0)
        emitted += lang.rare * lang.suffix.sum(axis=0)
        np.testing.assert_allclose(emitted, np.ones(N_TAGS))


def test_draws_follow_the_stated_probabilities() -> None:
    """The frequency of each of the commonest words and transitions, within 5 standard errors."""
    lang = language()
    sample = lang.sample(40_000, np.random.default_rng(2))
    noun = TAGS.index("NOUN")
    ids, counts = np.unique(sample.words[sample.tags == noun], return_counts=True)
    common = counts.argsort()[-20:]
    n = counts.sum()
    expected = lang.emissions(ids[common])[:, noun]
    error = np.sqrt(expected * (1 - expected) / n)
    assert (np.abs(counts[common] / n - expected) < 5 * error).all()
    inside = np.ones(len(sample.tags), dtype=bool)
    inside[sample.offsets[:-1]] = False
    before, after = sample.tags[np.flatnonzero(inside) - 1], sample.tags[inside]
    following = np.bincount(after[before == noun], minlength=N_TAGS)
    expected = lang.chain.transition[noun]
    error = np.sqrt(expected * (1 - expected) / following.sum())
    assert (np.abs(following / following.sum() - expected) < 5 * error).all()


def test_the_accuracy_reached_agrees_with_the_expected_one() -> None:
    """If the stated model were not the generating one, its own expectation would be off."""
    for shift in (0.0, 0.7):
        lang = language(shift)
        metadata = bayes_accuracy(lang, lang.sample(20_000, np.random.default_rng(4)))
        expected = metadata["bayes_accuracy_expected"]
        assert metadata["bayes_accuracy"] == pytest.approx(expected, abs=0.003)


def test_no_simple_rule_beats_it() -> None:
    lang = language()
    sample = lang.sample(5_000, np.random.default_rng(4))
    emissions = lang.emissions(sample.words)
    best = bayes_accuracy(lang, sample)["bayes_accuracy"]
    word_alone = (emissions.argmax(axis=1) == sample.tags).mean()
    assert word_alone < best - 0.01


def test_every_knob_turns_the_right_way() -> None:
    def optimum(**options: float) -> float:
        lang = language(**options)
        sample = lang.sample(5_000, np.random.default_rng(0))
        return bayes_accuracy(lang, sample)["bayes_accuracy_expected"]

    assert optimum(ambiguity=0.0) > optimum(ambiguity=0.8) + 0.01
    assert optimum(noise=0.0, rare=0.3) > optimum(noise=1.0, rare=0.3) + 0.01
    assert optimum(rare=0.0) > optimum(rare=0.5) + 0.01


def test_default_sizes_columns_and_metadata() -> None:
    data = load(HOME)
    assert {name: corpus.n_sentences for name, corpus in data.splits.items()} == {
        "train": 400,
        "dev": 200,
        "test": 400,
    }
    assert (data.task, data.metric, data.encoding) == ("tagging", "accuracy", None)
    assert set(data.splits["test"].columns) == {"word", "label"}
    assert data.external is not None
    external = data.external()
    shards = list(external)
    assert external.n_sentences == sum(shard.n_sentences for shard in shards) == 3_000
    assert external.n_tokens == sum(shard.n_tokens for shard in shards)
    assert all(set(shard.columns) == {"word"} for shard in shards)
    for corpus in (data.splits["test"], shards[0]):
        assert corpus.column("word").vocabulary is data.splits["train"].column("word").vocabulary
    assert 0.9 < float(data.metadata["bayes_accuracy"]) < 0.98
    known = set(data.splits["train"].column("word").strings())
    unseen = [word not in known for word in data.splits["test"].column("word").strings()]
    assert data.metadata["test_oov_rate"] == pytest.approx(np.mean(unseen))
    assert 0.05 < np.mean(unseen) < 0.3


def words_and_tags(corpus: Corpus) -> tuple[list[str], list[str], list[int]]:
    label = corpus.column("label").strings()
    return corpus.column("word").strings(), label, corpus.offsets.tolist()


def test_the_same_seed_gives_the_same_text_and_another_seed_another() -> None:
    one, two, other = (load(HOME, seed=seed, shift=0.2) for seed in (3, 3, 4))
    for split in one.splits:
        first = words_and_tags(one.splits[split])
        assert first == words_and_tags(two.splits[split])
        assert first != words_and_tags(other.splits[split])


def test_the_size_of_one_split_does_not_change_another() -> None:
    small, large = load(HOME, train=10, unlabeled=5), load(HOME, train=500, unlabeled=50)
    for split in ("dev", "test"):
        assert words_and_tags(small.splits[split]) == words_and_tags(large.splits[split])


def test_shards_can_be_iterated_twice_and_do_not_repeat_each_other() -> None:
    lang = language()
    shards = GeneratedShards(lang, Vocabulary(), 250, seed=1, shard_sentences=100)
    first = [shard.column("word").strings() for shard in shards]
    assert first == [shard.column("word").strings() for shard in shards]
    assert [shard.n_sentences for shard in shards] == [100, 100, 50]
    assert first[0] != first[1]


def test_shift_brings_other_words_into_test_and_raw_text_only() -> None:
    plain, shifted = load(HOME), load(HOME, shift=0.8)
    assert words_and_tags(plain.splits["train"]) == words_and_tags(shifted.splits["train"])
    assert words_and_tags(plain.splits["dev"]) == words_and_tags(shifted.splits["dev"])
    rates = [float(data.metadata["test_oov_rate"]) for data in (plain, shifted)]
    assert rates[1] > rates[0] + 0.2


def test_spelling_is_unique_and_splits_into_stem_and_suffix() -> None:
    lang = language()
    ids = np.unique(lang.sample(20_000, np.random.default_rng(0)).words)
    texts = [lang.text(int(word)) for word in ids]
    assert len(set(texts)) == len(texts)
    assert all(text.isascii() and text.isalpha() for text in texts)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"shift": 2.0}, "shift"),
        ({"train": 0}, "train"),
        ({"train": "many"}, "train"),
        ({"trian": 5}, "trian"),
        ({"lexicon": 10**7}, "lexicon"),
    ],
)
def test_bad_options_are_user_errors(options: dict[str, object], expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        load(HOME, **options)
