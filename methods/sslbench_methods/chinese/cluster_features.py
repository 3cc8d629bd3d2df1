"""Pipeline with features from automatically analyzed text: n-grams, word clusters, a lexicon.

Wang et al. (2011); the row "f + n-gram + cluster + lexicon" of Zeng et al. (2013).  A baseline
pipeline segments and tags the unlabeled text; what is counted there becomes features of a second
pipeline, trained on the same labeled sentences.

A re-interpretation, not a replication: the idea and the three groups of features are the paper's,
the rest is ours (docs/specs/virtual_evidence.md, section 8).

* The baseline is `pipeline_st`, with its templates; theirs differ.
* n-gram: for C_-1 C_0, C_0 C_1 and C_-1 C_0 C_1 the most frequent label of C_0 among B, M, E, S
  and the frequency class (`auto_analysis`), one feature each, for segmentation.
* cluster: k-means on vectors of the words' neighbors (`word_clusters`), where Brown clusters are
  usual; two numbers of clusters stand for two prefixes of a bit string.  Of W_-1, W_0, W_1, for
  tagging.
* lexicon: the most frequent automatic tag of W_0 and its frequency class, for tagging.
* All is counted in the unlabeled text alone, some 10^5 to 10^6 characters here and far more there.
  Labeled sentences are not counted: their own labels would come back as features of themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from sslbench import (
    Count,
    CRFMethod,
    Problem,
    RunContext,
    SearchAxis,
    TrainingParams,
    doc,
)
from sslbench.engine.checked import Saved, joined, part_of
from sslbench.engine.corpus import Corpus, Shards, Vocabulary
from sslbench.engine.features import Streams
from sslbench.engine.graph.words import numbered
from sslbench.engine.types import I32, Arrays
from sslbench_methods.chinese.auto_analysis import (
    NGRAMS,
    UNSEEN,
    NgramCounts,
    NgramLists,
    WordLists,
    by_class,
    list_codes,
    list_names,
    pair_counts,
)
from sslbench_methods.chinese.pipeline_st import (
    SEGMENTATION,
    TAGGING,
    Columns,
    Pipeline,
    PipelineTrainer,
    read_parts,
)
from sslbench_methods.chinese.word_clusters import directions, kmeans, neighbor_pmi
from sslbench_methods.chinese.words import BORDERS, GoldWords, borders_of, word_text

#: columns of word lists
LEXICON, COARSE, FINE = "lexicon", "coarse", "fine"


@dataclass(frozen=True)
class ListColumns(Columns):
    """Those of the pipeline, and those of lists; None = a group of features that is left out."""

    ngrams: NgramLists | None
    words: WordLists | None
    method: ClassVar[str] = "cluster_features"

    @property
    def segmentation(self) -> tuple[str, ...]:
        lists = () if self.ngrams is None else tuple(NGRAMS)
        return (*SEGMENTATION, *(f"{name}[0]" for name in lists))

    @property
    def tagging(self) -> tuple[str, ...]:
        lists = () if self.words is None else tuple(self.words.codes)
        window = {name: (0,) if name == LEXICON else (-1, 0, 1) for name in lists}
        return (*TAGGING, *(f"{name}[{k}]" for name, at in window.items() for k in at))

    def of_characters(self, text: Corpus) -> Corpus:
        text = super().of_characters(text)
        return text if self.ngrams is None else self.ngrams.annotate(text)

    def of_words(self, text: Corpus) -> Corpus:
        text = super().of_words(text)
        return text if self.words is None else self.words.annotate(text)

    def sizes(self) -> dict[str, Any]:
        """For the record: entries of lists by class H, M, L, words by cluster (first: in none)."""
        sizes: dict[str, Any] = {} if self.ngrams is None else dict(self.ngrams.sizes())
        if self.words is not None:
            sizes["distinct_words"] = len(self.words.words)
            for name, codes in self.words.codes.items():
                n = len(self.words.names[name])
                sizes[name] = (
                    by_class(codes) if name == LEXICON else np.bincount(codes, minlength=n).tolist()
                )
        return sizes

    def arrays(self) -> Saved:
        lists = {"ngrams": self.ngrams, "words": self.words}
        return joined(**{name: part.arrays() for name, part in lists.items() if part is not None})

    @classmethod
    def from_arrays(cls, arrays: Arrays, facts: dict[str, Any]) -> ListColumns:
        """Restore what `arrays` gave; ValueError when it cannot be that."""
        ngrams, words = None, None
        if "ngrams" in facts:
            ngrams = NgramLists.from_arrays(*part_of(arrays, facts, "ngrams"))
        if "words" in facts:
            words = WordLists.from_arrays(*part_of(arrays, facts, "words"))
        return cls(ngrams, words)


class ClusterFeatures(CRFMethod):
    """A pipeline that has read the output of another."""

    class Params(TrainingParams, frozen=True, kw_only=True):
        """Parameters of all CRFs and of the clusters."""

        ngrams: Annotated[bool, doc("features of character n-grams, for segmentation")] = True
        clusters: Annotated[bool, doc("features of word clusters, for tagging")] = True
        lexicon: Annotated[bool, doc("features of automatic tags, for tagging")] = True
        coarse: Annotated[int, doc("clusters, the lower number", ge=1, le=1_000_000)] = 16
        fine: Annotated[int, doc("clusters, the higher number", ge=1, le=1_000_000)] = 128
        dimensions: Annotated[int, doc("of the vectors that are clustered", ge=1, le=10_000)] = 20
        cluster_min_count: Annotated[Count, doc("rarer words are in no cluster")] = 5
        search: ClassVar[tuple[SearchAxis, ...]] = (
            SearchAxis("coarse", low=4, high=64, log=True, integer=True),
            SearchAxis("fine", low=32, high=512, log=True, integer=True),
            SearchAxis("cluster_min_count", low=1, high=20, log=True, integer=True),
        )

    def fit(self, problem: Problem, params: Params, run: RunContext) -> Pipeline:
        """Train, analyze the unlabeled text, train again; UserError when there are no words.

        Without unlabeled text, `pipeline_st`.
        """
        trainer = PipelineTrainer(problem, params, run, GoldWords.of(problem))
        base = trainer.train(Columns(), "baseline")
        if not problem.unlabeled.n_tokens:
            return base
        with run.phase("analyze"):
            text = AutoText.of(base, problem.unlabeled)
        with run.phase("lists"):
            columns = ListColumns(
                text.ngrams.lists() if params.ngrams else None, word_lists(text, params, run.rng)
            )
        run.trace["analyzed"] = {"words": sum(part.n_tokens for part in text.words)}
        run.trace["lists"] = columns.sizes()
        return trainer.train(columns, "final")

    @staticmethod
    def restore(arrays: Arrays, facts: dict[str, Any]) -> Pipeline:
        """Return a saved tagger."""
        return Pipeline(*read_parts(arrays, facts), ListColumns.from_arrays(arrays, facts))


@dataclass(frozen=True)
class AutoText:
    """The unlabeled text as a pipeline reads it.

    ngrams: with borders counted.  words: texts of words over one vocabulary.  tags: int32[W] of
    each text, codes of `names`; names is empty when the pipeline has no tags.
    """

    ngrams: NgramCounts
    words: list[Corpus]
    tags: list[I32]
    names: tuple[str, ...]

    @classmethod
    def of(cls, base: Pipeline, shards: Shards) -> AutoText:
        """Segment and tag.  Two passes; eight bytes a word are kept."""
        ngrams = NgramCounts(Streams.fit(NGRAMS.values(), shards), BORDERS)
        names = () if base.tagger is None else base.tagger.labels
        text, vocabulary = cls(ngrams, [], [], names), Vocabulary()
        for shard in shards:
            words = base.segment(shard)
            ngrams.add(shard, borders_of(words, shard.n_tokens))
            text.words.append(word_text(shard, words, vocabulary))
            text.tags.append(base.tag(text.words[-1]))
        return text


def word_lists(
    text: AutoText, params: ClusterFeatures.Params, rng: np.random.Generator
) -> WordLists | None:
    """Lexicon and clusters of an analyzed text; None when the parameters or a task without tags
    ask for neither.
    """
    if not text.names or not (params.lexicon or params.clusters):
        return None
    words, rank = numbered(text.words[0].column("word").vocabulary.strings)
    counts = np.zeros((len(words), len(text.names)), np.int64)
    for part, tags in zip(text.words, text.tags, strict=True):
        counts += pair_counts(rank[part.column("word").codes], tags, counts.shape)
    codes, names = dict[str, I32](), dict[str, list[str]]()
    if params.lexicon:
        codes[LEXICON], names[LEXICON] = list_codes(counts), list_names(text.names)
    if params.clusters:
        frequent = np.flatnonzero(counts.sum(axis=1) >= params.cluster_min_count)
        number = np.full(len(words), -1, np.int32)
        number[frequent] = np.arange(len(frequent))
        pmi = neighbor_pmi(text.words, number[rank], len(frequent))
        rows = directions(pmi, params.dimensions, rng)
        for name, k in ((COARSE, params.coarse), (FINE, params.fine)):
            codes[name] = np.append(1 + kmeans(rows, k, rng), 0)[number].astype(np.int32)
            names[name] = [UNSEEN, *map(str, range(k))]
    return WordLists(words, codes, names)
