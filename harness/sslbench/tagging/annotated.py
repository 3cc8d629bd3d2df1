"""Results for tagged sentences: labels, spans, probabilities, further label sequences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import NamedTuple, cast

import numpy as np

from sslbench.conversion.export import Exported
from sslbench.engine.corpus import Corpus, CorpusShards, Scheme, Vocabulary
from sslbench.engine.lazy import lazy
from sslbench.engine.types import F64, I32
from sslbench.experiment.inputs.problem import predicted_marginals, predicted_n_best
from sslbench.experiment.metrics.chunks import find_chunks
from sslbench.experiment.run.saved import SavedTagger

_PART_TOKENS = 2**14  # whose probabilities are in memory at a time


class Span(NamedTuple):
    """Tokens start to end - 1 of a sentence, counted from 0.

    confidence: the lowest probability of a label in it; None = not asked for.
    """

    start: int
    end: int
    type: str
    confidence: float | None


class Alternative(NamedTuple):
    """A label for each token of a sentence, and the probability of the sequence."""

    labels: list[str]
    probability: float


@dataclass(frozen=True)
class Sentence:
    """A tagged sentence of n tokens.

    labels: labels in the scheme of the training file; with attributes, those of the model.
    spans: None for labels that are no chunk tags.
    marginals: float64[n, L] over `names`, and confidence: of the label of each token; None = not
        asked for.
    alternatives: the best label sequences, () = not asked for.
    attributes: attributes of each token in the form of CRFsuite; None = not requested.
    """

    tokens: list[str]
    labels: list[str]
    spans: list[Span] | None
    names: tuple[str, ...]
    marginals: F64 | None
    confidence: list[float] | None
    alternatives: list[Alternative]
    attributes: list[list[str]] | None = None

    def marks(self) -> list[Span]:
        """The spans; of labels that are no chunk tags, one for each token."""
        if self.spans is not None:
            return self.spans
        p = self.confidence
        return [
            Span(i, i + 1, label, None if p is None else p[i])
            for i, label in enumerate(self.labels)
        ]


@dataclass(frozen=True)
class Annotator:
    """A saved tagger, and what is asked of it.

    marginals: probabilities of labels.  n_best: label sequences of each sentence; 0 = only one.
    attributes: what a model of CRFsuite needs in place of the words, and labels as it has them.
        UserError if there is no such model.
    """

    tagger: SavedTagger
    marginals: bool = False
    n_best: int = 0
    attributes: bool = False

    @lazy
    def _exported(self) -> Exported | None:
        return Exported.of(self.tagger) if self.attributes else None

    @lazy
    def _encoding(self) -> Scheme | None:
        trained = self.tagger.corpus
        return None if trained is None else cast("Scheme | None", trained.encoding)

    def sentences(self, corpus: Corpus, codes: I32) -> Iterator[Sentence]:
        """The sentences of a corpus with predicted labels.

        codes: int32[N] from `SavedTagger.tag`.
        UserError if the tagger gives no probabilities, or one label sequence only.
        """
        done = 0
        for part in CorpusShards(corpus, _PART_TOKENS):
            yield from self._part(part, codes[done : done + part.n_tokens])
            done += part.n_tokens

    def _part(self, corpus: Corpus, codes: I32) -> Iterator[Sentence]:
        tagger, tokens = self.tagger, _tokens(corpus)
        attributes = self._exported and self._exported.attributes(corpus)
        texts = [tagger.labels[i] for i in codes] if attributes else tagger.texts(corpus, codes)
        rows = predicted_marginals(tagger.tagger, corpus) if self.marginals else None
        confidence = None if rows is None else rows[np.arange(len(codes)), codes]
        spans = self._spans(corpus, codes, confidence)
        others = self._alternatives(corpus)
        for i, (first, last) in enumerate(pairwise(corpus.offsets.tolist())):
            yield Sentence(
                tokens[first:last],
                texts[first:last],
                None if spans is None else spans[i],
                tagger.labels,
                None if rows is None else rows[first:last],
                None if confidence is None else confidence[first:last].tolist(),
                others[i],
                attributes[first:last] if attributes else None,
            )

    def _spans(self, corpus: Corpus, codes: I32, confidence: F64 | None) -> list[list[Span]] | None:
        """By sentence; None for labels that are no chunk tags."""
        if self._encoding is None:
            return None
        kinds, offsets = Vocabulary(), corpus.offsets
        chunks = find_chunks((self.tagger.labels, codes), offsets, self._encoding, kinds)
        spans: list[list[Span]] = [[] for _ in range(corpus.n_sentences)]
        sentence = np.searchsorted(offsets, chunks.start, side="right") - 1
        for i, start, last, kind in zip(
            sentence.tolist(),
            chunks.start.tolist(),
            chunks.last.tolist(),
            chunks.kind.tolist(),
            strict=True,
        ):
            lowest = None if confidence is None else float(confidence[start : last + 1].min())
            begin = int(offsets[i])
            span = Span(start - begin, last + 1 - begin, kinds.strings[kind], lowest)
            spans[i].append(span)
        return spans

    def _alternatives(self, corpus: Corpus) -> list[list[Alternative]]:
        alternatives: list[list[Alternative]] = [[] for _ in range(corpus.n_sentences)]
        best = predicted_n_best(self.tagger.tagger, corpus, self.n_best) if self.n_best else []
        for rank in range(self.n_best):
            have = [i for i, one in enumerate(best) if rank < len(one.labels)]
            if not have:
                break
            codes = np.concatenate([best[i].labels[rank] for i in have])
            texts = iter(self.tagger.texts(corpus.select(have), codes))
            for i in have:
                labels = list(islice(texts, best[i].labels.shape[1]))
                probability = float(np.exp(best[i].log_probability[rank]))
                alternatives[i].append(Alternative(labels, probability))
        return alternatives


def _tokens(corpus: Corpus) -> list[str]:
    """The first column, which is the word where there are words."""
    name = "word" if "word" in corpus.columns else next(iter(corpus.columns))
    return corpus.column(name).strings()
