"""Readers of GENETAG: its tagged sentences, and the alternative answers.

The files give each token one tag: NEWGENE or NEWGENE1 inside names, else an automatic part of
speech. A name has no part of speech, so a column "pos" would reveal the labels; there is none.

GENETAG's list of names (Gold.format) has 54 more names in train and 1 more in dev: mostly two names
for "RB2 / p130", which is one run of NEWGENE in the text. The labels here are those of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from sslbench.engine.corpus import Corpus, Vocabulary
from sslbench.engine.corpus.files import COPY_AGAIN, Source, read_text, source_name
from sslbench.engine.errors import UserError
from sslbench.engine.types import I64
from sslbench.experiment.metrics import Alternatives

BEGIN, _INSIDE, _OUTSIDE = "B-GENE", "I-GENE", "O"
_NAME_TAGS = ("NEWGENE", "NEWGENE1")
_SENTENCE_NAME = re.compile(r"@@[0-9]+")
_ALTERNATIVE = re.compile(r"(?P<name>@@[0-9]+)\|(?P<first>[0-9]+) (?P<last>[0-9]+)\|")


def read_tagged(source: Source, vocabularies: dict[str, Vocabulary]) -> Corpus:
    """Read TAGGED_GENE_CORPUS; columns word and label (IOB2 with the one type GENE).

    Each line is a sentence: @@number, then items word/TAG, split at the last slash. A run of one of
    the two name tags is a name. A tag may be empty (one in round1 is).

    vocabularies: vocabularies by column; they are extended, so that splits share them.
    UserError with the line for: a byte that is not ASCII, a sentence name that is missing or
    repeated, a sentence without a word, an item that is not word/TAG, a tag that resembles the name
    tags; without line for a file without sentences.
    """
    sentences = list(_sentences(source))
    if not sentences:
        raise UserError("no sentence in the file: it is empty", file=source_name(source))
    columns = {
        "word": [[word for word, _ in tokens] for tokens in sentences],
        "label": [list(_iob2(tag for _, tag in tokens)) for tokens in sentences],
    }
    return Corpus.from_sentences(columns, vocabularies)


def _iob2(tags: Iterable[str]) -> Iterator[str]:
    """Labels of one sentence. NEWGENE next to NEWGENE1 is another name."""
    before = ""
    for tag in tags:
        yield _OUTSIDE if tag not in _NAME_TAGS else _INSIDE if tag == before else BEGIN
        before = tag


def _sentences(source: Source) -> Iterator[list[tuple[str, str]]]:
    """Word and tag of each token, sentence by sentence."""
    file = source_name(source)
    line_of: dict[str, int] = {}
    for number, line in enumerate(_read_ascii(source).split("\n"), 1):
        cells = line.split()
        if not cells:
            continue
        name = cells[0]
        if not _SENTENCE_NAME.fullmatch(name):
            hint = "each line is one sentence and starts with its name, @@ and a number"
            raise UserError(f"{name!r} is not a sentence name", file=file, line=number, hint=hint)
        if name in line_of:
            message = f"sentence {name} is also in line {line_of[name]}"
            raise UserError(message, file=file, line=number, hint="remove one of them")
        line_of[name] = number
        if len(cells) == 1:
            raise UserError(f"sentence {name} has no word", file=file, line=number)
        yield [_token(item, file, number) for item in cells[1:]]


def _token(item: str, file: str, line: int) -> tuple[str, str]:
    word, _, tag = item.rpartition("/")
    if not word:
        hint = "the last slash of an item separates the word from its tag"
        raise UserError(f"{item!r} is not word/TAG", file=file, line=line, hint=hint)
    if "GENE" in tag.upper() and tag not in _NAME_TAGS:
        hint = f"names are tagged {' or '.join(_NAME_TAGS)}"
        raise UserError(f"unknown tag {tag!r}", file=file, line=line, hint=hint)
    return word, tag


def sentence_names(source: Source) -> list[str]:
    """The names (@@number) of the sentences of TAGGED_GENE_CORPUS, in order."""
    return [line.split(None, 1)[0] for line in _read_ascii(source).split("\n") if line.strip()]


def read_alternatives(source: Source, names: Sequence[str], offsets: I64) -> Alternatives:
    """Read Correct.Data: ``@@number|first last|text``, tokens of the sentence counted from 0.

    Only the token positions count, as for upstream's scorer. The text agrees with them except for
    case, once in train ("protein S7 .3" at "protein S7 .") and once in dev ("BamHI-F" at "but").
    Repeated answers count once. Answers in sentences that the corpus lacks (one in train) are left
    out. Of two entries on one line (once in train) only the first is read.

    names, offsets: names and borders of the sentences of the corpus.
    UserError with the line for another format or a position outside of the sentence.
    """
    file = source_name(source)
    number_of = {name: number for number, name in enumerate(names)}
    spans: set[tuple[int, int]] = set()
    for line, text in enumerate(_read_ascii(source).split("\n"), 1):
        if not text.strip():
            continue
        entry = _ALTERNATIVE.match(text)
        if entry is None:
            hint = "each line is @@number|first last|text"
            raise UserError(f"{text.strip()!r} is not an answer", file=file, line=line, hint=hint)
        sentence = number_of.get(entry["name"])
        if sentence is None:
            continue
        first, last = int(entry["first"]), int(entry["last"])
        start, end = offsets[sentence : sentence + 2].tolist()
        if not first <= last < end - start:
            message = f"{first} {last} is not a span of sentence {entry['name']}"
            hint = f"it has the tokens 0 to {end - start - 1}"
            raise UserError(message, file=file, line=line, hint=hint)
        spans.add((start + first, start + last))
    ordered = np.array(sorted(spans), dtype=np.int64).reshape(-1, 2)
    return Alternatives(ordered[:, 0], ordered[:, 1])


def _read_ascii(source: Source) -> str:
    return read_text(source, "ascii", COPY_AGAIN)
