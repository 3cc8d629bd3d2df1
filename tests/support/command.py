"""The command line, called in this process."""

from __future__ import annotations

from click.testing import CliRunner, Result

from sslbench.cli import cli


def sslbench(*words: object, stdin: str | None = None, catch_exceptions: bool = True) -> Result:
    """Call ``sslbench`` with these words."""
    runner = CliRunner()
    return runner.invoke(cli, [*map(str, words)], stdin, catch_exceptions=catch_exceptions)
