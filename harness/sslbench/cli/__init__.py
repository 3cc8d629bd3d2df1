"""The command line. Each command is a module that is imported when it is used.

Exit status: 0 done; 1 a failure, such as an internal error; 2 wrong usage or bad input, reported in
one line; 128 and the number of a signal. ``--debug`` shows the traceback of any error.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import click

from sslbench.cli.as_process import (
    READER_GONE,
    Interrupted,
    in_words,
    interrupted_by_signals,
    is_full,
    prepare_streams,
    unwritten,
)
from sslbench.engine.errors import UserError, shortened
from sslbench.engine.variables import check_limits, check_variables

#: one line of help by name; the overview prints it and does not import ``sslbench.cli.NAME``
COMMANDS: dict[str, str] = {
    "run": "Run methods on datasets and store the records.",
    "list": "List methods, datasets, featurizers, models and other plugins.",
    "show": "Show the details of one of these, or of a saved tagger.",
    "data": "Fetch, verify and locate the files of datasets.",
    "suite": "Run a leaderboard from a TOML file: status and cost, missing runs, page.",
    "submit": "Pack the runs of your own method into a bundle, or check a bundle.",
    "leaderboard": "Make the tables from the records.",
    "results": "Pack finished records, and fetch published ones.",
    "compare": "Test the difference between two runs.",
    "verify": "Replay records on today's code, bit for bit.",
    "errors": "Show the errors of a run, or of two side by side.",
    "warmup": "Compile what runs need, so that the first does not wait.",
    "doctor": "Look at versions, folders, memory and plugins.",
    "bench": "Time the engine beside python-crfsuite.",
    "graph": "Show statistics of the similarity graph of a dataset.",
    "choose": "Find features and a method for your own data.",
    "train": "Train a tagger and save it.",
    "tag": "Tag a file with a saved tagger.",
    "convert": "Convert taggers from and to models of other programs.",
    "new": "Write a plugin package to start from.",
    "check": "Check that a plugin follows the rules.",
}


class LazyGroup(click.Group):
    """A group whose commands are imported on use; it reports errors in one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names in the order of `COMMANDS`."""
        return [*COMMANDS]  # `list` is a module here, once it is imported

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; UsageError with similar names if there is none of this name."""
        if cmd_name.startswith("-"):
            return None
        if cmd_name not in COMMANDS:
            import difflib  # imported for mistakes only

            similar = difflib.get_close_matches(cmd_name, COMMANDS, n=2)
            hint = f"did you mean {' or '.join(similar)}?" if similar else "see sslbench --help"
            raise click.UsageError(f"no command {cmd_name!r}; {hint}", ctx)
        command: click.Command = import_module(f"sslbench.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the overview of `COMMANDS`."""
        with formatter.section("Commands"):
            formatter.write_dl([*COMMANDS.items()])

    def make_context(self, *given: Any, **more: Any) -> click.Context:
        """Parse the options of the group."""
        try:
            return super().make_context(*given, **more)
        except click.ClickException as problem:
            raise _printable(problem) from None
        except click.exceptions.Exit:
            raise
        except OSError as problem:  # of --help and --version
            raise _reported(problem) from problem

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; report errors in one line on standard error and by the exit status."""
        from sslbench.cli.messages import plain_warnings

        try:
            with plain_warnings():
                check_variables()
                check_limits()
                return super().invoke(ctx)
        except click.ClickException as problem:
            raise _printable(problem) from None
        except (click.exceptions.Exit, click.Abort):
            raise
        except Interrupted as stopped:
            click.echo(f"sslbench: ended by {stopped}", err=True)
            raise click.exceptions.Exit(stopped.exit_status) from stopped
        except Exception as problem:
            if ctx.params.get("debug"):
                raise
            raise _reported(problem) from problem


def _reported(problem: Exception) -> click.exceptions.Exit:
    """Write an error in one line to standard error; return the end of the command.

    A reader that has gone, as in ``sslbench list | head``, is no error that is shown.
    """
    if isinstance(problem, BrokenPipeError):
        return click.exceptions.Exit(READER_GONE)
    full = is_full(problem)
    problem = in_words(problem)
    if isinstance(problem, UserError):
        click.echo(f"sslbench: {problem}", err=True)
        return click.exceptions.Exit(1 if full else 2)
    text = shortened(" ".join(f"{type(problem).__name__}: {problem}".split()))
    click.echo(f"sslbench: internal error: {text} (--debug shows where)", err=True)
    return click.exceptions.Exit(1)


def _printable(problem: click.ClickException) -> click.ClickException:
    """The error, which quotes what was typed, with a message for terminals."""
    lines = problem.message.expandtabs().split("\n")
    vars(problem)["message"] = "\n".join(map(shortened, lines))
    return problem


def _print_version(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from sslbench import __version__

        click.echo(f"sslbench {__version__}")
        ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version.",
)
def cli(debug: bool) -> None:
    """Compare semi-supervised learning methods for sequence labeling on equal terms.

    \b
    A first run, which needs no files:
        sslbench run --method supervised --method jess_cm --dataset synth --labeled 50
    """


def main() -> None:
    """Run the command line (entry point of the ``sslbench`` script)."""
    shown = prepare_streams()
    status: Any = 0
    with interrupted_by_signals():
        try:
            cli(prog_name="sslbench")
        except SystemExit as end:
            status = end.code
    full = unwritten()
    if not status and isinstance(full, BrokenPipeError):
        status = READER_GONE
    if not status and (full or not shown):
        why = "it is closed" if full is None else full.strerror
        click.echo(f"sslbench: the results cannot be written to standard output: {why}", err=True)
        status = 1
    sys.exit(status)
