"""Checks of methods: parameters, and what a tagger predicts, obeys and saves."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np

from sslbench.engine.corpus import Column, Corpus, Vocabulary
from sslbench.engine.errors import UserError
from sslbench.engine.types import I32, Bool
from sslbench.experiment.inputs.problem import Tagger
from sslbench.experiment.planning.description import (
    make_params,
    preset_notes_of,
    presets_of,
    task_defaults_of,
)
from sslbench.experiment.planning.settings import PLAIN
from sslbench.experiment.planning.space import search_space
from sslbench.experiment.records.record import jsonable
from sslbench.plugins.registrations import TASKS

from .cases import LABELED, FittedCase, MethodCase, predicted_labels, raw_prediction, without_codec
from .results import CheckFailure, CheckSkipped, require, require_axes
from .toys import toy_constraint, toy_dataset


def check_parameters(case: MethodCase) -> None:
    """`Params` is a msgspec.Struct with a default for each field; what is tuned is a field.

    Each of its presets and of its defaults by task is legal, and its notes are lines on presets
    that there are.
    """
    params: Any = getattr(case.cls, "Params", None)
    is_struct = isinstance(params, type) and issubclass(params, msgspec.Struct)
    require(is_struct, f"{case.cls.__name__}.Params is not a msgspec.Struct")
    params()
    require_axes(case.cls, search_space(params))
    for values in [*presets_of(params).values(), *task_defaults_of(params).values()]:
        make_params(case.cls, values)
    unknown = set(task_defaults_of(params)) - set(TASKS)
    require(not unknown, f"task_defaults: there are no tasks {', '.join(sorted(unknown))}")
    require(PLAIN not in presets_of(params), f"presets: the name {PLAIN!r} is taken")
    for name, note in preset_notes_of(params).items():
        require(name in presets_of(params), f"preset_notes: there is no preset {name!r}")
        require(isinstance(note, str) and note.isprintable(), f"preset_notes: {name!r} is no line")
    try:
        make_params(case.cls, {"no_such_parameter": 1})
    except UserError:
        return
    raise CheckFailure("an unknown parameter is accepted: declare forbid_unknown_fields=True")


def check_tasks(case: MethodCase) -> None:
    """The method trains and predicts on every task that it is registered for."""
    for task in case.info.tasks:
        fitted = case.fit(toy_dataset(task))
        require_codes(fitted, fitted.dataset.splits["test"], f" (task {task})")
    for dataset in case.datasets:
        fitted = case.fit(dataset)
        require_codes(fitted, fitted.dataset.splits["test"], f" (dataset {dataset.name})")


def check_predictions(case: MethodCase) -> None:
    """`predict` gives one integer code into `labels` per token, also for an empty corpus."""
    fitted = case.base
    labels = fitted.own_tagger.labels
    distinct = len(set(labels)) == len(labels) and all(isinstance(each, str) for each in labels)
    require(distinct, f"labels must be distinct strings, not {list(labels)!r}")
    test = fitted.dataset.splits["test"]
    for corpus, what in ((test, ""), (test.select([]), " (corpus without sentences)")):
        require_codes(fitted, corpus, what)


def check_finite(case: MethodCase) -> None:
    """Weights, marginals and saved arrays hold no not-a-number; marginals sum to one."""
    fitted = case.base
    tagger, test = fitted.own_tagger, fitted.dataset.splits["test"]
    weights = getattr(tagger, "weights", None)
    if isinstance(weights, np.ndarray) and not np.isfinite(weights).all():
        raise CheckFailure(f"{_bad(weights)} of {weights.size} weights are not finite")
    for name, array in fitted.saved_arrays().items():
        if array.dtype.kind == "f" and np.isnan(array).any():
            raise CheckFailure(f"the saved array {name!r} has not-a-number")
    if hasattr(tagger, "marginals") and hasattr(tagger, "encode"):
        _require_distributions(tagger.marginals(tagger.encode(test.drop("label"))), test, tagger)


def check_record(case: MethodCase) -> None:
    """`run.trace` can be written as JSON, and no value in it is not-a-number or infinite."""
    trace = case.base.trained.run.trace
    json.dumps(jsonable(trace))
    place = _not_finite(trace, "run.trace")
    require(not place, f"{place} is not finite")


def check_label_constraint(case: MethodCase) -> None:
    """Every token that the label constraint is about is predicted with its one label.

    A method that cannot obey one refuses the problem with a UserError.
    """
    dataset = case.toy(train=LABELED, external=24, constraint=True)
    try:
        fitted = case.fit(dataset, labeled="all")
    except UserError as error:
        raise CheckSkipped(str(error)) from error
    constraint = toy_constraint(case.task)
    for when, tagger in _taggers(fitted):
        for name, corpus in fitted.texts():
            here = constraint.applies(corpus)
            predicted = np.array(predicted_labels(tagger, corpus), object)[here]
            wrong = int((predicted != constraint.label).sum())
            require(
                not wrong,
                f"{wrong} of {len(predicted)} tokens of {name} that must be labeled"
                f" {constraint.label!r} are not{when}",
            )


def check_transition_mask(case: MethodCase) -> None:
    """No two neighboring labels that are predicted form a forbidden transition.

    A tagger that labels each token separately declares ``decodes_sequences = False``.
    """
    if "spans" not in case.info.tasks:
        raise CheckSkipped("the method is not for spans, where labels have a transition mask")
    fitted = case.fit(toy_dataset("spans", codec=True))
    tagger, mask = fitted.own_tagger, fitted.problem.transition_mask
    if not getattr(tagger, "decodes_sequences", True):
        raise CheckSkipped(f"{type(tagger).__name__} declares decodes_sequences = False")
    if mask is None or tuple(tagger.labels) != fitted.problem.labels:
        raise CheckFailure("the labels of the tagger are not problem.labels")
    for when, either in _taggers(fitted):
        for name, corpus in fitted.texts():
            bad = forbidden(raw_prediction(without_codec(either), corpus), corpus, mask)
            require(not bad, f"{bad} forbidden transitions are predicted in {name}{when}")


def check_save_restore(case: MethodCase) -> None:
    """A saved tagger predicts the same labels after it is read back."""
    fitted = case.base
    texts = dict(fitted.texts()) | {"text of unseen words": unseen(case)}
    try:
        restored = fitted.restored()
    except UserError as error:
        raise CheckFailure(str(error)) from error
    for name, corpus in texts.items():
        expected, labels = fitted.predicted(corpus), predicted_labels(restored, corpus)
        changed = sum(a != b for a, b in zip(labels, expected, strict=True))
        require(
            not changed,
            f"after it was restored, {changed} of {len(expected)} labels of {name} differ",
        )


def _taggers(fitted: FittedCase) -> Iterator[tuple[str, Tagger]]:
    """("", the tagger) and (" after it was restored", the tagger read back), if that works."""
    yield "", fitted.tagger
    with suppress(UserError, CheckSkipped):  # the check save_restore is about these
        yield " after it was restored", fitted.restored()


def require_codes(fitted: FittedCase, corpus: Corpus, what: str = "") -> None:
    """CheckFailure unless the tagger predicts one code of its labels per token."""
    tagger = fitted.own_tagger
    codes = raw_prediction(tagger, corpus)
    if not isinstance(codes, np.ndarray) or codes.dtype.kind not in "iu":
        kind = codes.dtype if isinstance(codes, np.ndarray) else type(codes).__name__
        raise CheckFailure(f"predict() gives {kind} and not an array of integers{what}")
    require(
        codes.shape == (corpus.n_tokens,),
        f"predict() gives the shape {list(codes.shape)} for {corpus.n_tokens} tokens{what}",
    )
    if codes.size and not 0 <= codes.min() <= codes.max() < len(tagger.labels):
        raise CheckFailure(
            f"predict() gives codes {codes.min()} to {codes.max()} for"
            f" {len(tagger.labels)} labels{what}"
        )


def forbidden(codes: I32, corpus: Corpus, mask: Bool) -> int:
    """Number of forbidden transitions; mask: bool[L + 1, L], last row: which may begin."""
    before = np.concatenate([[len(mask) - 1], codes[:-1]])
    before[corpus.offsets[:-1][corpus.lengths > 0]] = len(mask) - 1
    return int((~mask[before, codes]).sum())


def unseen(case: MethodCase) -> Corpus:
    """Test sentences of the method's task, all of whose words are new."""
    test = case.toy(seed=5).splits["test"].drop("label")
    column = test.column("word")
    words = Vocabulary(f"{word}q" for word in column.vocabulary.strings)
    return test.with_column("word", Column(words, column.codes))


def _require_distributions(marginals: Any, corpus: Corpus, tagger: Any) -> None:
    shape = (corpus.n_tokens, len(tagger.labels))
    if not isinstance(marginals, np.ndarray) or marginals.shape != shape:
        raise CheckFailure(f"marginals() must give an array of shape {list(shape)}")
    require(
        np.isfinite(marginals).all(),
        f"{_bad(marginals)} of {marginals.size} marginals are not finite",
    )
    error = float(np.abs(marginals.sum(axis=1) - 1.0).max(initial=0.0))
    require(error <= 1e-6, f"marginals of a token sum to one only up to {error:.2g}")


def _bad(values: Any) -> int:
    return int((~np.isfinite(values)).sum())


def _not_finite(value: Any, place: str) -> str:
    """The place of the first number that is not finite; "" when all are."""
    if isinstance(value, dict):
        items: Sequence[tuple[str, Any]] = [(f"[{key!r}]", item) for key, item in value.items()]
    elif isinstance(value, list | tuple):
        items = [(f"[{number}]", item) for number, item in enumerate(value)]
    elif isinstance(value, np.ndarray | float | np.floating):
        return "" if np.isfinite(value).all() else place
    else:
        return ""
    return next((problem for key, item in items if (problem := _not_finite(item, place + key))), "")
