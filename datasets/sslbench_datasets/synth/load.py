"""``synth``: sentences of a generated language with a known optimum (see `language`)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from sslbench.engine.corpus import Column, Corpus, Vocabulary
from sslbench.experiment.data import DataHome, Dataset
from sslbench_datasets.loading import parse_options
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
# First seeds of the splits, so that the size of one does not change another; the second is `seed`.
_TRAIN, _DEV, _TEST, _UNLABELED = 1, 2, 3, 4


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of ``synth``."""

    train: Annotated[int, Meta(description="labeled sentences to train on", ge=1, le=10**8)] = 400
    dev: Annotated[int, Meta(description="development sentences", ge=0, le=10**8)] = 200
    test: Annotated[int, Meta(description="test sentences", ge=1, le=10**8)] = 400
    unlabeled: Annotated[int, Meta(description="sentences of external text", ge=0, le=10**8)] = (
        3_000
    )
    seed: Annotated[int, Meta(description="of the sentences", ge=0)] = 0
    language: Annotated[int, Meta(description="seed of the vocabulary", ge=0)] = 0
    shift: Annotated[
        float,
        Meta(
            description="domain shift of test and external text: share of words that train lacks",
            ge=0.0,
            le=1.0,
        ),
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

    def build_language(self, shift: float) -> Language:
        """The language in the domain at distance `shift`."""
        return build_language(
            self.language,
            shift,
            lexicon=self.lexicon,
            ambiguity=self.ambiguity,
            noise=self.noise,
            rare=self.rare,
        )


def load(home: DataHome, **options: object) -> Dataset:
    """Generate the dataset; `home` is not used. UserError for a bad option."""
    settings = parse_options("synth", options, Options)
    source, target = settings.build_language(0.0), settings.build_language(settings.shift)
    words, labels = Vocabulary(), Vocabulary(TAGS)

    def draw(language: Language, n_sentences: int, stream: int) -> tuple[Sample, Corpus]:
        sample = language.sample(n_sentences, np.random.default_rng([stream, settings.seed]))
        return sample, _corpus(language, sample, words, labels)

    splits = {"train": draw(source, settings.train, _TRAIN)[1]}
    n_train_words = len(words)
    if settings.dev:
        splits["dev"] = draw(source, settings.dev, _DEV)[1]
    sample, splits["test"] = draw(target, settings.test, _TEST)
    # Words are coded in order of appearance, so those of train have the lowest codes.
    unseen = splits["test"].column("word").codes >= n_train_words
    return Dataset(
        name="synth",
        task="tagging",
        metric="accuracy",
        encoding=None,
        splits=splits,
        external=lambda: GeneratedShards(target, words, settings.unlabeled, settings.seed),
        metadata={**bayes_accuracy(target, sample), "test_oov_rate": float(unseen.mean())},
    )


def bayes_accuracy(language: Language, sample: Sample) -> dict[str, float]:
    """Accuracy of posterior decoding under the generating model on `sample`.

    "bayes_accuracy": the share of correct tokens. "bayes_accuracy_expected": its expectation under
    the model, the mean of the largest posteriors.
    """
    n_correct, expected = 0, 0.0
    n_sentences = len(sample.offsets) - 1
    for first in range(0, n_sentences, _ORACLE_SENTENCES):
        offsets = sample.offsets[first : first + _ORACLE_SENTENCES + 1]
        tokens = slice(offsets[0], offsets[-1])
        emissions = language.emissions(sample.words[tokens])
        posterior = posteriors(language.chain, emissions, offsets - offsets[0])
        n_correct += int((posterior.argmax(axis=1) == sample.tags[tokens]).sum())
        expected += float(posterior.max(axis=1).sum())
    n_tokens = max(len(sample.tags), 1)
    return {
        "bayes_accuracy": n_correct / n_tokens,
        "bayes_accuracy_expected": expected / n_tokens,
    }


class GeneratedShards:
    """Raw sentences (column word), generated during iteration.

    Memory grows with the number of distinct words only.
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
        """Number of tokens. Draws the lengths only, the first numbers of each shard's stream."""
        return sum(int(draw_lengths(count, rng).sum()) for count, rng in self._streams())

    def __iter__(self) -> Iterator[Corpus]:
        for count, rng in self._streams():
            sample = self._language.sample(count, rng)
            yield _corpus(self._language, sample, self._vocabulary, None)

    def _streams(self) -> Iterator[tuple[int, np.random.Generator]]:
        for shard, first in enumerate(range(0, self._n_sentences, self._shard_sentences)):
            count = min(self._shard_sentences, self._n_sentences - first)
            yield count, np.random.default_rng([_UNLABELED, self._seed, shard])


def _corpus(
    language: Language, sample: Sample, words: Vocabulary, labels: Vocabulary | None
) -> Corpus:
    """The text of a sample. New words are coded in order of appearance; each is spelled once."""
    ids, first, inverse = np.unique(sample.words, return_index=True, return_inverse=True)
    order = np.argsort(first)
    codes = np.empty(len(ids), dtype=np.int32)
    codes[order] = words.encode(language.text(word) for word in ids[order].tolist())
    columns = {"word": Column(words, codes[inverse])}
    if labels is not None:  # the codes of `labels` are the indices of TAGS
        columns["label"] = Column(labels, sample.tags.astype(np.int32))
    return Corpus(columns, sample.offsets)
