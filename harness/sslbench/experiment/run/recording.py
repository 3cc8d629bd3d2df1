"""From the outcome of a run, or of the folds of its cross-validation, to its record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np

from sslbench.engine.corpus import Corpus, Shards
from sslbench.experiment.checks.guard import guard_warnings
from sslbench.experiment.checks.warnings import convergence_warnings
from sslbench.experiment.identity import corpus_hash, environment
from sslbench.experiment.inputs.protocol import Sample, folds_in_order
from sslbench.experiment.metrics import Scores, pool
from sslbench.experiment.planning.task import RunTask
from sslbench.experiment.records.predictions import Predictions, pack_numbers, predictions_sha256
from sslbench.experiment.records.record import ErrorKind, RunRecord, Status, jsonable
from sslbench.experiment.records.trials import TuningSpent
from sslbench.experiment.run.scoring import Scored
from sslbench.experiment.run.training import Trained


def blank(task: RunTask, status: Status) -> RunRecord:
    """A record without a result."""
    spec = task.spec
    origin: dict[str, Any] = {
        "path": task.data_path,
        "files": task.files,
        "templates": list(task.templates),
    }
    return RunRecord(
        run_id=spec.run_id,
        status=status,
        method=spec.method,
        dataset=spec.dataset,
        featurizer=spec.features,
        model=spec.model,
        params=dict(spec.params),
        protocol=msgspec.to_builtins(spec.protocol),
        primary_metric=task.metric,
        spec=spec,
        data={name: value for name, value in origin.items() if value},
        code=task.code,
        environment=environment(task.threads),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def failed(
    task: RunTask, kind: ErrorKind, error: str, traceback_lines: list[str] | None = None
) -> RunRecord:
    """The record of a failed run."""
    record = blank(task, kind if kind in ("timeout", "memory") else "failed")
    record.error = " ".join(error.split()) or "no message"
    record.error_kind = kind
    record.traceback = traceback_lines or []
    return record


def skipped(task: RunTask) -> RunRecord:
    """The record of a run that is not executed; it is shown, but never stored."""
    record = blank(task, "skipped")
    record.error = task.skip_reason
    return record


def recorded(task: RunTask, trained: Trained, scored: Mapping[str, Scored]) -> RunRecord:
    """The record of a training. scored: by split."""
    sample, run = trained.sample, trained.run
    record = blank(task, "ok")
    record.params = jsonable(trained.fitted.params)
    record.protocol = {**record.protocol, "dev": sample.drawn.dev_source}
    record.primary_metric = sample.dataset.metric
    record.tuning = [msgspec.to_builtins(trial) for trial in trained.tuning.trials]
    record.tuned = trained.tuning.spent(asked=sample.spec.protocol.tuned)
    record.fit_cpu_s = trained.cpu_s
    record.trace = jsonable(run.trace)
    record.warnings = [*trained.warnings, *convergence_warnings(record.trace)]
    record.warnings += guard_warnings(record)
    record.timing = dict(run.timing)
    record.data = {**record.data, **_sizes(trained)}
    ids = sample.dataset.sentence_ids
    record.sentence_ids = {name: pack_numbers(ids[name]) for name in scored if name in ids}
    for split, each in scored.items():
        _put_scores(record, split, each)
    return record


def _put_scores(record: RunRecord, split: str, scored: Scored) -> None:
    metric, main = record.primary_metric, scored.scores[""]
    record.metrics[split] = jsonable(main.metrics)
    for name, scores in scored.scores.items():
        if name:
            record.metrics[split][f"{metric}_{name}"] = jsonable(scores.metrics[metric])
    record.counts[split] = main.counts.to_lists()
    record.predictions[split] = Predictions.pack(scored.labels, scored.codes)
    if split == "test":
        record.predictions_sha256 = predictions_sha256(scored.labels, scored.codes)
        record.anatomy = main.anatomy


def _sizes(trained: Trained) -> dict[str, Any]:
    """Sizes, the dataset's metadata, and a hash by which equal test sets are recognized."""
    problem, dataset = trained.problem, trained.sample.dataset
    parts: dict[str, Corpus | Shards] = {
        "labeled": problem.labeled,
        "unlabeled": problem.unlabeled,
    }
    parts |= {name: part for name, part in dataset.splits.items() if name != "train"}
    return {
        "task": dataset.task,
        "labels": len(problem.labels),
        "facts": jsonable(dataset.metadata),
        "sentences": {name: part.n_sentences for name, part in parts.items()},
        "tokens": {name: part.n_tokens for name, part in parts.items()},
        "test_sha256": corpus_hash(dataset.splits["test"]),
    }


def put_fold_sizes(record: RunRecord, sample: Sample) -> None:
    """Make the sizes of a fold those of all folds: each sentence is labeled, and tested on."""
    tested = folds_in_order(sample.dataset, sample.spec.protocol)
    corpus = sample.dataset.splits["train"].select(tested)
    sizes = {"labeled": corpus, "test": corpus}
    record.data = {
        **record.data,
        "sentences": record.data["sentences"] | {n: c.n_sentences for n, c in sizes.items()},
        "tokens": record.data["tokens"] | {n: c.n_tokens for n, c in sizes.items()},
        "test_sha256": corpus_hash(corpus),
    }
    ids = sample.dataset.sentence_ids.get("train")
    record.sentence_ids = {"test": pack_numbers(tested if ids is None else ids[tested])}


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
    folds: the record of each fold.
    scored: the scores of each fold on its test, by variant of the tagger ("" = the tagger).
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
    record.fit_cpu_s = sum(fold.fit_cpu_s or 0.0 for fold in folds)
    record.warnings = list(dict.fromkeys(line for fold in folds for line in fold.warnings))
    record.timing = _sums([fold.timing for fold in folds])
    duplicates = _sums([fold.audit["duplicates"] for fold in folds])
    tested = {key: count for key, count in duplicates.items() if key.startswith(f"{SPLIT}_in_")}
    record.audit = {"duplicates": tested, "violations": []}
    if "unseen_labels" in folds[0].audit:
        record.audit["unseen_labels"] = _sums([fold.audit["unseen_labels"] for fold in folds])
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
        dropped=sum(part.dropped for part in parts),
    )


def _common(values: list[Any]) -> Any:
    """The value that all folds have, or the values by fold."""
    return values[0] if all(value == values[0] for value in values) else values


def _sums(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    keys = dict.fromkeys(key for part in parts for key in part)
    return {key: sum(part.get(key, 0) for part in parts) for key in keys}
