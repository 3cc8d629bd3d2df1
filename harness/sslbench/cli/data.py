"""``sslbench data``: the files of datasets."""

from __future__ import annotations

import click

from sslbench.cli.text import labelled, table
from sslbench.experiment.data import DataHome
from sslbench.plugins import registry
from sslbench.registrations import RemoteFile


@click.group("data")
def command() -> None:
    """Fetch, verify and locate the files of datasets.

    They lie in the data home: $SSLBENCH_DATA, or the platform's user cache folder. A file that is
    there under its path with the right sha256 is never downloaded again.
    """


@command.command("fetch")
@click.argument("names", nargs=-1, required=True)
@click.option("--no-extra", is_flag=True, help="Leave out files only for external unlabelled text.")
def fetch(names: tuple[str, ...], no_extra: bool) -> None:
    """Download what is missing and verify the rest; print the paths."""
    home = DataHome()
    for _, file in _files(names):
        if not (no_extra and file.extra):
            click.echo(home.path(file))


@command.command("verify")
@click.argument("names", nargs=-1, required=True)
@click.pass_context
def verify(ctx: click.Context, names: tuple[str, ...]) -> None:
    """Read every file again and compare its sha256; exit status 1 if one is missing or wrong."""
    home = DataHome()
    states = [(home.state(file, rehash=True), home.locate(file)) for _, file in _files(names)]
    if states:
        click.echo(table([(state, str(path)) for state, path in states], indent=""))
    if any(state != "ok" for state, _ in states):
        ctx.exit(1)


@command.command("path")
@click.argument("names", nargs=-1, required=True)
def path(names: tuple[str, ...]) -> None:
    """Print where each file lies or has to be put; downloads nothing."""
    home = DataHome()
    for _, file in _files(names):
        click.echo(home.locate(file))


@command.command("info")
@click.argument("names", nargs=-1, required=True)
def info(names: tuple[str, ...]) -> None:
    """Show size, state, checksum, licence and origin of each file; downloads nothing."""
    home = DataHome()
    files = _files(names)
    click.echo(f"data home {home.root}")
    previous = ""
    for name, file in files:
        if name != previous:
            click.echo(f"{name}: {registry().dataset(name).licence}")
        previous = name
        extra = " (only for external unlabelled text)" if file.extra else ""
        click.echo(labelled("file", f"{file.path}{extra}"))
        click.echo(labelled("state", f"{home.state(file)}, {file.bytes:,} bytes"))
        click.echo(labelled("sha256", file.sha256))
        click.echo(labelled("licence", file.licence))
        for url in file.urls:
            click.echo(labelled("from", url))


def _files(names: tuple[str, ...]) -> list[tuple[str, RemoteFile]]:
    """Return (dataset, file) pairs; UserError for an unknown name."""
    found = registry()
    datasets = [found.dataset(name) for name in names]
    for dataset in datasets:
        if not dataset.files:
            click.echo(f"sslbench: {dataset.name} needs no file", err=True)
    return [(dataset.name, file) for dataset in datasets for file in dataset.files]
