"""Which files are imported, and their corpora."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sslbench.engine.corpus import Corpus, Vocabulary
from sslbench.engine.errors import UserError
from sslbench.experiment.data.imports.items import Item
from sslbench.experiment.data.imports.json_files import JsonFile, Names
from sslbench.experiment.data.imports.label_names import names_beside
from sslbench.experiment.data.imports.others import (
    annotated_texts,
    brat_items,
    parquet_rows,
    spacy_docs,
)

#: endings, and what their files are called
KINDS = {
    ".jsonl": "JSON",
    ".ndjson": "JSON",
    ".json": "JSON",
    ".parquet": "parquet",
    ".spacy": "DocBin of spaCy",
    ".ann": "brat",
}
_UNREADABLE = frozenset("\0\t\n\v\f\r")  # they would separate columns and lines


class Imported(NamedTuple):
    """The corpus of a file, its sentences, and what a user should know of them, in words."""

    corpus: Corpus
    items: list[Item]
    notes: tuple[str, ...]


def kind_of(file: Path) -> str | None:
    """Return the kind of file to import; None for a file with columns or text.

    A text is brat's if its .ann file is beside it, and so is a folder with such files.
    """
    if file.is_dir():
        return "brat" if any(file.rglob("*.ann")) else None
    ending = Path(file.name.lower().removesuffix(".gz")).suffix
    if ending == ".txt" and file.with_suffix(".ann").is_file():
        return "brat"
    return KINDS.get(ending)


def parts_of(file: Path) -> list[Path]:
    """Return the files that are read for it: those of brat, or the file itself."""
    if kind_of(file) != "brat":
        return [file]
    return [each for notes in annotated_texts(file) for each in (notes, notes.with_suffix(".txt"))]


def import_file(
    file: Path,
    text: str,
    label_names: Sequence[str],
    vocabularies: dict[str, Vocabulary],
    labeled: bool,
) -> Imported:
    """Read a file of another program.

    Parameters
    ----------
    text: the text of a JSON file; other files are read here.
    label_names: of labels that are numbers; () = those of a file beside it.
    labeled: sentences without labels are left out; otherwise there is no column label.

    Raises
    ------
    UserError: with its place, for what is no sentence; for a file without sentences.
    """

    every = _items(file, text, names_for(file, label_names))
    used = [item for item in every if not (labeled and item.labels is None)]
    if not used:
        raise UserError("no sentence with labels" if labeled else "no sentence", file=file)
    for item in used:
        check_item(item)
    columns = {"word": [item.words for item in used]}
    if labeled:
        columns["label"] = [item.labels or [] for item in used]
    corpus = Corpus.from_sentences(columns, vocabularies)
    places: dict[object, int] = {}
    numbers = [places.setdefault(item.place, len(places)) for item in used]
    if 1 < len(places) < len(used):  # texts of several sentences
        corpus = replace(corpus, documents=np.array(numbers, dtype=np.int32))
    notes = _notes(used, len(every) - len(used)) if labeled else ()
    return Imported(corpus, used, notes)


def names_for(file: Path, label_names: Sequence[str]) -> Names:
    """Return the names of labels that are numbers: those given, or those beside the file."""
    return lambda key: label_names or names_beside(file, key)


def _items(file: Path, text: str, names: Names) -> list[Item]:
    match kind_of(file):
        case "brat":
            return [item for notes in annotated_texts(file) for item in brat_items(notes)]
        case "parquet":
            _, rows = parquet_rows(file, names)
            return [item for _, items in rows for item in items]
        case "JSON":
            return JsonFile.read(text, str(file), names).items
        case _:
            return [item for doc in spacy_docs(file)[1] for item in doc.items]


def check_item(item: Item) -> None:
    """UserError for a word or label that columns cannot say."""
    for text in (*item.words, *(item.labels or ())):
        if not text.strip() or not _UNREADABLE.isdisjoint(text):
            raise item.place.error(f"{text!r} is no token and no label", "remove or rename it")
        if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
            raise item.place.error(f"{text!r} is half a character", "write the file as UTF-8")


def _notes(used: Sequence[Item], left_out: int) -> tuple[str, ...]:
    extended = [text for item in used for text in item.extended]
    notes = []
    if extended:
        n = len(extended)
        what = f"{n} span{'s' * (n > 1)} that end{'s' * (n == 1)} inside a token"
        notes.append(f"{what} extended to the whole token (first: {extended[0]!r})")
    if left_out:
        notes.append(f"{left_out} sentence{'s' * (left_out > 1)} without labels left out")
    return tuple(notes)
