"""The command that makes a row of a table again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from sslbench.engine.errors import UserError
from sslbench.experiment.planning.description import (
    has_task_defaults,
    learner_description,
    method_description,
    model_description,
    source_description,
)
from sslbench.experiment.planning.settings import PLAIN, dataset_options
from sslbench.experiment.records.record import ProtocolSpec, RunSpec
from sslbench.plugins import Registry


class Commands:
    """Writes commands; plugins give the defaults, which are left out."""

    def __init__(self, plugins: Registry) -> None:
        self._plugins = plugins
        self._params = cache(self._defaults)
        self._learned = cache(self._learned_defaults)
        self._weak = cache(self._weak_defaults)
        self._of_model = cache(self._model_defaults)
        self._axes = cache(self._searchable)

    def command(
        self, spec: RunSpec, seeds: Sequence[int], path: str | None = None, *, text: bool = True
    ) -> str:
        """`sslbench run` for these seeds.

        path: of the user's files; None = a registered dataset.
        text: whether to name the source of the unlabeled text.
        """
        words = ["sslbench", "run", "--method", spec.method, *self._data(spec, path)]
        words += _protocol(spec.protocol, seeds, text)
        registered = spec.data.columns is None
        own, usual = self._params(spec.method, spec.dataset, spec.model, registered)
        searched = {name: value for name, value in usual.items() if name not in spec.params}
        if spec.first_trial != searched:
            words += ["--preset", PLAIN]
            usual = {}
        # A value that could be searched, and was not, is given, also if it is the default.
        given = self._axes(spec.method, spec.model) if spec.search else frozenset()
        own = {name: value for name, value in (own | usual).items() if name not in given}
        words += self._settings("", spec.params, own)
        usual_of = self._of_model(spec.model).items()
        of_model = {k: v for k, v in usual_of if f"{spec.model}.{k}" not in given}
        words += self._settings(f"{spec.model}.", spec.of_model, of_model)
        if spec.learned:
            words += ["--with", ",".join(spec.learned)]
        for name, params in spec.learned.items():
            words += self._settings(f"{name}.", params, self._learned(name))
        if spec.weak_sources:
            words += ["--weak", ",".join(spec.weak_sources)]
        for name, params in spec.weak_sources.items():
            words += self._settings(f"{name}.", params, self._weak(name))
        words += ["--guard"] * (spec.guard is not msgspec.UNSET)
        return shlex.join([*words, "--featurizer", spec.featurizer, "--model", spec.model])

    def _data(self, spec: RunSpec, path: str | None) -> list[str]:
        files = ["--data", path] if path else []
        if spec.data.columns is not None:
            return [*files, "--columns", ",".join(spec.data.columns)]
        settings = self._settings(f"{spec.dataset}.", changed_options(spec, self._plugins), {})
        return ["--dataset", spec.dataset, *files, *settings]

    def _defaults(
        self, method: str, dataset: str, model: str, registered: bool
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Defaults of a method's parameters, and those that the dataset changes.

        registered: False = the task of the dataset is not known.
        """
        try:
            described = method_description(self._plugins, method, {})
        except UserError:
            return {}, {}
        by_task = described.task_defaults
        if not registered:
            unknown = {name for values in by_task.values() for name in values}
            return {n: v for n, v in described.params.items() if n not in unknown}, {}
        try:
            info = self._plugins.dataset(dataset)
            by_task = by_task if has_task_defaults(self._plugins.model(model)) else {}
        except UserError:
            return described.params, {}
        return described.params, by_task.get(info.task, {}) | described.of_graph(info.graph)

    def _learned_defaults(self, name: str) -> dict[str, Any]:
        try:
            return learner_description(self._plugins, name, {}).params
        except UserError:
            return {}

    def _weak_defaults(self, name: str) -> dict[str, Any]:
        try:
            return source_description(self._plugins, name, {}).params
        except UserError:
            return {}

    def _model_defaults(self, name: str) -> dict[str, Any]:
        try:
            return model_description(self._plugins, name, {}).params
        except UserError:
            return {}

    def _searchable(self, method: str, model: str) -> frozenset[str]:
        """What tuning may search."""
        try:
            described = method_description(self._plugins, method, {})
            both = described.on_model(model_description(self._plugins, model, {}))
        except UserError:
            return frozenset()
        return frozenset(axis.param for axis in both.axes)

    @staticmethod
    def _settings(owner: str, values: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[str]:
        words = []
        for name in sorted(values):
            value = values[name]
            if name not in defaults or defaults[name] != value:
                text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
                words += ["--set", f"{owner}{name}={text}"]
        return words


def _protocol(protocol: ProtocolSpec, seeds: Sequence[int], text: bool) -> list[str]:
    words = ["--labeled", str(protocol.labeled), *(["--text", protocol.text] if text else [])]
    if protocol.unlabeled is not None:
        words += ["--unlabeled", str(protocol.unlabeled)]
    words += ["--seeds", seed_ranges(seeds), "--tune", str(protocol.tune)]
    if protocol.tune_cpu is not None:
        words += ["--tune-cpu", f"{protocol.tune_cpu:g}"]
    for option in ("tune_seed", "tune_by", "labeled_by"):
        value = getattr(protocol, option)
        if value is not msgspec.UNSET:
            words += [f"--{option.replace('_', '-')}", str(value)]
    return words + ["--folds", str(protocol.folds)] * (protocol.folds > 0)


def changed_options(spec: RunSpec, plugins: Registry) -> dict[str, Any]:
    """Options of the dataset that do not have their defaults; all, if it is not installed."""
    try:
        defaults = dataset_options(plugins.dataset(spec.dataset), {})
    except UserError:
        defaults = {}
    given = spec.data.options
    return {k: given[k] for k in sorted(given) if k not in defaults or defaults[k] != given[k]}


def seed_ranges(seeds: Sequence[int]) -> str:
    """Seeds as `--seeds` takes them: "0-4,7"."""
    parts: list[list[int]] = []
    for seed in sorted(seeds):
        if parts and seed == parts[-1][1] + 1:
            parts[-1][1] = seed
        else:
            parts.append([seed, seed])
    return ",".join(f"{a}-{b}" if b > a else str(a) for a, b in parts)
