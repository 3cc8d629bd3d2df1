"""From a request to the runs of a grid, with every default filled in."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from sslbench.engine.errors import UserError
from sslbench.experiment.data import DataHome
from sslbench.experiment.data.userdata import (
    all_files,
    columns_of,
    dataset_name,
    file_hashes,
    find_files,
    fitting_featurizers,
    load_user_data,
)
from sslbench.experiment.identity.identity import input_hashes
from sslbench.experiment.identity.versions import code_versions
from sslbench.experiment.inputs.protocol import folds, labeled_size, resolve_text
from sslbench.experiment.metrics import SCORER
from sslbench.experiment.planning.description import featurizer_digest, method_description
from sslbench.experiment.planning.settings import (
    check_settings,
    combinations,
    dataset_options,
    learner_params,
    method_params,
    parse_settings,
    without_preset,
)
from sslbench.experiment.planning.space import search_digest
from sslbench.experiment.planning.template_file import (
    file_name,
    is_template_file,
    read_templates,
    with_templates,
)
from sslbench.experiment.records.record import (
    DataSpec,
    GuardSpec,
    ProtocolSpec,
    RunSpec,
    TextSource,
    content_id,
)
from sslbench.experiment.records.store import Store
from sslbench.experiment.run.training import (
    RunTask,
    data_fingerprint,
    load_dataset,
    load_registered,
)
from sslbench.plugins import Registry, registry


@dataclass(frozen=True)
class Request:
    """What a user asks for: every combination of methods, datasets and seeds.

    Attributes
    ----------
    methods, datasets: registered names. Without datasets, `data_path` is the user's own data.
    seeds, labeled, unlabeled, folds: see `ProtocolSpec`.
    text: see `ProtocolSpec`; None = the default of the dataset.
    settings: texts ``key=value`` (a parameter of every method that has it), ``METHOD.key=value``
        or ``DATASET.key=value`` (an option of the dataset).
    preset: of methods' parameters, e.g. "paper"; settings go before it. None = the defaults.
    featurizer: name, or path of a template file; None = the dataset's.
    text_features: registered names of features learned from unlabeled text, on top of the others.
    model: None = the default one.
    tune: tuning trials per method; None = the dataset's default, none with `tune_cpu`.
    tune_cpu: CPU seconds of tuning per method; None = no limit.
    tune_seed: the draw on which all seeds are tuned; None = each on its own.
    data_path: file or folder of the data, instead of the data home.
    columns: names of the columns of the user's own files; "_" skips one.
    threads: per run; None = cores / `jobs`, the number of runs at a time.
    cut: hold out a fifth of train if the user's own data have no test file.
    guard: keep the baseline where held-out labeled sentences do not speak for a method.
    quiet: no progress messages of methods, since several runs share the terminal.
    """

    methods: Sequence[str]
    datasets: Sequence[str] = ()
    seeds: Sequence[int] = (0,)
    labeled: int | str = "all"
    unlabeled: int | str | None = None
    text: TextSource | None = None
    folds: int = 0
    settings: Sequence[str] = ()
    preset: str | None = None
    featurizer: str | None = None
    text_features: Sequence[str] = ()
    model: str | None = None
    tune: int | None = None
    tune_cpu: float | None = None
    tune_seed: int | None = None
    data_path: Path | None = None
    columns: tuple[str, ...] = ("word", "pos", "label")
    threads: int | None = None
    jobs: int = 1
    cut: bool = True
    guard: bool = False
    quiet: bool = True


def plan(
    request: Request,
    *,
    store: Store | None,
    plugins: Registry | None = None,
    notice: Callable[[str], None],
    load: bool = True,
) -> list[RunTask]:
    """The runs of a request, ordered by values of settings, dataset, seed and method.

    Each dataset is loaded, since its content is part of the identity of a run. One that cannot be
    loaded does not stop the others: its runs will fail with the reason. A run whose method does not
    fit the task or the model is to be skipped; see `MethodInfo`.

    store: shares tuning trials between runs; None = they are not kept.
    notice: called with messages for the user.
    load: False = data are not loaded: the runs lack the fingerprint of their data, and
        the source of the unlabeled text if it is not given.
    """
    if request.folds and request.tune_seed is not None:
        hint = "leave out --tune-seed: each fold is tuned on its own sentences"
        raise UserError("--folds with --tune-seed", hint=hint)
    plugins, known = plugins or registry(), dict[str, _Loaded]()
    for name in request.methods:
        plugins.method(name)
    if request.preset is not None:
        for name in without_preset(request.preset, plugins, request.methods):
            notice(f"{name}: no preset {request.preset!r}, its defaults are used")
    tasks: dict[str, RunTask] = {}
    # What plugins print is no result.
    with contextlib.redirect_stdout(sys.stderr):
        for settings in combinations(request.settings):
            planner = _Planner(replace(request, settings=settings), plugins, store, known, load)
            for task in planner.tasks(notice):
                tasks.setdefault(task.spec.run_id, task)  # the values may be of another method
    return list(tasks.values())


@dataclass(frozen=True)
class _PlannedDataset:
    """What the plan needs of a dataset: name, task, metric, features, its identity and files.

    templates: of a featurizer that is a file of the user; () for a registered one.
    """

    name: str
    task: str
    metric: str
    featurizer: str
    templates: tuple[str, ...]
    tune: int
    data: DataSpec
    files: dict[str, str]


class _Loaded(NamedTuple):
    """Of loaded data: their fingerprint, and where unlabeled text comes from.

    error: why they could not be loaded, if the user can mend it; the fingerprint is "" then.
    """

    fingerprint: str
    text: TextSource
    error: str | None = None


class _Planner:
    """Makes the tasks of a request; what several tasks share is made once.

    known: of data, for the planners of other values of the settings.
    """

    def __init__(
        self,
        request: Request,
        plugins: Registry,
        store: Store | None,
        known: dict[str, _Loaded],
        load: bool,
    ) -> None:
        self.request = request
        self.plugins = plugins
        self.model = request.model or _default_model(plugins)
        self.threads = request.threads or max(1, (os.cpu_count() or 1) // request.jobs)
        self.data_path = None if request.data_path is None else str(request.data_path.resolve())
        self.store = None if store is None else str(store.folder.resolve())
        self._known = known
        self._load = load
        self._featurizers: dict[tuple[str, tuple[str, ...]], str] = {}
        self._described: dict[tuple[str, bool], tuple[dict[str, Any], str, dict[str, str]]] = {}

    def tasks(self, notice: Callable[[str], None]) -> list[RunTask]:
        """One per dataset, seed and method; UserError for what does not fit."""
        request = self.request
        datasets = [self.registered(name) for name in request.datasets]
        if not datasets:
            # What is noticed on files is the same for all values of the settings.
            datasets = [self.users_own((lambda text: None) if self._known else notice)]
        others = [*request.datasets, *request.text_features]
        check_settings(request.settings, self.plugins, request.methods, others)
        cells = product(datasets, request.seeds, request.methods)
        return [self.task(dataset, seed, method) for dataset, seed, method in cells]

    def registered(self, name: str) -> _PlannedDataset:
        """A registered dataset; UserError for a wrong option."""
        request, info = self.request, self.plugins.dataset(name)
        values = {s.key: s.value for s in parse_settings(request.settings) if s.owner == name}
        files = {file.path: file.sha256 for file in info.files}
        if request.data_path is not None and all(file.extra for file in info.files):
            files = file_hashes(request.data_path, all_files(request.data_path))
        data = DataSpec(options=dataset_options(info, values))

        def columns() -> tuple[str, ...]:
            home = DataHome(self.data_path, dataset=name)
            dataset = load_registered(info, home, data.options, request.seeds[0])
            return tuple(dataset.splits["train"].columns)

        features = self._features(request.featurizer or info.featurizer, columns)
        return _PlannedDataset(name, info.task, info.metric, *features, info.tune, data, files)

    def users_own(self, notice: Callable[[str], None]) -> _PlannedDataset:
        """The user's own data; UserError, with file and line, if they cannot be read."""
        request, path = self.request, self.request.data_path
        if path is None:
            raise UserError("no data", hint="give --dataset NAME or --data PATH")
        # Loaded once here, so that a bad line is reported before any run starts.
        cut = request.cut and not request.folds
        columns = columns_of(path, request.columns)
        dataset = load_user_data(path, columns, notice, cut=cut)
        featurizer = (
            request.featurizer
            or fitting_featurizers(self.plugins.featurizers, dataset.task, columns)[0]
        )
        scheme = str(dataset.metadata["source_scheme"])
        labels = "plain tags" if scheme == "none" else f"{scheme} chunk tags"
        notice(f"{path}: the labels are {labels}; task {dataset.task}, featurizer {featurizer}")
        files = file_hashes(path, find_files(path).values())
        data = DataSpec(columns=columns)
        name = dataset_name(path)
        features = self._features(featurizer, lambda: columns)
        return _PlannedDataset(name, dataset.task, dataset.metric, *features, 0, data, files)

    def _features(
        self, featurizer: str, columns: Callable[[], tuple[str, ...]]
    ) -> tuple[str, tuple[str, ...]]:
        """Name and templates, () of a registered featurizer. columns: gives those of the data."""
        if not is_template_file(featurizer, self.plugins):
            return featurizer, ()
        return file_name(featurizer), read_templates(featurizer, columns())

    def task(self, dataset: _PlannedDataset, seed: int, method: str) -> RunTask:
        """One run. UserError for a parameter that does not fit."""
        spec, info = self._spec(dataset, seed, method), self.plugins.method(method)
        misfit = info.misfit(dataset.task, self.model)
        task = RunTask(
            spec=spec,
            templates=dataset.templates,
            metric=dataset.metric,
            data_path=self.data_path,
            store=self.store,
            threads=self.threads,
            quiet=self.request.quiet,
            skip_reason=misfit or info.lacks(spec.params, spec.protocol.labeled),
            cut=self.request.cut,
            files=dataset.files,
        )
        if task.skip_reason is not None or not self._load:
            return task
        found, text, error = self._loaded(task)
        if error is not None:
            return msgspec.structs.replace(task, load_error=error)
        data = msgspec.structs.replace(task.spec.data, fingerprint=found)
        if self._draws(task.spec):
            first = self._loaded(_with_protocol(task, seed=0))[0]
            data = msgspec.structs.replace(data, first_draw=first)
        task = _with_protocol(task, text=text)
        spec = msgspec.structs.replace(task.spec, data=data)
        return msgspec.structs.replace(task, spec=spec, code=code_versions(spec, self.plugins))

    def _spec(self, dataset: _PlannedDataset, seed: int, method: str) -> RunSpec:
        request = self.request
        protocol = ProtocolSpec(
            labeled=request.labeled,
            unlabeled=request.unlabeled,
            seed=seed,
            folds=request.folds,
            tune=self._tune(dataset),
            tune_cpu=request.tune_cpu,
        )
        if not self._load and request.text is not None:
            protocol = msgspec.structs.replace(protocol, text=request.text)
        if request.tune_seed is not None and protocol.tuned:
            protocol = msgspec.structs.replace(protocol, tune_seed=request.tune_seed)
        params, search, inputs = self._params(method, protocol.tuned)
        learned, more = self._learned
        return RunSpec(
            method=method,
            dataset=dataset.name,
            featurizer=dataset.featurizer,
            model=self.model,
            params=params,
            protocol=protocol,
            data=dataset.data,
            featurizer_digest=self._featurizer_digest(dataset),
            search=search,
            scorer=SCORER,
            guard=self._guard(method),
            text_features=learned or msgspec.UNSET,
            inputs={**inputs, **more} or msgspec.UNSET,
        )

    def _guard(self, method: str) -> GuardSpec | msgspec.UnsetType:
        """With the first baseline; unset for a baseline itself."""
        baselines = [name for name, info in self.plugins.methods.items() if info.baseline]
        if not self.request.guard or not baselines or method in baselines:
            return msgspec.UNSET
        return GuardSpec(baselines[0], self._params(baselines[0], tuned=False)[0])

    def _tune(self, dataset: _PlannedDataset) -> int:
        if self.request.tune is not None:
            return self.request.tune
        default = self.request.labeled == "all" and self.request.tune_cpu is None
        return dataset.tune if default else 0

    @cached_property
    def _learned(self) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
        """All parameters of the features that are learned from text, and hashes of their files."""
        names, found = sorted(set(self.request.text_features)), {}
        for name in names:
            found[name] = learner_params(self.request.settings, self.plugins, name)
        inputs = [input_hashes(each.params, each.files) for each in found.values()]
        files = {path: digest for part in inputs for path, digest in part.items()}
        return {name: each.params for name, each in found.items()}, files

    def _params(self, method: str, tuned: bool) -> tuple[dict[str, Any], str, dict[str, str]]:
        """All parameters but those that are tuned, hashes of the search space and of files."""
        key = method, tuned
        if key not in self._described:
            request = self.request
            given = method_params(request.settings, self.plugins, method, request.preset)
            found = method_description(self.plugins, method, given)
            axes = found.axes if tuned else ()
            searched = {axis.param for axis in axes}
            params = {name: v for name, v in found.params.items() if name not in searched}
            inputs = input_hashes(found.params, found.files)
            self._described[key] = params, search_digest(axes), inputs
        return self._described[key]

    def _featurizer_digest(self, dataset: _PlannedDataset) -> str:
        name, templates = key = dataset.featurizer, dataset.templates
        if key not in self._featurizers:
            plugins = with_templates(self.plugins, name, templates)
            self._featurizers[key] = featurizer_digest(plugins, name)
        return self._featurizers[key]

    def _loaded(self, task: RunTask) -> _Loaded:
        """What is known of the data. UserError for text or folds that there cannot be."""
        request, protocol = self.request, task.spec.protocol
        seed = protocol.seed if self._draws(task.spec) else 0
        shared = msgspec.structs.replace(protocol.without_tuning(), seed=seed)
        key = content_id([task.spec.dataset, task.spec.data, shared])
        if key in self._known:
            return self._known[key]
        try:
            dataset = load_dataset(task, self.plugins)
        except UserError as error:
            self._known[key] = _Loaded("", request.text or "rest", str(error))
            return self._known[key]
        except Exception:  # the process of the run will meet it again, and keep the traceback
            self._known[key] = _Loaded("", request.text or "rest")
            return self._known[key]
        if request.folds:
            n_train = dataset.splits["train"].n_sentences
            folds(labeled_size(request.labeled, n_train), request.folds)
        text = resolve_text(dataset, request.labeled, request.unlabeled, request.text)
        found = data_fingerprint(dataset, _with_protocol(task, text=text), self.plugins)
        self._known[key] = _Loaded(found, text)
        return self._known[key]

    def _draws(self, spec: RunSpec) -> bool:
        return spec.data.columns is None and self.plugins.dataset(spec.dataset).draws


def _with_protocol(task: RunTask, **changes: Any) -> RunTask:
    protocol = msgspec.structs.replace(task.spec.protocol, **changes)
    spec = msgspec.structs.replace(task.spec, protocol=protocol)
    return msgspec.structs.replace(task, spec=spec)


def _default_model(plugins: Registry) -> str:
    if not plugins.models:
        raise UserError("no plugin registers a model", hint="see sslbench list models")
    return next(iter(plugins.models))  # sslbench's own distribution is loaded first
