"""One run in this process: load, draw, tune, train, predict, score."""

from __future__ import annotations

import hashlib
import os
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, cast

import msgspec
import numpy as np

from sslbench.corpus import Corpus, Shards
from sslbench.corpus.encodings import Scheme
from sslbench.corpus.encodings import Task as TaskKind
from sslbench.errors import UserError
from sslbench.experiment.context import RunContext
from sslbench.experiment.data import DataHome, Dataset
from sslbench.experiment.identity import code_version, corpus_hash, environment
from sslbench.experiment.metrics import Coverage, Scores, coverage, score
from sslbench.experiment.problem import (
    Fit,
    Method,
    Problem,
    labeled_part,
    relabelled,
    without_labels,
)
from sslbench.experiment.protocol import Draw, draw, no_text, unlabeled_text
from sslbench.experiment.record import RunRecord, RunSpec, content_id, jsonable
from sslbench.experiment.store import Store
from sslbench.experiment.tune import SearchAxis, Trial, search
from sslbench.experiment.userdata import load_user_data
from sslbench.plugins import Registry, registry
from sslbench.types import I32, I64

TRACEBACK_LINES = 12


class Task(msgspec.Struct, frozen=True):
    """A run to execute: its identity, and what is no part of it.

    Attributes
    ----------
    data_path: the user's file or folder, when the data set is not a registered one.
    metric: primary metric, for the record of a run that dies before it loads its data.
    store: folder whose tuning trials are shared between runs; None = do not share.
    """

    spec: RunSpec
    metric: str
    data_path: str | None = None
    store: str | None = None
    threads: int = 1
    quiet: bool = True


@dataclass
class _Bench:
    """Everything a run holds: what is resolved once and used by trials and the final training."""

    task: Task
    known: Registry
    dataset: Dataset
    drawn: Draw
    clock: RunContext

    def problem(self, sentences: I64, method: str) -> Problem:
        """The problem with these labelled sentences; nothing else of train keeps its label."""
        spec, dataset = self.task.spec, self.dataset
        labeled = labeled_part(dataset.splits["train"], sentences)
        labels = tuple(labeled.column("label").vocabulary.strings)
        dev = dataset.splits.get("dev")
        model = self.known.model(spec.model).load()
        with self.clock.phase("unlabeled"):
            if getattr(self.known.method(method).load(), "uses_unlabeled", True):
                text = unlabeled_text(dataset, spec.protocol, self.drawn.hidden)
            else:
                text = no_text(dataset)
        return Problem(
            task=dataset.task,
            encoding=dataset.encoding,
            labels=labels,
            labeled=labeled,
            unlabeled=text,
            dev=None if dev is None else relabelled(dev.select(np.arange(dev.n_sentences)), labels),
            featurizer=self.known.featurizer(spec.featurizer).load()(),
            model=model() if isinstance(model, type) else model,
            threads=self.task.threads,
        )

    def dev_corpus(self) -> Corpus:
        """Development sentences with their labels: for the harness's eyes."""
        if self.drawn.dev_source == "own":
            return self.dataset.splits["dev"]
        return self.dataset.splits["train"].select(self.drawn.dev)


def execute(task: Task, known: Registry | None = None) -> RunRecord:
    """Run in this process; whatever goes wrong becomes a record with status "failed".

    KeyboardInterrupt and SystemExit are not failures of the run and pass.
    """
    began, cpu = time.perf_counter(), _cpu_seconds()
    clock = RunContext(task.spec.protocol.seed, threads=task.threads, quiet=task.quiet)
    try:
        record = _perform(task, known or registry(), clock)
    except UserError as error:
        record = failed(task, "input", str(error))
    except Exception as error:
        tail = traceback.format_exc().splitlines()[-TRACEBACK_LINES:]
        record = failed(task, "method", f"{type(error).__name__}: {error}".strip(), tail)
    record.timing = {**record.timing, **clock.timing}
    record.wall_s = time.perf_counter() - began
    record.cpu_s = _cpu_seconds() - cpu
    return record


def _cpu_seconds() -> float:
    """User and system time of this process and of its finished children."""
    return sum(os.times()[:4])


def failed(
    task: Task,
    kind: Literal["input", "method", "process", "timeout"],
    error: str,
    tail: list[str] | None = None,
) -> RunRecord:
    """The record of a run that did not end well."""
    record = _blank(task, "timeout" if kind == "timeout" else "failed")
    record.error = " ".join(error.split()) or "no message"
    record.error_kind = kind
    record.traceback = tail or []
    return record


def _blank(task: Task, status: Literal["ok", "failed", "timeout"]) -> RunRecord:
    spec = task.spec
    return RunRecord(
        run_id=spec.run_id,
        status=status,
        method=spec.method,
        dataset=spec.dataset,
        featurizer=spec.featurizer,
        model=spec.model,
        params=dict(spec.params),
        protocol=msgspec.to_builtins(spec.protocol),
        primary_metric=task.metric,
        spec=spec,
        data={"path": task.data_path} if task.data_path else {},
        environment=environment(task.threads),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _perform(task: Task, known: Registry, clock: RunContext) -> RunRecord:
    spec = task.spec
    with clock.phase("load"):
        dataset = load_dataset(task, known)
    bench = _Bench(task, known, dataset, draw(dataset, spec.protocol), clock)
    with clock.phase("tune"):
        chosen, trials = _tune(bench)
    params = make_params(known.method(spec.method).load(), {**spec.params, **chosen})
    problem = bench.problem(bench.drawn.labeled, spec.method)
    run = RunContext(spec.protocol.seed, threads=task.threads, quiet=task.quiet)
    fit = _train(known, spec.method, problem, params, run, clock)
    record = _blank(task, "ok")
    record.params = jsonable(msgspec.to_builtins(params))
    record.protocol = {**record.protocol, "dev": bench.drawn.dev_source}
    record.primary_metric = dataset.metric
    record.tuning = [msgspec.to_builtins(trial) for trial in trials]
    record.trace = jsonable(run.trace)
    record.timing = dict(run.timing)
    record.data = {**record.data, **_describe(bench, problem)}
    for split in ("dev", "test"):
        if split in dataset.splits:
            _score_split(record, bench, problem, fit, split)
    return record


def load_dataset(task: Task, known: Registry) -> Dataset:
    """Load the registered data set, or the user's files."""
    data = task.spec.data
    if data.columns is not None:
        return load_user_data(Path(task.data_path or ""), data.columns)
    home = DataHome(task.data_path)
    dataset = known.dataset(task.spec.dataset).load()(home, **data.options)
    if not isinstance(dataset, Dataset):
        raise RuntimeError(f"data set {task.spec.dataset} gave a {type(dataset).__name__}")
    return dataset


def make_params(method: type[Method], values: Mapping[str, Any]) -> Any:
    """The method's `Params` from plain values; UserError names a field that does not fit."""
    try:
        return msgspec.convert(dict(values), method.Params, strict=False)
    except msgspec.ValidationError as error:
        raise UserError(
            f"parameter of {method.__name__}: {error}", hint="see sslbench show"
        ) from error


def search_axes(method: type[Method]) -> tuple[SearchAxis, ...]:
    """What the method declares to be tuned: ``Params.search``."""
    return tuple(getattr(method.Params, "search", ()))


def _train(
    known: Registry, name: str, problem: Problem, params: Any, run: RunContext, clock: RunContext
) -> Fit:
    method: Method = known.method(name).load()()
    with clock.phase("fit"):
        fit: Fit = method.fit(problem, params, run)
    return fit


def _predict(fit: Fit, corpus: Corpus) -> I32:
    """Predicted label codes of a corpus whose labels are taken away first."""
    codes = np.asarray(fit.predict(without_labels(corpus)))
    if codes.shape != (corpus.n_tokens,) or codes.dtype.kind not in "iu":
        raise RuntimeError(
            f"predict() gave {codes.dtype}{list(codes.shape)}, expected int32[{corpus.n_tokens}]"
        )
    if codes.size and not 0 <= codes.min() <= codes.max() < len(fit.labels):
        raise RuntimeError(f"predict() gave codes outside 0..{len(fit.labels) - 1}")
    return codes.astype(np.int32)


def _score_split(record: RunRecord, bench: _Bench, problem: Problem, fit: Fit, split: str) -> None:
    corpus = bench.dataset.splits[split]
    with bench.clock.phase("predict"):
        codes = _predict(fit, corpus)
    with bench.clock.phase("score"):
        scores = _scores(bench.dataset, corpus, fit, codes, _coverage(corpus, problem))
    record.metrics[split] = jsonable(scores.metrics)
    record.counts[split] = scores.counts.to_lists()
    if split == "test":
        names = "\0".join(fit.labels).encode()
        digest = hashlib.sha256(names + b"\0\0" + codes.astype("<i4").tobytes())
        record.predictions_sha256 = digest.hexdigest()


def _scores(
    dataset: Dataset, corpus: Corpus, fit: Fit, codes: I32, cover: Coverage | None = None
) -> Scores:
    gold = corpus.column("label")
    return score(
        cast(TaskKind, dataset.task),
        (gold.vocabulary.strings, gold.codes),
        (fit.labels, codes),
        corpus.offsets,
        encoding=cast(Scheme | None, dataset.encoding),
        coverage=cover,
    )


def _coverage(corpus: Corpus, problem: Problem) -> Coverage | None:
    """Which words of the corpus the method could have seen; None for data without words."""
    if "word" not in corpus.columns:
        return None
    text = problem.unlabeled
    return coverage(corpus, problem.labeled, text if text.n_sentences else None)


def _describe(bench: _Bench, problem: Problem) -> dict[str, Any]:
    """Sizes, the data set's facts, and a hash that tells whether two runs share a test set."""
    parts: dict[str, Corpus | Shards] = {
        "labeled": problem.labeled,
        "unlabeled": problem.unlabeled,
    }
    parts |= {name: part for name, part in bench.dataset.splits.items() if name != "train"}
    return {
        "task": bench.dataset.task,
        "labels": len(problem.labels),
        "facts": jsonable(bench.dataset.facts),
        "sentences": {name: part.n_sentences for name, part in parts.items()},
        "tokens": {name: part.n_tokens for name, part in parts.items()},
        "test_sha256": corpus_hash(bench.dataset.splits["test"]),
    }


def _tune(bench: _Bench) -> tuple[dict[str, Any], list[Trial]]:
    """Choose the method's open parameters on development data; ({}, []) without a budget."""
    spec = bench.task.spec
    axes = search_axes(bench.known.method(spec.method).load())
    if not spec.protocol.tune or not axes:
        return {}, []
    store = None if bench.task.store is None else Store(bench.task.store)
    return search(axes, spec.protocol.tune, spec.params, _Trials(bench, store))


class _Trials:
    """Runs trials, or takes them from the store when they have been run before."""

    def __init__(self, bench: _Bench, store: Store | None) -> None:
        self.bench = bench
        self.store = store
        self.dev = bench.dev_corpus()
        self._problems: dict[str, Problem] = {}

    def __call__(self, axis: SearchAxis, value: float, params: Mapping[str, Any]) -> Trial:
        name = axis.via or self.bench.task.spec.method
        fields = self.bench.known.method(name).load().Params.__struct_fields__
        # Another method's trial must not depend on parameters it does not have: then the same
        # trial serves every method that asks for it.
        own = {key: item for key, item in params.items() if key in fields}
        trial_id = content_id({"trial": self._identity(name, own)})
        trial = self.store.load_trial(trial_id) if self.store else None
        if trial is not None:
            # What the run would have cost without the store.
            timing = self.bench.clock.timing
            timing["tune_stored"] = timing.get("tune_stored", 0.0) + trial.seconds
        else:
            trial = self._run(axis, value, name, own)
            if self.store and trial.error is None:  # failures are not worth keeping
                self.store.save_trial(trial_id, trial)
        return trial

    def _identity(self, name: str, params: dict[str, Any]) -> RunSpec:
        spec = self.bench.task.spec
        protocol = msgspec.structs.replace(spec.protocol, tune=0)  # the budget changes no trial
        code = code_version(plugin_targets(self.bench.known, spec, name))
        return msgspec.structs.replace(
            spec, method=name, params=params, protocol=protocol, code=code
        )

    def _run(self, axis: SearchAxis, value: float, name: str, params: dict[str, Any]) -> Trial:
        bench, seed = self.bench, self.bench.task.spec.protocol.seed
        began = time.perf_counter()
        metric, result, error = bench.dataset.metric, None, None
        run = RunContext(seed, threads=bench.task.threads, quiet=bench.task.quiet)
        bench.clock.progress(f"trial: {name} {axis.param}={value:g}")
        if name not in self._problems:
            self._problems[name] = bench.problem(bench.drawn.fit, name)
        try:
            method: Method = bench.known.method(name).load()()
            problem = self._problems[name]
            fit = method.fit(problem, make_params(type(method), params), run)
            codes = _predict(fit, self.dev)
            result = _scores(bench.dataset, self.dev, fit, codes).metrics[metric]
        except UserError:
            raise
        except Exception as problem_found:  # a value at the edge of a grid may not train
            error = f"{type(problem_found).__name__}: {problem_found}"
        seconds = time.perf_counter() - began
        return Trial(axis.param, value, name, params, metric, result, seconds, error)


def plugin_targets(known: Registry, spec: RunSpec, method: str) -> list[str]:
    """The targets whose sources a run with this method depends on."""
    infos = [known.method(method), known.featurizer(spec.featurizer), known.model(spec.model)]
    if spec.data.columns is None:
        infos.append(known.dataset(spec.dataset))
    return [info.target for info in infos]
