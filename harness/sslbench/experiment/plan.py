"""From a command to runs: the grid, defaults, and which runs are still to be made."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Literal

import msgspec

from sslbench.errors import UserError
from sslbench.experiment.data.userdata import (
    dataset_name,
    fitting_featurizer,
    hash_files,
    load_user_data,
)
from sslbench.experiment.execute.cluster import run_on_dask
from sslbench.experiment.execute.pool import OnStart, run_all
from sslbench.experiment.identity import code_version
from sslbench.experiment.record import DataSpec, ProtocolSpec, RunRecord, RunSpec
from sslbench.experiment.store import Store
from sslbench.experiment.training import Task, make_params, plugin_targets
from sslbench.plugins import Registry, registry, suggestion
from sslbench.registrations import load_target


@dataclass(frozen=True)
class Request:
    """What a user asks for: every combination of methods, data sets and seeds.

    `settings` are ``key=value`` texts: a method parameter, ``METHOD.key`` for one method of
    several, or ``DATASET.key`` for an option of a data set. `tune` None = the data set's default.
    `cut`: a user's data without a test file give up a fifth of train for it.
    """

    methods: Sequence[str]
    datasets: Sequence[str] = ()
    seeds: Sequence[int] = (0,)
    labeled: int | str = "all"
    unlabeled: int | None = None
    settings: Sequence[str] = ()
    featurizer: str | None = None
    model: str | None = None
    tune: int | None = None
    data_path: Path | None = None
    columns: tuple[str, ...] = ("word", "pos", "label")
    threads: int | None = None
    jobs: int = 1
    cut: bool = True
    quiet: bool = True  # several runs share the terminal: only a lone one may talk


@dataclass
class Outcome:
    """What came of a grid: records in the order of the grid, and how many were there before."""

    records: list[RunRecord] = field(default_factory=list)
    skipped: int = 0
    skipped_failed: int = 0

    @property
    def failed(self) -> list[RunRecord]:
        """The runs that did not end well."""
        return [record for record in self.records if record.status != "ok"]

    @property
    def exit_status(self) -> Literal[0, 1, 2]:
        """0 = all well; 2 = bad input is all that went wrong; 1 = some run failed."""
        if not self.failed:
            return 0
        return 2 if all(record.error_kind == "input" for record in self.failed) else 1


def plan(
    request: Request,
    *,
    store: Store | None,
    known: Registry | None = None,
    notice: Callable[[str], None],
) -> list[Task]:
    """The runs of a request, in order: data set by data set, seed by seed, method by method.

    store: keeps tuning trials; None = they are not kept.
    """
    known = known or registry()
    for name in request.methods:
        known.method(name)
    sources = [_registered(request, known, name) for name in request.datasets]
    if not sources:
        sources = [_users_own(request, known, notice)]
    _check_settings(request, known)
    cores = os.cpu_count() or 1
    threads = request.threads or max(1, cores // request.jobs)
    return [
        Task(
            spec=_spec(request, known, source, seed, method),
            metric=source.metric,
            data_path=None if request.data_path is None else str(request.data_path.resolve()),
            store=None if store is None else str(store.folder.resolve()),
            threads=threads,
            quiet=request.quiet,
            cut=request.cut,
        )
        for source, seed, method in product(sources, request.seeds, request.methods)
    ]


def carry_out(
    tasks: Sequence[Task],
    store: Store,
    *,
    jobs: int = 1,
    timeout: float | None = None,
    retry: bool = False,
    executor: str = "local",
    on_found: Callable[[RunRecord], None] = lambda record: None,
    on_start: OnStart = lambda task: None,
    on_end: Callable[[RunRecord], None] = lambda record: None,
) -> Outcome:
    """Run what is not in the store yet, keep every record as it comes, and gather the grid.

    Bad input (a missing file, a wrong parameter) leaves no record: mending it and giving the
    same command again runs it. Other failures stay until `retry`.
    """
    outcome = Outcome()
    done: dict[str, RunRecord] = {}
    todo: dict[str, Task] = {}
    for task in tasks:
        record = store.load(task.spec.run_id)
        if record is None or (retry and record.status != "ok"):
            todo.setdefault(task.spec.run_id, task)
            continue
        done[task.spec.run_id] = record
        on_found(record)
        outcome.skipped += 1
        outcome.skipped_failed += record.status != "ok"
    for record in _results(list(todo.values()), jobs, timeout, executor, on_start):
        done[record.run_id] = record
        if record.error_kind != "input":
            store.save(record)
        on_end(record)
    outcome.records = [done[run_id] for run_id in dict.fromkeys(t.spec.run_id for t in tasks)]
    return outcome


def _results(
    tasks: Sequence[Task], jobs: int, timeout: float | None, executor: str, on_start: OnStart
) -> Iterator[RunRecord]:
    kind, _, address = executor.partition(":")
    if kind == "local" and not address:
        return run_all(tasks, jobs=jobs, timeout=timeout, on_start=on_start)
    if kind == "dask":
        return run_on_dask(tasks, address=address or None, on_start=on_start)
    raise UserError(f"--executor {executor!r}", hint="local, dask, or dask:ADDRESS")


@dataclass(frozen=True)
class _Source:
    """A data set as far as it is known without loading it."""

    name: str
    metric: str
    featurizer: str
    tune: int
    data: DataSpec


def _registered(request: Request, known: Registry, name: str) -> _Source:
    info = known.dataset(name)
    options = _options(request, known, name)
    files = {file.path: file.sha256 for file in info.files}
    if request.data_path is not None and not info.files:
        # A licensed corpus, read from where the user has it: its bytes are its identity.
        files = hash_tree(request.data_path)
    return _Source(
        name, info.metric, info.featurizer, info.tune, DataSpec(files=files, options=options)
    )


def _users_own(request: Request, known: Registry, notice: Callable[[str], None]) -> _Source:
    path = request.data_path
    if path is None:
        raise UserError("no data", hint="give --dataset NAME or --data PATH")
    # Read here once, so that a bad line is reported before any run starts.
    dataset = load_user_data(path, request.columns, notice, cut=request.cut)
    featurizer = request.featurizer or fitting_featurizer(
        known.featurizers, dataset.task, request.columns
    )
    scheme = str(dataset.metadata["source_scheme"])
    labels = "plain tags" if scheme == "none" else f"{scheme} chunk tags"
    notice(f"{path}: the labels are {labels}; task {dataset.task}, featurizer {featurizer}")
    data = DataSpec(files=hash_files(path), columns=request.columns)
    return _Source(dataset_name(path), dataset.metric, featurizer, 0, data)


def hash_tree(path: Path) -> dict[str, str]:
    """Sha256 of every file under a path, by relative name."""
    if not path.exists():
        raise UserError("no such file or folder", file=path, hint="check --data")
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    root = path.parent if path.is_file() else path
    digests = {}
    for file in files:
        with file.open("rb") as stream:
            name = file.relative_to(root).as_posix()
            digests[name] = hashlib.file_digest(stream, "sha256").hexdigest()
    return digests


def _spec(request: Request, known: Registry, source: _Source, seed: int, method: str) -> RunSpec:
    default = source.tune if request.labeled == "all" else 0
    spec = RunSpec(
        method=method,
        dataset=source.name,
        featurizer=request.featurizer or source.featurizer,
        model=request.model or _default_model(known),
        params=_params(request, known, method),
        protocol=ProtocolSpec(
            labeled=request.labeled,
            unlabeled=request.unlabeled,
            seed=seed,
            tune=default if request.tune is None else request.tune,
        ),
        data=source.data,
    )
    targets = plugin_targets(known, spec, method)
    return msgspec.structs.replace(spec, code=code_version(targets))


def _default_model(known: Registry) -> str:
    if not known.models:
        raise UserError("no plugin registers a model", hint="see sslbench list models")
    return next(iter(known.models))  # sslbench's own distribution is loaded first


def _pairs(settings: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """(owner or "", key, value text) of each ``[OWNER.]key=value``."""
    for text in settings:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UserError(f"--set {text!r}", hint="write --set key=value")
        owner, _, key = name.rpartition(".")
        yield owner, key, value


def _params(request: Request, known: Registry, method: str) -> dict[str, Any]:
    """The parameters that the user set for this method, as plain typed values."""
    given = {key: value for owner, key, value in _pairs(request.settings) if owner in ("", method)}
    if not given:
        return {}  # do not import the method (and numba) just to learn that
    kind = known.method(method).load()
    fields = kind.Params.__struct_fields__
    wanted = {key: _plain(value) for key, value in given.items() if key in fields}
    params = msgspec.to_builtins(make_params(kind, wanted))
    return {key: params[key] for key in wanted}


def _options(request: Request, known: Registry, dataset: str) -> dict[str, Any]:
    given = {key: value for owner, key, value in _pairs(request.settings) if owner == dataset}
    if not given:
        return {}
    target = known.dataset(dataset).options
    if not target:
        raise UserError(f"data set {dataset} has no options", hint="leave out --set")
    kind = load_target(target, f"options of {dataset}")
    values = {key: _plain(value) for key, value in given.items()}
    try:
        options = msgspec.to_builtins(msgspec.convert(values, kind, strict=False))
    except msgspec.ValidationError as error:
        raise UserError(f"option of {dataset}: {error}", hint=f"sslbench show {dataset}") from error
    return {key: options[key] for key in given}


def _plain(text: str) -> Any:
    """Lists and mappings are written as JSON; the rest is text that msgspec converts by type."""
    if text[:1] in ("[", "{"):
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError:
            return text
    return text


def _check_settings(request: Request, known: Registry) -> None:
    """Every setting must mean something to some method or data set of the request."""
    for owner, key, _ in _pairs(request.settings):
        if owner in request.datasets:
            continue
        if owner and owner not in request.methods:
            raise UserError(
                f"--set {owner}.{key}: {owner} takes no part",
                hint=suggestion(owner, [*request.methods, *request.datasets]),
            )
        takers = [owner] if owner else request.methods
        fields = {f for name in takers for f in known.method(name).load().Params.__struct_fields__}
        if key not in fields:
            raise UserError(
                f"{' and '.join(takers)}: no parameter {key!r}", hint=suggestion(key, fields)
            )
