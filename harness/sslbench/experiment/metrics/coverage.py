"""Scores by whether words occur in the labeled data and in the unlabeled text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sslbench.engine.corpus.columns import Corpus, Vocabulary
from sslbench.engine.corpus.shards import Shards
from sslbench.engine.types import Bool
from sslbench.experiment.metrics.chunks import per_sentence
from sslbench.experiment.metrics.counts import SentenceCounts, metrics_from_counts


@dataclass(frozen=True, eq=False)
class Coverage:
    """Which words of a corpus occur in the training text.

    unseen: bool[N], whether the word form is not in the labeled data.
    app: bool[S], whether all word forms of the sentence are in the labeled data (L.app).
    u_app: bool[S], whether all are in the unlabeled text (U.app); None without such text.
    in_text: bool[N], whether the word form is in the unlabeled text; None without such text.
    texts: the corpus and the labeled data, to find the words of a segmentation that are not in the
        labeled data; None = not counted. Their column "word" has words or characters.
    """

    unseen: Bool
    app: Bool
    u_app: Bool | None = None
    texts: tuple[Corpus, Corpus] | None = None
    in_text: Bool | None = None

    @staticmethod
    def concatenate(parts: Sequence[Coverage]) -> Coverage:
        """The coverage of several texts as one, each by its own training text; without `texts`."""
        texts = [part.u_app for part in parts if part.u_app is not None]
        words = [part.in_text for part in parts if part.in_text is not None]
        return Coverage(
            np.concatenate([part.unseen for part in parts]),
            np.concatenate([part.app for part in parts]),
            np.concatenate(texts) if len(texts) == len(parts) else None,
            in_text=np.concatenate(words) if len(words) == len(parts) else None,
        )


def coverage(corpus: Corpus, labeled: Corpus, unlabeled: Shards | None = None) -> Coverage:
    """Look up the words of `corpus` (case-sensitive); reads `unlabeled` once."""
    words, offsets = corpus.column("word"), corpus.offsets
    seen = _occurring(iter([labeled]), words.vocabulary)[words.codes]
    u_app = in_text = None
    if unlabeled is not None:
        in_text = _occurring(iter(unlabeled), words.vocabulary)[words.codes]
        u_app = per_sentence(~in_text, offsets) == 0
    app = per_sentence(~seen, offsets) == 0
    return Coverage(~seen, app, u_app, (corpus, labeled), in_text)


def _occurring(shards: Iterator[Corpus], vocabulary: Vocabulary) -> Bool:
    """bool[len(vocabulary)]: whether the entry occurs as a token of `shards`."""
    occurs = np.zeros(len(vocabulary), dtype=np.bool_)
    for shard in shards:
        words = shard.column("word")
        if words.vocabulary is vocabulary:
            codes = words.codes
            occurs[codes[codes < len(occurs)]] = True  # the vocabulary may have grown since
        else:
            present = np.flatnonzero(np.bincount(words.codes)).tolist()
            strings = words.vocabulary.strings
            codes = np.array([vocabulary.lookup(strings[code]) for code in present], dtype=np.int32)
            occurs[codes[(codes >= 0) & (codes < len(occurs))]] = True
    return occurs


def coverage_metrics(counts: SentenceCounts, correct: Bool, cover: Coverage) -> dict[str, float]:
    """The metrics that `score` adds for a `Coverage`; correct: bool[N], by token."""
    metrics: dict[str, float] = {}
    groups = {"": np.ones_like(cover.app), "_app": cover.app, "_notapp": ~cover.app}
    for suffix, group in groups.items():
        if not group.any():
            continue
        if suffix:
            in_group = metrics_from_counts(counts, group)
            for name in ("sentence_accuracy", "f1"):
                if name in in_group:
                    metrics[name + suffix] = in_group[name]
        if cover.u_app is not None:
            metrics["u_app" + suffix] = float(cover.u_app[group].mean())
    if len(cover.app):
        metrics["share_app"] = float(cover.app.mean())
    if cover.unseen.any():
        metrics["unseen_accuracy"] = float(correct[cover.unseen].mean())
    return metrics
