"""``sslbench show NAME``."""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from sslbench.cli.options import STORE
from sslbench.cli.text import EXTRA_NOTE, checked_registry, echo, labeled, show_traceback, table
from sslbench.engine.errors import UserError
from sslbench.plugins import Registry
from sslbench.plugins.hooks import KINDS
from sslbench.plugins.registrations import (
    CAPABILITIES,
    DatasetInfo,
    FeaturizerInfo,
    MethodInfo,
    ModelInfo,
    Registration,
    SimilarityInfo,
    load_target,
)

if TYPE_CHECKING:
    from sslbench.experiment.planning.space import SearchAxis

_RUN_ID = re.compile(r"[0-9a-f]{6,16}")


@click.command("show")
@click.argument("name", metavar="NAME|MODEL|RUN")
@STORE
def command(name: str, store: str) -> None:
    """Show the registration of NAME: parameters, reference, licence, files; a saved tagger; a run.

    MODEL: a file that `sslbench train` has saved. RUN: a run id, a unique prefix of one, or a
    record file; also scored by whether words occur in the labeled and the unlabeled text.

    If the code of a registration cannot be imported, a warning says so and the parameters are not
    shown.
    """
    plugins = checked_registry()
    if name.endswith(".json") or (_RUN_ID.fullmatch(name) and os.path.isdir(store)):
        from sslbench.cli.show_record import show_record
        from sslbench.experiment.records.store import Store

        show_record(Store(store).find(name))
        return
    if os.path.isfile(name):
        from sslbench.cli.show_model import show_model

        show_model(name, plugins)
        return
    for number, info in enumerate(plugins.find(name)):
        if number:
            echo()
        _show(plugins, info)


def _show(plugins: Registry, info: Registration) -> None:
    kind = next(kind for kind, cls in KINDS.items() if isinstance(info, cls))
    echo(f"{info.kind} {info.name}: {info.summary}")
    echo(labeled("reference", info.reference or "none given"))
    echo(labeled("registered by", str(plugins.origins[kind, info.name])))
    echo(labeled("code", info.target))
    try:
        if isinstance(info, DatasetInfo):
            _show_dataset(info)
        elif isinstance(info, FeaturizerInfo):
            _show_featurizer(info)
        elif isinstance(info, SimilarityInfo):
            _show_similarity(info)
        else:
            if isinstance(info, MethodInfo):
                _show_method(info)
            if isinstance(info, ModelInfo):
                _show_model(info)
            params = getattr(info.load(), "Params", None)
            _show_parameters(params, "parameters")
            if params is not None:
                _show_values(info, params)
    except UserError as problem:
        echo(f"sslbench: warning: {problem}", err=True)
        show_traceback("".join(traceback.format_exception(problem)))


def _show_method(info: MethodInfo) -> None:
    if info.baseline:
        echo(labeled("role", "baseline: the other methods are compared with it"))
    echo(labeled("tasks", ", ".join(info.tasks)))
    echo(labeled("models", ", ".join(info.models) or "all"))
    if info.needs_model:
        echo(labeled("model has", ", ".join(info.needs_model)))


def _show_model(info: ModelInfo) -> None:
    for name, meaning in CAPABILITIES.items():
        if name in info.provides:
            echo(labeled("provides", f"{name}: {meaning}"))
    if info.tolerance:
        text = f"at most {info.tolerance:.1%} of the labels differ on another kind of processor"
        echo(labeled("replay", text))
    if info.labels_only:
        echo(labeled("gives", "labels and no scores: for methods that train on labels alone"))


def _show_dataset(info: DatasetInfo) -> None:
    echo(labeled("task", f"{info.task}, ranked by {info.metric}"))
    if info.family:
        echo(labeled("family", f"{info.family} (counted once in means over datasets)"))
    echo(labeled("featurizer", info.featurizer))
    if info.graph:
        echo(labeled("graph", " ".join(f"{k}={v}" for k, v in info.graph.items())))
    echo(labeled("protocol", info.protocol))
    if info.own:
        echo(labeled("needs", info.own))
    if info.tune:
        text = f"{info.tune} trials per method by default if all of train is labeled"
        echo(labeled("tuning", text))
    echo(labeled("licence", info.licence))
    for file in info.files:
        extra = EXTRA_NOTE if file.extra else ""
        echo(labeled("file", f"{file.path}, {file.bytes:,} bytes{extra}"))
        echo(labeled("", f"sha256 {file.sha256}"))
        if file.licence != info.licence:
            echo(labeled("", f"licence: {file.licence}"))
    if info.options:
        options = load_target(info.options, f"options of dataset {info.name}")
        _show_parameters(options, "options")


def _show_featurizer(info: FeaturizerInfo) -> None:
    echo(labeled("needs columns", ", ".join(info.columns)))
    echo(labeled("tasks", ", ".join(info.tasks)))
    templates = getattr(info.load()(), "templates", ())
    echo(f"  {len(templates)} templates")
    for template in templates:
        echo(f"    {str(template) or '(constant)'}")


def _show_similarity(info: SimilarityInfo) -> None:
    similarity = info.load()()
    form = similarity.vertex_form
    echo(labeled("vertices", f"trigrams of tokens{f' in the form {form}' if form else ''}"))
    templates = getattr(similarity, "templates", None)
    if templates is not None:
        echo(f"  {len(templates.templates)} templates")
        for template in templates.templates:
            atoms = " ".join(f"{atom.kind}[{atom.offset}]" for atom in template.atoms)
            echo(f"    {template.name}: {atoms}")


def _show_parameters(struct: object, title: str) -> None:
    if struct is None:
        echo(f"  no {title}")
        return
    from sslbench.cli.parameters import describe

    parameters = describe(struct)  # type: ignore[arg-type]  # describe checks it
    if not parameters:
        echo(f"  no {title}")
        return
    head = ("name", "type", "default", "bounds", "meaning")
    rows = [(p.name, p.type, p.default, p.bounds, p.meaning) for p in parameters]
    echo(f"  {title}")
    echo(table([head, *rows], indent="    "))


def _show_values(info: Registration, params: type) -> None:
    """Values other than the defaults, and what tuning searches."""
    from sslbench.experiment.planning.space import model_axes, search_space

    if isinstance(info, MethodInfo):
        _show_task_defaults(params)
        _show_presets(params)
        _show_search(search_space(params))
    if isinstance(info, ModelInfo):
        _show_search(model_axes(info.name, params, ()))


def _show_task_defaults(params: type) -> None:
    from sslbench.experiment.planning.description import task_defaults_of

    for task, values in task_defaults_of(params).items():
        echo(labeled(f"for {task}", " ".join(f"{k}={v}" for k, v in values.items())))


def _show_presets(params: type) -> None:
    from sslbench.experiment.planning.description import preset_notes_of, presets_of

    notes = preset_notes_of(params)
    for name, values in presets_of(params).items():
        echo(labeled(f"preset {name}", " ".join(f"{k}={v}" for k, v in values.items())))
        if name in notes:
            echo(labeled("", notes[name]))


def _show_search(axes: Sequence[SearchAxis]) -> None:
    if not axes:
        echo("  nothing to tune")
        return
    echo("  searched by --tune")
    echo(table([("name", "values"), *((a.param, a.describe()) for a in axes)], indent="    "))
