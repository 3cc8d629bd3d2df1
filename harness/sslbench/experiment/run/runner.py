"""One run in this process: train, predict, score, and write the record."""

from __future__ import annotations

import time
import traceback
from datetime import UTC, datetime
from typing import Any

import msgspec

from sslbench.engine.compilation.compile_time import compile_seconds
from sslbench.engine.corpus import Corpus, Shards
from sslbench.engine.errors import UserError
from sslbench.engine.spread import WorkerError
from sslbench.experiment.checks.audit import duplicates
from sslbench.experiment.checks.convergence import convergence_warnings
from sslbench.experiment.checks.guard import guard_warnings
from sslbench.experiment.checks.score_warnings import score_warnings
from sslbench.experiment.identity.identity import corpus_hash, environment
from sslbench.experiment.inputs.problem import Problem
from sslbench.experiment.inputs.protocol import folds_in_order, unlabeled_text
from sslbench.experiment.metrics import Coverage, Scores, SentenceCounts, coverage
from sslbench.experiment.records.predictions import Predictions, pack_numbers, predictions_sha256
from sslbench.experiment.records.record import (
    TRACEBACK_LINES,
    ErrorKind,
    RunRecord,
    Status,
    jsonable,
)
from sslbench.experiment.run.checkpoints import remove_checkpoints
from sslbench.experiment.run.context import RunContext, cpu_seconds
from sslbench.experiment.run.cross_validation import pooled
from sslbench.experiment.run.fitting import LocalMethod, MethodEndedError, MethodError, RunMethod
from sslbench.experiment.run.training import (
    RunSetup,
    RunTask,
    Trained,
    data_fingerprint,
    predict,
    score_labels,
    train,
)
from sslbench.plugins import Registry, registry


def execute(
    run_task: RunTask, plugins: Registry | None = None, method: RunMethod | None = None
) -> RunRecord:
    """Load the data, train, predict and score; an exception becomes a record of a failed run.

    method: where it is trained; None = in this process. KeyboardInterrupt and SystemExit of this
    process are raised: they are no failures of the run.
    """
    began, cpu, compiled = time.perf_counter(), cpu_seconds(), compile_seconds().wall
    timer = RunContext(threads=run_task.threads, quiet=run_task.quiet)
    plugins = run_task.registry(plugins or registry())
    method = method or LocalMethod(run_task.spec, plugins)
    try:
        record = _perform(run_task, plugins, timer, method)
    except Exception as error:
        record = _failure(run_task, error)
    compiling = compile_seconds().wall - compiled + method.compile_s
    record.timing = {**record.timing, **timer.timing, "compile": compiling}
    if method.earlier.wall:
        record.timing["earlier"] = method.earlier.wall
    record.wall_s = max(0.0, time.perf_counter() - began - compiling) + method.earlier.wall
    # CPU time of processes is counted in ticks, that of compilation is exact.
    record.cpu_s = max(0.0, cpu_seconds() - cpu) + method.cpu_s + method.earlier.cpu
    if record.error_kind not in ("process", "memory"):  # of these, --retry goes on
        remove_checkpoints(run_task.store, run_task.spec.run_id)
    record.environment["isolation"] = method.isolation
    if method.violations:
        record.audit = {**record.audit, "violations": method.violations}
        record.warnings += [f"the method was kept from: {each}" for each in method.violations]
    return record


def _failure(run_task: RunTask, error: Exception) -> RunRecord:
    match error:
        case UserError():
            return failed(run_task, "input", str(error))
        case MethodEndedError() | WorkerError():
            return failed(run_task, "process", str(error))
        case MethodError():
            return failed(run_task, "method", str(error), error.lines)
        case MemoryError():
            return failed(run_task, "memory", str(error))
    tail = traceback.format_exception(error)
    lines = "".join(tail).splitlines()[-TRACEBACK_LINES:]
    return failed(run_task, "method", f"{type(error).__name__}: {error}".strip(), lines)


def failed(
    run_task: RunTask, kind: ErrorKind, error: str, traceback_lines: list[str] | None = None
) -> RunRecord:
    """The record of a failed run."""
    record = _blank(run_task, kind if kind in ("timeout", "memory") else "failed")
    record.error = " ".join(error.split()) or "no message"
    record.error_kind = kind
    record.traceback = traceback_lines or []
    return record


def skipped(run_task: RunTask) -> RunRecord:
    """The record of a run that is not executed; it is shown, but never stored."""
    record = _blank(run_task, "skipped")
    record.error = run_task.skip_reason
    return record


def _blank(run_task: RunTask, status: Status) -> RunRecord:
    spec = run_task.spec
    return RunRecord(
        run_id=spec.run_id,
        status=status,
        method=spec.method,
        dataset=spec.dataset,
        featurizer=spec.features,
        model=spec.model,
        params=dict(spec.params),
        protocol=msgspec.to_builtins(spec.protocol),
        primary_metric=run_task.metric,
        spec=spec,
        data=_origin(run_task),
        code=run_task.code,
        environment=environment(run_task.threads),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _origin(run_task: RunTask) -> dict[str, Any]:
    path = {"path": run_task.data_path} if run_task.data_path else {}
    templates = {"templates": list(run_task.templates)} if run_task.templates else {}
    return {**path, **({"files": run_task.files} if run_task.files else {}), **templates}


def _check_unchanged(setup: RunSetup, when: str) -> None:
    """UserError if the data are not those of the plan: the record would name the wrong ones."""
    planned = setup.spec.data.fingerprint
    if planned and planned != data_fingerprint(setup.dataset, setup.run_task, setup.plugins):
        hint = "nothing is stored; run the command again"
        raise UserError(f"the data of {setup.spec.dataset} were changed {when}", hint=hint)


def _perform(
    run_task: RunTask, plugins: Registry, timer: RunContext, method: RunMethod
) -> RunRecord:
    setup = RunSetup.open(run_task, plugins, timer, method)
    _check_unchanged(setup, "since the run was planned")
    record = _cross_validated(setup) if setup.spec.protocol.folds else _run(setup)[0]
    record.warnings += score_warnings(SentenceCounts.from_lists(record.counts["test"]))
    _check_unchanged(setup, "during the run")
    return record


def _cross_validated(setup: RunSetup) -> RunRecord:
    """Train on each fold; one record for all."""
    folds = [_run(fold) for fold in setup.folds()]
    record = pooled(_blank(setup.run_task, "ok"), *zip(*folds, strict=True))
    record.data = _describe_folds(setup, record)
    tested = folds_in_order(setup.dataset, setup.spec.protocol)
    own = setup.dataset.sentence_ids.get("train")
    record.sentence_ids = {"test": pack_numbers(tested if own is None else own[tested])}
    return record


def _run(setup: RunSetup) -> tuple[RunRecord, dict[str, Scores]]:
    """Train and score. Also returns the scores on test, by variant of the tagger ("" = itself)."""
    run_task, timer = setup.run_task, setup.timer
    trained = train(setup)
    problem, splits = trained.problem, setup.dataset.splits
    record = _blank(run_task, "ok")
    record.params = jsonable(trained.params)
    record.protocol = {**record.protocol, "dev": setup.drawn.dev_source}
    record.primary_metric = setup.dataset.metric
    record.tuning = [msgspec.to_builtins(trial) for trial in trained.tuning.trials]
    record.tuned = trained.tuning.spent(asked=setup.spec.protocol.tuned)
    record.warnings = list(trained.warnings)
    record.trace = jsonable(trained.run.trace)
    record.warnings += convergence_warnings(record.trace) + guard_warnings(record)
    record.timing = dict(trained.run.timing)
    record.data = {**record.data, **_describe(setup, problem)}
    names = dict.fromkeys(("dev", "test", *splits))  # this order, then any further splits
    held_out = {name: splits[name] for name in names if name in splits and name != "train"}
    ids = setup.dataset.sentence_ids
    record.sentence_ids = {name: pack_numbers(ids[name]) for name in held_out if name in ids}
    scored = {
        split: _score_split(record, setup, trained, split, corpus)
        for split, corpus in held_out.items()
    }
    with timer.phase("audit"):
        found = duplicates(problem.labeled, problem.unlabeled, held_out)
        record.audit = {"duplicates": found, "violations": []}
    if trained.used_dev:
        record.audit["dev_labels"] = "used by the method"
    return record, scored["test"]


def _score_split(
    record: RunRecord, setup: RunSetup, trained: Trained, split: str, corpus: Corpus
) -> dict[str, Scores]:
    tagger, dataset = trained.tagger, setup.dataset
    with setup.timer.phase("predict"):
        codes = predict(tagger, corpus)
    with setup.timer.phase("score"):
        cover = _coverage(corpus, trained.problem, setup)
        other = dataset.alternatives.get(split)
        scores = score_labels(dataset.task, dataset.encoding, corpus, tagger, codes, cover, other)
    record.metrics[split] = jsonable(scores.metrics)
    scored = {"": scores}
    for name, variant in getattr(tagger, "variants", {}).items():
        variant_scores = score_labels(
            dataset.task, dataset.encoding, corpus, variant, predict(variant, corpus), cover, other
        )
        scored[name] = variant_scores
        metric = dataset.metric
        record.metrics[split][f"{metric}_{name}"] = jsonable(variant_scores.metrics[metric])
    record.counts[split] = scores.counts.to_lists()
    record.predictions[split] = Predictions.pack(tagger.labels, codes)
    if split == "test":
        record.predictions_sha256 = predictions_sha256(tagger.labels, codes)
        record.anatomy = scores.anatomy
    return scored


def _coverage(corpus: Corpus, problem: Problem, setup: RunSetup) -> Coverage | None:
    """Which words of the corpus the protocol shows; None for data without words.

    The rest of train counts also for a method that reads no text, so that methods have the same
    parts; external text is not read for this alone.
    """
    if "word" not in corpus.columns:
        return None
    text = problem.unlabeled
    if not text.n_sentences and setup.spec.protocol.text == "rest":
        text = unlabeled_text(setup.dataset, setup.spec.protocol)
    return coverage(corpus, problem.labeled, text if text.n_sentences else None)


def _describe(setup: RunSetup, problem: Problem) -> dict[str, Any]:
    """Sizes, the dataset's own entries, and a hash by which equal test sets are recognized."""
    parts: dict[str, Corpus | Shards] = {
        "labeled": problem.labeled,
        "unlabeled": problem.unlabeled,
    }
    parts |= {name: part for name, part in setup.dataset.splits.items() if name != "train"}
    return {
        "task": setup.dataset.task,
        "labels": len(problem.labels),
        "facts": jsonable(setup.dataset.metadata),
        "sentences": {name: part.n_sentences for name, part in parts.items()},
        "tokens": {name: part.n_tokens for name, part in parts.items()},
        "test_sha256": corpus_hash(setup.dataset.splits["test"]),
    }


def _describe_folds(setup: RunSetup, record: RunRecord) -> dict[str, Any]:
    """As `_describe`, of the sentences of all folds: each is labeled and tested on."""
    tested = folds_in_order(setup.dataset, setup.spec.protocol)
    corpus = setup.dataset.splits["train"].select(tested)
    sizes = {"labeled": corpus, "test": corpus}
    return {
        **record.data,
        "sentences": record.data["sentences"] | {n: c.n_sentences for n, c in sizes.items()},
        "tokens": record.data["tokens"] | {n: c.n_tokens for n, c in sizes.items()},
        "test_sha256": corpus_hash(corpus),
    }
