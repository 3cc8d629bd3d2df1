"""What the estimators share: from sentences and labels to a tagger and its predictions."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import numpy as np

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_is_fitted
except ImportError as error:
    raise ImportError("scikit-learn is missing: pip install 'sslbench[sklearn]'") from error

from sslbench.engine.corpus import Column, Corpus, CorpusShards, Scheme, Vocabulary
from sslbench.engine.corpus.encodings import Task
from sslbench.engine.corpus.tokens import check_tokens, corpus_of_texts, sentence_lists
from sslbench.engine.errors import UserError
from sslbench.engine.features.dicts import (
    DictFeatures,
    TextReader,
    TokenReader,
    read_attributes,
)
from sslbench.engine.plain import plain
from sslbench.engine.types import F64, AnyArray
from sslbench.experiment.data import Dataset
from sslbench.experiment.data.userdata import fitting_featurizers
from sslbench.experiment.execute.startup import use_threads
from sslbench.experiment.metrics import score
from sslbench.experiment.records.record import RunSpec
from sslbench.experiment.run.fitting import LocalMethod
from sslbench.experiment.run.saved import SavedTagger, TrainedTagger, TrainingCorpus, train_on
from sslbench.plugins import registry
from sslbench.sklearn.labels import LabelNames, label_rows

Sentences = Iterable[Iterable[Any]]
Labels = Iterable[Any]


class Predictions(list[list[Any]]):
    """A list of labels per sentence, which numpy does not make a table: `cross_val_predict`."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        array = np.empty(len(self), dtype=object)
        array[:] = list(self)
        return array


class TaggerBase(BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn has no types
    """What all estimators of taggers share; a subclass has the parameters `n_threads`, `verbose`.

    Attributes
    ----------
    classes_: the labels as given, in the order of `predict_proba`.
    tagger_: the trained tagger.
    """

    n_threads: int | None
    verbose: bool

    def _fit(self, X: Sentences, y: Labels | None, unlabeled: Sentences) -> TrainedTagger:
        """Train; arguments as of `SequenceTagger.fit`."""
        rows = sentence_lists(X)
        check_tokens(rows)
        labels = label_rows(y, list(map(len, rows)))
        names = LabelNames.of(labels)
        if not names.given:
            raise UserError("no sentence has labels")
        reader, read, more = self._read(rows, [row for row in sentence_lists(unlabeled) if row])
        pairs = list(zip(read, labels, strict=True))
        labeled = [(row, names.texts(own)) for row, own in pairs if own is not None]
        text = [*(row for row, own in pairs if own is None), *more]
        scheme = self._scheme([own for _, own in labeled]) if names.are_texts else None
        dataset = _dataset(reader, labeled, text, scheme)
        method = self._method(dataset, reader)
        threads = use_threads(self._integer("n_threads", least=1))
        trained = train_on(dataset, method, threads=threads, quiet=not self.verbose)
        self._trained: TrainedTagger | None = trained
        self._names = names
        features = reader if isinstance(reader, DictFeatures) else None
        self.tagger_ = SavedTagger(trained.tagger, trained.corpus, features)
        self.classes_ = names.labels(self.tagger_.labels)
        return trained

    def predict(self, X: Sentences) -> Predictions:
        """A label for each token: a list with a list per sentence."""
        check_is_fitted(self, "tagger_")
        return Predictions(map(self._names.labels, self.tagger_.predict(X)))

    def predict_single(self, sentence: Iterable[Any]) -> list[Any]:
        """A label for each token of one sentence."""
        return self.predict([sentence])[0]

    def predict_proba(self, X: Sentences) -> list[F64]:
        """Probability of each of `classes_` for each token: float64[n, L] by sentence."""
        check_is_fitted(self, "tagger_")
        return self.tagger_.predict_proba(X)

    def predict_marginals(self, X: Sentences) -> list[list[dict[Any, float]]]:
        """The probabilities of `predict_proba` as a dict for each token."""
        return [
            [dict(zip(self.classes_, row, strict=True)) for row in rows.tolist()]
            for rows in self.predict_proba(X)
        ]

    def predict_marginals_single(self, sentence: Iterable[Any]) -> list[dict[Any, float]]:
        """`predict_marginals` of one sentence."""
        return self.predict_marginals([sentence])[0]

    def score(self, X: Sentences, y: Labels) -> float:
        """F1 of chunk tags, share of right labels for others, in [0, 1].

        Sentences without labels (None or -1) do not count.
        """
        check_is_fitted(self, "tagger_")
        return self._score(X, y, self.tagger_.corpus)

    def _score(self, X: Sentences, y: Labels, trained: TrainingCorpus | None) -> float:
        """The score by the task of a training; None: the share of right labels."""
        check_is_fitted(self, "tagger_")
        rows = sentence_lists(X)
        gold = label_rows(y, list(map(len, rows)))
        LabelNames.of(gold, like=self._names)
        labels = [self._names.texts(row) for row in gold if row]
        if not labels:
            raise UserError("no sentence has labels")
        there = [row for row, own in zip(rows, gold, strict=True) if own]
        guesses = [self._names.texts(row) for row in self.predict(there)]
        ours, theirs = (corpus_of_texts(part, ["label"]) for part in (guesses, labels))
        coded = [(part.vocabulary.strings, part.codes) for part in map(_label, (theirs, ours))]
        task, encoding = ("tagging", None) if trained is None else (trained.task, trained.encoding)
        kind, scheme = cast(Task, task), cast(Scheme | None, encoding)
        metrics = score(kind, coded[0], coded[1], ours.offsets, encoding=scheme).metrics
        return metrics["accuracy" if task == "tagging" else "f1"]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tagger to a file, for `sslbench.load_tagger` and ``sslbench tag``.

        UserError for features that the file cannot hold, and after pickling.
        """
        check_is_fitted(self, "tagger_")
        if self.tagger_.features is not None or self._trained is None:
            why = "reads dicts of features" if self.tagger_.features else "has been pickled"
            raise UserError(f"this tagger {why}: it cannot be saved", hint="pickle it, or fit it")
        if not self._names.are_texts:
            raise UserError("the labels are no texts: a file cannot hold them", hint="pickle it")
        self._trained.save(path)

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn may give: sentences of texts or dicts, which are no table."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = tags.input_tags.dict = True
        tags.target_tags.required = False
        tags.no_validation = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Without what only `save` needs: it refers to all data of the training."""
        return {**super().__getstate__(), "_trained": None}

    def _read(self, rows: list[list[Any]], more: list[list[Any]]) -> tuple[TokenReader, Any, Any]:
        """What reads tokens, and those of X and of unlabeled sentences as it reads them."""
        if not self._are_features(rows):
            reader: TokenReader = TextReader(self._columns())
            return reader, reader.read(rows), _unlabeled(reader.read, more)
        keys: dict[str, str] = {}
        read = read_attributes(rows, keys)
        text = _unlabeled(partial(read_attributes, keys=keys), more)
        return DictFeatures.fit([*read, *text], keys), read, text

    def _are_features(self, rows: list[list[Any]]) -> bool:
        """Whether tokens are features, not texts."""
        return isinstance(rows[0][0], Mapping)

    @abstractmethod
    def _columns(self) -> tuple[str, ...]:
        """What the texts of a token are."""

    @abstractmethod
    def _scheme(self, rows: Sequence[Sequence[str]]) -> Scheme | None:
        """The scheme of chunk tags; None for plain tags."""

    @abstractmethod
    def _method(self, dataset: Dataset, reader: TokenReader) -> LocalMethod:
        """What is trained."""

    def _local_method(self, spec: RunSpec, reader: TokenReader) -> LocalMethod:
        """The method of a spec in this process; features of tokens are their own featurizer."""
        method = LocalMethod(spec, registry())
        if isinstance(reader, DictFeatures):
            method.featurizer = reader.featurizer
        return method

    def _integer(self, name: str, least: int = 0) -> int | None:
        """The value of a parameter; UserError if it is neither an integer nor None."""
        value = plain(getattr(self, name))
        if value is None or (type(value) is int and value >= least):
            return value
        raise UserError(f"{name}={value!r}", hint=f"give an integer from {least}, or None")


def first_featurizer(task: str, reader: TokenReader) -> str:
    """The first featurizer that fits words; "" for features of tokens, which need none."""
    if not isinstance(reader, TextReader):
        return ""
    return fitting_featurizers(registry().featurizers, task, reader.columns)[0]


def _label(corpus: Corpus) -> Column:
    return corpus.column("label")


def _unlabeled(
    read: Callable[[list[list[Any]]], list[list[Any]]], rows: list[list[Any]]
) -> list[list[Any]]:
    try:
        return read(rows)
    except UserError as error:
        raise UserError(f"unlabeled: {error.message}", hint=error.hint) from None


def _dataset(
    reader: TokenReader,
    labeled: list[tuple[list[Any], list[str]]],
    text: list[list[Any]],
    scheme: Scheme | None,
) -> Dataset:
    """Sentences and their labels, as texts, and further sentences in one dataset."""
    vocabularies: dict[str, Vocabulary] = {}
    corpus = reader.corpus([row for row, _ in labeled], vocabularies)
    more = reader.corpus(text, vocabularies) if text else None
    labels = corpus_of_texts([own for _, own in labeled], ["label"]).column("label")
    bare = scheme == "BMES" and not any("-" in label for label in labels.vocabulary.strings)
    return Dataset(
        name="X",
        task="tagging" if scheme is None else "segmentation" if bare else "spans",
        metric="accuracy" if scheme is None else "f1",
        encoding=scheme,
        splits={"train": corpus.with_column("label", labels)},
        external=None if more is None else lambda: CorpusShards(more),
        metadata={"source_scheme": scheme or "none"},
    )
