"""From a request to the runs of a grid, with every default filled in."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import msgspec

from sslbench.engine.errors import UserError
from sslbench.engine.lazy import lazy
from sslbench.experiment.data.template_file import with_templates
from sslbench.experiment.identity import code_versions, input_hashes
from sslbench.experiment.metrics import SCORER
from sslbench.experiment.planning.description import (
    MethodDescription,
    featurizer_digest,
    has_task_defaults,
    learner_description,
    method_description,
    model_description,
    source_description,
)
from sslbench.experiment.planning.planned_data import (
    LoadedData,
    PlannedDataset,
    planned_datasets,
    reading_of,
)
from sslbench.experiment.planning.settings import (
    PLAIN,
    Describe,
    check_settings,
    combinations,
    method_params,
    owned_params,
    preset_lines,
)
from sslbench.experiment.planning.space import search_digest
from sslbench.experiment.planning.task import RunTask
from sslbench.experiment.records.record import GuardSpec, ProtocolSpec, RunSpec
from sslbench.experiment.records.store import Store
from sslbench.experiment.request.request import RunRequest
from sslbench.plugins import Registry, registry


def plan(
    request: RunRequest,
    *,
    store: Store | None,
    plugins: Registry | None = None,
    notice: Callable[[str], None],
    load: bool = True,
    make_text: bool = True,
    cut: bool = True,
) -> list[RunTask]:
    """The runs of a request, ordered by values of settings, dataset, seed and method.

    Each dataset is loaded, since its content is part of the identity of a run. One that cannot be
    loaded does not stop the others: its runs will fail with the reason. A run whose method does not
    fit the task or the model is to be skipped; see `MethodInfo`.

    store: shares tuning trials between runs; None = they are not stored.
    notice: called with messages for the user.
    load: False = data are not loaded: the runs lack the fingerprint of their data, and
        the source of the unlabeled text if it is not given.
    make_text: False = external text is not made, which may take a training: a run lacks the
        fingerprint of its data unless that of the text is in the cache.
    cut: see `RunTask`.
    """
    if request.folds and request.tune_seed is not None:
        hint = "leave out --tune-seed: each fold is tuned on its own sentences"
        raise UserError("--folds with --tune-seed", hint=hint)
    plugins = plugins or registry()
    request = replace(request, method=_methods(request, plugins))
    if request.preset is not None:
        for line in preset_lines(request.preset, plugins, request.methods):
            notice(line)
    loaded = LoadedData(request, plugins, make_text) if load else None
    tasks: dict[str, RunTask] = {}
    # What plugins print is no result.
    with contextlib.redirect_stdout(sys.stderr):
        for settings in combinations(request.settings):
            one = replace(request, params=settings)
            datasets = planned_datasets(one, plugins, cut, notice)
            for task in _Planner(one, plugins, store, loaded, cut).tasks(datasets):
                tasks.setdefault(task.spec.run_id, task)  # the values may be of another method
            notice = _ignore  # what is recognized in files is the same for all values
    return list(tasks.values())


def _methods(request: RunRequest, plugins: Registry) -> list[str]:
    """The methods of a request by name; UserError for an unknown one."""
    names: list[str] = []
    for name in request.methods:
        names += plugins.methods if name == "all" else [plugins.method(name).name]
    return names


def _ignore(text: str) -> None:
    pass


class _Values(NamedTuple):
    """All parameters but those that are tuned, and what else says how a method runs.

    first: see `RunSpec`.  search: hash of the search space.  inputs: hashes of files.
    """

    params: dict[str, Any]
    first: dict[str, Any]
    search: str
    inputs: dict[str, str]


@dataclass
class _Planner:
    """Makes the tasks of a request with one value per setting; what tasks share is made once.

    loaded: completes tasks by the content of their data; None = data are not loaded.
    """

    request: RunRequest
    plugins: Registry
    store: Store | None
    loaded: LoadedData | None
    cut: bool

    def __post_init__(self) -> None:
        self._params = cache(self._params_of)
        self._digest = cache(self._digest_of)

    @lazy
    def model(self) -> str:
        """The model of the request, or the default."""
        if self.request.model is None and not self.plugins.models:
            raise UserError("no plugin registers a model", hint="see sslbench list models")
        # sslbench's own distribution is loaded first
        return self.request.model or next(iter(self.plugins.models))

    @lazy
    def _by_task(self) -> bool:
        """Whether defaults depend on the task: they were chosen with log-linear models."""
        return self.request.preset != PLAIN and has_task_defaults(self.plugins.model(self.model))

    def tasks(self, datasets: list[PlannedDataset]) -> list[RunTask]:
        """One per dataset, seed and method; UserError for what does not fit."""
        request = self.request
        others = [*request.datasets, *request.text_features, *request.weak_sources, self.model]
        check_settings(request.settings, self.plugins, request.methods, others)
        cells = product(datasets, request.seeds, request.methods)
        return [self.task(dataset, seed, method) for dataset, seed, method in cells]

    def task(self, dataset: PlannedDataset, seed: int, method: str) -> RunTask:
        """One run. UserError for a parameter that does not fit."""
        request, info = self.request, self.plugins.method(method)
        spec = self._spec(dataset, seed, method)
        model = self.plugins.model(self.model)
        misfit = info.misfit(dataset.task, model)
        if misfit is None and spec.learned and "features" not in model.provides:
            misfit = f"with features learned from text, which {model.name} does not read"
        path = request.data_path
        task = RunTask(
            spec=spec,
            templates=dataset.templates,
            metric=dataset.metric,
            data_path=None if path is None else str(path.resolve()),
            store=None if self.store is None else str(self.store.folder.resolve()),
            threads=request.threads_per_run,
            skip_reason=misfit
            or info.lacks(
                spec.params, spec.protocol.labeled, bool(dataset.weak or request.weak_sources)
            ),
            cut=self.cut,
            files=dataset.files,
            reading=reading_of(request),
        )
        if task.skip_reason is not None or self.loaded is None:
            return task
        task = self.loaded.complete(task)
        if task.load_error is not None:
            return task
        return msgspec.structs.replace(task, code=code_versions(task.spec, self.plugins))

    def _spec(self, dataset: PlannedDataset, seed: int, method: str) -> RunSpec:
        protocol = self._protocol(dataset, seed)
        params, first, search, inputs = self._values(method, protocol.tuned, dataset)
        learned, more = self._learned
        weak, of_weak = self._weak if self.plugins.method(method).weak else ({}, {})
        model = self._of_model
        searched = {axis.param for axis in model.axes} if protocol.tuned else set()
        own = {k: v for k, v in model.params.items() if f"{self.model}.{k}" not in searched}
        files = self._hashes(model) | of_weak
        return RunSpec(
            method=method,
            dataset=dataset.name,
            featurizer=dataset.featurizer,
            model=self.model,
            params=params,
            protocol=protocol,
            data=dataset.data,
            featurizer_digest=self._digest(dataset.featurizer, dataset.templates),
            search=search,
            scorer=SCORER,
            guard=self._guard(method, dataset),
            first=first or msgspec.UNSET,
            model_params=own or msgspec.UNSET,
            text_features=learned or msgspec.UNSET,
            weak=weak or msgspec.UNSET,
            inputs={**inputs, **more, **files} or msgspec.UNSET,
        )

    def _protocol(self, dataset: PlannedDataset, seed: int) -> ProtocolSpec:
        request = self.request
        tune = request.tune
        if tune is None:
            default = request.labeled == "all" and request.tune_cpu is None
            tune = dataset.tune if default else 0
        protocol = ProtocolSpec(
            labeled=request.labeled,
            unlabeled=request.unlabeled,
            seed=seed,
            folds=request.folds,
            tune=tune,
            tune_cpu=request.tune_cpu,
        )
        if request.labeled_by is not None:
            if request.labeled in ("all", 0, 1):
                what = f"--labeled-by {request.labeled_by} with {request.labeled} labeled"
                raise UserError(what, hint="give --labeled N: half of the N are chosen")
            protocol = msgspec.structs.replace(protocol, labeled_by=request.labeled_by)
        if self.loaded is None and request.text is not None:
            protocol = msgspec.structs.replace(protocol, text=request.text)
        if request.tune_seed is not None and protocol.tuned:
            protocol = msgspec.structs.replace(protocol, tune_seed=request.tune_seed)
        if request.tune_by != "dev":
            if not protocol.tuned:
                what = f"--tune-by {request.tune_by} without trials"
                raise UserError(what, hint="give --tune N, or --tune-cpu SECONDS")
            protocol = msgspec.structs.replace(protocol, tune_by=request.tune_by)
        return protocol

    def _guard(self, method: str, dataset: PlannedDataset) -> GuardSpec | msgspec.UnsetType:
        """The guard with the first baseline; unset for a baseline itself."""
        baselines = [name for name, info in self.plugins.methods.items() if info.baseline]
        if not self.request.guard or not baselines or method in baselines:
            return msgspec.UNSET
        return GuardSpec(baselines[0], self._values(baselines[0], False, dataset).params)

    @lazy
    def _learned(self) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
        """All parameters of the features that are learned from text, and hashes of their files."""
        return self._all_params(self.request.text_features, learner_description)

    @lazy
    def _weak(self) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
        """All parameters of the sources of weak labels, and hashes of their files."""
        return self._all_params(self.request.weak_sources, source_description)

    def _all_params(
        self, names: Iterable[str], describe: Describe
    ) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
        params: dict[str, dict[str, Any]] = {}
        files: dict[str, str] = {}
        for name in sorted(set(names)):
            described = self._owned(name, describe)
            params[name] = described.params
            files |= self._hashes(described)
        return params, files

    @lazy
    def _of_model(self) -> MethodDescription:
        """The model with all of its parameters."""
        return self._owned(self.model, model_description)

    def _owned(self, name: str, describe: Describe) -> MethodDescription:
        return owned_params(self.request.settings, self.plugins, name, describe)

    def _values(self, method: str, tuned: bool, dataset: PlannedDataset) -> _Values:
        graph = tuple(sorted(dataset.graph.items()))
        return self._params(method, tuned, dataset.task, graph)

    def _params_of(
        self, method: str, tuned: bool, task: str, graph: tuple[tuple[str, str | int], ...]
    ) -> _Values:
        request, plugins = self.request, self.plugins
        given = method_params(request.settings, plugins, method, request.preset, dict(graph))
        described = method_description(plugins, method, given)
        first: dict[str, Any] = {}
        if self._by_task and request.preset not in described.presets:
            fixed, first = described.on_task(task, given, tuned=tuned)
            described = method_description(plugins, method, given | fixed) if fixed else described
        axes = described.on_model(self._of_model).axes if tuned else ()
        searched = {axis.param for axis in axes}
        params = {name: v for name, v in described.params.items() if name not in searched}
        search = search_digest(axes, raced=request.tune_by == "cv")
        return _Values(params, first, search, self._hashes(described))

    def _hashes(self, described: MethodDescription) -> dict[str, str]:
        """Hashes of the user's files; UserError if one cannot be read where it is needed.

        A plan without data, as of the cells of a suite, is made on machines without them, too.
        """
        try:
            return input_hashes(described.params, described.files)
        except UserError:
            if self.loaded is not None:
                raise
            return {}

    def _digest_of(self, featurizer: str, templates: tuple[str, ...]) -> str:
        return featurizer_digest(with_templates(self.plugins, featurizer, templates), featurizer)
