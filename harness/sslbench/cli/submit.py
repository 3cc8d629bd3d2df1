"""``sslbench submit``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sslbench.cli.messages import tell
from sslbench.cli.options import JOBS, PATH, STORE, named, shared
from sslbench.cli.text import checked_registry, counted, echo
from sslbench.engine.errors import UserError
from sslbench.plugins import registry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sslbench.experiment.records.bundle import Bundle
    from sslbench.experiment.records.store import Store
    from sslbench.suite.file import Suite
    from sslbench.suite.submission import Finding

#: options that only one of the two uses of the command has
_OF_SUBMIT, _OF_CHECK = ("methods", "datasets", "out"), ("add",)


@click.command("submit")
@click.argument("file", metavar="[SUITE]", required=False)
@click.option(
    "--method",
    "methods",
    multiple=True,
    metavar="NAME",
    shell_complete=named("methods"),
    help="A method whose runs are submitted. May repeat.",
)
@click.option(
    "--dataset",
    "datasets",
    multiple=True,
    metavar="NAME",
    shell_complete=named("datasets"),
    help="A dataset whose runs are submitted. May repeat.",
)
@STORE
@click.option("--out", type=PATH, help="The bundle; default: SUITE-NAME.bundle.")
@click.option("--check", type=PATH, metavar="BUNDLE", help="Check a bundle instead.")
@click.option(
    "--replay",
    type=click.IntRange(min=0),
    default=2,
    show_default=True,
    metavar="N",
    help="With --check: number of runs that are made again and compared bit for bit.",
)
@click.option("--add", is_flag=True, help="With --check: put a good bundle into --store.")
@JOBS
@shared("timeout")
@click.pass_context
def command(ctx: click.Context, /, file: str | None, check: Path | None, **given: Any) -> None:
    """Pack the runs that `suite extend` made into one file for others, or check such a file.

    SUITE is the suite that they belong to; with --check, default: the one that the bundle names.
    A check says in words whether the records are whole, belong to the suite and are of today's
    code and the data of --store, and replays a sample. Exit status of a check: 1 if it fails.
    """
    wrong = [name for name in (_OF_SUBMIT if check else _OF_CHECK) if given[name]]
    if wrong:
        option = {"methods": "method", "datasets": "dataset"}.get(wrong[0], wrong[0])
        raise click.UsageError(f"--{option} {'with' if check else 'without'} --check", ctx)
    checked_registry()
    if check is not None:
        ctx.exit(0 if _check(check, file, **given) else 1)
    if file is None:
        raise click.UsageError("give a SUITE, or --check BUNDLE", ctx)
    _submit(file, **given)


def _submit(file: str, **given: Any) -> None:
    from sslbench.experiment.records.store import Store
    from sslbench.suite.file import read_suite
    from sslbench.suite.submission import submit

    suite, methods, datasets = read_suite(file), given["methods"], given["datasets"]
    out = given["out"] or Path(f"{'-'.join([suite.name, *methods, *datasets])}.bundle")
    store = Store(given["store"])
    manifest, cells = submit(suite, methods, datasets, store, out, registry())
    for cell in cells:
        if cell.state != "done":
            tell(f"not submitted, {cell.state}: {cell.describe()}")
    plugins = ", ".join(f"{name} {version}" for name, version in manifest.plugins.items())
    echo(out)
    tell(f"{manifest.runs} of {counted(len(cells), 'cell')} of {suite.name}; {plugins}")
    tell("the records name the machine that made them; check the file with submit --check")


def _check(path: Path, file: str | None, **given: Any) -> bool:
    """Print the findings of all checks; return whether none of them fails."""
    from sslbench.experiment.records.bundle import read_bundle
    from sslbench.experiment.records.store import Store
    from sslbench.suite.file import read_suite

    bundle, theirs = read_bundle(path), Store(given["store"])
    suite = read_suite(file or _name_of_suite(bundle, path))
    failed = 0
    with bundle.store() as mine:
        for finding in _findings(bundle, suite, mine, theirs, given):
            echo(f"{'FAILED' if finding.fails else 'ok    '}  {finding.text}")
            failed += finding.fails
    if failed:
        tell(f"refused: {counted(failed, 'check')} failed")
    elif given["add"]:
        theirs.probe()
        tell(f"accepted: {counted(bundle.manifest.runs, 'run')} in {bundle.add_to(theirs)}")
    else:
        tell("accepted; --add puts the runs into --store")
    return not failed


def _name_of_suite(bundle: Bundle, path: Path) -> str:
    """The suite that a bundle names; a path is not taken from it."""
    name = bundle.manifest.suite
    if Path(name).name != name or Path(name).suffix:
        raise UserError(f"names the suite {name!r}", file=path, hint="give SUITE, a suite file")
    return name


def _findings(
    bundle: Bundle, suite: Suite, mine: Store, theirs: Store, given: dict[str, Any]
) -> Iterator[Finding]:
    """Yield all findings; a sample is replayed only if the records are good."""
    from sslbench.suite.submission import bundle_cells, check_records, compare_with_store

    plugins, good = registry(), True
    cells = bundle_cells(bundle, suite, plugins)
    for finding in check_records(bundle, suite, cells, mine, plugins):
        good = good and not finding.fails
        yield finding
    yield from compare_with_store(suite, cells, mine, theirs, plugins)
    if good and given["replay"]:
        yield from _replayed(bundle, mine, given)


def _replayed(bundle: Bundle, mine: Store, given: dict[str, Any]) -> Iterator[Finding]:
    from sslbench.cli.verify import AS_RECORDED, replay_line, replays
    from sslbench.suite.submission import Finding, sample

    chosen = sample(bundle, mine.records(), given["replay"])
    tell(f"replay of {counted(len(chosen), 'run')}")
    for record, outcome, detail in replays(chosen, given["jobs"], given["timeout"]):
        yield Finding(replay_line(record, outcome, detail), fails=outcome not in AS_RECORDED)
