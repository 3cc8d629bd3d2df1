"""``sslbench list``."""

from __future__ import annotations

import click

from sslbench.cli.text import table, warn_of_problems
from sslbench.plugins import KINDS, Registry, registry


@click.command("list")
@click.argument("kind", type=click.Choice(list(KINDS)), required=False)
def command(kind: str | None) -> None:
    """List what the plugins offer: methods, datasets, featurizers, models, similarities.

    With KIND, one "name  summary" line each and nothing else.
    """
    found = registry()
    warn_of_problems(found)
    if kind is not None:
        _print_kind(found, kind, "")
        return
    for number, each in enumerate(KINDS):
        click.echo(f"\n{each}" if number else each)
        _print_kind(found, each, "  ")


def _print_kind(found: Registry, kind: str, indent: str) -> None:
    entries = found.of_kind(kind)
    if entries:
        click.echo(table([(name, info.summary) for name, info in entries.items()], indent))
