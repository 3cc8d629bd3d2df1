"""Baseline I of joint segmentation and tagging: first segment, then tag the words.

Zeng et al. (2013) name such a pipeline as their first baseline, with templates "from Zhao et al.
2006 and Wu et al. 2008" that they do not list.  The templates here
(docs/specs/virtual_evidence.md, section 8):

segmentation, labels B, M, E, S of characters, legal transitions only:
    C_-1, C_0, C_1, C_-1 C_0, C_0 C_1, C_-1 C_1, T_-1 T_0 T_1 (T: class of a character);
tagging, of gold words in training and of predicted words afterwards:
    W_-2 ... W_2, W_-1 W_0, W_0 W_1, W_-1 W_1, first and last one and two characters, length and
    class pattern of W_0.

Both have a constant and the CRF's own bigram of labels.  The featurizer of the problem is not used.
Without tags the second step is left out.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import numpy as np

from sslbench import CRFMethod, Problem, RunContext, TrainingParams
from sslbench.engine.checked import Saved, joined, part_of
from sslbench.engine.corpus import Corpus, Vocabulary
from sslbench.engine.crf import ChainCRF, ChainModel, HardLabels, write_model
from sslbench.engine.features import TemplateFeaturizer
from sslbench.engine.types import I32, Arrays, Bool
from sslbench.experiment.metrics.chunks import ChunkList
from sslbench_methods.chinese.words import (
    BORDERS,
    GoldWords,
    border_mask,
    borders_of,
    character_class,
    class_pattern,
    length_class,
    read_borders,
    with_derived,
    word_labels,
    word_text,
)

SEGMENTATION = (
    "bias",
    *(f"word[{k}]" for k in (-1, 0, 1)),
    *("word[-1]|word[0]", "word[0]|word[1]", "word[-1]|word[1]"),
    "class[-1]|class[0]|class[1]",
)
TAGGING = (
    "bias",
    *(f"word[{k}]" for k in range(-2, 3)),
    *("word[-1]|word[0]", "word[0]|word[1]", "word[-1]|word[1]"),
    *(f"word.{affix}{n}[0]" for affix in ("prefix", "suffix") for n in (1, 2)),
    *("length[0]", "pattern[0]"),
)


class Columns:
    """The columns that the templates read, and the templates.

    A method that knows more of characters or words adds columns and templates.
    """

    #: who restores a saved pipeline with these columns
    method: ClassVar[str] = "pipeline_st"

    @property
    def segmentation(self) -> tuple[str, ...]:
        """Templates over `of_characters`."""
        return SEGMENTATION

    @property
    def tagging(self) -> tuple[str, ...]:
        """Templates over `of_words`."""
        return TAGGING

    def of_characters(self, text: Corpus) -> Corpus:
        """Return a text of characters with its columns."""
        return with_derived(text, "class", character_class)

    def of_words(self, text: Corpus) -> Corpus:
        """Return a text of words with its columns."""
        text = with_derived(text, "length", length_class)
        return with_derived(text, "pattern", class_pattern)

    def arrays(self) -> Saved:
        """Return what to save of them: arrays, JSON-able facts."""
        return {}, {}


@dataclass(frozen=True)
class Pipeline:
    """A segmenter (labels B, M, E, S), a tagger of words (None without tags), their columns.

    labels: of characters, each tag with every border, seen in the labeled sample or not.
    """

    segmenter: ChainCRF
    tagger: ChainCRF | None
    columns: Columns = field(default_factory=Columns)

    @property
    def labels(self) -> tuple[str, ...]:
        return word_labels(("",) if self.tagger is None else self.tagger.labels)

    def segment(self, text: Corpus) -> ChunkList:
        """Return the words of a text of characters; illegal ends of sentences are repaired."""
        borders = self.segmenter.predict(self.columns.of_characters(text))
        return read_borders(borders, text.offsets)

    def tag(self, text: Corpus) -> I32:
        """Return codes of the tags of a text of words, int32[W]; 0 without tags."""
        if self.tagger is None:
            return np.zeros(text.n_tokens, np.int32)
        return self.tagger.predict(self.columns.of_words(text))

    def predict(self, corpus: Corpus) -> I32:
        """Return codes into `labels` of the characters."""
        words = self.segment(corpus)
        tags = self.tag(word_text(corpus, words, Vocabulary()))
        of_characters = np.repeat(tags, words.last - words.start + 1)
        return len(BORDERS) * of_characters + borders_of(words, corpus.n_tokens)

    def arrays(self) -> Saved:
        """Return arrays and JSON-able facts of both taggers and of their columns."""
        steps = {"segmenter": self.segmenter, "tagger": self.tagger}
        arrays, facts = joined(**{name: crf.arrays() for name, crf in steps.items() if crf})
        own, more = self.columns.arrays()
        return arrays | own, facts | more

    def save(self, path: str | os.PathLike[str]) -> None:
        """One file."""
        write_model(path, self.columns.method, *self.arrays())


def read_parts(arrays: Arrays, facts: dict[str, Any]) -> tuple[ChainCRF, ChainCRF | None]:
    """Return segmenter and tagger of `Pipeline.arrays`; ValueError when they cannot be those."""
    segmenter, tagger = (
        ChainCRF.from_arrays(*part_of(arrays, facts, name)) if name in facts else None
        for name in ("segmenter", "tagger")
    )
    if segmenter is None or segmenter.labels != BORDERS:
        raise ValueError(f"no segmenter with the labels {', '.join(BORDERS)}")
    return segmenter, tagger


@dataclass(frozen=True)
class PipelineTrainer:
    """Trains both steps on the labeled words of a problem."""

    problem: Problem
    params: TrainingParams
    run: RunContext
    gold: GoldWords

    def train(self, columns: Columns, name: str) -> Pipeline:
        """Both steps; how the optimizer ended goes into the trace under `name`."""
        text, words = self.problem.labeled, self.gold.words
        trace: dict[str, Any] = {"words": len(words.start)}
        self.run.trace[name] = trace
        characters = columns.of_characters(text)
        borders = borders_of(words, text.n_tokens)
        segmenter, trace["segmenter"] = self._step(
            columns.segmentation, characters, borders, BORDERS, border_mask()
        )
        if self.gold.tags == ("",):
            return Pipeline(segmenter, None, columns)
        gold = columns.of_words(word_text(text, words, Vocabulary()))
        tagger, trace["tagger"] = self._step(columns.tagging, gold, words.kind, self.gold.tags)
        return Pipeline(segmenter, tagger, columns)

    def _step(
        self,
        templates: Sequence[str],
        text: Corpus,
        labels: I32,
        names: Sequence[str],
        transition_mask: Bool | None = None,
    ) -> tuple[ChainCRF, dict[str, Any]]:
        params = self.params
        with self.run.phase("features"):
            crf = cast(ChainModel, self.problem.model).prepare(
                TemplateFeaturizer(templates),
                text,
                labels,
                names,
                transition_mask=transition_mask,
                min_count=params.min_count,
                state_support=params.state_support,
            )
            data = crf.encode(text)
        with self.run.phase("train"):
            result = self.run.train(crf, [(data, HardLabels(labels))], params)
        self.run.progress(f"{len(names)} labels: {result.iterations} iterations, {result.status}")
        return crf, result.record()


class PipelineST(CRFMethod):
    """Segment with one CRF, tag the words with another."""

    uses_unlabeled = False

    class Params(TrainingParams, frozen=True, kw_only=True):
        """Parameters of both CRFs."""

    def fit(self, problem: Problem, params: Params, run: RunContext) -> Pipeline:
        """Train both steps on the labeled words; UserError when the problem has no words."""
        trainer = PipelineTrainer(problem, params, run, GoldWords.of(problem))
        return trainer.train(Columns(), "pipeline")

    @staticmethod
    def restore(arrays: Arrays, facts: dict[str, Any]) -> Pipeline:
        """Return a saved tagger."""
        return Pipeline(*read_parts(arrays, facts))
