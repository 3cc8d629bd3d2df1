"""``sslbench results pack | fetch | register | publish``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sslbench.cli.messages import tell
from sslbench.cli.options import PATH, STORE
from sslbench.cli.text import counted, echo, table
from sslbench.engine.errors import UserError

if TYPE_CHECKING:
    from sslbench.experiment.records.record import RunRecord
    from sslbench.experiment.records.store import Store


@click.group("results")
def command() -> None:
    """Pack finished records, and fetch published ones."""


@command.command("pack")
@STORE
def pack(store: str) -> None:
    """Pack the records of a store into segments, and remove the files that they had.

    A segment is written once and never changed. A file is removed only after its record was read
    back from the segment and is equal. It is safe to interrupt; run it again to resume.
    """
    from sslbench.experiment.records import archive
    from sslbench.experiment.records.store import Store

    packed = archive.pack(Store(store))
    for path in packed.segments:
        echo(path)
    for line in packed.left:
        tell(f"not packed: {line}")
    size = f"{packed.before / 1e6:.2f} MB of files, {packed.after / 1e6:.2f} MB of new segments"
    tell(f"{counted(packed.records, 'record')} packed: {size}")


@command.command("fetch")
@click.argument("name", required=False)
@STORE
@click.option(
    "--registry", type=PATH, help="File that names archives; default: that of the package."
)
def fetch(name: str | None, store: str, registry: Path | None) -> None:
    """Put the published records NAME into a store, or list what is published.

    Files are verified by their sha256. An interrupted download resumes.
    """
    from sslbench.experiment.planning.published import published_folder
    from sslbench.experiment.records import remote
    from sslbench.experiment.records.store import Store

    file = registry or published_folder() / "archive.toml"
    archives = remote.read_registry(file)
    if name is None:
        rows = [
            (each.name, counted(each.runs, "run"), f"{each.bytes / 1e6:.1f} MB", each.about)
            for each in archives.values()
        ]
        echo(table(rows, indent="") if rows else f"{file} names no archive")
        return
    if name not in archives:
        names = ", ".join(archives) or "none"
        raise UserError(f"no archive {name!r}", file=file, hint=f"there is {names}")
    target = Store(store)
    target.probe()
    for path in remote.fetch(archives[name], file, target.folder):
        echo(path)
    tell(f"{counted(archives[name].runs, 'run')} in {target.folder}")


@command.command("register")
@click.argument("name")
@STORE
@click.option("--about", required=True, help="What the records are, in one line.")
@click.option(
    "--registry",
    type=PATH,
    default=Path("leaderboards/archive.toml"),
    show_default=True,
    help="File that names archives.",
)
def register(name: str, store: str, about: str, registry: Path) -> None:
    """Name the packed records of a store as an archive, with size and sha256 of each file."""
    from sslbench.experiment.records import remote
    from sslbench.experiment.records.store import Store

    source = Store(store)
    runs = len({record.run_id for record in source.each()})
    archive = remote.register(name, about, runs, source.folder, registry)
    files = counted(len(archive.files), "file")
    tell(f"{name}: {counted(runs, 'run')}, {files}, {archive.bytes / 1e6:.1f} MB in {registry}")


@command.command("publish")
@click.option(
    "--store",
    "stores",
    multiple=True,
    default=["runs"],
    show_default=True,
    help="A store; may repeat.",
)
@click.option(
    "--out",
    type=PATH,
    default=Path("leaderboards/results.csv"),
    show_default=True,
    help="Table of the results: a line for the runs that differ in the seed alone.",
)
def publish(stores: tuple[str, ...], out: Path) -> None:
    """Write the table of results that comes with the package: scores, and prices of runs.

    A run that several stores have counts once, as the first of them has it.
    """
    from sslbench.engine.files.atomic import write_atomically
    from sslbench.experiment.planning.published import results_text
    from sslbench.experiment.records.store import Store

    run_ids: set[str] = set()
    text = results_text(_each_once(map(Store, stores), run_ids))
    if not run_ids:
        raise UserError(
            "no run records", file=", ".join(stores), hint="sslbench run makes them; see --store"
        )
    write_atomically(out, text.encode())
    tell(f"{counted(len(run_ids), 'record')}: {counted(text.count(chr(10)) - 1, 'line')} in {out}")


def _each_once(stores: Iterable[Store], run_ids: set[str]) -> Iterator[RunRecord]:
    """Yield the records of the stores, a run once, and put their ids into a set."""
    for store in stores:
        for record in store.each():
            if record.run_id not in run_ids:
                run_ids.add(record.run_id)
                yield record
