"""Checks of models: they keep what the problem forbids, and derivatives are those of the values."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from sslbench.engine.compilation.threads import using_threads
from sslbench.engine.corpus import Corpus
from sslbench.engine.crf import (
    ChainCRF,
    HardLabels,
    Parts,
    SequenceModel,
    SoftTargets,
    TrainingParams,
    TrainingResult,
    read_model,
)
from sslbench.engine.features import TemplateFeaturizer
from sslbench.engine.types import F64, I32, Bool
from sslbench.experiment.inputs.problem import relabeled
from sslbench.experiment.planning.description import make_params
from sslbench.plugins import registry
from sslbench.plugins.registrations import ModelInfo

from .datasets import require_texts
from .results import (
    Check,
    CheckFailure,
    CheckResult,
    CheckSkipped,
    Selection,
    checks_of,
    require_axes,
    run_checks,
)
from .toys import TEMPLATES, toy_dataset

#: relative difference of a derivative and of a quotient of differences that is rounding of float32
TOLERANCE = 2e-2
STEPS = (1e-2, 1e-3, 1e-4, 1e-5)


@dataclass(frozen=True)
class ModelCase:
    """A model under test. params: of its `Params`, as plain values."""

    info: ModelInfo
    params: Mapping[str, Any] = field(default_factory=dict)

    def prepared(self, *, seed: int = 0, dense: Any = None, rules: bool = True) -> SequenceModel:
        """An untrained model of generated sentences.

        dense: function of dense columns.  rules: with a transition mask and a label constraint.
        """
        target, corpus = self.info.load(), self.labeled
        made = target
        if getattr(target, "Params", None) is not None:
            made = target(make_params(target, self.params), seed)
        elif isinstance(target, type):
            made = target()
        model: SequenceModel = made.prepare(
            TemplateFeaturizer(TEMPLATES, dense),
            corpus,
            self.codes,
            corpus.column("label").vocabulary.strings,
            min_count=1,
            state_support="all",
            n_factors=0,
            transition_mask=self.mask if rules else None,
            label_constraint=toy_dataset(constraint=True).label_constraint if rules else None,
            text=(),
        )
        if not isinstance(model, SequenceModel):
            raise CheckFailure(f"prepare() gave a {type(model).__name__} and no SequenceModel")
        return model

    def trained(self, **options: Any) -> SequenceModel:
        """A model after a short training on the labeled sentences."""
        model = self.prepared(**options)
        self.train(model)
        return model

    def train(self, model: SequenceModel) -> TrainingResult:
        """Train a model for a few iterations."""
        params = TrainingParams()
        gold = model.encode(self.labeled), HardLabels(self.codes)
        return model.train([gold], params, options=params.options(max_iterations=5))

    @property
    def labeled(self) -> Corpus:
        """Generated sentences that obey the label constraint."""
        dataset = toy_dataset(constraint=True)
        train, rule = relabeled(dataset.splits["train"]), dataset.label_constraint
        assert rule is not None
        forced = rule.forced_labels(train, train.column("label").vocabulary.strings)
        codes = train.column("label").codes
        wrong = (forced >= 0) & (forced != codes)
        bad = np.add.reduceat(wrong, train.offsets[:-1]) > 0
        return train.select(np.flatnonzero(~bad))

    @property
    def text(self) -> Corpus:
        """Sentences without labels, with words that the labeled ones lack."""
        return toy_dataset(constraint=True).splits["test"].drop("label")

    @property
    def codes(self) -> I32:
        """int32[N]: the labels of `labeled`."""
        return self.labeled.column("label").codes.astype(np.int32)

    @property
    def mask(self) -> Bool:
        """bool[L+1, L]: the transitions of the labeled sentences and of the forced labels."""
        corpus, codes = self.labeled, self.codes
        L = len(corpus.column("label").vocabulary)
        before = np.roll(codes, 1)
        before[corpus.offsets[:-1]] = L
        mask = np.zeros((L + 1, L), np.bool_)
        mask[before, codes] = True
        rule = toy_dataset(constraint=True).label_constraint
        assert rule is not None
        labels = corpus.column("label").vocabulary.strings
        free = np.unique(rule.forced_labels(self.text, labels))
        mask[:, free[free >= 0]] = True
        mask[free[free >= 0]] = True
        return mask


def check_registration(case: ModelCase) -> None:
    """The registration has a summary and a reference; prepare gives a SequenceModel.

    What tuning searches are legal values of its parameters.
    """
    require_texts(case.info, ("summary", "reference"))
    target = case.info.load()
    require_axes(target, getattr(getattr(target, "Params", None), "search", ()))
    model = case.prepared()
    values = model.parameters
    if not isinstance(values, np.ndarray) or values.dtype != np.float64 or values.ndim != 1:
        raise CheckFailure("parameters must be a float64 array of one dimension")
    if tuple(model.labels) != tuple(case.labeled.column("label").vocabulary.strings):
        raise CheckFailure("its labels are not those that prepare got")


def check_transition_mask(case: ModelCase) -> None:
    """A transition that the problem forbids is impossible, also at the start of a sentence."""
    model, mask = case.trained(), case.mask
    text = model.encode(case.text)
    for potentials in model.potentials(text):
        edge = potentials.edge if len(potentials.edge) == 1 else potentials.edge[1:]
        if np.isfinite(edge[:, ~mask[:-1]]).any():
            raise CheckFailure("a forbidden transition has a finite potential")
        if np.isfinite(potentials.node[potentials.batch.offsets[:-1]][:, ~mask[-1]]).any():
            raise CheckFailure("a label that may not begin a sentence has a finite potential there")


def check_label_constraint(case: ModelCase) -> None:
    """A token that the label constraint is about has one possible label."""
    model, rule = case.trained(), toy_dataset(constraint=True).label_constraint
    assert rule is not None
    text = case.text
    forced = rule.forced_labels(text, model.labels)
    for potentials in model.potentials(model.encode(text)):
        own, possible = forced[potentials.batch.tokens], np.isfinite(potentials.node)
        rows = np.flatnonzero(own >= 0)
        if possible[rows].sum() > possible[rows, own[rows]].sum():
            raise CheckFailure("a token has another possible label than the only one")


def check_marginals(case: ModelCase) -> None:
    """Marginals are finite and sum to one; an empty text has none."""
    model = case.trained()
    p = model.marginals(model.encode(case.text))
    if not np.isfinite(p).all() or np.abs(p.sum(axis=1) - 1.0).max() > 1e-6:
        raise CheckFailure("the marginals of a token do not sum to one")
    empty = model.encode(case.text.select([]))
    if model.marginals(empty).shape != (0, len(model.labels)):
        raise CheckFailure("an empty text has marginals")


def check_unseen_words(case: ModelCase) -> None:
    """Words that no sentence of the training has are labeled."""
    model = case.trained()
    if len(model.predict(case.text)) != case.text.n_tokens:
        raise CheckFailure("predict() does not give a label per token")


def check_pullback(case: ModelCase) -> None:
    """The pullback gives the derivatives of the values, by differences in random directions."""
    if case.info.labels_only:
        raise CheckSkipped("it gives labels and no scores")
    model, rng = case.trained(rules=False), np.random.default_rng(1)
    text, L = model.encode(case.labeled), len(model.labels)
    soft = SoftTargets(rng.dirichlet(np.ones(L), case.labeled.n_tokens))
    parts: Parts = [(text, HardLabels(case.codes)), (text, soft)]
    gradient = np.empty_like(model.parameters)
    model.gradient(parts, gradient)
    if not np.isfinite(gradient).all():
        raise CheckFailure("a derivative is not finite")
    scale = max(float(np.abs(gradient).max()), 1e-300)
    for direction in (gradient / scale, rng.normal(size=len(gradient))):
        wanted = float(gradient @ direction)
        found = _quotients(model, parts, direction)
        size = max(abs(wanted), float(np.linalg.norm(gradient)))
        error = min(abs(each - wanted) for each in found)
        if not error <= TOLERANCE * size:
            near = min(found, key=lambda each: abs(each - wanted))
            raise CheckFailure(
                f"a derivative is {wanted:.4g}, a quotient of differences {near:.4g}"
            )


def _quotients(model: SequenceModel, parts: Any, direction: F64) -> list[float]:
    start = model.parameters
    found = []
    for step in STEPS:
        up, down = (model.evaluate(parts, start + s * step * direction).sum() for s in (1, -1))
        found.append(float(up - down) / (2 * step))
    return found


def check_features(case: ModelCase) -> None:
    """A model that provides "features" reads dense columns, in training and in decoding."""
    if "features" not in case.info.provides:
        raise CheckSkipped('it does not provide "features"')

    def dense(corpus: Corpus) -> F64:
        lengths = np.array([len(w) for w in corpus.column("word").strings()], np.float64)
        return np.stack([lengths, np.ones_like(lengths)], axis=1)

    given = case.trained(dense=dense, rules=False)
    other = case.trained(dense=lambda corpus: -3.0 * dense(corpus), rules=False)
    one, two = (model.with_parameters(given.parameters) for model in (given, other))
    text = case.text
    if np.array_equal(one.marginals(one.encode(text)), two.marginals(two.encode(text))):
        raise CheckFailure("other dense columns do not change its marginals")


def check_parameters(case: ModelCase) -> None:
    """Training changes parameters alone, by a new array: the old one is as it was."""
    model = case.prepared()
    before, values = model.parameters, model.parameters.copy()
    text = model.encode(case.text)
    first = model.marginals(text)
    case.train(model)
    if not np.array_equal(before, values):
        raise CheckFailure("train() writes into the old parameters")
    if np.array_equal(model.parameters, values):
        raise CheckFailure("train() changes no parameter")
    if not np.array_equal(model.with_parameters(values).marginals(text), first):
        raise CheckFailure("with its old parameters, it has other marginals than before training")


def check_seed(case: ModelCase) -> None:
    """The same seed gives the same parameters again."""
    if not np.array_equal(case.trained().parameters, case.trained().parameters):
        raise CheckFailure("the same seed gives other parameters")


def check_threads(case: ModelCase) -> None:
    """One and two threads give the same bits."""
    found = []
    for threads in (1, 2):
        with using_threads(threads):
            model = case.trained()
            found.append((model.parameters, model.marginals(model.encode(case.text))))
    if not all(map(np.array_equal, *found)):
        raise CheckFailure("two threads give other bits than one")


def check_save_restore(case: ModelCase) -> None:
    """A saved model predicts the same after it is read back."""
    model = case.trained()
    restore: Callable[..., Any] | None = getattr(case.info.load(), "restore", None)
    if isinstance(model, ChainCRF):
        restore = ChainCRF.from_arrays
    if restore is None:
        raise CheckFailure("the target has no restore()")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        model.save(path)
        kind, arrays, metadata = read_model(path)
    if kind not in (case.info.name, ChainCRF.kind):
        raise CheckFailure(f"its kind is {kind!r}, and not the name of the model")
    again = restore(arrays, {**metadata, "dense": None})
    if not np.array_equal(model.predict_marginals(case.text), again.predict_marginals(case.text)):
        raise CheckFailure("the restored model has other marginals")


MODEL_CHECKS: tuple[Callable[[ModelCase], None], ...] = (
    check_registration,
    check_transition_mask,
    check_label_constraint,
    check_marginals,
    check_unseen_words,
    check_pullback,
    check_features,
    check_parameters,
    check_seed,
    check_threads,
    check_save_restore,
)


def model_checks(
    model: str | ModelInfo,
    *,
    params: Mapping[str, Any] | None = None,
    **selection: Unpack[Selection],
) -> list[Check]:
    """The checks of a model, to run one by one; UserError for an unknown name.

    model: its registered name, or a registration.  params: of its `Params`, by name.
    """
    info = registry().model(model) if isinstance(model, str) else model
    return checks_of(MODEL_CHECKS, ModelCase(info, params or {}), **selection)


def check_model(model: str | ModelInfo, **options: Any) -> list[CheckResult]:
    """Run all checks of a model; options: see `model_checks`.

    CheckFailure, with a line per failed check, if a check fails.
    """
    return run_checks(model_checks(model, **options), model)
