"""``sslbench data``: the files of datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sslbench.cli.messages import can_ask
from sslbench.cli.text import EXTRA_NOTE, echo, labeled, table
from sslbench.engine.errors import UserError
from sslbench.experiment.data import DataHome, Dataset
from sslbench.plugins import registry
from sslbench.plugins.registrations import RemoteFile

if TYPE_CHECKING:
    from sslbench.engine.corpus import Corpus, Shards


@click.group("data")
def command() -> None:
    """Fetch, verify and locate the files of datasets.

    They are in the data home: $SSLBENCH_DATA, or the platform's user cache folder. A file that is
    there with the right sha256 is not downloaded again.
    """


@command.command("fetch")
@click.argument("names", nargs=-1, required=True)
@click.option("--no-extra", is_flag=True, help="Leave out files for external unlabeled text.")
@click.option(
    "--accept-licence",
    "--yes",
    "accepted",
    is_flag=True,
    help="Accept the licences that restrict use; otherwise you are asked.",
)
def fetch(names: tuple[str, ...], no_extra: bool, accepted: bool) -> None:
    """Download missing files, verify the others, and print the paths.

    Interrupted downloads resume. A licence that restricts use must be accepted before the first
    download.
    """
    home = DataHome()
    files = [file for _, file in _files(names) if not (no_extra and file.extra)]
    if not accepted and not home.offline:
        _agree(home, files, names)
    for file in files:
        echo(home.path(file, agreed=True))


def _agree(home: DataHome, files: list[RemoteFile], names: tuple[str, ...]) -> None:
    """Ask once for each licence of the files to be downloaded; UserError if one is refused."""
    licences: dict[str, list[str]] = {}
    for file in files:
        if file.agreement and not home.locate(file).is_file():
            licences.setdefault(file.licence, []).append(file.path)
    if licences and not can_ask():
        raise UserError(
            f"licence to accept before the download: {'; '.join(licences)}",
            hint=f"sslbench data fetch --accept-licence {' '.join(names)} does so",
        )
    for licence, paths in licences.items():
        echo(f"{', '.join(dict.fromkeys(paths))}\n{labeled('licence', licence)}", err=True)
        if not click.confirm("Do you accept this licence?", err=True):
            raise UserError("licence not accepted; nothing was downloaded")


@command.command("verify")
@click.argument("names", nargs=-1)
@click.option("--all", "every", is_flag=True, help="All datasets with files.")
@click.option("--read", is_flag=True, help="Read the splits too, and print their sizes.")
@click.pass_context
def verify(ctx: click.Context, names: tuple[str, ...], every: bool, read: bool) -> None:
    """Read every file and compare its sha256; exit status 1 if one is missing or wrong.

    With --read, the datasets are loaded too, which checks their sizes against the published ones.
    """
    names = _with_files() if every else names
    if not names:
        raise click.UsageError("name datasets, or give --all")
    home = DataHome()
    files = _files(names)
    states = {file.path: home.state(file, rehash=True) for _, file in _once(files)}
    if states:
        rows = [(states[file.path], str(home.locate(file))) for _, file in _once(files)]
        echo(table(rows, indent=""))
    broken = {name for name, file in files if states[file.path] != "ok"}
    if read:
        broken |= {name for name in dict.fromkeys(names) if not _read(home, name, name in broken)}
    ctx.exit(1 if broken else 0)


def _once(files: list[tuple[str, RemoteFile]]) -> list[tuple[str, RemoteFile]]:
    """Each file once, though several datasets may share it."""
    return list({file.path: (name, file) for name, file in reversed(files)}.values())[::-1]


def _with_files() -> tuple[str, ...]:
    """Names of the datasets that are not read from the user's own folder alone."""
    infos = map(registry().dataset, registry().of_kind("datasets"))
    return tuple(info.name for info in infos if not all(file.extra for file in info.files))


def _read(home: DataHome, name: str, broken: bool) -> bool:
    """Print the sizes of the splits of a dataset, or an error; False if it is wrong."""
    if broken:
        echo(f"not read  {name}: a file is missing or wrong, see above")
        return False
    info = registry().dataset(name)
    try:
        splits = info.load()(home).splits
    except UserError as error:
        # A file that only licence holders have may be missing.
        echo(f"not read  {name}: needs {info.own}" if info.own else f"wrong  {name}: {error}")
        return bool(info.own)
    sizes = [f"{split} {_size(corpus)}" for split, corpus in splits.items()]
    echo(f"ok  {name}: {'; '.join(sizes)}")
    return True


@command.command("path")
@click.argument("names", nargs=-1, required=True)
def path(names: tuple[str, ...]) -> None:
    """Print the path of each file in the data home, whether it exists or not; downloads nothing."""
    home = DataHome()
    for _, file in _files(names):
        echo(home.locate(file))


@command.command("info")
@click.argument("names", nargs=-1, required=True)
@click.option(
    "--audit",
    is_flag=True,
    help="Load it: sizes of the splits, and sentences that occur in several (slow).",
)
@click.pass_context
def info(ctx: click.Context, names: tuple[str, ...], audit: bool) -> None:
    """Show size, state, checksum, licence and origin of each file; downloads nothing.

    --audit may build the external text first, which is then cached for runs. Exit status 1 if a
    dataset cannot be loaded.
    """
    home = DataHome()
    files = _files(names)
    echo(f"data home {home.root}")
    failed = False
    for name in dict.fromkeys(names):
        echo(f"{name}: {registry().dataset(name).licence}")
        for owner, file in files:
            if owner == name:
                _describe(home, file)
        if audit:
            failed |= not _audit(name)
    ctx.exit(1 if failed else 0)


def _describe(home: DataHome, file: RemoteFile) -> None:
    extra = EXTRA_NOTE if file.extra else ""
    accept = " (must be accepted before the download)" if file.agreement else ""
    echo(labeled("file", f"{file.path}{extra}"))
    echo(labeled("state", f"{home.state(file)}, {file.bytes:,} bytes"))
    echo(labeled("sha256", file.sha256))
    echo(labeled("licence", f"{file.licence}{accept}"))
    for url in file.urls:
        echo(labeled("from", url))


def _audit(name: str) -> bool:
    """Print sizes and duplicates of the splits and the external text, or why they are unknown.

    Sentences are compared by their words, as in run records. False if the dataset cannot be loaded.
    """
    home = DataHome(offline=True)
    try:
        for file in registry().dataset(name).files:
            if home.state(file) == "missing":
                hint = f"sslbench data fetch {name}"
                raise UserError(f"{file.path} is not in the data home", hint=hint)
        dataset = registry().dataset(name).load()(home)
        text = _external(dataset)
    except UserError as error:
        echo(f"sslbench: {name}: {error}", err=True)
        return False
    for split, corpus in dataset.splits.items():
        echo(labeled(split, _size(corpus)))
    if dataset.external:
        echo(labeled("external", _size(text)))
    for line in _duplicates(dataset, text):
        echo(labeled("duplicates", line))
    return True


def _external(dataset: Dataset) -> Shards:
    from sslbench.experiment.inputs.protocol import no_text

    return dataset.external() if dataset.external else no_text(dataset)


def _duplicates(dataset: Dataset, text: Shards) -> list[str]:
    """``["12 of 2,012 sentences of test are in train", ...]``."""
    from sslbench.experiment.checks.audit import duplicates

    held_out = {split: dataset.splits[split] for split in dataset.splits if split != "train"}
    counts = duplicates(dataset.splits["train"], text, held_out)
    names = {"labeled": "train", "unlabeled": "external text"}
    lines = []
    for key, count in counts.items():
        part, other = (names.get(name, name) for name in key.split("_in_"))
        total = dataset.splits[part].n_sentences
        lines.append(f"{count:,} of {total:,} sentences of {part} are in {other}")
    return lines or ["unknown: there are no words to compare"]


def _size(text: Corpus | Shards) -> str:
    return f"{text.n_sentences:,} sentences, {text.n_tokens:,} tokens"


def _files(names: tuple[str, ...]) -> list[tuple[str, RemoteFile]]:
    """Pairs of dataset name and file; UserError for an unknown name."""
    plugins = registry()
    datasets = [plugins.dataset(name) for name in names]
    for dataset in datasets:
        if not dataset.files:
            echo(f"sslbench: {dataset.name} has no file to download", err=True)
    return [(dataset.name, file) for dataset in datasets for file in dataset.files]
