"""`CRF`: the estimator of sklearn-crfsuite."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sslbench.engine.corpus import Scheme
from sslbench.engine.crf import ChainCRF, ChainModel
from sslbench.engine.errors import UserError
from sslbench.engine.features.dicts import TokenReader
from sslbench.engine.plain import plain
from sslbench.engine.types import I64
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.data import Dataset
from sslbench.experiment.inputs.problem import Problem
from sslbench.experiment.records.record import RunSpec
from sslbench.experiment.request.parameters import parameter, parameters
from sslbench.experiment.run.fitting import LocalMethod
from sslbench.method import CRFMethod, TrainingParams
from sslbench.sklearn.base import Labels, Sentences, TaggerBase, first_featurizer

#: what to use in place of another algorithm
_ALGORITHMS = {
    "l2sgd": "lbfgs minimizes the same function of c2, up to its optimum",
    "ap": "lbfgs; for a quick model set max_iterations",
    "pa": "lbfgs; for a quick model set max_iterations",
    "arow": "lbfgs; for a quick model set max_iterations",
}
#: parameters that only these algorithms, and files of CRFsuite, have
_OTHERS = {
    "calibration_eta": "l2sgd",
    "calibration_rate": "l2sgd",
    "calibration_samples": "l2sgd",
    "calibration_candidates": "l2sgd",
    "calibration_max_trials": "l2sgd",
    "pa_type": "pa",
    "c": "pa",
    "error_sensitive": "pa",
    "averaging": "pa",
    "variance": "arow",
    "gamma": "arow",
}
_REFUSED = {
    "model_filename": "sslbench import reads the text dump of a model of CRFsuite",
    "keep_tempfiles": "there are no such files: leave it out",
    "trainer_cls": "leave it out: training_log_ has what happened in each iteration",
}
_MOST_SIGMA2 = 1e12


@dataclass(frozen=True)
class Settings:
    """The parameters of `CRF` that L-BFGS has, checked."""

    c1: float = parameter(0.0, "", least=0, most=1e9)
    c2: float = parameter(1.0, "", least=0, most=1e9)
    min_freq: float = parameter(0.0, "", least=0, most=1e9)
    max_iterations: int = parameter(1_000_000, "", least=1, most=1_000_000)
    num_memories: int = parameter(6, "", least=1, most=1000)
    epsilon: float = parameter(1e-5, "", least=0, most=1e9)
    period: int = parameter(10, "", least=1, most=1_000_000)
    delta: float = parameter(1e-5, "", least=0, most=1e9)
    max_linesearch: int = parameter(20, "", least=1, most=1_000_000)
    all_possible_states: bool = parameter(False, "")
    all_possible_transitions: bool = parameter(False, "")

    @classmethod
    def of(cls, crf: CRF) -> Settings:
        """The parameters of an estimator; UserError for one that does not fit."""
        given, kind = crf.get_params(), cast(Any, cls)
        algorithm, linesearch = (given[name] for name in ("algorithm", "linesearch"))
        if algorithm not in (None, "lbfgs"):
            hint = f"use {_ALGORITHMS.get(algorithm, 'lbfgs')}"
            raise UserError(f"algorithm {algorithm!r} is not there", hint=hint)
        for name, owner in _OTHERS.items():
            if given[name] is not None:
                raise UserError(f"{name} is a parameter of {owner}", hint="lbfgs has c1 and c2")
        for name, hint in _REFUSED.items():
            if given[name]:
                raise UserError(f"{name} is not used", hint=hint)
        if linesearch not in (None, "MoreThuente"):
            hint = "leave it out: steps satisfy the strong Wolfe conditions in any case"
            raise UserError(f"linesearch {linesearch!r} is not there", hint=hint)
        own = {name: plain(given[name]) for name in parameters(kind) if given[name] is not None}
        for name, value in own.items():
            parameters(kind)[name].check(value)
        return cls(**own)

    @property
    def params(self) -> dict[str, Any]:
        """The parameters of the training."""
        return {
            "sigma2": min(_MOST_SIGMA2, 1 / (2 * self.c2)) if self.c2 else _MOST_SIGMA2,
            "max_iterations": int(self.max_iterations),
            "ftol": self.delta,
            "min_count": max(1, math.ceil(self.min_freq)),
            "state_support": "all" if self.all_possible_states else "observed",
        }


@dataclass
class TrainingLog:
    """What happened in a training.

    Attributes
    ----------
    iterations: dicts with num (from 0, the start), loss (with the penalty of squares, summed over
        tokens) and error_norm (largest derivative, per token). With development sentences, the last
        one has item_accuracy and instance_accuracy.
    status: why the training ended.
    """

    iterations: list[dict[str, Any]] = field(default_factory=list)
    status: str = ""

    @property
    def last_iteration(self) -> dict[str, Any]:
        """The last of the iterations."""
        return self.iterations[-1]


class CRF(TaggerBase):
    """The estimator of sklearn-crfsuite 0.5: a CRF trained by L-BFGS.

    None stands for the default. A parameter of another algorithm than L-BFGS is an error that says
    what to use instead.

    Parameters
    ----------
    algorithm: "lbfgs", the only one.
    min_freq: attributes that occur less often get no weight.
    all_possible_states: weights also for pairs of attribute and label that never occur.
    all_possible_transitions: weights also for pairs of labels that never occur; the others are 0.
    c1, c2: weights of the sum of absolute weights (0), and of the sum of their squares (1).
    max_iterations: of L-BFGS; no limit.
    num_memories: pairs of vectors that L-BFGS stores (6).
    epsilon: the training ends at a largest derivative per token of a tenth of this (1e-5).
    period, delta: it ends when the loss falls over `period` iterations (10) by less than the share
        `delta` (1e-5).
    linesearch: "MoreThuente", the only one.
    max_linesearch: most evaluations of a line search (20).
    verbose: show messages of the training on standard error.
    n_threads: None = all cores. Results do not depend on it.

    Attributes
    ----------
    classes_: the labels as given.
    tagger_: the trained tagger.
    training_log_: a `TrainingLog`.
    """

    def __init__(
        self,
        algorithm: str | None = None,
        min_freq: float | None = None,
        all_possible_states: bool | None = None,
        all_possible_transitions: bool | None = None,
        c1: float | None = None,
        c2: float | None = None,
        max_iterations: int | None = None,
        num_memories: int | None = None,
        epsilon: float | None = None,
        period: int | None = None,
        delta: float | None = None,
        linesearch: str | None = None,
        max_linesearch: int | None = None,
        calibration_eta: Any = None,
        calibration_rate: Any = None,
        calibration_samples: Any = None,
        calibration_candidates: Any = None,
        calibration_max_trials: Any = None,
        pa_type: Any = None,
        c: Any = None,
        error_sensitive: Any = None,
        averaging: Any = None,
        variance: Any = None,
        gamma: Any = None,
        verbose: bool = False,
        model_filename: Any = None,
        keep_tempfiles: bool = False,
        trainer_cls: Any = None,
        *,
        n_threads: int | None = None,
    ) -> None:
        own = dict(locals())
        for name in self._get_param_names():
            setattr(self, name, own[name])

    def fit(
        self,
        X: Sentences,
        y: Labels,
        X_dev: Sentences | None = None,
        y_dev: Labels | None = None,
    ) -> Self:
        """Train.

        X, y: sentences and their labels. A token is a dict of features, a list of attributes, or a
            word.
        X_dev, y_dev: sentences for the last entry of `training_log_`.
        UserError for tokens, labels or parameters that do not fit.
        """
        if (X_dev is None) != (y_dev is None):
            raise UserError("X_dev and y_dev belong together", hint="give both or none")
        self._log = TrainingLog()
        self._fit(X, y, ())
        self.training_log_ = self._log
        if X_dev is not None and y_dev is not None:
            from sslbench.sklearn import metrics

            self.training_log_.last_iteration.update(
                item_accuracy=metrics.flat_accuracy_score(y_dev, self.predict(X_dev)),
                instance_accuracy=metrics.sequence_accuracy_score(y_dev, self.predict(X_dev)),
            )
        return self

    def score(self, X: Sentences, y: Labels) -> float:
        """Share of the tokens whose label is right, in [0, 1]."""
        return self._score(X, y, None)

    @property
    def attributes_(self) -> list[str]:
        """The attributes with a weight that is not 0."""
        return list(dict.fromkeys(name for name, _ in self.state_features_))

    @property
    def num_attributes_(self) -> int:
        """Number of `attributes_`."""
        return len(self.attributes_)

    @property
    def state_features_(self) -> dict[tuple[str, Any], float]:
        """The weights of (attribute, label) that are not 0."""
        crf, names = self._crf, self._attribute_names
        attribute, label, weight = crf.layout.state_weights(crf.weights)
        features = self.tagger_.features
        numbers = () if features is None else features.numbers
        columns = crf.layout.part(crf.weights, "columns").reshape(-1, len(crf.labels))
        found = {
            (names[attribute[i]], self.classes_[label[i]]): float(weight[i])
            for i in np.flatnonzero(weight)
        }
        for name, row in zip(numbers, columns, strict=True):
            found.update({(name, self.classes_[i]): float(row[i]) for i in np.flatnonzero(row)})
        return found

    @property
    def transition_features_(self) -> dict[tuple[Any, Any], float]:
        """The weights of (label, next label) that are not 0."""
        crf, L = self._crf, len(self.classes_)
        table = crf.layout.part(crf.weights, "transitions")[: L * L].reshape(L, L)
        pairs = zip(*np.nonzero(table), strict=True)
        return {(self.classes_[a], self.classes_[b]): float(table[a, b]) for a, b in pairs}

    @property
    def size_(self) -> int:
        """Bytes of the weights and of the names of attributes."""
        names = sum(len(name.encode("utf-8", "surrogatepass")) for name in self._attribute_names)
        return int(self._crf.weights.nbytes) + names

    @property
    def _crf(self) -> ChainCRF:
        check_is_fitted(self, "tagger_")
        return cast(ChainCRF, self.tagger_.tagger)

    @property
    def _attribute_names(self) -> list[str]:
        index = self._crf.index
        return [index.node_text(i) for i in range(index.n_node)]

    def _columns(self) -> tuple[str, ...]:
        return ("word",)

    def _are_features(self, rows: list[list[Any]]) -> bool:
        return not isinstance(rows[0][0], str | bytes)

    def _scheme(self, rows: Sequence[Sequence[str]]) -> Scheme | None:
        return None  # labels stay as they are

    def _method(self, dataset: Dataset, reader: TokenReader) -> LocalMethod:
        chosen = Settings.of(self)
        method = self._local_method(
            RunSpec(
                method="supervised",
                dataset=dataset.name,
                featurizer=first_featurizer(dataset.task, reader),
                model="crf1",
                params=chosen.params,
            ),
            reader,
        )
        own = {"settings": chosen, "log": self._log}
        method.cls = cast(Any, type("CRFsuite", (_ElasticNet,), own))
        return method


class _ElasticNet(CRFMethod):
    """A CRF of labeled sentences with penalties of absolute weights and of squares.

    settings, log: of the estimator.
    """

    uses_unlabeled = False
    settings: ClassVar[Settings]
    log: ClassVar[TrainingLog]

    def fit(self, problem: Problem, params: TrainingParams, run: RunContext) -> ChainCRF:
        chosen, codes = self.settings, problem.label_codes(problem.labeled)
        crf = cast(ChainModel, problem.model).prepare(
            problem.featurizer,
            problem.labeled,
            codes,
            problem.labels,
            min_count=params.min_count,
            state_support=params.state_support,
            use_start=False,  # CRFsuite has no weights for the ends of a sentence
            use_stop=False,
        )
        zero = None
        if not chosen.all_possible_transitions:
            first = crf.layout.span("transitions").start
            zero = first + _unseen(codes, problem.labeled.offsets, len(problem.labels))
        options = params.options(
            memory=int(chosen.num_memories),
            gtol=chosen.epsilon / 10,
            window=int(chosen.period),
            max_evaluations=int(chosen.max_linesearch),
        )
        result = crf.train(
            [problem.encode(crf).labeled],
            params,
            options=options,
            l1=chosen.c1,
            zero=zero,
            callback=lambda *entry: self._note(problem.labeled.n_tokens, *entry),
        )
        self.log.status = result.status
        run.record(result)
        return crf

    def _note(self, n_tokens: int, number: int, loss: float, size: float) -> None:
        entry = {"num": number, "loss": loss * n_tokens, "error_norm": size}
        self.log.iterations.append(entry)


def _unseen(codes: Any, offsets: I64, n_labels: int) -> I64:
    """Return the numbers a * L + b of the pairs of labels (a, b) that never follow each other."""
    pairs = codes[:-1].astype(np.int64) * n_labels + codes[1:]
    inside = np.ones(len(pairs), np.bool_)
    inside[offsets[1:-1] - 1] = False
    return np.setdiff1d(np.arange(n_labels**2), pairs[inside])
