"""A tagger at work on one text: labels, scores against those that are there, unknown words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO

from sslbench.engine.corpus import Corpus
from sslbench.engine.errors import UserError
from sslbench.engine.types import I32, I64
from sslbench.experiment.metrics import ratios
from sslbench.experiment.run.saved import SavedTagger
from sslbench.tagging.annotated import Annotator, Sentence
from sslbench.tagging.familiarity import Familiarity
from sslbench.tagging.forms import Columns, Form, Items, JsonLines, Page, Standoff


@dataclass
class ScoredTagger:
    """Tags the parts of one text, and sums its scores.

    Attributes
    ----------
    name: of the text, for messages.
    columns: of the text; "label" among them is scored.
    n_sentences: number of sentences so far.
    """

    annotator: Annotator
    name: str
    columns: tuple[str, ...] = ()
    n_sentences: int = 0
    _fields: tuple[str, ...] = ()
    _sums: I64 | int = 0
    _has_label: bool = False  # whether the tagger has any of the labels
    _unscored: UserError | None = None
    _familiarity: Familiarity | None = field(init=False)

    def __post_init__(self) -> None:
        self._familiarity = Familiarity.of(self._tagger)

    @property
    def _tagger(self) -> SavedTagger:
        return self.annotator.tagger

    def _named_form(self, name: str, text: IO[bytes] | None) -> Form:
        """The form "jsonl", "html", "crfsuite", "conll" or, with a file for the text, "brat"."""
        match name:
            case "jsonl":
                return JsonLines()
            case "html":
                return Page(self.name)
            case "crfsuite":
                return Items()
        return Columns(self.annotator.n_best) if text is None else Standoff(text)

    def _check_words_only(self, what: str) -> None:
        """UserError for a tagger that reads more than words, which a text does not have."""
        columns = self._tagger.needed
        if len(columns) != 1:
            message = f"the tagger reads {', '.join(columns)} of a token, {what} has words only"
            hint = "give a file with these columns, or another tagger"
            raise UserError(message, file=self.name, hint=hint)

    def _tag(self, corpus: Corpus) -> Iterator[Sentence]:
        return self.annotator.sentences(corpus, self._codes(corpus))

    def _codes(self, corpus: Corpus) -> I32:
        """Tag, count unknown words, and add to the scores if there are labels."""
        codes = self._tagger.tag(corpus)
        if self._familiarity is not None:
            self._familiarity.add(corpus)
        self.n_sentences += corpus.n_sentences
        if "label" in self.columns and self._unscored is None:
            self._score(corpus, codes)
        return codes

    def _score(self, corpus: Corpus, codes: I32) -> None:
        try:
            counts, has_label = self._tagger.counts(corpus, codes)
        except UserError as problem:  # e.g. a column of placeholders
            self._unscored = problem
            return
        table = counts.table()
        self._fields, self._sums = table.fields, self._sums + table.rows.sum(axis=0)
        self._has_label = self._has_label or has_label

    def form_line(self) -> str:
        """Return how the text was read, in words; "" = UTF-8 with columns at white space."""
        raise NotImplementedError

    def warning(self) -> str | None:
        """Return a line on a text that is far from the training text; None if it is near."""
        return None if self._familiarity is None else self._familiarity.warning()

    def scores(self) -> dict[str, float] | str:
        """Return the metrics in [0, 1], or the reason why there are none."""
        if "label" not in self.columns:
            read = ",".join(name for name in self.columns if name != "_")
            return f"read as {read}, no label column to score"
        if self._unscored is not None or not self._has_label:
            why = self._unscored or "the tagger has none of its labels"
            return f"the label column is not scored: {why}"
        scores = ratios(self._sums, self._fields)
        return {name: float(value) for name, value in scores.items()}
