"""``sslbench list``."""

from __future__ import annotations

import click

from sslbench.cli.text import checked_registry, echo, table
from sslbench.plugins import Registry
from sslbench.plugins.hooks import KINDS


@click.command("list")
@click.argument("kind", type=click.Choice(list(KINDS)), required=False)
def command(kind: str | None) -> None:
    """List methods, datasets, featurizers, models, similarities, text features and weak sources.

    With KIND, only lines of "name  summary".
    """
    plugins = checked_registry()
    if kind is not None:
        _print_kind(plugins, kind, "")
        return
    for number, each in enumerate(KINDS):
        echo(f"\n{each}" if number else each)
        _print_kind(plugins, each, "  ")


def _print_kind(plugins: Registry, kind: str, indent: str) -> None:
    entries = plugins.of_kind(kind)
    if entries:
        echo(table([(name, info.summary) for name, info in entries.items()], indent))
