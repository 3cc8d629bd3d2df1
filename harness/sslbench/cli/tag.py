"""``sslbench tag``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sslbench.cli.options import column_names
from sslbench.cli.text import counted, percentages, warn_of_problems
from sslbench.errors import UserError

if TYPE_CHECKING:
    from sslbench.corpus import Corpus, RawBytes
    from sslbench.experiment.saved import SavedTagger
    from sslbench.types import I32


@click.command("tag")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("file")
@click.option("--out", type=click.Path(path_type=Path), help="Default: standard output.")
@click.option("--columns", help="Of FILE. Default: of the training file; label may be missing.")
@click.option("--threads", type=click.IntRange(min=1), help="Default: all cores.")
def command(
    model: Path, file: str, out: Path | None, columns: str | None, threads: int | None
) -> None:
    """Tag FILE ("-" = standard input) with a saved tagger, which adds a column to every line.

    FILE has the columns of the training file; the label column may be missing. Otherwise the scores
    against it go to standard error.
    """
    from sslbench.experiment.execute.threads import use_threads
    from sslbench.plugins import registry

    use_threads(threads)
    plugins = registry()
    warn_of_problems(plugins)
    from sslbench.atomic import write_atomically
    from sslbench.corpus import read_conll
    from sslbench.corpus.annotate import append_column
    from sslbench.experiment.saved import load_tagger

    tagger = load_tagger(model, plugins)
    source = _read(file)
    corpus = read_conll(source, _columns(tagger, source, columns))
    codes = tagger.tag(corpus)
    result = append_column(source.data, tagger.texts(corpus, codes))
    if out is None:
        sys.stdout.buffer.write(result)
    else:
        write_atomically(out, result)
    _report(tagger, corpus, codes, source)


def _read(file: str) -> RawBytes:
    from sslbench.corpus import RawBytes, read_bytes

    if file == "-":
        return RawBytes("standard input", sys.stdin.buffer.read())
    return RawBytes(file, read_bytes(file))


def _columns(tagger: SavedTagger, source: RawBytes, given: str | None) -> tuple[str, ...]:
    """The columns of the file: as given, or those of the training file with or without label."""
    from sslbench.corpus.annotate import n_columns

    if given is not None:
        return column_names(given)
    if tagger.corpus is None:
        raise UserError(
            "the model does not say which columns it reads", hint="give --columns, e.g. word,pos"
        )
    trained = tagger.corpus.columns
    without_label = tuple(name for name in trained if name != "label")
    width = n_columns(source.data)
    if width not in (0, len(without_label), len(trained)):
        raise UserError(
            f"{counted(width, 'column')}, but the tagger was trained on"
            f" {','.join(trained)} (label may be missing)",
            file=source.name,
            hint="name them with --columns; _ skips one",
        )
    return without_label if width == len(without_label) else trained


def _report(tagger: SavedTagger, corpus: Corpus, codes: I32, source: RawBytes) -> None:
    from sslbench.cli.messages import tell

    size = counted(corpus.n_sentences, "sentence")
    if "label" not in corpus.columns:
        tell(f"{source.name}, {size}: read as {','.join(corpus.columns)}, no label column to score")
        return
    try:
        scores = percentages(tagger.metrics(corpus, codes))
    except UserError as problem:  # e.g. a column of placeholders
        tell(f"{source.name}: the label column is not scored: {problem}")
    else:
        tell(f"{source.name}, {size}: {scores}")
