"""``sslbench leaderboard``."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("leaderboard")
@click.option("--store", default="runs", show_default=True, help="Folder of the run records.")
@click.option(
    "--out", default="leaderboards", show_default=True, type=click.Path(path_type=Path),
    help="Folder of the tables.",
)  # fmt: skip
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if files would change.")
@click.pass_context
def command(ctx: click.Context, store: str, out: Path, check: bool) -> None:
    """Make the tables (Markdown, CSV, HTML) and learning curves from the run records."""
    from sslbench.cli.messages import plain_warnings, tell
    from sslbench.errors import UserError
    from sslbench.experiment.store import Store
    from sslbench.report.render import changed_files, leaderboard_files, write_files

    with plain_warnings():
        records = Store(store).records()
    if not records:
        raise UserError("no run records", file=store, hint="sslbench run makes some; see --store")
    files = leaderboard_files(records)
    changed = changed_files(out, files) if check else write_files(out, files)
    for name in changed:
        click.echo(out / name)
    what = "would change" if check else "written"
    tell(f"{len(records)} records, {len(changed)} of {len(files)} files {what}")
    ctx.exit(1 if check and changed else 0)
