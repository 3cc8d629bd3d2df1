"""From a request to the runs of a grid, with every default filled in."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import msgspec

from sslbench.errors import UserError
from sslbench.experiment.data.userdata import (
    all_files,
    dataset_name,
    file_hashes,
    find_files,
    fitting_featurizer,
    load_user_data,
)
from sslbench.experiment.identity import code_version
from sslbench.experiment.record import DataSpec, ProtocolSpec, RunSpec
from sslbench.experiment.settings import (
    check_settings,
    dataset_options,
    method_params,
    parse_settings,
)
from sslbench.experiment.store import Store
from sslbench.experiment.training import RunTask, plugin_targets
from sslbench.plugins import Registry, registry


@dataclass(frozen=True)
class Request:
    """What a user asks for: every combination of methods, datasets and seeds.

    Attributes
    ----------
    methods, datasets: registered names. Without datasets, `data_path` is the user's own data.
    seeds, labeled, unlabeled: see `ProtocolSpec`.
    settings: texts ``key=value`` (a parameter of every method that has it), ``METHOD.key=value``
        or ``DATASET.key=value`` (an option of the dataset).
    featurizer, model: None = the dataset's featurizer, the default model.
    tune: tuning trials per method; None = the dataset's default, none with `tune_cpu`.
    tune_cpu: CPU seconds of tuning per method; None = no limit.
    data_path: file or folder of the data, instead of the data home.
    columns: names of the columns of the user's own files; "_" skips one.
    threads: per run; None = cores / `jobs`, the number of runs at a time.
    cut: hold out a fifth of train if the user's own data have no test file.
    quiet: no progress messages of methods, since several runs share the terminal.
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
    tune_cpu: float | None = None
    data_path: Path | None = None
    columns: tuple[str, ...] = ("word", "pos", "label")
    threads: int | None = None
    jobs: int = 1
    cut: bool = True
    quiet: bool = True


def plan(
    request: Request,
    *,
    store: Store | None,
    plugins: Registry | None = None,
    notice: Callable[[str], None],
) -> list[RunTask]:
    """The runs of a request, ordered by dataset, then seed, then method.

    A run whose method does not fit the task or the model is to be skipped; see `MethodInfo`.

    store: shares tuning trials between runs; None = they are not kept.
    notice: called with messages for the user.
    """
    plugins = plugins or registry()
    for name in request.methods:
        plugins.method(name)
    datasets = [_registered(request, plugins, name) for name in request.datasets]
    if not datasets:
        datasets = [_users_own(request, plugins, notice)]
    check_settings(request.settings, plugins, request.methods, request.datasets)
    model = request.model or _default_model(plugins)
    threads = request.threads or max(1, (os.cpu_count() or 1) // request.jobs)
    return [
        RunTask(
            spec=_spec(request, plugins, dataset, seed, method, model),
            metric=dataset.metric,
            data_path=None if request.data_path is None else str(request.data_path.resolve()),
            store=None if store is None else str(store.folder.resolve()),
            threads=threads,
            quiet=request.quiet,
            skip_reason=plugins.method(method).misfit(dataset.task, model),
            cut=request.cut,
        )
        for dataset, seed, method in product(datasets, request.seeds, request.methods)
    ]


@dataclass(frozen=True)
class _PlannedDataset:
    """What the plan needs of a dataset: name, task, metric, defaults, and its identity."""

    name: str
    task: str
    metric: str
    featurizer: str
    tune: int
    data: DataSpec


def _registered(request: Request, plugins: Registry, name: str) -> _PlannedDataset:
    info = plugins.dataset(name)
    values = {s.key: s.value for s in parse_settings(request.settings) if s.owner == name}
    hashes = {file.path: file.sha256 for file in info.files}
    if request.data_path is not None and not info.files:
        # A licensed corpus in a folder of the user's: the bytes of its files identify it.
        hashes = file_hashes(request.data_path, all_files(request.data_path))
    data = DataSpec(files=hashes, options=dataset_options(info, values))
    return _PlannedDataset(name, info.task, info.metric, info.featurizer, info.tune, data)


def _users_own(
    request: Request, plugins: Registry, notice: Callable[[str], None]
) -> _PlannedDataset:
    path = request.data_path
    if path is None:
        raise UserError("no data", hint="give --dataset NAME or --data PATH")
    # Loaded once here, so that a bad line is reported before any run starts.
    dataset = load_user_data(path, request.columns, notice, cut=request.cut)
    featurizer = request.featurizer or fitting_featurizer(
        plugins.featurizers, dataset.task, request.columns
    )
    scheme = str(dataset.metadata["source_scheme"])
    labels = "plain tags" if scheme == "none" else f"{scheme} chunk tags"
    notice(f"{path}: the labels are {labels}; task {dataset.task}, featurizer {featurizer}")
    hashes = file_hashes(path, find_files(path).values())
    data = DataSpec(files=hashes, columns=request.columns)
    name = dataset_name(path)
    return _PlannedDataset(name, dataset.task, dataset.metric, featurizer, 0, data)


def _spec(
    request: Request,
    plugins: Registry,
    dataset: _PlannedDataset,
    seed: int,
    method: str,
    model: str,
) -> RunSpec:
    default_tune = dataset.tune if request.labeled == "all" and request.tune_cpu is None else 0
    spec = RunSpec(
        method=method,
        dataset=dataset.name,
        featurizer=request.featurizer or dataset.featurizer,
        model=model,
        params=method_params(request.settings, plugins, method),
        protocol=ProtocolSpec(
            labeled=request.labeled,
            unlabeled=request.unlabeled,
            seed=seed,
            tune=default_tune if request.tune is None else request.tune,
            tune_cpu=request.tune_cpu,
        ),
        data=dataset.data,
    )
    targets = plugin_targets(plugins, spec, method)
    return msgspec.structs.replace(spec, code=code_version(targets))


def _default_model(plugins: Registry) -> str:
    if not plugins.models:
        raise UserError("no plugin registers a model", hint="see sslbench list models")
    return next(iter(plugins.models))  # sslbench's own distribution is loaded first
