"""``sslbench show NAME``."""

from __future__ import annotations

import click

from sslbench.cli.text import EXTRA_NOTE, labeled, table, warn_of_problems
from sslbench.errors import UserError
from sslbench.plugins import KINDS, Registry, registry
from sslbench.registrations import (
    DatasetInfo,
    FeaturizerInfo,
    MethodInfo,
    Registration,
    SimilarityInfo,
    load_target,
)


@click.command("show")
@click.argument("name")
def command(name: str) -> None:
    """Show the registration of NAME: parameters, reference, licence, files.

    If its code cannot be imported, a warning says so and the parameters are not shown.
    """
    plugins = registry()
    warn_of_problems(plugins)
    for number, info in enumerate(plugins.find(name)):
        if number:
            click.echo()
        _show(plugins, info)


def _show(plugins: Registry, info: Registration) -> None:
    kind = next(kind for kind, cls in KINDS.items() if isinstance(info, cls))
    click.echo(f"{info.kind} {info.name}: {info.summary}")
    click.echo(labeled("reference", info.reference or "none given"))
    click.echo(labeled("registered by", str(plugins.origins[kind, info.name])))
    click.echo(labeled("code", info.target))
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
            _show_parameters(getattr(info.load(), "Params", None), "parameters")
    except UserError as problem:
        click.echo(f"sslbench: warning: {problem}", err=True)


def _show_method(info: MethodInfo) -> None:
    if info.baseline:
        click.echo(labeled("role", "baseline: the other methods are compared with it"))
    click.echo(labeled("tasks", ", ".join(info.tasks)))
    click.echo(labeled("models", ", ".join(info.models) or "all"))


def _show_dataset(info: DatasetInfo) -> None:
    click.echo(labeled("task", f"{info.task}, ranked by {info.metric}"))
    click.echo(labeled("featurizer", info.featurizer))
    click.echo(labeled("protocol", info.protocol))
    if info.own:
        click.echo(labeled("needs", info.own))
    if info.tune:
        text = f"{info.tune} trials per method by default if all of train is labeled"
        click.echo(labeled("tuning", text))
    click.echo(labeled("licence", info.licence))
    for file in info.files:
        extra = EXTRA_NOTE if file.extra else ""
        click.echo(labeled("file", f"{file.path}, {file.bytes:,} bytes{extra}"))
        click.echo(labeled("", f"sha256 {file.sha256}"))
        if file.licence != info.licence:
            click.echo(labeled("", f"licence: {file.licence}"))
    if info.options:
        options = load_target(info.options, f"options of dataset {info.name}")
        _show_parameters(options, "options")


def _show_featurizer(info: FeaturizerInfo) -> None:
    click.echo(labeled("needs columns", ", ".join(info.columns)))
    click.echo(labeled("tasks", ", ".join(info.tasks)))
    templates = getattr(info.load()(), "templates", ())
    click.echo(f"  {len(templates)} templates")
    for template in templates:
        click.echo(f"    {str(template) or '(constant)'}")


def _show_similarity(info: SimilarityInfo) -> None:
    similarity = info.load()()
    form = similarity.vertex_form
    click.echo(labeled("vertices", f"trigrams of tokens{f' in the form {form}' if form else ''}"))
    templates = getattr(similarity, "templates", None)
    if templates is not None:
        click.echo(f"  {len(templates.templates)} templates")
        for template in templates.templates:
            atoms = " ".join(f"{atom.kind}[{atom.offset}]" for atom in template.atoms)
            click.echo(f"    {template.name}: {atoms}")


def _show_parameters(struct: object, title: str) -> None:
    if struct is None:
        click.echo(f"  no {title}")
        return
    from sslbench.cli.parameters import describe

    parameters = describe(struct)  # type: ignore[arg-type]  # describe checks it
    if not parameters:
        click.echo(f"  no {title}")
        return
    head = ("name", "type", "default", "bounds", "meaning")
    rows = [(p.name, p.type, p.default, p.bounds, p.meaning) for p in parameters]
    click.echo(f"  {title}")
    click.echo(table([head, *rows], indent="    "))
