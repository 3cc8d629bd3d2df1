"""Comparison of a predicted labeling with the gold one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sslbench.engine.corpus.columns import Column, Corpus, Vocabulary
from sslbench.engine.corpus.encodings import Scheme, Task
from sslbench.engine.types import I64, Bool
from sslbench.experiment.metrics.anatomy import Anatomy, added, anatomy
from sslbench.experiment.metrics.chunks import (
    Alternatives,
    ChunkList,
    Labels,
    alternative_lists,
    find_chunks,
    is_in,
    per_sentence,
)
from sslbench.experiment.metrics.counts import SentenceCounts, metrics_from_counts
from sslbench.experiment.metrics.coverage import Coverage, coverage_metrics


@dataclass(frozen=True, eq=False)
class Scores:
    """Result of `score`: metrics by name, and what they are made of.

    correct: bool[N], by token.  cover: see `score`.
    anatomy: counts of tokens by word, label and length, see `metrics.anatomy`.
    """

    metrics: dict[str, float]
    counts: SentenceCounts
    correct: Bool
    cover: Coverage | None
    anatomy: Anatomy


def score(
    task: Task,
    gold: Labels,
    predicted: Labels,
    offsets: I64,
    *,
    encoding: Scheme | None = None,
    coverage: Coverage | None = None,
    alternatives: Alternatives | None = None,
) -> Scores:
    """Compare two labelings of N tokens in S sentences. All metrics are in [0, 1].

    Parameters
    ----------
    gold, predicted: (label names, int[N] codes into them); the names may differ.
    offsets: int64[S + 1].
    encoding: the encoding of the labels; needed unless the task is "tagging", which has no chunks.
    coverage: adds share_app, sentence_accuracy and f1 with suffixes _app and _notapp,
        unseen_accuracy; with unlabeled text u_app, u_app_app and u_app_notapp (the share of U.app
        among all sentences and in the two groups); and the recall of out-of-vocabulary words where
        the task has words. Metrics of an empty group are left out.
    alternatives: spans accepted besides the gold chunks; adds alt_precision, alt_recall, alt_f1.

    Raises
    ------
    ValueError: wrong shapes or codes.
    UserError: a label that occurs is illegal in `encoding`.
    """
    n_tokens = int(offsets[-1])
    gold, predicted = _checked(gold, n_tokens), _checked(predicted, n_tokens)
    correct = _correct_labels(gold, predicted)
    tokens = (np.diff(offsets), per_sentence(correct, offsets))
    counts = SentenceCounts(*tokens)
    if task != "tagging":
        if encoding is None:
            raise ValueError(f"task {task!r} needs the encoding of its labels")
        kinds = Vocabulary([""])
        golds = find_chunks(gold, offsets, encoding, kinds)
        guesses = find_chunks(predicted, offsets, encoding, kinds)
        lists = _chunk_lists(task, golds, guesses, n_tokens)
        if task != "spans" and coverage is not None and coverage.texts is not None:
            new = golds.where(_out_of_vocabulary(golds, coverage.texts, encoding))
            lists |= _oov_lists(task, new, guesses, n_tokens)
        if alternatives is not None:
            lists |= alternative_lists(golds, guesses, alternatives, n_tokens)
        counts = SentenceCounts(*tokens, **{n: c.per_sentence(offsets) for n, c in lists.items()})
    parts = anatomy(gold, correct, offsets, coverage, chunks=task != "tagging")
    return _scores(counts, correct, coverage, parts)


def pool(parts: Sequence[Scores]) -> Scores:
    """The scores of several texts as those of one text, their sentences one after another."""
    counts = SentenceCounts.concatenate([part.counts for part in parts])
    correct = np.concatenate([part.correct for part in parts])
    covers = [part.cover for part in parts if part.cover is not None]
    cover = Coverage.concatenate(covers) if len(covers) == len(parts) else None
    return _scores(counts, correct, cover, added([part.anatomy for part in parts]))


def _scores(
    counts: SentenceCounts, correct: Bool, cover: Coverage | None, parts: Anatomy
) -> Scores:
    metrics = metrics_from_counts(counts)
    if counts.oov_words is not None and not counts.oov_words.any():
        metrics = {name: value for name, value in metrics.items() if "oov" not in name}
    if cover is not None:
        metrics |= coverage_metrics(counts, correct, cover)
    return Scores(metrics, counts, correct, cover, parts)


def _checked(labels: Labels, n_tokens: int) -> Labels:
    names, codes = labels[0], np.asarray(labels[1])
    if codes.shape != (n_tokens,) or (n_tokens and codes.dtype.kind not in "iu"):
        raise ValueError(f"codes must be int[{n_tokens}], got {codes.dtype} {codes.shape}")
    if n_tokens and not 0 <= int(codes.min()) <= int(codes.max()) < len(names):
        raise ValueError(f"codes {codes.min()}..{codes.max()} for {len(names)} labels")
    return names, codes.astype(np.int64, copy=False)


def _correct_labels(gold: Labels, predicted: Labels) -> Bool:
    """bool[N]: whether the two labels have the same name."""
    codes = {name: code for code, name in enumerate(gold[0])}
    to_gold = np.array([codes.get(name, -1) for name in predicted[0]], dtype=np.int64)
    same: Bool = to_gold[predicted[1]] == gold[1]
    return same


def _correct_chunks(gold: ChunkList, predicted: ChunkList, n_tokens: int) -> ChunkList:
    return gold.where(is_in(gold, predicted, n_tokens))


def _chunk_lists(
    task: Task, gold: ChunkList, predicted: ChunkList, n_tokens: int
) -> dict[str, ChunkList]:
    """The chunks that the fields of `SentenceCounts` count, except `oov_*`."""
    both = _correct_chunks(gold, predicted, n_tokens)
    lists = {"gold_chunks": gold, "predicted_chunks": predicted, "correct_chunks": both}
    if task != "spans":
        lists["correct_words"] = _correct_chunks(gold.untyped(), predicted.untyped(), n_tokens)
    return {**lists, "correct_tagged": both} if task == "joint" else lists


def _oov_lists(
    task: Task, new: ChunkList, predicted: ChunkList, n_tokens: int
) -> dict[str, ChunkList]:
    untyped = _correct_chunks(new.untyped(), predicted.untyped(), n_tokens)
    tagged = {"oov_tagged": _correct_chunks(new, predicted, n_tokens)} if task == "joint" else {}
    return {"oov_words": new, "oov_correct": untyped, **tagged}


def _out_of_vocabulary(gold: ChunkList, texts: tuple[Corpus, Corpus], encoding: Scheme) -> Bool:
    """bool[K]: whether the gold word is no word of the labeled data."""
    (corpus, labeled), label = texts, texts[1].column("label")
    labels = label.vocabulary.strings, label.codes
    words = find_chunks(labels, labeled.offsets, encoding, Vocabulary([""]))
    seen = set(_spellings(words, labeled.column("word")))
    return np.array([w not in seen for w in _spellings(gold, corpus.column("word"))], np.bool_)


def _spellings(words: ChunkList, characters: Column) -> list[str]:
    text = characters.strings()
    borders = zip(words.start.tolist(), (words.last + 1).tolist(), strict=True)
    return ["".join(text[start:end]) for start, end in borders]
