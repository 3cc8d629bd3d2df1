"""Scorers of sklearn-crfsuite, for ``cross_val_score`` and searches."""

from __future__ import annotations

from sklearn.metrics import make_scorer

from sslbench.sklearn import metrics

flat_accuracy = make_scorer(metrics.flat_accuracy_score)
sequence_accuracy = make_scorer(metrics.sequence_accuracy_score)
