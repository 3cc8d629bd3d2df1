"""Conditional random fields that learn from gold labels of some sentences, weak ones of others.

Each method is an objective of two parts: the log-likelihood of the gold labels, and a term of the
unlabeled sentences that weak sources have read. Without weak labels, they are supervised.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from sslbench import (
    CRFMethod,
    Problem,
    Rounds,
    RunContext,
    SearchAxis,
    Share,
    TrainingParams,
    Weight,
    doc,
)
from sslbench.engine.crf import (
    HardLabels,
    PartialLabels,
    Parts,
    SequenceModel,
    SoftTargets,
)
from sslbench.engine.types import F64
from sslbench.method import Sigma2

from ..shared import partial_labels, train_supervised
from .label_models import dawid_skene, hidden_markov
from .outcomes import Outcomes, majority, normalized
from .prepared import WeakProblem

WeakWeight = Annotated[
    Weight,
    doc("of all sentences with weak labels together, where the labeled ones have 1"),
]
_SEARCH = SearchAxis("weight", low=0.1, high=10, log=True)
_SETTLED = 1e-4  # change of a probability of a confusion matrix
_PRIOR = 10.0  # tokens that an estimate without gold labels is worth beside gold ones


class WeakParams(TrainingParams, frozen=True, kw_only=True):
    """Parameters of all methods that learn from weak labels."""

    sigma2: Sigma2 = 1.0
    weight: WeakWeight = 1.0
    search: ClassVar[tuple[SearchAxis, ...]] = (_SEARCH,)


class WeakMethod(CRFMethod):
    """Trains on gold labels, then on these and a term of the weak labels."""

    Params = WeakParams

    def fit(self, problem: Problem, params: Any, run: RunContext) -> SequenceModel:
        """Return the model; the trace has what `train` notes."""
        weak = WeakProblem.of(problem, params, run)
        train_supervised(weak.crf, weak.text, params, run)
        if weak.hidden.read.any():
            self.train(weak, params, run)
        return weak.crf

    @abstractmethod
    def train(self, weak: WeakProblem, params: Any, run: RunContext) -> None:
        """Train the model, which knows the gold labels."""


def train_on(weak: WeakProblem, parts: Parts, params: TrainingParams, run: RunContext) -> None:
    """Train on the gold labels and terms of the unlabeled text."""
    with run.phase("train"):
        run.record(run.train(weak.crf, [weak.text.labeled, *parts], params), "weak")


class WeakVote(WeakMethod):
    """Takes the label that most sources give for gold."""

    def train(self, weak: WeakProblem, params: Any, run: RunContext) -> None:
        """A token that no source labels is O in chunk tags, and unknown otherwise."""
        votes, labels = majority(weak.hidden, weak.problem.labels), weak.problem.labels
        if weak.problem.encoding is not None:
            silent = labels.index("O") if "O" in labels else 0
            votes = np.where(votes < 0, silent, votes).astype(np.int32)
        parts: Parts = [
            (data, HardLabels(part, weights))
            if (part >= 0).all()
            else (data, partial_labels(part, len(labels), weights))
            for data, part, weights in weak.by_shard(votes, params.weight)
        ]
        train_on(weak, parts, params, run)


class FuzzyCRF(WeakMethod):
    """Trusts the chunks that sources give; where they say O or nothing, any label may be right.

    Shang et al. (2018), section 3.1, for a linear chain over the labels of the problem.
    """

    def train(self, weak: WeakProblem, params: Any, run: RunContext) -> None:
        """The likelihood sums over all label sequences that agree with the votes."""
        votes, labels = majority(weak.hidden, weak.problem.labels), weak.problem.labels
        if "O" in labels:
            votes = np.where(votes == labels.index("O"), -1, votes).astype(np.int32)
        parts = [
            (data, partial_labels(part, len(labels), weights))
            for data, part, weights in weak.by_shard(votes, params.weight)
        ]
        train_on(weak, parts, params, run)


class NoisyChannel(WeakMethod):
    """Learns what each source says of tokens of each label, and sums over the labels.

    The term of a sentence is log sum_y p(y | x) prod_t prod_k C_k(w_kt | y_t), where w_kt is what
    source k says of token t: a conditional random field under confusion matrices, as Mnih & Hinton
    (2012) have for single labels.
    """

    class Params(WeakParams, frozen=True, kw_only=True):
        """Parameters of the noisy channel."""

        rounds: Annotated[
            Rounds, doc("estimates of the confusion matrices; the first one is that of gold alone")
        ] = 1
        anchor: Annotated[Share, doc("of the first estimate in the later ones")] = 0.5

    def train(self, weak: WeakProblem, params: Any, run: RunContext) -> None:
        """The first estimate needs the model of the gold labels; later ones are anchored to it."""
        first = counts = self._counts(weak, [None] * len(weak.text.unlabeled))
        rounds, confusion = run.rounds(params.rounds), None
        for _ in rounds:
            last, confusion = confusion, estimated(weak, counts)
            if last is not None and np.abs(confusion - last).max() <= _SETTLED:
                rounds.stop("converged")
                break
            evidence = weak.hidden.evidence(confusion)
            shards = list(weak.by_shard(evidence, params.weight))
            parts = [
                (data, PartialLabels(np.ones(scores.shape, np.bool_), scores, weights))
                for data, scores, weights in shards
            ]
            train_on(weak, parts, params, run)
            now = self._counts(weak, [scores for _, scores, _ in shards])
            counts = params.anchor * first + (1 - params.anchor) * now
            rounds.record("confusion matrices estimated", says=_says(weak, confusion))

    def _counts(self, weak: WeakProblem, evidence: list[Any]) -> F64:
        """Return the expected counts of the unlabeled text, given evidence by shard."""
        shards = zip(weak.text.unlabeled, evidence, strict=True)
        marginals = [weak.crf.marginals(data, extra) for data, extra in shards]
        return weak.hidden.counts(np.concatenate(marginals))


def estimated(weak: WeakProblem, counts: F64) -> F64:
    """Return confusion matrices from expected counts and from those of the labeled sentences.

    A source that has read labeled sentences is judged by these; the expected counts are its prior.
    """
    n = weak.problem.labeled.n_tokens
    labeled, L = weak.outcomes.between(0, n), weak.outcomes.n_labels
    gold = labeled.counts(np.eye(L)[weak.gold[:n]])
    guessed = normalized(counts)
    has_read = gold.sum(axis=(1, 2), keepdims=True) > 0
    return np.where(has_read, normalized(gold, _PRIOR * guessed), guessed)


def _says(weak: WeakProblem, confusion: F64) -> dict[str, dict[str, float]]:
    """Return how often each source gives a token its label, by source and label."""
    labels = weak.problem.labels
    return {
        source.name: {label: float(matrix[i, i]) for i, label in enumerate(labels)}
        for source, matrix in zip(weak.problem.weak, confusion, strict=True)
    }


class WeakSoft(WeakMethod):
    """Learns the probabilities that a label model gives, as soft targets."""

    class Params(WeakParams, frozen=True, kw_only=True):
        """Parameters of soft targets."""

        label_model: Annotated[
            Literal["crf", "dawid_skene", "hmm", "vote"],
            doc(
                "crf: the model of the gold labels under confusion matrices; dawid_skene, hmm:"
                " tokens, or chains of labels, without the words; vote: shares of the votes"
            ),
        ] = "crf"

    def train(self, weak: WeakProblem, params: Any, run: RunContext) -> None:
        """Targets are independent between tokens."""
        with run.phase("label_model"):
            targets = soft_targets(weak, params.label_model, run)
        parts = [
            (data, SoftTargets(part, weights=weights))
            for data, part, weights in weak.by_shard(targets, params.weight)
        ]
        train_on(weak, parts, params, run)


def soft_targets(weak: WeakProblem, name: str, run: RunContext) -> F64:
    """Return float64[N, L] of the unlabeled text by a label model, see `WeakSoft.Params`."""
    n = weak.problem.labeled.n_tokens
    if name == "vote":
        return _shares(weak.hidden, weak)
    if name == "crf":
        plain = [weak.crf.marginals(data) for data in weak.text.unlabeled]
        confusion = estimated(weak, weak.hidden.counts(np.concatenate(plain)))
        evidence = weak.hidden.evidence(confusion)
        parts = weak.by_shard(evidence, 1.0)
        return np.concatenate([weak.crf.marginals(data, part) for data, part, _ in parts])
    fit = hidden_markov if name == "hmm" else dawid_skene
    model = fit(weak.outcomes, weak.gold, weak.offsets)
    run.trace["label_model"] = {"rounds": len(model.log_likelihoods)}
    return model.labels[n:]


def _shares(outcomes: Outcomes, weak: WeakProblem) -> F64:
    """Return the shares of votes; without any, O in chunk tags and equal shares otherwise."""
    votes, labels = outcomes.votes(), weak.problem.labels
    silent = ~votes.any(axis=1)
    votes[silent] = 1.0
    if "O" in labels and weak.problem.encoding is not None:
        votes[silent] = np.eye(len(labels))[labels.index("O")]
    shares: F64 = votes / votes.sum(axis=1, keepdims=True)
    return shares
