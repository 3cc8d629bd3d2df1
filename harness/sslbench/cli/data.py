"""``sslbench data``: the files of datasets."""

from __future__ import annotations

import click

from sslbench.cli.text import labelled, table
from sslbench.errors import UserError
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
@click.argument("names", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Every data set that has files.")
@click.option("--read", is_flag=True, help="Read the splits too: sentences and tokens of each.")
@click.pass_context
def verify(ctx: click.Context, names: tuple[str, ...], every: bool, read: bool) -> None:
    """Read every file again and compare its sha256; exit status 1 if one is missing or wrong.

    With --read a data set also has to have the sentences and tokens that it is known to have.
    """
    names = _with_files() if every else names
    if not names:
        raise click.UsageError("name data sets, or give --all")
    home = DataHome()
    files = _files(names)
    states = [(home.state(file, rehash=True), home.locate(file)) for _, file in files]
    if states:
        click.echo(table([(state, str(path)) for state, path in states], indent=""))
    broken = {name for (name, _), (state, _) in zip(files, states, strict=True) if state != "ok"}
    if read:
        broken |= {name for name in names if name not in broken and not _read(home, name)}
    ctx.exit(1 if broken else 0)


def _with_files() -> tuple[str, ...]:
    datasets = registry().of_kind("datasets")
    return tuple(name for name in datasets if registry().dataset(name).files)


def _read(home: DataHome, name: str) -> bool:
    """Print the sizes of the splits of a data set, or why it cannot be read."""
    try:
        splits = registry().dataset(name).load()(home).splits
    except UserError as error:
        click.echo(f"wrong  {name}: {error}")
        return False
    sizes = [
        f"{split} {corpus.n_sentences:,} sentences, {corpus.n_tokens:,} tokens"
        for split, corpus in splits.items()
    ]
    click.echo(f"ok  {name}: {'; '.join(sizes)}")
    return True


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
