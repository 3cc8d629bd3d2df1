"""Scores of a tagging: conlleval's chunk counts, accuracies, and scores by vocabulary.

Everything is a sum of counts per sentence (`SentenceCounts`), and every metric a ratio of such sums
(`ratios`): scores of a subset of sentences, paired tests and bootstrap samples need no second pass
over the tokens.

Chunk counts are those of conlleval.pl (2004-01-26) on the labels converted to IOB2: a chunk is
correct iff its first token, its last token and its type agree. The conversion comes first since
conlleval itself miscounts IOBES (`S` is unknown to it). Accuracies compare labels as given.

Words of a segmentation are its chunks: seg_f1 wants both borders right, joint_f1 (equal to f1) the
tag too. oov_recall is the recall, by borders, of gold words that are no word of the labelled data
(SIGHAN bakeoffs, R. Sproat and T. Emerson 2003); joint_oov_recall wants the tag too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sslbench.corpus.columns import Column, Corpus, Vocabulary, first_tokens
from sslbench.corpus.encodings import Scheme, TagTable, Task, describe, mark_chunks
from sslbench.corpus.shards import Shards
from sslbench.errors import UserError
from sslbench.types import F64, I32, I64, AnyArray, Bool

Labels = tuple[Sequence[str], AnyArray]  # label names, and one code per token into them


@dataclass(frozen=True, eq=False)
class SentenceCounts:
    """int64[S] each: what the metrics are made of, sentence by sentence.

    None where it does not apply: chunks to "tagging", words (both borders right) to "spans",
    `*_tagged` (the tag right too) to any task but "joint", `oov_*` where labelled data are unknown.
    """

    n_tokens: I64
    correct_tokens: I64
    gold_chunks: I64 | None = None
    predicted_chunks: I64 | None = None
    correct_chunks: I64 | None = None
    correct_words: I64 | None = None
    correct_tagged: I64 | None = None
    oov_words: I64 | None = None
    oov_correct: I64 | None = None
    oov_tagged: I64 | None = None

    def matrix(self) -> I64:
        """int64[S, k]: rows whose sums (also weighted) `ratios` takes.

        Columns: 1, whole sentence correct, tokens, correct tokens (k = 4); with chunks, also gold,
        predicted, correct chunks (7); with words, the fields of `_WORD_FIELDS` for k.
        """
        exact = self.correct_tokens == self.n_tokens
        columns = [np.ones_like(self.n_tokens), exact, self.n_tokens, self.correct_tokens]
        more = (getattr(self, field.name) for field in fields(self)[2:])
        columns.extend(column for column in more if column is not None)
        return np.stack(columns, axis=-1).astype(np.int64)

    def to_lists(self) -> dict[str, list[int]]:
        """For a JSON record; counts that do not apply are left out."""
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value.tolist() for name, value in values if value is not None}

    @staticmethod
    def from_lists(lists: Mapping[str, Sequence[int]]) -> SentenceCounts:
        """The inverse of `to_lists`."""
        return SentenceCounts(**{n: np.asarray(v, dtype=np.int64) for n, v in lists.items()})


_SEGMENTATION = ("correct_words", "oov_words", "oov_correct")
_JOINT = ("correct_words", "correct_tagged", "oov_words", "oov_correct", "oov_tagged")
# Which counts of words a row holds, known by its length: no two combinations are equally long.
_WORD_FIELDS = {7: (), 8: _JOINT[:1], 9: _JOINT[:2], 10: _SEGMENTATION, 12: _JOINT}


def ratios(sums: ArrayLike) -> dict[str, F64]:
    """Metrics from summed rows of `SentenceCounts.matrix`.

    sums: [..., k]; leading axes (say, bootstrap samples) are kept in every result.
    A ratio without denominator is 0, as conlleval prints it.
    """
    parts = np.moveaxis(np.asarray(sums, dtype=np.float64), -1, 0)
    n_sentences, exact, n_tokens, correct = parts[:4]
    metrics = {
        "accuracy": _ratio(correct, n_tokens),
        "sentence_accuracy": _ratio(exact, n_sentences),
    }
    if len(parts) > 4:
        gold, predicted, both = parts[4:7]
        metrics["precision"] = _ratio(both, predicted)
        metrics["recall"] = _ratio(both, gold)
        # 2 P R / (P + R), in counts: no rounding in between
        metrics["f1"] = _ratio(2 * both, gold + predicted)
        words = dict(zip(_WORD_FIELDS[len(parts)], parts[7:], strict=True))
        for name, field in (("seg_f1", "correct_words"), ("joint_f1", "correct_tagged")):
            if field in words:
                metrics[name] = _ratio(2 * words[field], gold + predicted)
        for name, field in (("oov_recall", "oov_correct"), ("joint_oov_recall", "oov_tagged")):
            if field in words:
                metrics[name] = _ratio(words[field], words["oov_words"])
    return metrics


def _ratio(numerator: F64, denominator: F64) -> F64:
    zero = np.zeros(np.broadcast_shapes(numerator.shape, denominator.shape))
    return np.divide(numerator, denominator, out=zero, where=denominator > 0)


def metrics_from_counts(counts: SentenceCounts, mask: ArrayLike | None = None) -> dict[str, float]:
    """What `ratios` says of the sum over sentences; each metric is in [0, 1].

    mask: the sentences to count, bool[S] or indices (default: all).
    """
    rows = counts.matrix()
    rows = rows if mask is None else rows[np.asarray(mask)]
    return {name: float(value) for name, value in ratios(rows.sum(axis=0)).items()}


@dataclass(frozen=True)
class TypeScore:
    """Chunk counts of one type, and their ratios (0 where undefined)."""

    gold: int
    predicted: int
    correct: int

    @property
    def precision(self) -> float:
        return self.correct / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        return self.correct / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        both = self.gold + self.predicted
        return 2 * self.correct / both if both else 0.0


@dataclass(frozen=True, eq=False)
class Coverage:
    """Which text a corpus shares with what was learnt from.

    unseen: bool[N], the word form of the token does not occur in the labelled data.
    app: bool[S], every word form of the sentence occurs in the labelled data (L.app).
    u_app: bool[S], every word form occurs in the unlabelled text (U.app); None without such text.
    texts: the corpus and the labelled data; their `column` tells which segmented words are new.
    """

    unseen: Bool
    app: Bool
    u_app: Bool | None = None
    texts: tuple[Corpus, Corpus] | None = None
    column: str = "word"


def coverage(
    corpus: Corpus, labeled: Corpus, unlabeled: Shards | None = None, column: str = "word"
) -> Coverage:
    """Look up the words of `corpus` (case-sensitive, no cut-off); one pass over `unlabeled`."""
    words, offsets = corpus.column(column), corpus.offsets
    seen = _occurring(iter([labeled]), words.vocabulary, column)[words.codes]
    u_app = None
    if unlabeled is not None:
        in_text = _occurring(iter(unlabeled), words.vocabulary, column)[words.codes]
        u_app = _per_sentence(~in_text, offsets) == 0
    return Coverage(~seen, _per_sentence(~seen, offsets) == 0, u_app, (corpus, labeled), column)


def _occurring(shards: Iterator[Corpus], vocabulary: Vocabulary, column: str) -> Bool:
    """bool[len(vocabulary)]: the entry occurs as a token of `shards`."""
    found = np.zeros(len(vocabulary), dtype=np.bool_)
    for shard in shards:
        words = shard.column(column)
        if words.vocabulary is vocabulary:
            codes = words.codes
            found[codes[codes < len(found)]] = True  # it may have grown since the start
        else:
            present = np.flatnonzero(np.bincount(words.codes)).tolist()
            strings = words.vocabulary.strings
            codes = np.array([vocabulary.lookup(strings[code]) for code in present], dtype=np.int32)
            found[codes[(codes >= 0) & (codes < len(found))]] = True
    return found


@dataclass(frozen=True, eq=False)
class Scores:
    """What `score` found. `types`: chunk type -> counts, sorted by name; empty without chunks."""

    metrics: dict[str, float]
    counts: SentenceCounts
    types: dict[str, TypeScore]


def score(
    task: Task,
    gold: Labels,
    predicted: Labels,
    offsets: I64,
    *,
    encoding: Scheme | None = None,
    coverage: Coverage | None = None,
) -> Scores:
    """Compare two labellings of N tokens in S sentences.

    gold, predicted: (label names, codes int[N]); the two may name different labels in any order.
    offsets: int64[S + 1].
    encoding: of the labels, needed unless the task is "tagging", where chunks do not exist.
    coverage: adds share_app, sentence_accuracy and f1 with suffix _app / _notapp, unseen_accuracy
        and, with unlabelled text, u_app, u_app_app, u_app_notapp (U.app in all sentences and in
        the two groups), and the recall of words that are out of vocabulary where the task has
        words. A metric of an empty group is left out: it is not 0.

    All metrics are in [0, 1]. ValueError if shapes or codes do not fit; UserError if a label that
    occurs is illegal in `encoding`.
    """
    n_tokens = int(offsets[-1])
    (gold_names, gold_codes), (names, codes) = (
        _checked(gold, n_tokens),
        _checked(predicted, n_tokens),
    )
    of_name = {name: code for code, name in enumerate(gold_names)}
    to_gold = np.array([of_name.get(name, -1) for name in names], dtype=np.int64)
    correct = to_gold[codes] == gold_codes
    tokens = (np.diff(offsets), _per_sentence(correct, offsets))
    types: dict[str, TypeScore] = {}
    counts = SentenceCounts(*tokens)
    if task != "tagging":
        if encoding is None:
            raise ValueError(f"task {task!r} needs the encoding of its labels")
        kinds = Vocabulary([""])
        found = _find_chunks((gold_names, gold_codes), offsets, encoding, kinds)
        guessed = _find_chunks((names, codes), offsets, encoding, kinds)
        lists = _chunk_lists(task, found, guessed, n_tokens)
        if task != "spans" and coverage is not None and coverage.texts is not None:
            new = found.where(_out_of_vocabulary(found, coverage.texts, coverage.column, encoding))
            lists |= _oov_lists(task, new, guessed, n_tokens)
        counts = SentenceCounts(*tokens, **{n: c.per_sentence(offsets) for n, c in lists.items()})
        types = _type_table(found, guessed, lists["correct_chunks"], kinds)
    metrics = metrics_from_counts(counts)
    if counts.oov_words is not None and not counts.oov_words.any():
        metrics = {name: value for name, value in metrics.items() if "oov" not in name}
    if coverage is not None:
        metrics |= _coverage_metrics(counts, correct, coverage)
    return Scores(metrics, counts, types)


def _checked(labels: Labels, n_tokens: int) -> tuple[Sequence[str], I64]:
    names, codes = labels[0], np.asarray(labels[1])
    if codes.shape != (n_tokens,) or (n_tokens and codes.dtype.kind not in "iu"):
        raise ValueError(f"codes must be int[{n_tokens}], got {codes.dtype} {codes.shape}")
    if n_tokens and not 0 <= int(codes.min()) <= int(codes.max()) < len(names):
        raise ValueError(f"codes {codes.min()}..{codes.max()} for {len(names)} labels")
    return names, codes.astype(np.int64, copy=False)


def _per_sentence(flags: Bool, offsets: I64) -> I64:
    """int64[S]: how many of the tokens of each sentence are marked (flags: bool[N])."""
    before: I64 = np.concatenate([[0], np.cumsum(flags)])
    return before[offsets[1:]] - before[offsets[:-1]]


@dataclass(frozen=True, eq=False)
class _ChunkList:
    """K chunks from left to right; int[K] each. `last` is inside the chunk."""

    start: NDArray[np.intp]
    last: NDArray[np.intp]
    kind: I32

    def where(self, mask: Bool) -> _ChunkList:
        return _ChunkList(self.start[mask], self.last[mask], self.kind[mask])

    def untyped(self) -> _ChunkList:
        return _ChunkList(self.start, self.last, np.zeros_like(self.kind))

    def per_sentence(self, offsets: I64) -> I64:
        sentence = np.searchsorted(offsets, self.start, side="right") - 1
        return np.bincount(sentence, minlength=len(offsets) - 1)

    def per_type(self, n_types: int) -> list[int]:
        counts: list[int] = np.bincount(self.kind, minlength=n_types).tolist()
        return counts


def _find_chunks(labels: Labels, offsets: I64, encoding: Scheme, kinds: Vocabulary) -> _ChunkList:
    names, codes = labels
    table = TagTable.of(names, encoding, kinds)
    prefix, kind = table.prefix[codes], table.type[codes]
    if len(prefix) and prefix.min() < 0:
        label = names[codes[int(np.argmin(prefix))]]
        raise UserError(f"label {label!r} does not fit {encoding}", hint=describe(encoding))
    chunks = mark_chunks(prefix, kind, first_tokens(offsets))
    start = np.flatnonzero(chunks.start)
    return _ChunkList(start, np.flatnonzero(chunks.last), kind[start])


def _correct_chunks(gold: _ChunkList, predicted: _ChunkList, n_tokens: int) -> _ChunkList:
    """The chunks of `gold` that are in `predicted`: same first token, last token and type."""
    last_at = np.full(n_tokens, -1, dtype=np.int64)
    kind_at = np.full(n_tokens, -1, dtype=np.int64)
    last_at[predicted.start] = predicted.last
    kind_at[predicted.start] = predicted.kind
    same = (last_at[gold.start] == gold.last) & (kind_at[gold.start] == gold.kind)
    return gold.where(same)


def _chunk_lists(
    task: Task, gold: _ChunkList, predicted: _ChunkList, n_tokens: int
) -> dict[str, _ChunkList]:
    """The chunks behind the fields of `SentenceCounts`, without those of new words."""
    both = _correct_chunks(gold, predicted, n_tokens)
    lists = {"gold_chunks": gold, "predicted_chunks": predicted, "correct_chunks": both}
    if task != "spans":
        lists["correct_words"] = _correct_chunks(gold.untyped(), predicted.untyped(), n_tokens)
    return {**lists, "correct_tagged": both} if task == "joint" else lists


def _oov_lists(
    task: Task, new: _ChunkList, predicted: _ChunkList, n_tokens: int
) -> dict[str, _ChunkList]:
    untyped = _correct_chunks(new.untyped(), predicted.untyped(), n_tokens)
    tagged = {"oov_tagged": _correct_chunks(new, predicted, n_tokens)} if task == "joint" else {}
    return {"oov_words": new, "oov_correct": untyped, **tagged}


def _out_of_vocabulary(
    gold: _ChunkList, texts: tuple[Corpus, Corpus], column: str, encoding: Scheme
) -> Bool:
    """bool[gold words]: no word of the labelled data is spelt so."""
    (corpus, labeled), label = texts, texts[1].column("label")
    labels = label.vocabulary.strings, label.codes
    known = _find_chunks(labels, labeled.offsets, encoding, Vocabulary([""]))
    seen = set(_spellings(known, labeled.column(column)))
    return np.array([w not in seen for w in _spellings(gold, corpus.column(column))], np.bool_)


def _spellings(words: _ChunkList, characters: Column) -> list[str]:
    text = characters.strings()
    borders = zip(words.start.tolist(), (words.last + 1).tolist(), strict=True)
    return ["".join(text[start:end]) for start, end in borders]


def _type_table(
    gold: _ChunkList, predicted: _ChunkList, correct: _ChunkList, kinds: Vocabulary
) -> dict[str, TypeScore]:
    columns = [chunks.per_type(len(kinds)) for chunks in (gold, predicted, correct)]
    table = {
        name: TypeScore(g, p, c)
        for name, g, p, c in zip(kinds.strings, *columns, strict=True)
        if g or p
    }
    return dict(sorted(table.items()))


def _coverage_metrics(counts: SentenceCounts, correct: Bool, cover: Coverage) -> dict[str, float]:
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


def conlleval_report(scores: Scores) -> str:
    """The text that conlleval.pl prints for these counts; ValueError without chunks."""
    rows = scores.counts.matrix()
    if rows.shape[1] < 7:
        raise ValueError("no chunks were counted")
    _, _, n_tokens, _, gold, predicted, correct = rows[:, :7].sum(axis=0).tolist()
    percent = {name: 100 * value for name, value in scores.metrics.items()}
    lines = [
        f"processed {n_tokens} tokens with {gold} phrases; "
        f"found: {predicted} phrases; correct: {correct}.",
        f"accuracy: {percent['accuracy']:6.2f}%; precision: {percent['precision']:6.2f}%; "
        f"recall: {percent['recall']:6.2f}%; FB1: {percent['f1']:6.2f}",
    ]
    for name, row in scores.types.items():
        p, r, f = 100 * row.precision, 100 * row.recall, 100 * row.f1
        shares = f"precision: {p:6.2f}%; recall: {r:6.2f}%; FB1: {f:6.2f}"
        lines.append(f"{name:>17}: {shares}  {row.predicted}")
    return "\n".join(lines)
