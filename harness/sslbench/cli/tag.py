"""``sslbench tag``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from sslbench.cli.options import THREADS, names_in
from sslbench.cli.text import counted, percentages, warn_of_problems
from sslbench.engine.errors import UserError

if TYPE_CHECKING:
    from sslbench.engine.corpus import Corpus
    from sslbench.engine.corpus.sentence_parts import Part
    from sslbench.engine.types import I32, I64
    from sslbench.experiment.run.saved import SavedTagger
    from sslbench.tagging.annotated import Annotator, Sentence
    from sslbench.tagging.forms import Form

_BLOCK = 2**20


@click.command("tag")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("file")
@click.option("--out", type=click.Path(path_type=Path), help="Default: standard output.")
@click.option("--columns", help="Of FILE. Default: of the training file; label may be missing.")
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
    default="conll",
    show_default=True,
    help="A token per line; a JSON object per sentence; a page with colored spans; brat's .ann and"
    " the text in .txt; labels and attributes for a converted model.",
)
@THREADS
def command(**given: Any) -> None:
    """Tag FILE ("-" = standard input) with a saved tagger, which adds a column to every line.

    FILE has the columns of the training file; the label column may be missing. Otherwise the scores
    against it go to standard error. FILE may be of any length: it is read and written in parts.
    """
    from sslbench.experiment.execute.startup import use_threads
    from sslbench.plugins import registry

    if given["split"] and not given["raw"]:
        raise UserError("--split is for raw text", hint="give --raw, too")
    if given["form"] == "brat":
        _check_standoff(given["file"], given["out"])
    use_threads(given["threads"])
    plugins = registry()
    warn_of_problems(plugins)
    from sslbench.engine.files.atomic import replacing
    from sslbench.experiment.run.saved import load_tagger
    from sslbench.tagging.annotated import Annotator

    file, out = given["file"], given["out"]
    attributes = given["form"] == "crfsuite"
    tagger = load_tagger(given["model"], plugins)
    annotator = Annotator(tagger, given["marginals"], given["nbest"], attributes)
    work = _Tagging(annotator, _name(file), given)
    if out is None:
        work.write_to(sys.stdout.buffer, _blocks(file))
    elif given["form"] == "brat":
        with replacing(out) as target, replacing(out.with_suffix(".txt")) as text:
            work.write_to(target, _blocks(file), text)
    else:
        with replacing(out) as target:
            work.write_to(target, _blocks(file))
    work.report()


def _check_standoff(file: str, out: Path | None) -> None:
    """UserError unless there is a name for both files, and the text would not replace FILE."""
    hint = "give --out NAME.ann; the text goes to NAME.txt"
    if out is None or out.suffix != ".ann":
        raise UserError("brat needs two files", hint=hint)
    if out.with_suffix(".txt").resolve() == Path(file).resolve():
        raise UserError("the text for brat would replace the file itself", file=file, hint=hint)


def _name(file: str) -> str:
    return "standard input" if file == "-" else file


def _blocks(file: str) -> Iterator[bytes]:
    from sslbench.engine.corpus.files import read_blocks

    if file == "-":
        return iter(lambda: sys.stdin.buffer.read(_BLOCK), b"")
    return read_blocks(file, max_bytes=float("inf"))  # read in parts: memory is bounded


class _Tagging:
    """The tagging of one file in parts, and the sums of its scores.

    given: the options of the command.
    """

    def __init__(self, annotator: Annotator, name: str, given: dict[str, Any]) -> None:
        from sslbench.tagging.familiarity import Familiarity

        self._annotator, self._name, self._given = annotator, name, given
        self._tagger = annotator.tagger
        self._columns: tuple[str, ...] = ()
        self._sentences = 0
        self._fields: tuple[str, ...] = ()
        self._sums: I64 | int = 0
        self._known = False  # whether the tagger has any of the labels
        self._unscored: UserError | None = None
        self._familiarity = Familiarity.of(self._tagger)

    def write_to(
        self, target: IO[bytes], blocks: Iterator[bytes], text: IO[bytes] | None = None
    ) -> None:
        """Tag the text and write it; UserError for text that cannot be read.

        text: takes the text itself, for a form that needs it.
        """
        if self._given["form"] == "conll" and not self._given["raw"]:
            self._extend(target, blocks)
        else:
            form = self._form(text)
            head = form.head()  # written once there is a sentence
            corpora = self._raw(blocks) if self._given["raw"] else self._parts(blocks)
            for corpus in corpora:
                target.write(head + form.body(self._tag(corpus)))
                head = b""
            target.write(head + form.foot() if self._sentences else b"")
        if not self._sentences:
            raise UserError("no token in the file: it is empty", file=self._name)

    def _form(self, text: IO[bytes] | None) -> Form:
        from sslbench.tagging.forms import Columns, Items, JsonLines, Page, Standoff

        match self._given["form"]:
            case "jsonl":
                return JsonLines()
            case "html":
                return Page(self._name)
            case "crfsuite":
                return Items()
        return Columns(self._given["nbest"]) if text is None else Standoff(text)

    def _extend(self, target: IO[bytes], blocks: Iterator[bytes]) -> None:
        """Write the file itself with more columns."""
        from sslbench.engine.corpus.annotate import append_columns, n_columns
        from sslbench.engine.corpus.sentence_parts import MAX_SENTENCE, sentence_parts

        blank = b""  # written once there is a sentence
        for part in sentence_parts(blocks, self._name):
            values: list[list[str]] = []
            if n_columns(part.text):
                values = self._values(self._corpus(part))
            blank += append_columns(part.text, values)
            if self._sentences:
                target.write(blank)
                blank = b""
            elif len(blank) > MAX_SENTENCE:
                message = f"no token in the first {MAX_SENTENCE:,} bytes"
                raise UserError(message, file=self._name)

    def _values(self, corpus: Corpus) -> list[list[str]]:
        """The new columns of each token."""
        from sslbench.tagging.forms import columns_of

        n_best = self._given["nbest"]
        if not n_best and not self._given["marginals"]:  # without an object for each sentence
            return [[text] for text in self._tagger.texts(corpus, self._codes(corpus))]
        return list(chain.from_iterable(columns_of(s, n_best) for s in self._tag(corpus)))

    def _parts(self, blocks: Iterator[bytes]) -> Iterator[Corpus]:
        from sslbench.engine.corpus.annotate import n_columns
        from sslbench.engine.corpus.sentence_parts import sentence_parts

        for part in sentence_parts(blocks, self._name):
            if n_columns(part.text):
                yield self._corpus(part)

    def _corpus(self, part: Part) -> Corpus:
        from sslbench.engine.corpus import RawBytes, read_conll

        given = self._given["columns"]
        self._columns = self._columns or _columns(self._tagger, part.text, self._name, given)
        try:
            return read_conll(RawBytes(self._name, part.text), self._columns)
        except UserError as error:
            if error.line is not None:
                error.line += part.lines_before
            raise

    def _raw(self, blocks: Iterator[bytes]) -> Iterator[Corpus]:
        from sslbench.engine.corpus.tokens import corpus_of
        from sslbench.tagging.raw import default_split, raw_parts

        self._columns = columns = self._tagger.columns
        if len(columns) != 1:
            message = f"the tagger reads {', '.join(columns)} of a token, raw text has words only"
            raise UserError(message, hint="give a file with these columns, or another tagger")
        task = self._tagger.corpus.task if self._tagger.corpus else ""
        split = self._given["split"] or default_split(task)
        for sentences in raw_parts(blocks, split, self._name):
            yield corpus_of(sentences, columns)

    def _tag(self, corpus: Corpus) -> Iterator[Sentence]:
        return self._annotator.sentences(corpus, self._codes(corpus))

    def _codes(self, corpus: Corpus) -> I32:
        """Tag, count unknown words, and add to the scores if there are labels."""
        codes = self._tagger.tag(corpus)
        if self._familiarity is not None:
            self._familiarity.add(corpus)
        self._sentences += corpus.n_sentences
        if "label" in self._columns and self._unscored is None:
            self._score(corpus, codes)
        return codes

    def _score(self, corpus: Corpus, codes: I32) -> None:
        try:
            counts, known = self._tagger.counts(corpus, codes)
        except UserError as problem:  # e.g. a column of placeholders
            self._unscored = problem
            return
        table = counts.table()
        self._fields, self._sums = table.fields, self._sums + table.rows.sum(axis=0)
        self._known = self._known or known

    def report(self) -> None:
        """A line on standard error with the scores."""
        from sslbench.cli.messages import tell
        from sslbench.experiment.metrics import ratios

        far = None if self._familiarity is None else self._familiarity.warning()
        if far is not None:
            tell(f"warning: {self._name}: {far}")
        size = counted(self._sentences, "sentence")
        if "label" not in self._columns:
            read = ",".join(name for name in self._columns if name != "_")
            tell(f"{self._name}, {size}: read as {read}, no label column to score")
        elif self._unscored is not None or not self._known:
            why = self._unscored or "the tagger has none of its labels"
            tell(f"{self._name}: the label column is not scored: {why}")
        else:
            scores = ratios(self._sums, self._fields)
            metrics = {name: float(value) for name, value in scores.items()}
            tell(f"{self._name}, {size}: {percentages(metrics)}")


def _columns(tagger: SavedTagger, text: bytes, name: str, given: str | None) -> tuple[str, ...]:
    """The columns of the file: as given, or those of the training file with or without label."""
    from sslbench.engine.corpus.annotate import n_columns

    if given is not None:
        return names_in(given)
    if tagger.corpus is None:
        raise UserError(
            "the model does not say which columns it reads", hint="give --columns, e.g. word,pos"
        )
    trained = tagger.corpus.columns
    without_label = tuple(name for name in trained if name != "label")
    width = n_columns(text)
    if width not in (len(without_label), len(trained)):
        raise UserError(
            f"{counted(width, 'column')}, but the tagger was trained on"
            f" {','.join(trained)} (label may be missing)",
            file=name,
            hint="name them with --columns; _ skips one",
        )
    return without_label if width == len(without_label) else trained
