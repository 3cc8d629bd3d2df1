"""Files of brat, spaCy and parquet; the last two are read by their libraries."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from sslbench.engine.errors import UserError
from sslbench.experiment.data.imports.items import Item, Place, Span, text_items
from sslbench.experiment.data.imports.json_files import Names, object_items
from sslbench.experiment.data.imports.label_names import class_names

_SPAN_LINE = re.compile(r"T\S+\t(?P<type>\S+) (?P<places>\d+ \d+(?:;\d+ \d+)*)(?:\t(?P<text>.*))?")


def library(name: str, file: Path) -> Any:
    """Return a library; UserError that names the extra if it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        hint = "pip install 'sslbench[import]'"
        message = f"reading it needs {name.partition('.')[0]}"
        raise UserError(message, file=file, hint=hint) from None


def annotated_texts(path: Path) -> list[Path]:
    """Return the .ann files of a folder of brat, and of the folders in it, or of one text."""
    if path.is_dir():
        return sorted(path.rglob("*.ann"))
    return [path.with_suffix(".ann")]


def brat_items(notes: Path) -> Iterator[Item]:
    """Yield the lines of a text of brat, with the text-bound annotations of its .ann file.

    UserError, with the line of the .ann file, for a damaged annotation or one in several pieces.
    """
    file = notes.with_suffix(".txt")
    if not file.is_file():
        raise UserError("no text beside it", file=notes, hint=f"brat needs {file.name}")
    lines = enumerate(brat_text(notes).splitlines(), 1)
    spans = [_brat_span(line, Place(str(notes), n)) for n, line in lines if line[:1] == "T"]
    yield from text_items(brat_text(file), spans, Place(str(notes)))


def _brat_span(line: str, place: Place) -> Span:
    match = _SPAN_LINE.fullmatch(line)
    if match is None:
        raise place.error("is no span of brat", "T1<tab>TYPE START END<tab>TEXT")
    if ";" in match["places"]:
        hint = "chunk tags cannot say it: give it one start and one end"
        raise place.error(f"the span {match['text']!r} has several pieces", hint)
    start, end = map(int, match["places"].split())
    return Span(start, end, match["type"], match["text"])


def brat_text(file: Path) -> str:
    """Return the text of a file, with its line ends; UserError if it is not UTF-8."""
    try:
        return file.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise UserError("is not UTF-8", file=file, hint="brat's files are UTF-8") from None


class SpacyDoc(NamedTuple):
    """A document of spaCy, and its sentences, whose words are its tokens but for white space."""

    doc: Any
    items: list[Item]


def spacy_docs(path: Path) -> tuple[Any, list[SpacyDoc]]:
    """Return a DocBin and its documents, with tags of entities if there are any, else UPOS.

    UserError for a damaged file, and without spaCy.
    """
    tokens = library("spacy.tokens", path)
    blank = library("spacy", path).blank("xx")
    try:
        bin_ = tokens.DocBin().from_disk(path)
        docs = list(bin_.get_docs(blank.vocab))
    except Exception as error:  # whatever its unpacking raises on a damaged file
        raise UserError(f"is no DocBin of spaCy: {error}", file=path) from None
    entities = any(doc.has_annotation("ENT_IOB") for doc in docs)
    places = [Place(str(path), record=number) for number in range(1, len(docs) + 1)]
    pairs = zip(docs, places, strict=True)
    return bin_, [SpacyDoc(doc, list(_doc_items(doc, entities, place))) for doc, place in pairs]


def _doc_items(doc: Any, entities: bool, place: Place) -> Iterator[Item]:
    for sentence in doc.sents if doc.has_annotation("SENT_START") else [doc[:]]:
        words = [token for token in sentence if token.text.strip()]
        if words:
            labels = [_entity(t) if entities else t.pos_ or t.tag_ for t in words]
            yield Item([t.text for t in words], labels if all(labels) else None, place)


def _entity(token: Any) -> str:
    return f"{token.ent_iob_}-{token.ent_type_}" if token.ent_type_ else "O"


def parquet_rows(path: Path, names: Names) -> tuple[Any, list[tuple[dict[str, Any], list[Item]]]]:
    """Return a table, and its rows, which are those of Hugging Face's JSON lines.

    UserError for a damaged file, a row without sentence, and without pyarrow.
    """
    try:
        table = library("pyarrow.parquet", path).read_table(path)
        named = named_in(table, names)
    except (OSError, ValueError) as error:
        raise UserError(f"is no parquet file: {error}", file=path) from None
    rows = enumerate(table.to_pylist(), 1)
    return table, [(r, list(object_items(r, Place(str(path), record=n), named))) for n, r in rows]


def named_in(table: Any, names: Names) -> Names:
    """Return the names of labels that a table says in its metadata, or else those given.

    ValueError for damaged metadata.
    """
    features = (table.schema.metadata or {}).get(b"huggingface", b"{}")
    class_names(features, "")
    return lambda key: class_names(features, key) or names(key)
