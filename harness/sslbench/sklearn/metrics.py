"""The metrics of sklearn-crfsuite: those of scikit-learn on the labels of all tokens.

Arguments are lists of lists of labels; further ones go to the function of scikit-learn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sklearn import metrics

from sslbench.engine.corpus.tokens import listed
from sslbench.engine.errors import UserError

Rows = Iterable[Iterable[Any]]


def flatten(rows: Rows) -> list[Any]:
    """The labels of all sentences in one list."""
    return [label for row in rows for label in row]


def _of_tokens(
    function: Callable[..., Any], y_true: Rows, y_pred: Rows, *args: Any, **given: Any
) -> Any:
    true, found = _paired(y_true, y_pred)
    return function(flatten(true), flatten(found), *args, **given)


def _paired(y_true: Rows, y_pred: Rows) -> tuple[list[list[Any]], list[list[Any]]]:
    """The rows as lists; UserError where their lengths differ."""
    true, found = (list(map(list, listed(rows, "y"))) for rows in (y_true, y_pred))
    if len(true) != len(found):
        raise UserError(f"y_true has {len(true)} sentences, y_pred {len(found)}")
    for number, (row, other) in enumerate(zip(true, found, strict=True), 1):
        if len(row) != len(other):
            lengths = f"{len(row)} labels in y_true, {len(other)} in y_pred"
            raise UserError(f"sentence {number} has {lengths}")
    return true, found


def flat_accuracy_score(y_true: Rows, y_pred: Rows, **given: Any) -> float:
    """Share of the tokens whose label is right."""
    return float(_of_tokens(metrics.accuracy_score, y_true, y_pred, **given))


def flat_precision_score(y_true: Rows, y_pred: Rows, **given: Any) -> Any:
    """``sklearn.metrics.precision_score`` of the labels of tokens."""
    return _of_tokens(metrics.precision_score, y_true, y_pred, **given)


def flat_recall_score(y_true: Rows, y_pred: Rows, **given: Any) -> Any:
    """``sklearn.metrics.recall_score`` of the labels of tokens."""
    return _of_tokens(metrics.recall_score, y_true, y_pred, **given)


def flat_f1_score(y_true: Rows, y_pred: Rows, **given: Any) -> Any:
    """``sklearn.metrics.f1_score`` of the labels of tokens."""
    return _of_tokens(metrics.f1_score, y_true, y_pred, **given)


def flat_fbeta_score(y_true: Rows, y_pred: Rows, beta: float, **given: Any) -> Any:
    """``sklearn.metrics.fbeta_score`` of the labels of tokens."""
    return _of_tokens(metrics.fbeta_score, y_true, y_pred, beta=beta, **given)


def flat_classification_report(y_true: Rows, y_pred: Rows, labels: Any = None, **given: Any) -> Any:
    """``sklearn.metrics.classification_report`` of the labels of tokens."""
    return _of_tokens(metrics.classification_report, y_true, y_pred, labels=labels, **given)


def sequence_accuracy_score(y_true: Rows, y_pred: Rows) -> float:
    """Share of the sentences whose labels are all right; 0 without sentences."""
    true, found = _paired(y_true, y_pred)
    return sum(a == b for a, b in zip(true, found, strict=True)) / max(1, len(true))
