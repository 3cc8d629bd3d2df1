"""Cross-validation: the records of the folds of a run as one record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sslbench.experiment.metrics import Scores, pool
from sslbench.experiment.records.predictions import Predictions, predictions_sha256
from sslbench.experiment.records.record import RunRecord, TuningSpent, jsonable

SPLIT = "test"


def pooled(
    record: RunRecord, folds: Sequence[RunRecord], scored: Sequence[dict[str, Scores]]
) -> RunRecord:
    """Fill in the record of a run from those of its folds, which are tested on sentences of train.

    The split "test" has the sentences of all folds, one fold after another, each predicted by the
    model that has not seen it. Metrics are computed from the counts of all sentences, they are no
    means over folds. `params` has a list where folds were tuned to different values, `trace` an
    entry per fold, `tuning` the trials of all folds, each with the number of its fold.

    Parameters
    ----------
    record: without a result.
    folds, scored: by fold the record and the scores on its test, by variant of the tagger
        ("" = itself).
    """
    first, metric = folds[0], folds[0].primary_metric
    record.protocol, record.primary_metric = first.protocol, metric
    record.params = {key: _common([fold.params[key] for fold in folds]) for key in first.params}
    record.data = first.data
    record.trace = {"folds": [fold.trace for fold in folds]}
    record.tuning = [
        {**trial, "fold": number} for number, fold in enumerate(folds) for trial in fold.tuning
    ]
    record.tuned = _spent([fold.tuned for fold in folds])
    record.warnings = list(dict.fromkeys(line for fold in folds for line in fold.warnings))
    record.timing = _sums([fold.timing for fold in folds])
    duplicates = _sums([fold.audit["duplicates"] for fold in folds])
    tested = {key: count for key, count in duplicates.items() if key.startswith(f"{SPLIT}_in_")}
    record.audit = {"duplicates": tested, "violations": []}
    record.audit |= {
        key: v for fold in folds for key, v in fold.audit.items() if key == "dev_labels"
    }
    scores = pool([fold[""] for fold in scored])
    record.metrics[SPLIT] = jsonable(scores.metrics)
    record.counts[SPLIT] = scores.counts.to_lists()
    record.anatomy = scores.anatomy
    for name in [name for name in scored[0] if name and all(name in fold for fold in scored)]:
        variant = pool([fold[name] for fold in scored]).metrics[metric]
        record.metrics[SPLIT][f"{metric}_{name}"] = jsonable(variant)
    _join_predictions(record, folds)
    return record


def _join_predictions(record: RunRecord, folds: Sequence[RunRecord]) -> None:
    """Models of different folds may know different labels: the record has those of all."""
    parts = [fold.predictions[SPLIT] for fold in folds]
    labels = list(dict.fromkeys(label for part in parts for label in part.labels))
    number = {label: code for code, label in enumerate(labels)}
    codes = []
    for fold, part in zip(folds, parts, strict=True):
        table = np.array([number[label] for label in part.labels], dtype=np.int32)
        codes.append(table[part.codes(sum(fold.counts[SPLIT]["n_tokens"]))])
    joined = np.concatenate(codes)
    record.predictions[SPLIT] = Predictions.pack(labels, joined)
    record.predictions_sha256 = predictions_sha256(labels, joined)


def _spent(parts: Sequence[TuningSpent]) -> TuningSpent:
    """What the tuning of all folds took."""
    return TuningSpent(
        status=parts[0].status,
        searched=parts[0].searched,
        trials=sum(part.trials for part in parts),
        cpu_s=sum(part.cpu_s for part in parts),
        seconds=sum(part.seconds for part in parts),
    )


def _common(values: list[Any]) -> Any:
    """The value that all folds have, or the values by fold."""
    return values[0] if all(value == values[0] for value in values) else values


def _sums(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    keys = dict.fromkeys(key for part in parts for key in part)
    return {key: sum(part.get(key, 0) for part in parts) for key in keys}
