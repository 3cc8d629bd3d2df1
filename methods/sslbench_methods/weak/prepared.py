"""A problem with weak labels, ready for training: the model, the encoded text, the outcomes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sslbench import Problem, RunContext, TrainingParams
from sslbench.engine.corpus import Column, Corpus, Vocabulary
from sslbench.engine.crf import EncodedProblem, EncodedText, SequenceModel, split_tokens
from sslbench.engine.types import F64, I32, I64, AnyArray
from sslbench.experiment.data.weak import without_weak
from sslbench.experiment.inputs.weak import with_weak_labels

from .outcomes import Outcomes, majority, of_sentences


@dataclass(frozen=True)
class WeakProblem:
    """A problem whose labels include those of its weak sources.

    crf: has weights for the attributes of all text, and for the transitions that occur in gold
        labels or votes.
    """

    problem: Problem
    crf: SequenceModel
    text: EncodedProblem
    outcomes: Outcomes

    @staticmethod
    def of(problem: Problem, params: TrainingParams, run: RunContext) -> WeakProblem:
        """Encode a problem; its model is untrained."""
        problem = with_weak_labels(problem)
        outcomes = Outcomes.of(problem)
        with run.phase("features"):
            votes = majority(outcomes, problem.labels)[problem.labeled.n_tokens :]
            whole = replace(problem, labeled=_voted(problem, votes))
            crf = whole.crf(params)
            return WeakProblem(problem, crf, problem.encode(crf), outcomes)

    @cached_property
    def gold(self) -> I32:
        """int32[N]: labels of the labeled text; -1 for the unlabeled text."""
        unknown = np.full(self.problem.unlabeled.n_tokens, -1, np.int32)
        return np.concatenate([self.problem.label_codes(self.problem.labeled), unknown])

    @cached_property
    def offsets(self) -> I64:
        """int64[S + 1]: the sentences of the labeled, then of the unlabeled text."""
        lengths = [data.lengths for data in self.text.corpora]
        return np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int64)

    @cached_property
    def hidden(self) -> Outcomes:
        """What the sources say of the unlabeled text."""
        return self.outcomes.between(self.problem.labeled.n_tokens, int(self.offsets[-1]))

    def weights(self, weight: float) -> list[F64]:
        """Return float64[S] of each shard: the weights of its sentences.

        All sentences that a source has read have together `weight` times that of the labeled ones;
        the others have none.
        """
        shards = self.text.unlabeled
        parts = zip(split_tokens(self.hidden.read, shards), shards, strict=True)
        read = [of_sentences(tokens, data.offsets).astype(np.float64) for tokens, data in parts]
        n_labeled = len(self.text.labeled[0].lengths)
        each = weight * n_labeled / max(1.0, sum(float(part.sum()) for part in read))
        return [each * part for part in read]

    def by_shard(
        self, values: AnyArray, weight: float
    ) -> Iterator[tuple[EncodedText, AnyArray, F64]]:
        """Yield each shard of the unlabeled text with its part of values and the weights.

        values: [N, ...], of the tokens of the unlabeled text.
        """
        shards = self.text.unlabeled
        yield from zip(shards, split_tokens(values, shards), self.weights(weight), strict=True)


def _voted(problem: Problem, votes: I32) -> Corpus:
    """Return all text with labels: gold, then the votes, O or the first label without any."""
    silent = problem.labels.index("O") if "O" in problem.labels else 0
    labels = Vocabulary(problem.labels)
    codes = np.concatenate(
        [problem.label_codes(problem.labeled), np.where(votes < 0, silent, votes)]
    )
    parts = [without_weak(problem.labeled).drop("label")]
    for shard in problem.unlabeled:
        columns = {
            name: _recoded(shard.column(name), own) for name, own in parts[0].columns.items()
        }
        parts.append(Corpus(columns, shard.offsets))
    return Corpus.concatenate(parts).with_column("label", Column(labels, codes))


def _recoded(column: Column, like: Column) -> Column:
    """Return the column with the vocabulary of another one."""
    words = like.vocabulary
    if column.vocabulary is words:
        return column
    return Column(words, words.encode(column.vocabulary.strings)[column.codes])
