"""From the outcome of a run to its record."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from sslbench.engine.corpus import Corpus, Shards
from sslbench.experiment.checks.convergence import convergence_warnings
from sslbench.experiment.checks.guard import guard_warnings
from sslbench.experiment.identity.identity import corpus_hash, environment
from sslbench.experiment.inputs.protocol import folds_in_order
from sslbench.experiment.inputs.sample import Sample
from sslbench.experiment.planning.task import RunTask
from sslbench.experiment.records.predictions import Predictions, pack_numbers, predictions_sha256
from sslbench.experiment.records.record import ErrorKind, RunRecord, Status, jsonable
from sslbench.experiment.run.scoring import Scored
from sslbench.experiment.run.training import Trained


def blank(task: RunTask, status: Status) -> RunRecord:
    """A record without a result."""
    spec = task.spec
    origin: dict[str, Any] = {"path": task.data_path, "files": task.files}
    origin["templates"] = list(task.templates)
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
    record.trace = jsonable(run.trace)
    record.warnings = [*trained.warnings, *convergence_warnings(record.trace)]
    record.warnings += guard_warnings(record)
    record.timing = dict(run.timing)
    record.data = {**record.data, **_sizes(trained)}
    ids = sample.dataset.sentence_ids
    record.sentence_ids = {name: pack_numbers(ids[name]) for name in scored if name in ids}
    for split, found in scored.items():
        _put_scores(record, split, found)
    return record


def _put_scores(record: RunRecord, split: str, scored: Scored) -> None:
    metric, own = record.primary_metric, scored.scores[""]
    record.metrics[split] = jsonable(own.metrics)
    for name, scores in scored.scores.items():
        if name:
            record.metrics[split][f"{metric}_{name}"] = jsonable(scores.metrics[metric])
    record.counts[split] = own.counts.to_lists()
    record.predictions[split] = Predictions.pack(scored.labels, scored.codes)
    if split == "test":
        record.predictions_sha256 = predictions_sha256(scored.labels, scored.codes)
        record.anatomy = own.anatomy


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
