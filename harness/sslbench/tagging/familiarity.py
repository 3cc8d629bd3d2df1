"""How far a text differs from the training text: the share of its words that are unknown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sslbench.engine.corpus import Corpus
from sslbench.engine.features import Atom, AttributeIndex, Template
from sslbench.engine.features.symbols import ColumnSymbols
from sslbench.experiment.run.saved import SavedTagger

FEWEST = 50  # tokens that a text must have to be judged
#: a text is far if the odds of an unknown word are so many times as large. On five corpora, from
#: 100, 500 and 1,500 sentences: 1.0 to 1.4 for the test text of the same corpus, 1.9 to 68 for that
#: of another one, except 1.3 to 1.6 from news to the web and from 100 news sentences to biology
ODDS = 1.8


@dataclass(kw_only=True)
class Familiarity:
    """Counts the unknown words of a text.

    vocabulary: the words of the training.
    expected: share of unknown words in more text of the same kind, estimated as the share of the
        training's tokens whose word occurs once (I. J. Good: The population frequencies of species
        and the estimation of population parameters. Biometrika 1953).
    """

    column: str
    vocabulary: frozenset[str]
    expected: float
    tokens: int = 0
    unknown: int = 0

    @classmethod
    def of(cls, saved: SavedTagger) -> Familiarity | None:
        """None for a tagger without a list of its words, or that dropped rare ones."""
        inner = saved.tagger
        while hasattr(inner, "tagger"):  # under a label codec, or with learned features
            inner = inner.tagger
        index = getattr(getattr(inner, "crf", inner), "index", None)
        column = saved.columns[0] if saved.columns else ""
        if not isinstance(index, AttributeIndex) or not column:
            return None
        streams, template = index.streams, Template((Atom(column, 0),))
        if template.pattern not in streams.patterns:
            return None
        words = streams.dictionaries[streams.dictionary_of(template)]
        assert isinstance(words, ColumnSymbols)
        counts = np.delete(words.counts, words.pads[words.pads >= 0])
        once = int((counts == 1).sum())
        if not once:
            return None
        return cls(
            column=column, vocabulary=frozenset(words.texts), expected=once / int(counts.sum())
        )

    def add(self, corpus: Corpus) -> None:
        """Count the words of some text."""
        column = corpus.column(self.column)
        counts = np.bincount(column.codes, minlength=len(column.vocabulary))
        words = zip(column.vocabulary.strings, counts.tolist(), strict=True)
        self.unknown += sum(n for word, n in words if n and word not in self.vocabulary)
        self.tokens += corpus.n_tokens

    def warning(self) -> str | None:
        """What a user should know; None for a text that is near enough, or short."""
        if self.tokens < FEWEST:
            return None
        share = self.unknown / self.tokens
        if share * (1 - self.expected) <= ODDS * self.expected * (1 - share):
            return None
        return (
            f"{share:.0%} of the words are unknown to the tagger, of text like its training text"
            f" about {self.expected:.0%} would be: expect worse labels than its scores say"
        )
