"""``sslbench bench``."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, TextIO

import click

from sslbench.cli.options import THREADS, format_option
from sslbench.cli.text import counted, echo
from sslbench.engine.errors import UserError
from sslbench.engine.variables import processors
from sslbench.experiment.execute.startup import thread_variables

_FOLDER = Path("tests", "benchmarks")
_BESIDE_PEER = "test_benchmarks.py"
_SCORES = "scores.py"
_CORPORA = ("conll00", "conll03", "ud_el", "sxu")
_WIDTH = 80  # of a table that goes to a file
_COLUMNS = "--benchmark-columns=min,median,max,rounds"


@click.command("bench")
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
@THREADS
@click.option(
    "--sentences",
    type=click.IntRange(min=0),
    default=2000,
    show_default=True,
    help="Of the training text; 0 = the whole corpus (10 minutes and more).",
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Also graphs, posterior regularization, second order, reading, streaming (minutes).",
)
@click.option(
    "--scores",
    is_flag=True,
    help=f"Instead: test score against CPU seconds of training, on {', '.join(_CORPORA)}.",
)
@format_option(["table", "json"])
def command(
    rounds: int, threads: int | None, sentences: int, everything: bool, scores: bool, form: str
) -> None:
    """Time the engine and python-crfsuite on the same sentences, attributes and weights.

    On CoNLL-2000 if it is in the data home, otherwise on generated text of the same size. Needs the
    source checkout and pip install 'sslbench[bench]'. Times are medians of --rounds; trainings run
    once. --scores compares with all five trainers of CRFsuite.
    """
    if scores:
        _run([str(find_benchmarks() / _SCORES), str(sentences), *_CORPORA], thread_variables(1))
        return
    report = measure(
        rounds=rounds,
        threads=threads or processors(),
        sentences=sentences,
        everything=everything,
    )
    if form == "json":
        echo(json.dumps(report, indent=1))
    else:
        _print_table(report)


def measure(
    *, rounds: int, threads: int, sentences: int = 0, everything: bool = False
) -> dict[str, Any]:
    """Run the benchmarks in a separate process.

    sentences: 0 = all.  everything: not only those beside python-crfsuite.
    Return ``{"text": name, "threads": n, "figures": {name: {"unit": u, "ours": x, "peer": y}}}``;
    a figure without peer has no such key, some have further values.
    UserError if the benchmarks or their packages are missing, or one of them fails.
    """
    import sys
    import tempfile

    folder = find_benchmarks()
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch, "figures.json")
        variables = {
            **thread_variables(threads),
            "SSLBENCH_BENCH_SENTENCES": str(sentences),
            "SSLBENCH_BENCH_ROUNDS": str(rounds),
            "SSLBENCH_BENCH_OUT": str(out),
        }
        files = folder if everything else folder / _BESIDE_PEER
        words = ["-m", "pytest", str(files), "-q", "-rs", "--benchmark-enable", _COLUMNS]
        _run([*words, f"--rootdir={folder.parents[1]}"], variables, sys.stderr, made=out)
        report: dict[str, Any] = json.loads(out.read_text())
    return {"threads": threads, "rounds": rounds, **report}


def _run(
    words: list[str],
    variables: dict[str, str],
    stdout: TextIO | None = None,
    made: Path | None = None,
) -> None:
    """Run Python in the top folder of the checkout; UserError if it fails or `made` is missing."""
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, *words],
        env={**os.environ, **variables},
        stdout=stdout,
        cwd=find_benchmarks().parents[1],
    )
    if done.returncode or not (made is None or made.exists()):
        raise UserError(
            "the benchmarks failed (see their messages above)",
            hint="pip install 'sslbench[bench]'",
        )


def find_benchmarks() -> Path:
    """The folder tests/benchmarks of the checkout; UserError if there is none."""
    places = [Path.cwd(), Path(__file__).resolve().parents[3]]
    for place in places:
        if (place / _FOLDER / _BESIDE_PEER).is_file():
            return place / _FOLDER
    raise UserError(
        f"no folder {_FOLDER.as_posix()}: the benchmarks are in the source checkout only",
        hint="run the command in its top folder",
    )


def _print_table(report: dict[str, Any]) -> None:
    """The ratios, then what else was measured, a line per figure."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    title = f"{report['text']}, {counted(report['threads'], 'thread')}"
    table = Table(title=title, box=box.SIMPLE_HEAD)
    for heading in ("", "unit", "sslbench", "peer", "peer / ours"):
        justify: Any = "left" if heading in ("", "unit") else "right"
        table.add_column(heading, justify=justify, no_wrap=heading != "")  # numbers are not broken
    notes = []
    for name, values in report["figures"].items():
        ours, peer = values.get("ours"), values.get("peer")
        ratio = f"{peer / ours:.2f}" if ours and peer else ""
        table.add_row(name, values["unit"], _number(ours), _number(peer), ratio)
        others = {key: x for key, x in values.items() if key not in ("unit", "ours", "peer")}
        if others:
            texts = ", ".join(f"{key.replace('_', ' ')} {_number(x)}" for key, x in others.items())
            notes.append(f"{name}: {texts}")
    terminal = Console()
    console = terminal if terminal.is_terminal else Console(width=_WIDTH)
    console.print(table)
    for note in notes:
        console.print(note, markup=False, highlight=False)


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
