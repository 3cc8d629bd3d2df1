"""What a method is handed: labeled sentences, unlabeled text, nothing that it must not see."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from sslbench.corpus import Column, Corpus, LabelCodec, LabelConstraint, Shards, Vocabulary
from sslbench.experiment.context import RunContext
from sslbench.features import TemplateFeaturizer
from sslbench.types import I32, I64, Bool


@dataclass(frozen=True)
class Problem:
    """A semi-supervised learning problem.

    Test sentences and hidden labels are not in the object: the unlabeled text has no label column,
    and the label vocabulary of the labeled sample is made afresh from that sample.

    Attributes
    ----------
    task: "tagging", "spans", "segmentation" or "joint".
    encoding: of the labels, e.g. "IOB2"; None for plain tags. Under a label codec, of the tags.
    labels: the labels that occur in the labeled sample, sorted; or those of a label codec.
    labeled: with the column "label".
    unlabeled: shards without the column "label".
    dev: development sentences with labels when the data set has its own; a label that does not
        occur in the labeled sample has code -1 in `label_codes`.
    featurizer: makes attributes from templates.
    model: the sequence model to train (an object of the model plugin).
    threads: that the method may use; results must not depend on it.
    transition_mask: bool[L + 1, L], which label may follow which (row L: which may begin a
    sentence), for
        training and for decoding; None = all.
    label_constraint: tells the one label of some tokens, for training and for decoding;
    `labeled` agrees with
        it. None: nothing is told.
    tags: the tag that each of a codec's `labels` stands for; None = labels are tags.
    """

    task: str
    encoding: str | None
    labels: tuple[str, ...]
    labeled: Corpus
    unlabeled: Shards
    dev: Corpus | None
    featurizer: TemplateFeaturizer
    model: Any
    threads: int = 1
    transition_mask: Bool | None = None
    label_constraint: LabelConstraint | None = None
    tags: tuple[str, ...] | None = None

    def coded(self, codec: LabelCodec) -> Problem:
        """The same problem over the labels of a codec. ValueError with a rule, which tells tags."""
        if self.label_constraint is not None:
            raise ValueError("a rule tells tags, but models are trained on a codec's labels")
        dev = None if self.dev is None else relabeled(codec.encode(self.dev), codec.labels)
        labeled = relabeled(codec.encode(self.labeled), codec.labels)
        return replace(
            self,
            labels=codec.labels,
            labeled=labeled,
            dev=dev,
            transition_mask=codec.transition_mask,
            tags=codec.tags,
        )

    def label_codes(self, corpus: Corpus) -> I32:
        """int32[N]: labels of a corpus as numbers into `labels`; -1 for labels not among them."""
        column = corpus.column("label")
        codes = {label: code for code, label in enumerate(self.labels)}
        table = np.array(
            [codes.get(label, -1) for label in column.vocabulary.strings], dtype=np.int32
        )
        return table[column.codes] if len(table) else np.empty(0, dtype=np.int32)


class Tagger(Protocol):
    """What training returns.

    Optional: ``variants``, other fits of the same training by name (its first round, say), whose
    primary metric the record tells as well, as ``accuracy_NAME``.
    """

    @property
    def labels(self) -> Sequence[str]:
        """The labels that the codes of `predict` stand for."""

    def predict(self, corpus: Corpus) -> I32:
        """int32[N]: a label code per token of a corpus without labels."""


class SavableTagger(Tagger, Protocol):
    """A tagger that can be kept."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tagger to a file or folder."""


@dataclass(frozen=True)
class DecodedTagger:
    """A tagger over the labels of a codec, as one over tags. tags: of each label of `tagger`."""

    tagger: Tagger
    tags: tuple[str, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(sorted(set(self.tags)))

    def predict(self, corpus: Corpus) -> I32:
        """int32[N]: codes into `labels`."""
        number = {tag: code for code, tag in enumerate(self.labels)}
        table = np.array([number[tag] for tag in self.tags], dtype=np.int32)
        return table[predicted(self.tagger, corpus)]


def predicted(tagger: Tagger, corpus: Corpus) -> I32:
    """int32[N]: what a tagger predicts for a corpus without labels; RuntimeError when it is no code
    of its labels per token.
    """
    codes = np.asarray(tagger.predict(corpus))
    if codes.shape != (corpus.n_tokens,) or codes.dtype.kind not in "iu":
        raise RuntimeError(
            f"predict() gave {codes.dtype}{list(codes.shape)}, expected int32[{corpus.n_tokens}]"
        )
    if codes.size and not 0 <= codes.min() <= codes.max() < len(tagger.labels):
        raise RuntimeError(f"predict() gave codes outside 0..{len(tagger.labels) - 1}")
    return codes.astype(np.int32)


class Method(Protocol):
    """A method plugin: a class without constructor arguments, with a `Params` struct.

    Optional: ``Params.search``, a class attribute with a tuple of `SearchAxis` to tune; and
    ``uses_unlabeled = False`` on the class of a method that never looks at unlabeled text, which
    spares it the making of that text (its `Problem.unlabeled` is then empty).
    """

    Params: type[Any]

    def fit(self, problem: Problem, params: Any, run: RunContext) -> Tagger:
        """Train."""


def relabeled(corpus: Corpus, known: Sequence[str] = ()) -> Corpus:
    """Copy a corpus so that its label vocabulary holds `known` and its own labels only.

    The labels of the corpus that are not among `known` follow in sorted order. Sharing the
    data set's vocabulary would tell a method which labels occur in test.
    """
    old = corpus.column("label")
    used = np.unique(old.codes)
    own = {old.vocabulary.strings[code] for code in used}
    vocabulary = Vocabulary([*known, *sorted(own - set(known))])
    table = np.full(len(old.vocabulary), -1, dtype=np.int32)
    table[used] = [vocabulary.lookup(old.vocabulary.strings[code]) for code in used]
    return corpus.with_column("label", Column(vocabulary, table[old.codes]))


def labeled_part(corpus: Corpus, sentences: I64) -> Corpus:
    """The given sentences, copied, with a label vocabulary of their own."""
    return relabeled(corpus.select(sentences))


def without_labels(corpus: Corpus) -> Corpus:
    """Copy a corpus without its labels: what `predict` gets."""
    return corpus.drop("label").select(np.arange(corpus.n_sentences))
