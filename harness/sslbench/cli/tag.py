"""``sslbench tag``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from sslbench.cli.messages import tell
from sslbench.cli.options import PATH, THREADS, names_in, shared
from sslbench.cli.text import checked_registry, counted, percentages
from sslbench.engine.errors import UserError
from sslbench.experiment.execute.startup import use_threads

if TYPE_CHECKING:
    from sslbench.tagging.annotated import Annotator
    from sslbench.tagging.scored import ScoredTagger

_BLOCK = 2**20


@click.command("tag")
@click.argument("model", type=PATH)
@click.argument("file")
@click.option("--out", type=PATH, help="Default: standard output.")
@click.option("--columns", help="Of FILE. Default: of the training file; label may be missing.")
@shared("encoding", help="Of FILE, e.g. utf-16 or latin-1. Default: seen in it.")
@shared(
    "separator", help="Of FILE: space, tab, comma, semicolon or a character. Default: seen in it."
)
@shared("comment")
@shared("label_names")
@click.option("--raw", is_flag=True, help="FILE is text with one sentence per line.")
@click.option(
    "--split",
    type=click.Choice(["words", "rules", "english", "characters"]),
    help="With --raw: at white space; punctuation apart; English clitics, too; characters."
    " Default: characters for segmentation, else rules.",
)
@click.option("--marginals", is_flag=True, help="Write the probability of each label.")
@click.option(
    "--nbest",
    type=click.IntRange(min=0, max=1000),
    default=0,
    metavar="K",
    help="Write the K best label sequences of each sentence.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["conll", "jsonl", "html", "brat", "crfsuite"]),
    help="A token per line; a JSON object per sentence; a page with colored spans; brat's .ann and"
    " the text in .txt; labels and attributes for a converted model. Default: conll; for a file of"
    " another program, its form.",
)
@THREADS
def command(**given: Any) -> None:
    """Tag FILE ("-" = standard input) with a saved tagger, which adds a column to every line.

    FILE has the columns of the training file; the label column may be missing. Otherwise the scores
    against it go to standard error. In CoNLL-U, the trained field is filled. All else is kept byte
    for byte. FILE may be of any length: it is read and written in parts.

    JSON, parquet, DocBin (spaCy) and folders of brat come back with labels, too.
    """
    file, form = given["file"], given["form"]
    if given["split"] and not given["raw"]:
        raise UserError("--split is for raw text", hint="give --raw, too")
    if form == "brat":
        _check_standoff(file, given["out"])
    use_threads(given["threads"])
    plugins = checked_registry()
    from sslbench.experiment.run.saved import load_tagger
    from sslbench.tagging.annotated import Annotator
    from sslbench.tagging.imports import kind_to_tag

    tagger = load_tagger(given["model"], plugins)
    annotator = Annotator(tagger, given["marginals"], given["nbest"], form == "crfsuite")
    rows = file == "-" or given["raw"] or given["columns"] is not None
    write = _write_rows if rows or kind_to_tag(Path(file)) is None else _write_imported
    _report(write(annotator, given))


def _write_rows(annotator: Annotator, given: dict[str, Any]) -> ScoredTagger:
    """Tag a file with columns, or raw text."""
    from sslbench.experiment.data.layout import Reading
    from sslbench.tagging.files import FileTagger

    file = given["file"]
    work = FileTagger(
        annotator,
        "standard input" if file == "-" else file,
        names_in(given["columns"]),
        form=given["form"] or "conll",
        raw=given["raw"],
        split=given["split"] or "",
        reading=Reading(given["encoding"], given["separator"], given["comment"]),
    )
    with _targets(given) as (target, text):
        work.write_to(target, _blocks(file), text)
    return work


def _write_imported(annotator: Annotator, given: dict[str, Any]) -> ScoredTagger:
    """Tag a file of another program."""
    from sslbench.tagging.imports import ImportTagger, kind_to_tag

    file, out, form = given["file"], given["out"], given["form"] or ""
    work = ImportTagger(
        annotator, file, form=form, encoding=given["encoding"], label_names=given["label_names"]
    )
    if out is not None and not form and kind_to_tag(Path(file)) == "brat":
        work.write_folder(out)
    else:
        with _targets(given) as (target, text):
            work.write_to(target, text)
    return work


@contextmanager
def _targets(given: dict[str, Any]) -> Iterator[tuple[IO[bytes], IO[bytes] | None]]:
    """The file for the results, and for brat the one for the text."""
    from sslbench.engine.files.atomic import replacing

    out = given["out"]
    with ExitStack() as files:
        target = sys.stdout.buffer if out is None else files.enter_context(replacing(out))
        brat = given["form"] == "brat"
        yield target, files.enter_context(replacing(out.with_suffix(".txt"))) if brat else None


def _check_standoff(file: str, out: Path | None) -> None:
    """UserError unless there is a name for both files, and the text would not replace FILE."""
    hint = "give --out NAME.ann; the text goes to NAME.txt"
    if out is None or out.suffix != ".ann":
        raise UserError("brat needs two files", hint=hint)
    if out.with_suffix(".txt").resolve() == Path(file).resolve():
        raise UserError("the text for brat would replace the file itself", file=file, hint=hint)


def _blocks(file: str) -> Iterator[bytes]:
    from sslbench.engine.corpus.files import read_blocks

    if file == "-":
        return iter(lambda: sys.stdin.buffer.read(_BLOCK), b"")
    return read_blocks(file, max_bytes=float("inf"))  # read in parts: memory is bounded


def _report(work: ScoredTagger) -> None:
    """Write a line with the scores to standard error."""
    far, scores, form = work.warning(), work.scores(), work.form_line()
    if form:
        tell(f"{work.name}: read as {form}")
    if far is not None:
        tell(f"warning: {work.name}: {far}")
    size = f"{work.name}, {counted(work.n_sentences, 'sentence')}"
    tell(f"{size}: {scores if isinstance(scores, str) else percentages(scores)}")
