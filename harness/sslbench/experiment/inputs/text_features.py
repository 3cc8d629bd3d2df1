"""Features that are learned from unlabeled text, put on top of the featurizer of any method.

The text of a problem gets the columns that were learned, its featurizer their templates and dense
columns. The tagger does the same to the text that it labels, and is saved with what was learned.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import numpy as np

from sslbench.engine.checked import Saved, joined, part_of
from sslbench.engine.corpus import Corpus, CorpusShards, Shards
from sslbench.engine.crf.persist import SavedModel, read_model
from sslbench.engine.dev_labels import unseen
from sslbench.engine.errors import UserError
from sslbench.engine.features import Template, TemplateFeaturizer
from sslbench.engine.features.index import Dense
from sslbench.engine.types import F64, I32, Arrays
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.inputs.problem import (
    Problem,
    Tagger,
    predicted,
    predicted_marginals,
    predicted_n_best,
)

#: kind of a saved tagger with learned features
KIND = "on_text_features"


class Learned(Protocol):
    """Features that were learned. `sslbench.engine.features.words.WordFeatures` is one."""

    @property
    def templates(self) -> Sequence[str]:
        """Over the columns that `annotate` adds, too."""

    @property
    def dense_columns(self) -> Sequence[str]:
        """Names of the columns that `dense` gives; () = none."""

    def annotate(self, corpus: Corpus) -> Corpus:
        """The corpus with further columns, whose vocabularies are the same in each call."""

    def dense(self, corpus: Corpus) -> F64:
        """float64[N, D] of an annotated corpus."""

    def arrays(self) -> Saved:
        """What the learner's `restore` reads."""


class TextFeatures(Protocol):
    """Learns features from a problem: a class without constructor arguments.

    Params: a msgspec.Struct with a default for each field.
    ``restore(arrays, facts)``, a static method, gives what `learn` returned from its `arrays`.
    """

    Params: type[Any]

    def learn(self, problem: Problem, params: Any, run: RunContext) -> Learned:
        """Learn; the same bits for the same problem, parameters and seed."""

    @staticmethod
    def restore(arrays: Arrays, facts: dict[str, Any]) -> Learned:
        """ValueError when arrays and facts do not fit together."""


@dataclass(frozen=True)
class AnnotatedShards:
    """Text whose shards get further columns when they are read.

    annotate: gives a shard with these columns.
    """

    shards: Shards
    annotate: Callable[[Corpus], Corpus]

    @property
    def n_sentences(self) -> int:
        return self.shards.n_sentences

    @property
    def n_tokens(self) -> int:
        return self.shards.n_tokens

    def __iter__(self) -> Iterator[Corpus]:
        return map(self.annotate, self.shards)


def annotated(corpus: Corpus, learned: Sequence[Learned]) -> Corpus:
    """The corpus with the columns of all learned features."""
    for each in learned:
        corpus = each.annotate(corpus)
    return corpus


def joined_dense(first: Dense | None, learned: Sequence[Learned]) -> Dense | None:
    """Dense columns of a featurizer, then those of learned features; None if there are none."""
    parts = [] if first is None else [first]
    parts += [each.dense for each in learned if each.dense_columns]
    if len(parts) < 2:
        return parts[0] if parts else None
    return lambda corpus: np.concatenate([part(corpus) for part in parts], axis=1)


def on_features(problem: Problem, learned: Sequence[Learned], *, text: bool = True) -> Problem:
    """The problem with learned features on top of its featurizer's.

    text: False leaves out the unlabeled text, for a method that reads none.
    """
    featurizer, learned = problem.featurizer, tuple(learned)
    dev: Corpus | None = unseen(problem)
    unlabeled = problem.unlabeled
    if not text:
        unlabeled = CorpusShards(problem.labeled.drop("label").select(np.empty(0, np.int64)))
    more = [Template.parse(template) for each in learned for template in each.templates]
    return replace(
        problem,
        labeled=annotated(problem.labeled, learned),
        unlabeled=AnnotatedShards(unlabeled, partial(annotated, learned=learned)),
        dev=None if dev is None else annotated(dev, learned),
        featurizer=TemplateFeaturizer(
            [*featurizer.templates, *more], joined_dense(featurizer.dense, learned)
        ),
    )


@dataclass(frozen=True)
class FeaturedTagger(SavedModel):
    """A tagger that reads text with learned features. learned: by name of the learner."""

    tagger: Tagger
    learned: Mapping[str, Learned]
    kind = KIND

    @property
    def labels(self) -> Sequence[str]:
        return self.tagger.labels

    @property
    def decodes_sequences(self) -> bool:
        """See `Tagger`."""
        return bool(getattr(self.tagger, "decodes_sequences", True))

    @property
    def variants(self) -> dict[str, FeaturedTagger]:
        """See `Tagger`."""
        variants = getattr(self.tagger, "variants", {})
        return {name: FeaturedTagger(each, self.learned) for name, each in variants.items()}

    def _read(self, corpus: Corpus) -> Corpus:
        return annotated(corpus, tuple(self.learned.values()))

    def predict(self, corpus: Corpus) -> I32:
        """int32[N]: codes into `labels`."""
        return predicted(self.tagger, self._read(corpus))

    def predict_marginals(self, corpus: Corpus) -> F64:
        """float64[N, L]; UserError if the tagger has no probabilities."""
        return predicted_marginals(self.tagger, self._read(corpus))

    def predict_n_best(self, corpus: Corpus, number: int) -> list[Any]:
        """The best label sequences of each sentence; UserError if the tagger gives only one."""
        return predicted_n_best(self.tagger, self._read(corpus), number)

    def arrays(self) -> Saved:
        """Those of the tagger, as it saves itself, and of what was learned."""
        save = getattr(self.tagger, "save", None)
        if save is None:
            raise UserError("the object that fit() returns has no save()")
        with TemporaryDirectory() as folder:
            path = os.path.join(folder, "model")
            save(path)
            kind, arrays, facts = read_model(path)
        parts = {f"{i}": each.arrays() for i, each in enumerate(self.learned.values())}
        arrays, facts = joined(tagger=(arrays, facts), **parts)
        return arrays, {**facts, "tagger_kind": kind, "learned": list(self.learned)}


def learned_of(
    arrays: Arrays, facts: Mapping[str, Any], learners: Mapping[str, type[TextFeatures]]
) -> dict[str, Learned]:
    """What was learned, of a saved `FeaturedTagger`. learners: by the names in ``learned``."""
    return {
        name: learners[name].restore(*part_of(arrays, facts, f"{i}"))
        for i, name in enumerate(facts["learned"])
    }
