"""A label constraint on punctuation, and labeled text."""

from __future__ import annotations

from sslbench.engine.corpus import Column, Corpus, LabelConstraint, Vocabulary
from support.texts import corpus_of

CONSTRAINT = LabelConstraint("word", ".,!?:;", "P")


def labeled(sentences: list[list[str]], labels: str) -> Corpus:
    column = Column(Vocabulary("ABCP"), ["ABCP".index(label) for label in labels])
    return corpus_of(sentences).with_column("label", column)
