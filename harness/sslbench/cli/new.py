"""``sslbench new``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sslbench.cli.messages import tell
from sslbench.cli.options import PATH
from sslbench.cli.text import echo


@click.command("new")
@click.argument("kind", type=click.Choice(["method", "dataset", "featurizer", "model"]))
@click.argument("name")
@click.option(
    "--dir",
    "parent",
    type=PATH,
    default=".",
    show_default=True,
    help="Folder in which the package's folder NAME is made.",
)
@click.option("--torch", is_flag=True, help="For a model: a network in PyTorch.")
def command(kind: Any, name: str, parent: Path, torch: bool) -> None:
    """Write a small plugin package to start from: code, registration and tests.

    The package is called sslbench_NAME. It installs, runs and passes its tests as it is. The path
    of its folder goes to standard output.
    """
    from sslbench.scaffold import write_package

    if torch and kind != "model":
        raise click.UsageError(f"--torch is for a model, not a {kind}")
    folder = write_package(kind, name, parent, torch=torch)
    echo(folder)
    tell(f"next: pip install -e {folder}; pytest {folder}; sslbench check {name}")
