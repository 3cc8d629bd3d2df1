"""Tag the text of a file in parts, and put the labels into it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO

from sslbench.engine.corpus import Corpus
from sslbench.engine.corpus.raw import default_split, raw_parts
from sslbench.engine.corpus.sentence_parts import MAX_SENTENCE, Part, sentence_parts
from sslbench.engine.corpus.tokens import corpus_of
from sslbench.engine.errors import UserError
from sslbench.experiment.data.encoding import UTF8, Recoded, encoding_title
from sslbench.experiment.data.layout import Reading
from sslbench.experiment.data.reading import is_conllu
from sslbench.tagging.forms import columns_of
from sslbench.tagging.inputs import ConlluInput, TableInput, TextInput, looks_like_conllu
from sslbench.tagging.scored import ScoredTagger

SEEN = Reading()  # nothing is said


@dataclass
class FileTagger(ScoredTagger):
    """Tags one text, whose size memory does not limit, and sums its scores.

    Attributes
    ----------
    columns: of the text; () = those of the training file, with or without label.
    form: "conll", "jsonl", "html", "brat" or "crfsuite".
    raw: the text has a sentence per line, and no columns.  split: a key of
        `sslbench.engine.corpus.raw.SPLITS`; "" = by the task of the tagger.
    reading: what the user says of the form of the text.
    """

    form: str = "conll"
    raw: bool = False
    split: str = ""
    reading: Reading = SEEN
    _input: TextInput | None = None
    _recoded: Recoded | None = None

    def write_to(
        self, target: IO[bytes], blocks: Iterator[bytes], text: IO[bytes] | None = None
    ) -> None:
        """Tag the text of the blocks and write it; UserError for text that cannot be read.

        text: takes the text itself, for the form "brat".
        """
        recoded = self._recoded = Recoded(blocks, self.name, self.reading.encoding)
        if self.form == "conll" and not self.raw:
            self._extend(target, recoded)
        else:
            form = self._named_form(self.form, text)
            head = form.head()  # written once there is a sentence
            utf8 = iter(recoded)
            for corpus in self._raw(utf8) if self.raw else self._parts(utf8):
                target.write(head + form.body(self._tag(corpus)))
                head = b""
            target.write(head + form.foot() if self.n_sentences else b"")
        if not self.n_sentences:
            raise UserError("no token in the file: it is empty", file=self.name)

    def _extend(self, target: IO[bytes], recoded: Recoded) -> None:
        """Write the file itself with labels."""
        blank = b""  # written once there is a sentence
        for part in sentence_parts(iter(recoded), self.name):
            corpus = self._corpus(part)
            if corpus is None:
                blank += part.text
            else:
                blank += self._text_input(part.text).write(part.text, self._values(corpus))
            if self.n_sentences:
                target.write(recoded.back(blank))
                blank = b""
            elif len(blank) > MAX_SENTENCE:
                message = f"no token in the first {MAX_SENTENCE:,} bytes"
                raise UserError(message, file=self.name)

    def _values(self, corpus: Corpus) -> list[list[str]]:
        """The new columns of each token."""
        n_best = self.annotator.n_best
        if not n_best and not self.annotator.marginals:  # without an object for each sentence
            return [[text] for text in self._tagger.texts(corpus, self._codes(corpus))]
        return list(chain.from_iterable(columns_of(s, n_best) for s in self._tag(corpus)))

    def _parts(self, blocks: Iterator[bytes]) -> Iterator[Corpus]:
        corpora = map(self._corpus, sentence_parts(blocks, self.name))
        return (corpus for corpus in corpora if corpus is not None)

    def _corpus(self, part: Part) -> Corpus | None:
        try:
            corpus = self._text_input(part.text).read(part.text)
        except UserError as error:
            if error.line is not None:
                error.line += part.lines_before
            raise
        self.columns = self._text_input(part.text).columns
        if corpus is None and not self.n_sentences:
            self._input = None  # seen in a part with tokens
        return corpus

    def _text_input(self, text: bytes) -> TextInput:
        """The form of the text, by its name and its first part."""
        if self._input is None:
            conllu = is_conllu(Path(self.name)) or looks_like_conllu(text)
            if conllu and not self.columns and self._tagger.corpus is not None:
                extra = ["Probability"] * self.annotator.marginals
                extra += [f"Label{rank}" for rank in range(2, self.annotator.n_best + 1)]
                self._input = ConlluInput(self._tagger, self.name, tuple(extra))
            else:
                self._input = TableInput(self._tagger, self.name, self.reading, self.columns)
        return self._input

    def _raw(self, blocks: Iterator[bytes]) -> Iterator[Corpus]:
        self._check_words_only("raw text")
        self.columns = columns = self._tagger.needed
        task = self._tagger.corpus.task if self._tagger.corpus else ""
        for sentences in raw_parts(blocks, self.split or default_split(task), self.name):
            yield corpus_of(sentences, columns)

    def form_line(self) -> str:
        layout = None if self._input is None else self._input.layout
        parts = [encoding_title(self._recoded.used if self._recoded else UTF8), str(layout or "")]
        return ", ".join(part for part in parts if part not in ("", UTF8))
