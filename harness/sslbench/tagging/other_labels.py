"""Labels put into files of spaCy, parquet and brat, see `sslbench.experiment.data.imports`."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from sslbench.engine.errors import UserError
from sslbench.experiment.data.imports.items import Item, Place, text_items
from sslbench.experiment.data.imports.json_files import Names
from sslbench.experiment.data.imports.others import (
    SpacyDoc,
    brat_items,
    brat_text,
    library,
    named_in,
    parquet_rows,
    spacy_docs,
)
from sslbench.tagging.annotated import Sentence, Span
from sslbench.tagging.forms import standoff_lines
from sslbench.tagging.json_labels import char_spans, label_objects


class SpacyImport:
    """A DocBin; its documents take entities, or parts of speech of a tagger for plain tags."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._bin, self._docs = spacy_docs(path)

    @property
    def items(self) -> list[Item]:
        """The sentences of all documents."""
        return [item for doc in self._docs for item in doc.items]

    def write(self, sentences: Sequence[Sentence]) -> bytes:
        """Return the file with other labels; all else that it stores is in it."""
        each = iter(sentences)
        for doc in self._docs:
            self._label(doc, list(islice(each, len(doc.items))))
        added = ["ENT_IOB", "ENT_TYPE", "POS", "TAG"]
        tokens = library("spacy.tokens", self._path)
        new = tokens.DocBin([*self._bin.attrs, *added], store_user_data=True)
        for doc in self._docs:
            new.add(doc.doc)
        return bytes(new.to_bytes())

    def _label(self, doc: SpacyDoc, sentences: Sequence[Sentence]) -> None:
        words = iter([token for token in doc.doc if token.text.strip()])
        entities = []
        for sentence in sentences:
            own = list(islice(words, len(sentence.tokens)))
            if sentence.spans is None:
                self._tag(own, sentence.labels)
            else:
                entities += [self._entity(doc.doc, own, span) for span in sentence.spans]
        if all(sentence.spans is not None for sentence in sentences):
            doc.doc.set_ents(entities)

    def _entity(self, doc: Any, words: Sequence[Any], span: Span) -> Any:
        first, last = words[span.start].i, words[span.end - 1].i
        tokens = library("spacy.tokens", self._path)
        return tokens.Span(doc, first, last + 1, label=span.type or "SPAN")

    def _tag(self, words: Sequence[Any], labels: Sequence[str]) -> None:
        """UPOS, or tags of another kind."""
        universal = library("spacy.parts_of_speech", self._path).IDS
        for word, label in zip(words, labels, strict=True):
            setattr(word, "pos_" if label in universal else "tag_", label)


class ParquetImport:
    """A table of parquet; a column takes labels."""

    def __init__(self, path: Path, names: Names) -> None:
        self._path = path
        self._table, self._rows = parquet_rows(path, names)
        self._names = named_in(self._table, names)

    @property
    def items(self) -> list[Item]:
        """The sentences of all rows."""
        return [item for _, items in self._rows for item in items]

    def write(self, sentences: Sequence[Sentence]) -> bytes:
        """Return the file with other labels; all other columns are in it."""
        arrow, parquet = library("pyarrow", self._path), library("pyarrow.parquet", self._path)
        table = self._table
        for key in sorted(label_objects(self._rows, sentences, self._names)):
            values = [row.get(key) for row, _ in self._rows]
            if key in table.column_names:
                place = table.schema.get_field_index(key)
                table = table.set_column(
                    place,
                    table.schema.field(key),
                    arrow.array(values, table.schema.field(key).type),
                )
            else:
                table = _declared(table.append_column(key, arrow.array(values)), key)
        out = io.BytesIO()
        parquet.write_table(table, out)
        return out.getvalue()


def _declared(table: Any, key: str) -> Any:
    """A table whose metadata of Hugging Face, if it has any, name a new column of texts."""
    metadata = table.schema.metadata or {}
    if b"huggingface" not in metadata:
        return table
    tree = json.loads(metadata[b"huggingface"])
    features = tree.get("info", {}).get("features", {})
    features[key] = {"feature": {"dtype": "string", "_type": "Value"}, "_type": "Sequence"}
    return table.replace_schema_metadata({**metadata, b"huggingface": json.dumps(tree)})


@dataclass(frozen=True)
class BratText:
    """A text of brat, its name below the folder, and its lines."""

    name: Path
    text: str
    items: list[Item]


class BratImport:
    """A folder of brat, or a text; the labels go to another folder."""

    def __init__(self, path: Path) -> None:
        files = sorted(path.rglob("*.txt")) if path.is_dir() else [path.with_suffix(".txt")]
        root = path if path.is_dir() else path.parent
        if not files:
            raise UserError("no .txt file in the folder", file=path)
        self._texts = [
            BratText(file.relative_to(root), brat_text(file), list(_lines(file))) for file in files
        ]

    @property
    def items(self) -> list[Item]:
        """The lines of all texts."""
        return [item for text in self._texts for item in text.items]

    def files(self, sentences: Sequence[Sentence]) -> Iterator[tuple[Path, bytes]]:
        """Yield name and content of each .txt file, which is as it was, and each .ann file."""
        each = iter(sentences)
        for text in self._texts:
            pairs = zip(text.items, islice(each, len(text.items)), strict=True)
            yield text.name, text.text.encode()
            yield text.name.with_suffix(".ann"), _annotations(text.text, pairs).encode()


def _lines(file: Path) -> Iterator[Item]:
    """The lines of a text, without labels if its .ann file is missing or empty."""
    notes = file.with_suffix(".ann")
    if notes.is_file() and notes.stat().st_size:
        return brat_items(notes)
    return text_items(brat_text(file), None, Place(str(file)))


def _annotations(text: str, pairs: Iterable[tuple[Item, Sentence]]) -> str:
    """The .ann file of a text."""
    return "".join(
        standoff_lines(number, kind, (start, end), text[start:end], confidence)
        for number, (start, end, kind, confidence) in enumerate(char_spans(pairs), 1)
    )
