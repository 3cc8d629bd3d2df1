"""Rules that tell the label of some tokens from their form, before anything is learned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sslbench.corpus.columns import Column, Corpus, Vocabulary
from sslbench.types import I32, Bool


@dataclass(frozen=True)
class LabelConstraint:
    """Tokens made of certain characters alone have one label; punctuation, for instance.

    column: that the characters are looked for in.
    """

    column: str
    characters: str
    label: str

    def applies(self, corpus: Corpus) -> Bool:
        """bool[N]: is the token made of these characters, at least one, and of no other?"""
        column, known = corpus.column(self.column), frozenset(self.characters)
        name = "made of " + "".join(sorted(known))
        made = column.vocabulary.derived(name, lambda form: "yes" if made_of(form, known) else "")
        here: Bool = (made.codes() == made.vocabulary.lookup("yes"))[column.codes]
        return here

    def impose(self, corpus: Corpus) -> Corpus:
        """A copy in which these tokens have the label, whatever label they had."""
        column = corpus.column("label")
        labels = Vocabulary(column.vocabulary.strings)
        codes = np.where(self.applies(corpus), labels.add(self.label), column.codes)
        return corpus.with_column("label", Column(labels, codes))

    def forced_labels(self, corpus: Corpus, labels: Sequence[str]) -> I32:
        """int32[N]: place among `labels` of the one label a token may have; -1 = it may have any.

        All are free if the label is not among them.
        """
        code = labels.index(self.label) if self.label in labels else -1
        return np.where(self.applies(corpus), np.int32(code), np.int32(-1))

    def overrule(self, corpus: Corpus, labels: Sequence[str], codes: I32) -> I32:
        """Codes int32[N] into `labels` with those of `forced_labels` in their place where there
        are any.
        """
        forced = self.forced_labels(corpus, labels)
        return np.where(forced >= 0, forced, codes)


def made_of(form: str, characters: frozenset[str]) -> bool:
    """Has it one of these characters at least, and no other?"""
    return bool(form) and characters.issuperset(form)
