"""Hybrid of discriminative and generative models.

Suzuki, Fujino & Isozaki (2007), as Suzuki & Isozaki (2008), section 2.4, restate it:

    R(y | x) ~ prod_i p_i^D(y | x; lambda_i)^gamma_i prod_j p_j^G(x_j, y; theta_j)^gamma_j

I CRFs of parts of the features are trained on four fifths of the labeled sentences, each alone.
Then alternate: Gamma >= 0 maximizes the likelihood of R on the last fifth, with a Gaussian prior;
Theta is renewed by one EM step on the unlabeled text under R, as in JESS-CM. The normalizers of the
CRFs do not depend on y: R is a chain whose scores are weighted sums of theirs.

Ours by default (`preset paper` is without both): each fifth is held out in turn and the CRFs are
trained again on all sentences; R has weights of labels and transitions of its own, since a product
of models counts base rates many times. How the features are cut is not printed; ours is in
`feature_sets`. On the same data for both, lambda and Gamma, the generative models get no weight
(docs/specs/cited_systems.md, section 1).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, cast

import numpy as np

from sslbench import (
    Count,
    CRFMethod,
    Positive,
    Problem,
    Rounds,
    RunContext,
    SearchAxis,
    Share,
    TrainingParams,
    Variance,
    Weight,
    doc,
)
from sslbench.engine.checked import Saved, joined, part_of
from sslbench.engine.corpus import Corpus
from sslbench.engine.crf import ChainCRF, HardLabels
from sslbench.engine.features import TemplateFeaturizer
from sslbench.engine.types import F64, I32, I64, Arrays
from sslbench_methods.hybrid.mixture import MixedModels, Scores, feature_sets, unmasked
from sslbench_methods.jess_cm.tagger import JointTagger
from sslbench_methods.shared import WIDE, Presets, TaskDefaults, by_task

FOLDS = 5
MOST_OF_FOLD = 400  # sentences of a fold for Gamma, which are few numbers: scores of CRFs are large
PIECE = 8_192  # tokens of the E-step: scores of transitions may depend on the token


@dataclass
class HybridTagger(JointTagger):
    """R: `crf` has the weights Gamma and those of R alone; models: all that Gamma weighs."""

    models: MixedModels
    kind = "hybrid"

    def arrays(self) -> Saved:
        parts = {f"part{i}": crf.arrays() for i, crf in enumerate(self.models.crfs)}
        arrays, facts = joined(mixture=self.crf.arrays(), tables=self.models.arrays(), **parts)
        return arrays, {**facts, "parts": len(parts)}

    @classmethod
    def from_arrays(cls, arrays: Arrays, facts: dict[str, Any]) -> HybridTagger:
        """Restore what `arrays` gave; ValueError when arrays and facts do not fit together."""

        def crf_of(name: str) -> ChainCRF:
            saved, more = part_of(arrays, facts, name)
            return ChainCRF.from_arrays(saved, {**more, "dense": facts.get("dense")})

        crf = crf_of("mixture")
        models = MixedModels.from_arrays(*part_of(arrays, facts, "tables"), len(crf.labels))
        models.with_crfs(crf_of(f"part{i}") for i in range(facts["parts"]))
        if len(models.crfs) + len(models.chain) != crf.layout.n_factors:
            raise ValueError(f"{crf.layout.n_factors} weights of other models")
        if any(part.labels != crf.labels for part in models.crfs):
            raise ValueError("a part has other labels")
        return cls(crf, models)


class Hybrid(CRFMethod):
    """Conditional and generative models, weighed on held-out sentences."""

    class Params(TrainingParams, frozen=True, kw_only=True):
        """Parameters of the hybrid."""

        parts: Annotated[
            Literal["kinds", "one"], doc("CRFs: one for each kind of feature, or one for all")
        ] = "kinds"
        crossed: Annotated[bool, doc("hold out each fifth in turn; the CRFs are of all")] = True
        held_out: Annotated[
            Share, doc("share of labeled sentences for Gamma, uncrossed; 0: all")
        ] = 0.2
        own_weights: Annotated[bool, doc("weights of labels and transitions beside Gamma")] = True
        gamma_sigma2: Annotated[Variance, doc("variance of the prior of Gamma")] = 1.0
        eta: Annotated[Weight, doc("Dirichlet pseudo-count of generative models")] = 0.01
        rounds: Annotated[Rounds, doc("most rounds")] = 10
        epsilon: Annotated[Positive, doc("stop when rows of tables move less (mean L1)")] = 0.01
        symbol_min_count: Annotated[Count, doc("rarer symbols of unlabeled text share <UNK>")] = 2
        task_defaults: ClassVar[TaskDefaults] = by_task(WIDE, {}, WIDE, WIDE)
        search: ClassVar[tuple[SearchAxis, ...]] = (
            SearchAxis("eta", low=1e-4, high=100, log=True),
            SearchAxis("gamma_sigma2", low=0.01, high=100, log=True),
            SearchAxis("symbol_min_count", low=1, high=10, log=True, integer=True),
        )
        presets: ClassVar[Presets] = {"paper": {"crossed": False, "own_weights": False}}

    def fit(self, problem: Problem, params: Params, run: RunContext) -> HybridTagger:
        """Train the CRFs, then alternate; the trace has an entry per round."""
        with run.phase("features"):
            L, least = len(problem.labels), params.symbol_min_count
            templates = problem.featurizer.templates
            models = MixedModels.build(templates, L, problem.unlabeled, least)
        with run.phase("train"):
            texts = train_parts(models, problem, params, run)
        crf = mixture_of(problem, len(models.crfs) + models.n_models)
        crf.weights[crf.factor_indices[: len(models.crfs)]] = 1.0
        rounds = run.rounds(params.rounds)
        for _ in rounds:
            with run.phase("train"):
                fit_gamma(crf, models, texts, params)
            with run.phase("e_step"):
                counts = models.expected_counts(crf, problem.unlabeled, piece_tokens=PIECE)
            with run.phase("m_step"):
                ones = np.ones(models.n_models)
                moved = models.update(counts, params.eta, ones, "plain")
            models.forget_counts()
            rounds.record(f"distance {moved:.4f}", distance=moved, log_r=counts.log_z)
            if moved < params.epsilon:
                rounds.stop("converged")
        with run.phase("train"):
            run.trace["likelihood"] = fit_gamma(crf, models, texts, params)
        run.trace["gamma"] = crf.weights[crf.factor_indices].tolist()
        run.trace["parts"] = len(models.crfs)
        return HybridTagger(crf, models)

    restore = HybridTagger.from_arrays


class HeldOut(NamedTuple):
    """Labeled text and the scores of CRFs that have not seen it."""

    text: Corpus
    labels: I32
    scores: list[Scores]


def train_parts(
    models: MixedModels, problem: Problem, params: Hybrid.Params, run: RunContext
) -> list[HeldOut]:
    """Give the models their CRFs; the text for Gamma."""
    n = problem.labeled.n_sentences
    if not params.crossed or n == 1:
        first, second = cut(n, params.held_out, run.rng)
        models.with_crfs(part_crfs(problem, first, params, run))
        return [held_out(problem, second, models.crfs)]
    texts = []
    for fold in np.array_split(run.rng.permutation(n), min(FOLDS, n)):
        crfs = part_crfs(problem, np.setdiff1d(np.arange(n), fold), params, run)
        texts.append(held_out(problem, np.sort(fold[:MOST_OF_FOLD]), crfs))
    models.with_crfs(part_crfs(problem, np.arange(n), params, run))
    return texts


def held_out(problem: Problem, sentences: I64, crfs: list[ChainCRF]) -> HeldOut:
    """Return these sentences with the scores of the CRFs."""
    text = problem.labeled.select(sentences)
    scores = [Scores.of(crf, text) for crf in unmasked(crfs)]
    return HeldOut(text, problem.label_codes(text), scores)


def cut(n: int, held_out: float, rng: np.random.Generator) -> tuple[I64, I64]:
    """Return sentences for the CRFs and for Gamma, ascending; all for both if one side had none."""
    order, size = rng.permutation(n), round(held_out * n)
    if held_out and n > 1:
        size = min(max(1, size), n - 1)
    if not size:
        return np.arange(n), np.arange(n)
    return np.sort(order[size:]), np.sort(order[:size])


def part_crfs(
    problem: Problem, sentences: I64, params: Hybrid.Params, run: RunContext
) -> list[ChainCRF]:
    """Return the CRFs of the parts of the features, trained on some of the labeled sentences."""
    whole = problem.featurizer
    sets = feature_sets(whole) if params.parts == "kinds" else [whole]
    crfs = []
    for featurizer in sets:
        labeled = problem.labeled.select(sentences)
        part = replace(problem, labeled=labeled, featurizer=featurizer, dev=None)
        crf = part.chain_crf(params)
        gold = HardLabels(problem.label_codes(labeled))
        run.train(crf, [(crf.encode(labeled), gold)], params)
        crfs.append(crf)
    return crfs


def mixture_of(problem: Problem, n_models: int) -> ChainCRF:
    """R: a chain whose only weights that are not zero are those of the models."""
    constant = TemplateFeaturizer(["bias"])
    plain = replace(problem, featurizer=constant, dev=None)
    return plain.chain_crf(TrainingParams(), n_factors=n_models)


def fit_gamma(
    crf: ChainCRF, models: MixedModels, texts: list[HeldOut], params: Hybrid.Params
) -> float:
    """Gamma >= 0, and the weights of R's own, that maximize log R of the labels minus the prior.

    They start from where they are. Returns the maximum. While the tables are uniform they say
    nothing, and the prior keeps their weights at zero.
    """
    gamma = crf.factor_indices
    places = np.arange(len(crf.weights)) if params.own_weights else gamma
    parts = [
        (crf.encode(text, models.bound(text, scores)), HardLabels(labels))
        for text, labels, scores in texts
    ]

    def loss(values: F64) -> tuple[float, F64]:
        weights = crf.weights.copy()
        weights[places] = values
        expected = crf.expect(parts, weights)
        prior = float(values @ values) / (2 * params.gamma_sigma2)
        slope = expected.counts[places] - values / params.gamma_sigma2
        return prior - float(expected.values.sum()), -slope

    from scipy.optimize import minimize  # slow to import

    bounds = [(0.0 if bounded else None, None) for bounded in np.isin(places, gamma)]
    options: Any = {"maxiter": params.max_iterations, "ftol": 1e-9}
    start, objective = crf.weights[places], cast(Any, loss)
    best = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    crf.weights[places] = best.x
    return -float(best.fun)
