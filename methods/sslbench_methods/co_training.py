"""Co-training: the word and its context teach each other.

Blum & Mitchell (1998), table 1, for chains: two models read disjoint parts of the features, a token
itself and the tokens around it. In a round, each is trained on the labeled sentences and on the
tokens that the other was surest of; their share of the text grows with the rounds. The result is a
model of all features, trained on the labeled sentences and on what both were surest of at the end.
A token that no view is sure of is summed over.

The paper draws a pool of examples and adds a few of each label to those of both; here a round
chooses anew from all text, so that an early error is not kept, and a view does not teach itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar

import numpy as np

from sslbench import (
    CRFMethod,
    Positive,
    Problem,
    RunContext,
    SearchAxis,
    Share,
    TrainingParams,
    UserError,
    doc,
)
from sslbench.engine.crf import EncodedProblem, SequenceModel
from sslbench.engine.features import Template, TemplateFeaturizer
from sslbench.engine.types import I32
from sslbench_methods.self_labeled import WeightScale, sentence_weight
from sslbench_methods.shared import WIDE_PRIOR, TaskDefaults, encoded, with_examples

OPEN = -1


class CoTraining(CRFMethod):
    """Two models of disjoint features that label text for each other."""

    order_invariant = True

    class Params(TrainingParams, frozen=True, kw_only=True):
        """Parameters of co-training."""

        share: Annotated[Share, doc("of the tokens that a view labels in the last round")] = 0.5
        rounds: Annotated[int, doc("in which the share grows", ge=1, le=100)] = 5
        weight: Annotated[Positive, doc("weight of sentences with examples")] = 0.1
        weight_scale: WeightScale = "ratio"
        task_defaults: ClassVar[TaskDefaults] = WIDE_PRIOR
        search: ClassVar[tuple[SearchAxis, ...]] = (
            SearchAxis("share", low=0.1, high=0.95),
            SearchAxis("weight", low=1e-3, high=10, log=True),
        )

    def fit(self, problem: Problem, params: Params, run: RunContext) -> SequenceModel:
        """Train the views in turn; the trace has the shares of examples and of conflicts."""
        crf, text = encoded(problem, params, run)
        weight = sentence_weight(params.weight, params.weight_scale, text)
        views = [
            encoded(replace(problem, featurizer=part, dev=None), params, run)
            for part in views_of(problem.featurizer)
        ]
        taught: list[list[I32]] = [[], []]  # by the view that is sure of these labels
        rounds = run.rounds(params.rounds if text.unlabeled else 0)
        for number in rounds:
            with run.phase("train"):
                for (own, its), labels in zip(views, reversed(taught), strict=True):
                    run.train(own, [its.labeled, *with_examples(own, its, labels, weight)], params)
            with run.phase("decode"):
                share = params.share * number / params.rounds
                taught = [surest_labels(*view, share) for view in views]
            shares = _shares(*taught)
            rounds.record(f"{shares['conflicts']:.2%} of the tokens with two labels", **shares)
        parts = [with_examples(crf, text, labels, weight / 2) for labels in taught]
        with run.phase("train"):
            run.record(run.train(crf, [text.labeled, *parts[0], *parts[1]], params))
        return crf


def surest_labels(crf: SequenceModel, text: EncodedProblem, share: float) -> list[I32]:
    """Return labels int32[N] of the tokens that a view is surest of, OPEN elsewhere, by shard.

    share: of all tokens; each label has as large a part of it as of the labeled sentences.
    """
    labels = [crf.decode(data) for data in text.unlabeled]
    posteriors = [crf.marginals(data) for data in text.unlabeled]
    codes, mu = np.concatenate(labels), np.concatenate(posteriors)
    sure, chosen = mu[np.arange(len(codes)), codes], np.zeros(len(codes), np.bool_)
    often = np.bincount(text.labels, minlength=len(crf.labels)) / len(text.labels)
    for label in np.unique(codes):
        own = np.flatnonzero(codes == label)
        most = int(share * often[label] * len(codes))
        least = np.sort(sure[own])[::-1][most] if most < len(own) else 0.0
        chosen[own] = sure[own] > least  # not those that are equal to the first one left out
    ends = np.cumsum([len(part) for part in labels])[:-1]
    return np.split(np.where(chosen, codes, OPEN), ends)


def views_of(featurizer: TemplateFeaturizer) -> tuple[TemplateFeaturizer, TemplateFeaturizer]:
    """Return the templates of a token alone, and those of other tokens alone.

    Dense columns belong to the token, the constant to both, templates that read both to none.
    UserError if a view has nothing to read.
    """
    word: list[Template] = []
    context: list[Template] = []
    for template in featurizer.templates:
        bag = template.bag is not None
        read = set(template.offsets if bag else (atom.offset for atom in template.atoms))
        if read <= {0}:
            word.append(template)
        if 0 not in read:
            context.append(template)
    if not (any(t.atoms for t in word) or featurizer.dense) or not any(t.atoms for t in context):
        raise UserError("co-training needs templates of a token alone, and of other tokens alone")
    return TemplateFeaturizer(word, featurizer.dense), TemplateFeaturizer(context)


def _shares(one: list[I32], two: list[I32]) -> dict[str, float]:
    """Shares of the tokens: examples of each view, and conflicts."""
    a, b = np.concatenate(one), np.concatenate(two)
    both = (a != OPEN) & (b != OPEN)
    return {
        "word": float((a != OPEN).mean()),
        "context": float((b != OPEN).mean()),
        "conflicts": float((both & (a != b)).mean()),
    }
