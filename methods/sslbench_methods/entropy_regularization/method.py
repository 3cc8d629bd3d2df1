"""Entropy regularization: a CRF that is likely on labeled and sure of unlabeled sentences.

Jiao et al. (2006), equation 3, maximize

    sum_labeled log p(y | x) - |lambda|^2 / (2 sigma^2) - gamma sum_unlabeled H(p(. | x))

(signs as in docs/specs/entropy_regularization.md, section 3) by iterative ascent from the
supervised optimum.  The last term is neither convex nor concave: where the ascent ends depends on
its start, and any model that is sure of something, such as one label for everything, is a maximum
of the term. The record tells how sure the model got and which labels it gave up.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np

from sslbench.crf import ChainCRF, EncodedCorpus, HardLabels, Objective
from sslbench.crf.entropy import Entropy
from sslbench.crf.first_order.batch import BatchPotentials
from sslbench.crf.objective import batch_potentials
from sslbench.crf.terms import PotentialGradient
from sslbench.crf.weights.layout import Tables
from sslbench.experiment.context import RunContext
from sslbench.experiment.problem import Problem
from sslbench.experiment.tune import SearchAxis
from sslbench.types import F64, I32
from sslbench_methods.supervised import TrainingParams, prepare

#: a label with a larger share of the text than SEEN under the supervised model that loses more than
#: LOST of it has collapsed; so has a model with less than SURE nats a token
#: (docs/specs/entropy_regularization.md, section 6.1)
SEEN, LOST, SURE = 1e-3, 0.8, 1e-3
#: the geometric schedule: parts of gamma, and most iterations for each
SCHEDULE, SCHEDULE_ITERATIONS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0), 50
#: iterations between two notes of the labels
LABELS_EVERY = 10


class EntropyRegularization:
    """Log-likelihood of labeled sentences and negative entropy of unlabeled ones."""

    class Params(TrainingParams, frozen=True, kw_only=True):
        """Parameters of entropy regularization."""

        gamma: Annotated[
            float, msgspec.Meta(ge=0, description="weight of the entropy; 0 = supervised")
        ] = 0.1
        gamma_scale: Annotated[
            Literal["sum", "ratio_tokens", "ratio_sentences"],
            msgspec.Meta(
                description="sum: gamma as it stands (the paper); ratios: times labeled by"
                " unlabeled tokens or sentences, so that more text does not mean more weight"
            ),
        ] = "ratio_tokens"
        entropy_of: Annotated[
            Literal["sentence", "token"],
            msgspec.Meta(
                description="sentence: of whole label sequences (the paper); token: the same by"
                " the tokens of the sentence, so that long ones do not count more"
            ),
        ] = "sentence"
        anneal: Annotated[
            Literal["none", "geometric"],
            msgspec.Meta(description="geometric: gamma/16, /8, /4, /2, gamma, 50 iterations each"),
        ] = "none"
        joint_iterations: Annotated[
            int, msgspec.Meta(ge=1, description="of L-BFGS with the entropy, per stage")
        ] = 200
        restarts: Annotated[
            int, msgspec.Meta(ge=0, description="of L-BFGS at the point where it converged")
        ] = 1
        features_from: Annotated[
            Literal["labeled", "labeled+unlabeled"],
            msgspec.Meta(description="which sentences' attributes get weights"),
        ] = "labeled"
        search: ClassVar[tuple[SearchAxis, ...]] = (
            SearchAxis("sigma2", (0.1, 1.0, 10.0, 100.0), via="supervised"),
            SearchAxis("gamma", (0.0, 0.001, 0.01, 0.1, 0.5, 1.0, 5.0, 10.0)),
        )

    def fit(self, problem: Problem, params: Params, run: RunContext) -> ChainCRF:
        """Train on the labeled sentences, then on both."""
        with run.phase("features"):
            text = problem.unlabeled if params.features_from == "labeled+unlabeled" else ()
            crf = prepare(problem, params, text=text)
            gold = crf.encode(problem.labeled)
            unlabeled = [crf.encode(shard) for shard in problem.unlabeled]
        dev = None
        if problem.dev is not None:
            dev = crf.encode(problem.dev), problem.label_codes(problem.dev)
        labels = problem.label_codes(problem.labeled)
        trainer = EntropyTrainer(crf, gold, labels, unlabeled, params, run, dev)
        run.trace["entropy_regularization"] = trainer.train()
        return crf

    @staticmethod
    def restore(arrays: dict[str, Any], facts: dict[str, Any]) -> ChainCRF:
        """A saved tagger."""
        return ChainCRF.from_arrays(arrays, facts)


@dataclass
class Watched:
    """An entropy term that keeps what it found on its last pass over the text.

    entropy: nats, summed over the sentences; value: of the term, where they have their weights;
    labels: float64[L] expected tokens of each label.
    """

    term: Entropy
    n_labels: int
    entropy: float = 0.0
    value: float = 0.0
    labels: F64 = field(init=False)

    def __post_init__(self) -> None:
        self.labels = np.zeros(self.n_labels)

    def evaluate(self, potentials: BatchPotentials) -> PotentialGradient:
        if potentials.batch.sentence_lo == 0:
            self.entropy, self.value, self.labels = 0.0, 0.0, np.zeros(self.n_labels)
        found = self.term.of(potentials)
        self.entropy += float(found.entropy.sum())
        self.value -= float(found.weights @ found.entropy)
        self.labels += found.labels
        return found.omega

    def n_tokens(self, lengths: F64) -> float:
        return self.term.n_tokens(lengths)


@dataclass
class EntropyTrainer:
    """Ascent on the objective from the supervised optimum, and its record.

    labels: int32[N_l] of gold; dev: int32[N] labels to be scored before and after.
    """

    crf: ChainCRF
    gold: EncodedCorpus
    labels: I32
    unlabeled: list[EncodedCorpus]
    params: EntropyRegularization.Params
    run: RunContext
    dev: tuple[EncodedCorpus, I32] | None = None

    def train(self) -> dict[str, Any]:
        """Both phases; what happened, for the record."""
        params = self.params
        with self.run.phase("train"):
            first = self.crf.train([self._labeled], params.sigma2, options=params.options())
        self.run.progress(f"supervised: {first.iterations} iterations, {first.status}")
        gamma = self.gamma()
        before = self.report(gamma)
        stages: list[dict[str, Any]] = []
        trace = {"first": first.record(), "gamma": gamma, "before": before, "stages": stages}
        if gamma == 0:  # the objective is the supervised one: this is its optimum
            return {**trace, "after": before, "collapsed": []}
        plain = params.anneal == "none"
        most = params.joint_iterations if plain else SCHEDULE_ITERATIONS
        stages += [self.ascend(part * gamma, most) for part in ((1.0,) if plain else SCHEDULE)]
        for _ in range(params.restarts):
            if not stages[-1]["converged"]:
                break
            stages.append(self.ascend(gamma, most))
        after = self.report(gamma)
        return {**trace, "after": after, "collapsed": self.collapsed(before, after)}

    def gamma(self) -> float:
        """The weight of a sentence's entropy (that of its log-likelihood is 1); 0 without text."""
        tokens = sum(float(data.lengths.sum()) for data in self.unlabeled)
        if not tokens:
            return 0.0
        ratio = 1.0
        if self.params.gamma_scale == "ratio_tokens":
            ratio = float(self.gold.lengths.sum()) / tokens
        if self.params.gamma_scale == "ratio_sentences":
            ratio = len(self.gold.lengths) / sum(len(data.lengths) for data in self.unlabeled)
        return self.params.gamma * ratio

    def ascend(self, gamma: float, iterations: int) -> dict[str, Any]:
        """L-BFGS from the current weights.  The record has the loss (minus the objective per
        weighted token) and the text's entropy per token after every iteration, and the shares of
        the labels after some; both as of the line search's last evaluation.
        """
        parts = self._watched(gamma)
        loss: list[float] = []
        entropy: list[float] = []
        labels: dict[str, list[float]] = {}

        def note(iteration: int, value: float, _gradient: float) -> None:
            found = self._totals(parts)
            loss.append(value)
            entropy.append(found["entropy"])
            if iteration % LABELS_EVERY == 0:
                labels[str(iteration)] = found["labels"]
                self.run.progress(f"iteration {iteration}: {found['entropy']:.4f} nats a token")

        options = replace(self.params.options(), max_iterations=iterations)
        with self.run.phase("train"):
            result = self.crf.train(
                [self._labeled, *parts], self.params.sigma2, options=options, callback=note
            )
        return {
            "gamma": gamma,
            **result.record(),
            "loss": loss,
            "entropy": entropy,
            "labels": labels,
        }

    def report(self, gamma: float) -> dict[str, Any]:
        """The objective RL, its components, and what the model makes of the unlabeled text."""
        crf, sigma2 = self.crf, self.params.sigma2
        parts = self._watched(1.0)
        with self.run.phase("report"):
            tables = Tables.unpack(crf.layout, crf.weights)
            for data, term in parts:
                for batch in data.batches:
                    term.evaluate(batch_potentials(tables, data, batch, crf.transition_mask))
            supervised = Objective(
                crf.layout, [self._labeled], sigma2, transition_mask=crf.transition_mask
            )
            value = supervised.value_and_gradient(crf.weights, np.empty(crf.layout.size))
            penalty = float(crf.weights @ crf.weights) / (2 * sigma2)
            accuracy = {} if self.dev is None else {"dev_accuracy": self._accuracy(*self.dev)}
        negative = gamma * sum(term.value for _, term in parts)
        return {
            "RL": value + negative,
            "log_likelihood": value + penalty,
            "penalty": penalty,
            "negative_entropy": negative,
            **self._totals(parts),
            **accuracy,
        }

    def collapsed(self, before: dict[str, Any], after: dict[str, Any]) -> list[str]:
        """Labels that the ascent gave up, and a word to the user about them."""
        old, new = np.array(before["labels"]), np.array(after["labels"])
        gone = (old > SEEN) & (new < (1 - LOST) * old)
        names = [label for label, lost in zip(self.crf.labels, gone, strict=True) if lost]
        if names:
            self.run.progress(f"collapsed: {', '.join(names)} lost over {LOST:.0%} of the tokens")
        if after["entropy"] < SURE:
            self.run.progress(f"collapsed: {after['entropy']:.1e} nats a token are left")
        return names

    def _accuracy(self, data: EncodedCorpus, labels: I32) -> float:
        return int(np.count_nonzero(self.crf.decode(data) == labels)) / max(1, len(labels))

    def _totals(self, parts: list[tuple[EncodedCorpus, Watched]]) -> dict[str, Any]:
        """Of the terms' last pass: nats per token, and each label's share of the tokens."""
        tokens = max(1.0, sum(float(data.lengths.sum()) for data, _ in parts))
        labels = np.zeros(len(self.crf.labels))
        for _, term in parts:
            labels += term.labels
        entropy = sum(term.entropy for _, term in parts)
        return {"entropy": entropy / tokens, "labels": (labels / tokens).tolist()}

    def _watched(self, gamma: float) -> list[tuple[EncodedCorpus, Watched]]:
        n_labels, per_token = len(self.crf.labels), self.params.entropy_of == "token"
        return [
            (data, Watched(Entropy(gamma, _per_token(data) if per_token else None), n_labels))
            for data in self.unlabeled
        ]

    @property
    def _labeled(self) -> tuple[EncodedCorpus, HardLabels]:
        return self.gold, HardLabels(self.labels)


def _per_token(data: EncodedCorpus) -> F64:
    """float64[S]: one by the tokens of each sentence."""
    return 1 / np.maximum(1.0, data.lengths)
