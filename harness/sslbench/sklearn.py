"""Taggers with the interface of scikit-learn: ``pip install 'sslbench[sklearn]'``.

X is a list of sentences, a sentence a list of tokens. A token is a word, a tuple with a text for
each of `columns`, or a dict of features as sklearn-crfsuite takes them. y is a list of lists of
labels. Clones, cross-validation and searches of scikit-learn work with such lists.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, cast

import msgspec

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_is_fitted
except ImportError as error:
    raise ImportError("scikit-learn is missing: pip install 'sslbench[sklearn]'") from error

from sslbench.engine.corpus import CorpusShards, Scheme, Vocabulary, detect_scheme
from sslbench.engine.corpus.tokens import corpus_of
from sslbench.engine.crf import ChainCRF, ChainModel
from sslbench.engine.errors import UserError
from sslbench.engine.features.dicts import DictFeatures, read_sentences
from sslbench.engine.types import F64
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.data import Dataset
from sslbench.experiment.data.userdata import fitting_featurizers, recognize
from sslbench.experiment.execute.startup import use_threads
from sslbench.experiment.inputs.problem import Problem
from sslbench.experiment.records.record import ProtocolSpec, RunSpec
from sslbench.experiment.run.fitting import LocalMethod
from sslbench.experiment.run.saved import SavedTagger, TrainedTagger, train_on
from sslbench.method import CRFMethod, TrainingParams
from sslbench.plugins import registry

Sentences = Sequence[Sequence[Any]]
Labels = Sequence[Sequence[str]]


class SequenceTagger(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A method of sslbench as an estimator.

    Parameters
    ----------
    method: name of a registered method; "supervised" does not use unlabeled sentences.
    columns: what the texts of a token are; the names decide which featurizer fits.
    featurizer: name of a registered one; None = the first that fits task and columns. Dicts of
        features need none.
    model: name of a registered model; None = a first-order CRF.
    params: parameters of the method by name; see ``sslbench show METHOD``.
    tune: tuning trials by cross-validation of the labeled sentences; 0 = none.
    random_state: seed of the method.
    n_threads: None = all cores. Results do not depend on it.
    verbose: show messages of the training on standard error.

    Attributes
    ----------
    classes_: list of str, the labels in the order of `predict_proba`.
    tagger_: the trained tagger.
    """

    def __init__(
        self,
        method: str = "supervised",
        *,
        columns: Sequence[str] = ("word",),
        featurizer: str | None = None,
        model: str | None = None,
        params: Mapping[str, Any] | None = None,
        tune: int = 0,
        random_state: int = 0,
        n_threads: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.method = method
        self.columns = columns
        self.featurizer = featurizer
        self.model = model
        self.params = params
        self.tune = tune
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    def fit(self, X: Sentences, y: Labels, unlabeled: Sentences = ()) -> SequenceTagger:
        """Train.

        X, y: labeled sentences and their labels. Chunk tags are recognized by their scheme.
        unlabeled: further sentences, for semi-supervised methods.
        UserError for tokens, labels or parameters that do not fit.
        """
        self._features = _features(X)
        dataset = self._dataset(X, y, unlabeled)
        method = self._method(dataset)
        threads = use_threads(self.n_threads)
        trained = train_on(dataset, method, threads=threads, quiet=not self.verbose)
        self._trained: TrainedTagger | None = trained
        self.tagger_ = SavedTagger(trained.tagger, trained.corpus, self._features)
        self.classes_ = list(self.tagger_.labels)
        return self

    def predict(self, X: Sentences) -> list[list[str]]:
        """A label for each token."""
        check_is_fitted(self, "tagger_")
        return self.tagger_.predict(X)

    def predict_proba(self, X: Sentences) -> list[F64]:
        """Probability of each of `classes_` for each token: float64[n, L] by sentence."""
        check_is_fitted(self, "tagger_")
        return self.tagger_.predict_proba(X)

    def predict_marginals(self, X: Sentences) -> list[list[dict[str, float]]]:
        """The probabilities of `predict_proba` as a dict for each token."""
        return [
            [dict(zip(self.classes_, row, strict=True)) for row in rows.tolist()]
            for rows in self.predict_proba(X)
        ]

    def score(self, X: Sentences, y: Labels) -> float:
        """Share of the tokens whose label is right, in [0, 1]."""
        pairs = [
            (ours, theirs)
            for row, gold in zip(self.predict(X), y, strict=True)
            for ours, theirs in zip(row, gold, strict=True)
        ]
        return sum(ours == theirs for ours, theirs in pairs) / max(1, len(pairs))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tagger to a file, for `sslbench.load_tagger` and ``sslbench tag``.

        UserError for features that the file cannot hold, and after pickling.
        """
        check_is_fitted(self, "tagger_")
        if self._features is not None or self._trained is None:
            why = "reads dicts of features" if self._features else "has been pickled"
            raise UserError(f"this tagger {why}: it cannot be saved", hint="pickle it, or fit it")
        self._trained.save(path)

    def __getstate__(self) -> dict[str, Any]:
        """Without what only `save` needs: it refers to all data of the training."""
        return {**super().__getstate__(), "_trained": None}

    def _dataset(self, X: Sentences, y: Labels, unlabeled: Sentences) -> Dataset:
        vocabularies: dict[str, Vocabulary] = {}
        corpus = read_sentences(X, self.columns, self._features, vocabularies)
        if list(map(len, X)) != list(map(len, y)):
            raise UserError("X and y differ in the numbers of sentences or tokens")
        rows = [[str(label) for label in labels] for labels in y]
        labels = corpus_of(rows, ["label"]).column("label")
        scheme = self._scheme(rows)
        task, encoding, splits = recognize({"train": corpus.with_column("label", labels)}, scheme)
        text = [sentence for sentence in unlabeled if len(sentence)]
        more = read_sentences(text, self.columns, self._features, vocabularies) if text else None
        return Dataset(
            name="X",
            task=task,
            metric="accuracy" if task == "tagging" else "f1",
            encoding=encoding,
            splits=splits,
            external=None if more is None else lambda: CorpusShards(more),
            metadata={"source_scheme": scheme or "none"},
        )

    def _scheme(self, rows: Labels) -> Scheme | None:
        return detect_scheme(rows)

    def _params(self) -> dict[str, Any]:
        return dict(self.params or {})

    def _method(self, dataset: Dataset) -> LocalMethod:
        plugins = registry()
        info = plugins.method(self.method)
        model = self.model or next(iter(plugins.models))
        misfit = info.misfit(dataset.task, plugins.model(model))
        if misfit is not None:
            raise UserError(f"{self.method} does not fit: it is {misfit}")
        featurizer = self.featurizer
        if featurizer is None and self._features is None:
            fitting = fitting_featurizers(plugins.featurizers, dataset.task, self.columns)
            featurizer = fitting[0]
        spec = RunSpec(
            method=self.method,
            dataset=dataset.name,
            featurizer=featurizer or "",
            model=model,
            params=self._params(),
            protocol=ProtocolSpec(
                text="external" if dataset.external else "rest",
                seed=self.random_state,
                tune=self.tune,
            ),
        )
        method = LocalMethod(spec, plugins)
        if self._features is not None:
            method.featurizer = self._features.featurizer
        return method


class CRF(SequenceTagger):
    """A supervised CRF with the parameters of ``sklearn_crfsuite.CRF`` that L-BFGS has.

    Parameters
    ----------
    algorithm: "lbfgs", the only one.
    c1, c2: weights of the sum of absolute weights, and of the sum of their squares.
    max_iterations: None = 1000.
    min_freq: features that occur less often get no weight.
    all_possible_states: weights also for pairs of feature and label that never occur.
    all_possible_transitions: all transitions have a weight in any case; accepted and ignored.
    """

    def __init__(
        self,
        algorithm: str = "lbfgs",
        *,
        c1: float = 0.0,
        c2: float = 1.0,
        max_iterations: int | None = None,
        min_freq: int = 1,
        all_possible_states: bool = False,
        all_possible_transitions: bool = False,
        n_threads: int | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(n_threads=n_threads, verbose=verbose)
        self.algorithm = algorithm
        self.c1 = c1
        self.c2 = c2
        self.max_iterations = max_iterations
        self.min_freq = min_freq
        self.all_possible_states = all_possible_states
        self.all_possible_transitions = all_possible_transitions

    def _scheme(self, rows: Labels) -> Scheme | None:
        return None  # labels stay as they are

    def _params(self) -> dict[str, Any]:
        if self.algorithm != "lbfgs":
            raise UserError(f"algorithm {self.algorithm!r}", hint="only lbfgs is there")
        if not (self.c1 >= 0 and self.c2 > 0):
            raise UserError(f"c1={self.c1}, c2={self.c2}", hint="c1 >= 0 and c2 > 0")
        return {
            "sigma2": 1 / (2 * self.c2),
            "l1": self.c1,
            "max_iterations": self.max_iterations or 1000,
            "ftol": 1e-5,
            "min_count": max(1, self.min_freq),
            "state_support": "all" if self.all_possible_states else "observed",
        }

    def _method(self, dataset: Dataset) -> LocalMethod:
        method = super()._method(dataset)
        method.cls = cast(Any, _ElasticNet)
        return method


class _ElasticNet(CRFMethod):
    """A CRF of labeled sentences with penalties of absolute weights and of squares."""

    uses_unlabeled = False

    class Params(TrainingParams, frozen=True, kw_only=True):
        l1: Annotated[float, msgspec.Meta(ge=0)] = 0.0

    def fit(self, problem: Problem, params: Params, run: RunContext) -> ChainCRF:
        model: ChainModel = cast(ChainModel, problem.model)
        crf = model.prepare(
            problem.featurizer,
            problem.labeled,
            problem.label_codes(problem.labeled),
            problem.labels,
            min_count=params.min_count,
            state_support=params.state_support,
            use_start=False,  # CRFsuite has no weights for the ends of a sentence
            use_stop=False,
        )
        run.record(crf.train([problem.encode(crf).labeled], params, l1=params.l1))
        return crf


def _features(X: Sentences) -> DictFeatures | None:
    """None for tokens that are texts."""
    first = next((token for sentence in X for token in sentence), None)
    return DictFeatures.fit(X) if isinstance(first, Mapping) else None
