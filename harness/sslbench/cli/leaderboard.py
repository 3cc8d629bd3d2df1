"""``sslbench leaderboard``."""

from __future__ import annotations

from pathlib import Path

import click

from sslbench.cli.text import counted, table


@click.command("leaderboard")
@click.option("--store", default="runs", show_default=True, help="Folder of the run records.")
@click.option(
    "--out",
    default="leaderboards",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Folder of the tables.",
)
@click.option("--check", is_flag=True, help="Write nothing; exit status 1 if files would change.")
@click.pass_context
def command(ctx: click.Context, store: str, out: Path, check: bool) -> None:
    """Make tables (Markdown, CSV, HTML) and learning curves from the run records.

    Standard output gets a short form of the tables or, with --check, the files that would change.
    """
    from sslbench.cli.messages import plain_warnings, tell
    from sslbench.errors import UserError
    from sslbench.experiment.store import Store
    from sslbench.report.leaderboard import leaderboard
    from sslbench.report.render import changed_files, plain, table_files, write_files

    with plain_warnings():
        records = Store(store).records()
    if not records:
        raise UserError("no run records", file=store, hint="sslbench run makes them; see --store")
    tables = leaderboard(records)
    files = table_files(tables)
    if check:
        changed = changed_files(out, files)
        for name in changed:
            click.echo(out / name)
    else:
        changed = write_files(out, files)
        for heading, rows in plain(tables):
            click.echo(f"{heading}\n{table(rows)}\n")
    n_obsolete = len([name for name in changed if name not in files])
    what = "would change" if check else f"written to {out}"
    files_changed = f"{len(changed) - n_obsolete} of {len(files)} files {what}"
    text = f"{counted(len(records), 'record')}, {files_changed}"
    tell(f"{text}, {n_obsolete} obsolete" if n_obsolete else text)
    ctx.exit(1 if check and changed else 0)
