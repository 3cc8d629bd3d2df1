"""Label constraints: the only possible label of tokens made of certain characters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sslbench.engine.corpus.columns import Column, Corpus, Vocabulary
from sslbench.engine.types import I32, Bool


@dataclass(frozen=True)
class LabelConstraint:
    """Tokens made of certain characters alone, such as punctuation, have one label.

    Attributes
    ----------
    column: of the tokens' text.
    characters: a token is constrained if it is nonempty and has no other characters.
    label: of constrained tokens.
    """

    column: str
    characters: str
    label: str

    def applies(self, corpus: Corpus) -> Bool:
        """Return bool[N]: which tokens are constrained."""
        column, characters = corpus.column(self.column), frozenset(self.characters)
        name = "made of " + "".join(sorted(characters))
        derived = column.vocabulary.derived(
            name, lambda text: "yes" if made_of(text, characters) else ""
        )
        constrained: Bool = (derived.codes() == derived.vocabulary.lookup("yes"))[column.codes]
        return constrained

    def impose(self, corpus: Corpus) -> Corpus:
        """Return a copy in which constrained tokens have the label of the constraint."""
        column = corpus.column("label")
        labels = Vocabulary(column.vocabulary.strings)
        codes = np.where(self.applies(corpus), labels.add(self.label), column.codes)
        return corpus.with_column("label", Column(labels, codes))

    def forced_labels(self, corpus: Corpus, labels: Sequence[str]) -> I32:
        """Return int32[N]: index into `labels` of the one label that a token may have, -1 = any.

        No token is constrained if `labels` lacks the label.
        """
        code = labels.index(self.label) if self.label in labels else -1
        return np.where(self.applies(corpus), np.int32(code), np.int32(-1))

    def apply_to(self, codes: I32, corpus: Corpus, labels: Sequence[str]) -> I32:
        """`codes`, int32[N] into `labels`, with the forced labels of constrained tokens."""
        forced = self.forced_labels(corpus, labels)
        return np.where(forced >= 0, forced, codes)


def made_of(text: str, characters: frozenset[str]) -> bool:
    """Return whether a text is nonempty and has no other characters."""
    return bool(text) and characters.issuperset(text)
