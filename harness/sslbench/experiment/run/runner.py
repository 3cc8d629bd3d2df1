"""One run in this process: load, draw, train, predict, score, record."""

from __future__ import annotations

import time
import traceback

import msgspec

from sslbench.engine.compilation.compile_time import compile_seconds
from sslbench.engine.errors import UserError
from sslbench.engine.spread import WorkerError
from sslbench.experiment.checks.audit import audit_warnings, duplicates, unseen_labels
from sslbench.experiment.checks.warnings import score_warnings
from sslbench.experiment.context.checkpoints import remove_checkpoints
from sslbench.experiment.context.context import cpu_seconds
from sslbench.experiment.data import Dataset
from sslbench.experiment.inputs.protocol import Sample
from sslbench.experiment.metrics import Scores, SentenceCounts
from sslbench.experiment.planning.task import RunTask, data_fingerprint, load_dataset
from sslbench.experiment.records.record import TRACEBACK_LINES, RunRecord
from sslbench.experiment.run.fitting import MethodEndedError, MethodError, RunMethod, Session
from sslbench.experiment.run.recording import blank, failed, pooled, put_fold_sizes, recorded
from sslbench.experiment.run.scoring import score_split
from sslbench.experiment.run.training import train
from sslbench.plugins import Registry, registry


def execute(
    run_task: RunTask, plugins: Registry | None = None, method: RunMethod | None = None
) -> RunRecord:
    """Load the data, train, predict and score; an exception becomes a record of a failed run.

    method: where it is trained; None = in this process. KeyboardInterrupt and SystemExit of this
    process are raised: they are no failures of the run.
    """
    began, cpu, compiled = time.perf_counter(), cpu_seconds(), compile_seconds().wall
    session = Session.open(run_task, plugins or registry(), method)
    method = session.method
    try:
        record = _perform(session)
    except Exception as error:
        record = _failure(run_task, error)
    compiling = compile_seconds().wall - compiled + method.compile_s
    record.timing = {**record.timing, **session.clock.timing, "compile": compiling}
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


def _perform(session: Session) -> RunRecord:
    spec = session.task.spec
    with session.clock.phase("load"):
        dataset = load_dataset(session.task, session.plugins)
    sample = Sample.of(spec, dataset)
    _check_unchanged(session, dataset, "since the run was planned")
    if spec.protocol.folds:
        record = _cross_validated(session, sample)
    else:
        record, _ = _run(session, sample)
    if spec.data.columns is not None:
        needs_text = not session.plugins.method(spec.method).baseline
        sizes = record.data["sentences"]
        record.warnings += audit_warnings(record.audit, sizes, spec.method, needs_text)
    record.warnings += score_warnings(SentenceCounts.from_lists(record.counts["test"]))
    _check_unchanged(session, dataset, "during the run")
    return record


def _check_unchanged(session: Session, dataset: Dataset, when: str) -> None:
    """UserError if the data are not those of the plan: the record would name the wrong ones."""
    task = session.task
    planned = task.spec.data.fingerprint
    if planned and planned != data_fingerprint(dataset, task, session.plugins):
        hint = "nothing is stored; run the command again"
        raise UserError(f"the data of {task.spec.dataset} were changed {when}", hint=hint)


def _cross_validated(session: Session, sample: Sample) -> RunRecord:
    """Train on each fold; one record for all.

    Trials are not put into the store, where those of one fold would answer for another.
    """
    task = msgspec.structs.replace(session.task, store=None)
    apart = Session(task, session.plugins, session.method, session.clock)
    folds = [_run(apart, fold) for fold in sample.folds()]
    record = pooled(blank(task, "ok"), *zip(*folds, strict=True))
    put_fold_sizes(record, sample)
    return record


def _run(session: Session, sample: Sample) -> tuple[RunRecord, dict[str, Scores]]:
    """Train and score. Also returns the scores on test, by variant of the tagger ("" = itself)."""
    trained, splits = train(session, sample), sample.dataset.splits
    in_order = dict.fromkeys(("dev", "test", *splits))  # then any further splits
    names = [name for name in in_order if name in splits and name != "train"]
    problem, tagger = trained.problem, trained.tagger
    scored = {name: score_split(session.clock, sample, problem, tagger, name) for name in names}
    record = recorded(session.task, trained, scored)
    with session.clock.phase("audit"):
        held_out = {name: splits[name] for name in names}
        counts = duplicates(problem.labeled, problem.unlabeled, held_out)
        record.audit = {"duplicates": counts, "violations": []}
        if session.task.spec.data.columns is not None:
            record.audit["unseen_labels"] = unseen_labels(problem.labeled, splits["test"])
        if "weak_sources" in record.trace:
            record.audit["weak"] = record.trace.pop("weak_sources")
    if trained.fitted.used_dev:
        record.audit["dev_labels"] = "used by the method"
    return record, scored["test"].scores
