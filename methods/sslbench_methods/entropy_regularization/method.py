"""Entropy regularization: a CRF that is likely on labeled and confident on unlabeled sentences.

Jiao et al. (2006) maximize

    sum_labeled log p(y | x) - |lambda|^2 / (2 sigma^2) - gamma sum_unlabeled H(p(. | x))

(equation 3, with the signs of docs/specs/entropy_regularization.md, section 3) by iterative ascent
from the supervised optimum. The last term is neither convex nor concave: the optimum depends on the
start, and any model that is certain, such as one label for every token, maximizes the term. The
record has the entropy and the labels before and after.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from sslbench import (
    CRFMethod,
    Iterations,
    Problem,
    RunContext,
    SearchAxis,
    TrainingParams,
    Weight,
    doc,
)
from sslbench.engine.crf import (
    BatchPotentials,
    EncodedCorpus,
    EncodedProblem,
    Entropy,
    Observed,
    Parts,
    PotentialGradient,
    SequenceModel,
)
from sslbench.engine.types import F64
from sslbench_methods.shared import (
    WIDE,
    Notes,
    Presets,
    TaskDefaults,
    WeightsFrom,
    by_task,
    encoded,
    train_supervised,
)

#: A label with a larger share of the text than SEEN under the supervised model that loses more than
#: LOST of it has collapsed; so has a model with less than SURE nats per token
#: (docs/specs/entropy_regularization.md, section 6.1).
SEEN, LOST, SURE = 1e-3, 0.5, 1e-3
#: the geometric schedule: fractions of gamma, and most iterations for each
SCHEDULE, SCHEDULE_ITERATIONS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0), 50
#: iterations between two notes of the labels
LABELS_EVERY = 10


class EntropyRegularization(CRFMethod):
    """Log-likelihood of labeled sentences and negative entropy of unlabeled ones."""

    order_invariant = True

    class Params(TrainingParams, frozen=True, kw_only=True):
        """Parameters of entropy regularization."""

        gamma: Annotated[Weight, doc("weight of the entropy; 0 = supervised")] = 0.001
        gamma_scale: Annotated[
            Literal["sum", "ratio_tokens", "ratio_sentences"],
            doc(
                "sum: gamma as it stands (the paper); ratios: times labeled by"
                " unlabeled tokens or sentences, so that more text does not mean more weight"
            ),
        ] = "ratio_tokens"
        entropy_of: Annotated[
            Literal["sentence", "token"],
            doc(
                "sentence: of whole label sequences (the paper); token: the same by"
                " the tokens of the sentence, so that long ones do not count more"
            ),
        ] = "sentence"
        anneal: Annotated[
            Literal["none", "geometric"],
            doc("geometric: gamma/16, /8, /4, /2, gamma, 50 iterations each"),
        ] = "none"
        start_iterations: Annotated[
            Iterations | None,
            doc(
                "of L-BFGS without the entropy, before it; None = to the optimum (the"
                " paper's start is not quite converged)"
            ),
        ] = None
        joint_iterations: Annotated[Iterations, doc("of L-BFGS with the entropy, per stage")] = 200
        restarts: Annotated[int, doc("of L-BFGS at the point where it converged", ge=0, le=20)] = 1
        features_from: WeightsFrom = "labeled"
        # gamma: the smallest value above 0 in the paper
        presets: ClassVar[Presets] = {
            "paper": {"gamma": 0.1, "gamma_scale": "sum", "entropy_of": "sentence", "sigma2": 1.0}
        }
        preset_notes: ClassVar[Notes] = {
            "paper": "harms small samples: rare labels disappear (docs/defaults.md). No setting"
            " gave the gain that the paper claims (replications/jiao2006/report.md)"
        }
        task_defaults: ClassVar[TaskDefaults] = by_task(WIDE, WIDE, WIDE, {})
        search: ClassVar[tuple[SearchAxis, ...]] = (
            SearchAxis("gamma", (0.0, 0.001, 0.01, 0.1, 0.5, 1.0, 5.0, 10.0)),
            SearchAxis("anneal", ("none", "geometric")),
        )

    def fit(self, problem: Problem, params: Params, run: RunContext) -> SequenceModel:
        """Train on the labeled sentences, then on both."""
        crf, text = encoded(problem, params, run, params.features_from)
        return EntropyTrainer(crf, text, params, run).train()


def observed(
    term: Entropy, potentials: BatchPotentials
) -> tuple[PotentialGradient, dict[str, float | F64]]:
    """Evaluate an entropy term on a batch, with sums over its sentences.

    entropy: in nats; value: of the term, with the sentences' weights; labels: float64[L] expected
    tokens of each label.
    """
    batch = term.batch_entropy(potentials)
    return batch.gradient, {
        "entropy": float(batch.entropy.sum()),
        "value": -float(batch.weights @ batch.entropy),
        "labels": batch.labels,
    }


@dataclass
class EntropyTrainer:
    """Ascent on the objective from the supervised optimum, and its record."""

    crf: SequenceModel
    text: EncodedProblem
    params: EntropyRegularization.Params
    run: RunContext

    def train(self) -> SequenceModel:
        """Train on the labeled sentences, then ascend the objective in stages."""
        params, run = self.params, self.run
        train_supervised(self.crf, self.text, params, run, most=params.start_iterations)
        gamma = self.gamma()
        before = self.report(gamma)
        stages: list[dict[str, Any]] = []
        run.trace |= {"gamma": gamma, "before": before, "stages": stages}
        if gamma == 0 and params.start_iterations is None:  # this is its optimum
            run.trace |= {"after": before, "collapsed": []}
            return self.crf
        plain = params.anneal == "none"
        most = params.joint_iterations if plain else SCHEDULE_ITERATIONS
        stages += [self.ascend(part * gamma, most) for part in ((1.0,) if plain else SCHEDULE)]
        for _ in range(params.restarts):
            if stages[-1]["status"] in ("max_iterations", "line_search"):
                break
            stages.append(self.ascend(gamma, most))
        after = self.report(gamma)
        run.trace |= {"after": after, "collapsed": self.collapsed(before, after)}
        return self.crf

    def gamma(self) -> float:
        """Return the weight of a sentence's entropy (its log-likelihood has 1); 0 without text."""
        gold, unlabeled = self.text.labeled[0], self.text.unlabeled
        tokens = sum(float(data.lengths.sum()) for data in unlabeled)
        if not tokens:
            return 0.0
        ratio = 1.0
        if self.params.gamma_scale == "ratio_tokens":
            ratio = float(gold.lengths.sum()) / tokens
        if self.params.gamma_scale == "ratio_sentences":
            ratio = len(gold.lengths) / sum(len(data.lengths) for data in unlabeled)
        return self.params.gamma * ratio

    def ascend(self, gamma: float, iterations: int) -> dict[str, Any]:
        """Run L-BFGS from the current weights; return its outcome and curves for the record.

        By iteration, of the line search's last evaluation: the loss (minus the objective per
        weighted token), the entropy per token and, every LABELS_EVERY iterations, the shares of
        the labels.
        """
        parts = self._observed(gamma)
        curves: dict[str, Any] = {"loss": [], "entropy": [], "labels": {}}

        def note(iteration: int, value: float, _gradient: float) -> None:
            totals = self._totals(parts)
            curves["loss"].append(value)
            curves["entropy"].append(totals["entropy"])
            if iteration % LABELS_EVERY == 0:
                curves["labels"][str(iteration)] = totals["labels"]
                self.run.progress(f"iteration {iteration}: {totals['entropy']:.4f} nats per token")

        options = self.params.options(max_iterations=iterations)
        with self.run.phase("train"):
            text: Parts = [self.text.labeled, *parts]
            result = self.run.train(
                self.crf, text, self.params, curves, options=options, callback=note
            )
        return {"gamma": gamma, **result.record(), **curves}

    def report(self, gamma: float) -> dict[str, Any]:
        """Return the objective RL, its parts, and the labels predicted for the unlabeled text."""
        crf, parts = self.crf, self._observed(1.0)
        with self.run.phase("report"):
            crf.evaluate(parts)
            value = crf.objective([self.text.labeled], self.params)
            penalty = crf.penalty(self.params)
            accuracy = self.text.dev_accuracy(crf, record_only=True)
        negative = gamma * Observed.total((term for _, term in parts), "value")
        return {
            "RL": value + negative,
            "log_likelihood": value + penalty,
            "penalty": penalty,
            "negative_entropy": negative,
            **self._totals(parts),
            **accuracy,
        }

    def collapsed(self, before: dict[str, Any], after: dict[str, Any]) -> list[str]:
        """Return the labels that lost nearly all of their tokens, and warn the user of them."""
        old, new = np.array(before["labels"]), np.array(after["labels"])
        gone = (old > SEEN) & (new < (1 - LOST) * old)
        names = [label for label, lost in zip(self.crf.labels, gone, strict=True) if lost]
        if names:
            self.run.warn(
                f"collapsed: {', '.join(names)} lost over {LOST:.0%} of the tokens of the text;"
                " a smaller gamma keeps them"
            )
        if after["entropy"] < SURE:
            self.run.warn(f"collapsed: only {after['entropy']:.1e} nats per token remain")
        return names

    def _totals(self, parts: list[tuple[EncodedCorpus, Observed]]) -> dict[str, Any]:
        """Of the terms' last pass: nats per token, and each label's share of the tokens."""
        tokens = max(1.0, sum(float(data.lengths.sum()) for data, _ in parts))
        terms = [term for _, term in parts]
        labels = np.zeros(len(self.crf.labels)) + Observed.total(terms, "labels")
        entropy = Observed.total(terms, "entropy")
        return {"entropy": entropy / tokens, "labels": (labels / tokens).tolist()}

    def _observed(self, gamma: float) -> list[tuple[EncodedCorpus, Observed]]:
        """Return the entropy terms; "token" divides each sentence's entropy by its length."""
        per_token = self.params.entropy_of == "token"
        terms = [
            Entropy(gamma, 1 / data.lengths if per_token else None) for data in self.text.unlabeled
        ]
        return [
            (data, Observed(term, partial(observed, term)))
            for data, term in zip(self.text.unlabeled, terms, strict=True)
        ]
