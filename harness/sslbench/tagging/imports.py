"""Tag files of other programs; they come back in their form, with labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import IO

from sslbench.engine.corpus import Corpus, read_bytes
from sslbench.engine.errors import UserError
from sslbench.engine.files.atomic import write_atomically
from sslbench.experiment.data.encoding import as_utf8, find_encoding, named_encoding
from sslbench.experiment.data.imports.files import check_item, kind_of, names_for
from sslbench.experiment.data.imports.items import Item
from sslbench.experiment.data.imports.json_files import JsonFile
from sslbench.tagging.annotated import Sentence
from sslbench.tagging.json_labels import JsonImport
from sslbench.tagging.other_labels import BratImport, ParquetImport, SpacyImport
from sslbench.tagging.scored import ScoredTagger

_PART = 1000  # sentences at a time


def kind_to_tag(file: Path) -> str | None:
    """Return the kind of a file, see `kind_of`; a folder is brat's, with .ann files or without."""
    return "brat" if file.is_dir() else kind_of(file)


@dataclass
class ImportTagger(ScoredTagger):
    """Tags a file of another program.

    Attributes
    ----------
    form: "" = that of the file; others as of `FileTagger`.
    encoding: of a JSON file; None = seen in it.
    label_names: of labels that are numbers.
    """

    form: str = ""
    encoding: str | None = None
    label_names: tuple[str, ...] = ()

    @property
    def _file(self) -> Path:
        return Path(self.name)

    def write_to(self, target: IO[bytes], text: IO[bytes] | None = None) -> None:
        """Tag the file and write it; UserError for a file that cannot be read.

        text: takes the text itself, for the form "brat".
        """
        opened = self._opened()
        if self.form:
            form = self._named_form(self.form, text)
            target.write(form.head() + form.body(self._sentences(opened.items)) + form.foot())
            return
        if isinstance(opened, BratImport):
            hint = "give --out FOLDER, or --format"
            raise UserError("texts of brat come back as files", file=self.name, hint=hint)
        if self.annotator.marginals or self.annotator.n_best:
            message = "probabilities and further label sequences have no place in this file"
            raise UserError(message, file=self.name, hint="give --format jsonl, too")
        target.write(opened.write(list(self._sentences(opened.items))))

    def write_folder(self, folder: Path) -> None:
        """Tag texts of brat and write them, and files of annotations, below a folder.

        UserError for texts that cannot be read, and for the folder of the texts.
        """
        source = self._file if self._file.is_dir() else self._file.parent
        if folder.resolve() == source.resolve():
            raise UserError("the texts are in this folder", file=folder, hint="give another --out")
        opened = BratImport(self._file)
        for name, data in opened.files(list(self._sentences(opened.items))):
            write_atomically(folder / name, data)

    def _opened(self) -> JsonImport | ParquetImport | SpacyImport | BratImport:
        if not self._file.exists():
            raise UserError("no such file", file=self.name)
        names = names_for(self._file, self.label_names)
        match kind_to_tag(self._file):
            case "JSON":
                data = read_bytes(self._file)
                encoding = self.encoding and named_encoding(self.encoding, data)
                used = encoding or find_encoding(data, self.name)
                text = as_utf8(data, used, self.name).decode()
                return JsonImport(JsonFile.read(text, self.name, names), names)
            case "brat":
                return BratImport(self._file)
            case "parquet":
                return ParquetImport(self._file, names)
            case _:
                return SpacyImport(self._file)

    def _sentences(self, items: Sequence[Item]) -> Iterator[Sentence]:
        """A result for each item; labels are scored where there are some."""
        self._check_words_only("this file")
        if not items:
            raise UserError("no sentence in the file", file=self.name)
        for item in items:
            check_item(item)
        for labeled, group in groupby(items, key=lambda item: item.labels is not None):
            while part := list(islice(group, _PART)):
                self.columns = ("word", "label") if labeled else ("word",)
                yield from self._tag(self._corpus(part, labeled))
        labeled = any(item.labels is not None for item in items)
        self.columns = ("word", "label") if labeled else ("word",)

    def _corpus(self, items: Sequence[Item], labeled: bool) -> Corpus:
        columns = {self._tagger.needed[0]: [item.words for item in items]}
        if labeled:
            columns["label"] = [item.labels or [] for item in items]
        return Corpus.from_sentences(columns)

    def form_line(self) -> str:
        return str(kind_to_tag(self._file))
