"""Programs that give weak labels: their columns are put on the text of a problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from sslbench.engine.corpus import Column, Corpus, Vocabulary, tag_fits
from sslbench.experiment.data.weak import ABSTAINS, PREFIX, weak_labels, without_weak
from sslbench.experiment.inputs.problem import Problem
from sslbench.experiment.inputs.text_features import AnnotatedShards

Label = Callable[[Corpus], Sequence[str]]


class WeakLabeler(Protocol):
    """Gives weak labels: a class without constructor arguments.

    Params: a msgspec.Struct with a default for each field.
    """

    Params: type[Any]

    def open(self, problem: Problem, params: Any) -> Label:
        """Return a function that gives a corpus one entry per token: a label, or "_" for none.

        The labels of chunks are IOB2. The corpus has no gold labels. UserError for parameters or
        files that do not fit.
        """


def with_sources(problem: Problem, sources: Mapping[str, tuple[WeakLabeler, Any]]) -> Problem:
    """Return the problem with weak labels of programs on its labeled and unlabeled text.

    sources: by name, with the parameters.
    """
    for name, (source, params) in sources.items():
        annotate = _Annotator(name, source.open(problem, params), problem.encoding, Vocabulary())
        unlabeled = AnnotatedShards(problem.unlabeled, annotate)
        problem = replace(problem, labeled=annotate(problem.labeled), unlabeled=unlabeled)
    return problem


@dataclass(frozen=True)
class _Annotator:
    """Puts the labels of a source on a text. words: the vocabulary of its columns."""

    name: str
    label: Label
    encoding: str | None
    words: Vocabulary

    def __call__(self, corpus: Corpus) -> Corpus:
        """Return the text with its column; RuntimeError for what are no labels of its tokens."""
        entries = self.label(without_weak(corpus).drop("label"))
        if len(entries) != corpus.n_tokens:
            what = f"{len(entries)} labels for {corpus.n_tokens} tokens"
            raise RuntimeError(f"the weak source {self.name} gave {what}")
        column = Column(self.words, self.words.encode(entries))
        if self.encoding == "IOB2":
            for entry in {*entries} - {ABSTAINS}:
                if not tag_fits(entry, "IOB2"):
                    raise RuntimeError(f"the weak source {self.name} gave {entry!r}, no IOB2 label")
            column = weak_labels(column, corpus.offsets, "IOB2", "IOB2", self.words)
        return corpus.with_column(PREFIX + self.name, column)
