"""``synth``: a dataset that is always there, with a known optimum (see ``language``)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from sslbench.corpus import Column, Corpus, Vocabulary
from sslbench.errors import UserError
from sslbench.experiment.data import DataHome, Dataset
from sslbench_datasets.synth.language import (
    MAX_LEXICON,
    TAGS,
    Language,
    Sample,
    build_language,
    draw_lengths,
    posteriors,
)

_SHARD_SENTENCES = 20_000
_ORACLE_SENTENCES = 2_000
# First number of each split's random stream; the second is the seed: sizes do not interfere.
_TRAIN, _DEV, _TEST, _UNLABELED = 1, 2, 3, 4


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of the generated language."""

    train: Annotated[int, Meta(description="labeled sentences to train on", ge=1)] = 400
    dev: Annotated[int, Meta(description="development sentences", ge=0)] = 200
    test: Annotated[int, Meta(description="test sentences", ge=1)] = 400
    unlabeled: Annotated[int, Meta(description="sentences of external raw text", ge=0)] = 3_000
    seed: Annotated[int, Meta(description="of the sentences drawn", ge=0)] = 0
    language: Annotated[int, Meta(description="seed of the vocabulary", ge=0)] = 0
    shift: Annotated[
        float,
        Meta(description="domain shift of test and raw text: share of other words", ge=0.0, le=1.0),
    ] = 0.0
    lexicon: Annotated[
        int, Meta(description="open-class words per domain", ge=8, le=MAX_LEXICON)
    ] = 2_000
    ambiguity: Annotated[
        float, Meta(description="share of them with a second tag", ge=0.0, le=1.0)
    ] = 0.15
    noise: Annotated[float, Meta(description="share of random suffixes", ge=0.0, le=1.0)] = 0.3
    rare: Annotated[
        float, Meta(description="share of open-class tokens that are nonce words", ge=0.0, lt=1.0)
    ] = 0.05

    def build(self, shift: float) -> Language:
        """Return the language in the domain at distance ``shift``."""
        return build_language(
            self.language,
            shift,
            lexicon=self.lexicon,
            ambiguity=self.ambiguity,
            noise=self.noise,
            rare=self.rare,
        )


def load(home: DataHome, **options: object) -> Dataset:
    """Generate the dataset; ``home`` is not touched. UserError for options outside their bounds."""
    chosen = _options(options)
    source, target = chosen.build(0.0), chosen.build(chosen.shift)
    words, labels = Vocabulary(), Vocabulary(TAGS)

    def draw(language: Language, count: int, stream: int) -> tuple[Sample, Corpus]:
        sample = language.sample(count, np.random.default_rng([stream, chosen.seed]))
        return sample, _corpus(language, sample, words, labels)

    splits = {"train": draw(source, chosen.train, _TRAIN)[1]}
    n_seen = len(words)
    if chosen.dev:
        splits["dev"] = draw(source, chosen.dev, _DEV)[1]
    truth, splits["test"] = draw(target, chosen.test, _TEST)
    # Codes are given in order of appearance, so train's words have the lowest.
    unseen = splits["test"].column("word").codes >= n_seen
    return Dataset(
        name="synth",
        task="tagging",
        metric="accuracy",
        encoding=None,
        splits=splits,
        external=lambda: GeneratedShards(target, words, chosen.unlabeled, chosen.seed),
        metadata={**bayes_accuracy(target, truth), "test_oov_rate": float(unseen.mean())},
    )


def generate(n_sentences: int, seed: int, shift: float = 0.0, **options: object) -> Corpus:
    """Return ``n_sentences`` labeled sentences (columns word, label) of the language.

    ``options`` are those of `Options` that shape the language. UserError for a bad one.
    """
    chosen = _options({**options, "seed": seed, "shift": shift})
    language = chosen.build(shift)
    sample = language.sample(n_sentences, np.random.default_rng([_TRAIN, seed]))
    return _corpus(language, sample, Vocabulary(), Vocabulary(TAGS))


def bayes_accuracy(language: Language, sample: Sample) -> dict[str, float]:
    """Return what posterior decoding under the true model reaches on ``sample``.

    ``bayes_accuracy`` is the share of its tokens decoded right, ``bayes_accuracy_expected`` the
    model's own expectation of it (mean of the largest posteriors): the first varies around the
    second with the sample.
    """
    right, expected = 0, 0.0
    n_sentences = len(sample.offsets) - 1
    for first in range(0, n_sentences, _ORACLE_SENTENCES):
        offsets = sample.offsets[first : first + _ORACLE_SENTENCES + 1]
        tokens = slice(offsets[0], offsets[-1])
        emissions = language.emissions(sample.words[tokens])
        chances = posteriors(language.chain, emissions, offsets - offsets[0])
        right += int((chances.argmax(axis=1) == sample.tags[tokens]).sum())
        expected += float(chances.max(axis=1).sum())
    n_tokens = max(len(sample.tags), 1)
    return {
        "bayes_accuracy": right / n_tokens,
        "bayes_accuracy_expected": expected / n_tokens,
    }


class GeneratedShards:
    """Raw sentences (column word) made when they are iterated over: any number in the same memory.

    Only the vocabulary grows, with the number of distinct words.
    """

    def __init__(
        self,
        language: Language,
        vocabulary: Vocabulary,
        n_sentences: int,
        seed: int,
        shard_sentences: int = _SHARD_SENTENCES,
    ) -> None:
        self._language = language
        self._vocabulary = vocabulary
        self._n_sentences = n_sentences
        self._seed = seed
        self._shard_sentences = shard_sentences

    @property
    def n_sentences(self) -> int:
        """Number of sentences."""
        return self._n_sentences

    @cached_property
    def n_tokens(self) -> int:
        """Number of tokens; draws the lengths only, which come first in each shard's stream."""
        return sum(int(draw_lengths(count, rng).sum()) for count, rng in self._streams())

    def __iter__(self) -> Iterator[Corpus]:
        for count, rng in self._streams():
            sample = self._language.sample(count, rng)
            yield _corpus(self._language, sample, self._vocabulary, None)

    def _streams(self) -> Iterator[tuple[int, np.random.Generator]]:
        for shard, first in enumerate(range(0, self._n_sentences, self._shard_sentences)):
            count = min(self._shard_sentences, self._n_sentences - first)
            yield count, np.random.default_rng([_UNLABELED, self._seed, shard])


def _options(options: dict[str, object]) -> Options:
    try:
        return msgspec.convert(options, Options)
    except msgspec.ValidationError as problem:
        raise UserError(f"dataset synth: {problem}", hint="sslbench show synth") from problem


def _corpus(
    language: Language, sample: Sample, words: Vocabulary, labels: Vocabulary | None
) -> Corpus:
    """Spell a sample: each distinct word once, new ones in the order of their first appearance."""
    ids, first, inverse = np.unique(sample.words, return_index=True, return_inverse=True)
    order = np.argsort(first)
    codes = np.empty(len(ids), dtype=np.int32)
    codes[order] = words.encode(language.text(word) for word in ids[order].tolist())
    columns = {"word": Column(words, codes[inverse])}
    if labels is not None:  # labels hold TAGS in order, so tags are their codes
        columns["label"] = Column(labels, sample.tags.astype(np.int32))
    return Corpus(columns, sample.offsets)
