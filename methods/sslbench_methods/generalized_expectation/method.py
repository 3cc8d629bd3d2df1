"""Generalized expectation: what share of labels an attribute has in unlabeled text.

Mann & McCallum (2008, 2010) maximize

    sum_labeled log p(y | x) - weight sum_k KL(g_k || e_k) - |lambda|^2 / (2 sigma^2)
    e_k(l) = mean of p(y_t = l | x) over the tokens t of the unlabeled text with attribute k

with target distributions g_k. With w_t(l) = weight sum of g_k(l) / (e_k(l) c_k) over the attributes
k of token t, which c_k tokens have, the derivative of the middle term by a potential is the
covariance of its feature with sum_t w_t(y_t). That covariance is the derivative of the feature's
marginal in the direction w of the node potentials, which is computed from the marginals at
phi + STEP w and phi - STEP w (docs/specs/cited_systems.md, section 6).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from scipy import sparse

from sslbench import (
    CRFMethod,
    Iterations,
    Positive,
    Problem,
    RunContext,
    SearchAxis,
    TrainingParams,
    UserError,
    Weight,
    doc,
)
from sslbench.engine.crf import BatchPotentials, ChainCRF, PotentialGradient
from sslbench.engine.types import F64
from sslbench.experiment.planning.values import UserFile
from sslbench_methods.generalized_expectation.targets import (
    TargetFile,
    Targets,
    counted,
    read_targets,
)
from sslbench_methods.shared import (
    WeightsFrom,
    encoded_for_weights,
    train_supervised,
)

#: the largest number that is added to a potential, on both sides; errors are of its square
STEP = 1e-5
FLOOR = 1e-12  # of an expectation, so that one label cannot have an infinite loss


class GeneralizedExpectation(CRFMethod):
    """Log-likelihood of labeled sentences, and label distributions of attributes elsewhere."""

    # not order_invariant: there are several maxima, and rounding decides which one is reached

    class Params(TrainingParams, frozen=True, kw_only=True):
        """Parameters of generalized expectation."""

        weight: Annotated[Weight, doc("of an attribute's divergence")] = 0.3
        targets: Annotated[
            UserFile,
            doc(
                "lines attribute<TAB>label:probability ...; none: counted in the labeled sentences"
            ),
        ] = ""
        attributes: Annotated[int, doc("with counted targets, at most", ge=1, le=1_000_000)] = 100
        smoothing: Annotated[Positive, doc("of counted targets, in tokens")] = 1.0
        likelihood: Annotated[bool, doc("of the labeled sentences; false: their labels' names")] = (
            True
        )
        joint_iterations: Annotated[Iterations, doc("of L-BFGS with the targets")] = 100
        features_from: WeightsFrom = "labeled+unlabeled"
        search: ClassVar[tuple[SearchAxis, ...]] = (
            SearchAxis("weight", low=0.03, high=300, log=True),
            SearchAxis("attributes", low=10, high=1000, log=True, integer=True),
        )

    def fit(self, problem: Problem, params: Params, run: RunContext) -> ChainCRF:
        """Train on the labeled sentences, then on both; without any, on the targets alone.

        Then the labels are those that the file of targets names.
        """
        given = read_targets(params.targets) if params.targets else None
        if not problem.labeled.n_sentences:
            problem = named_labels(problem, given)
        crf, text = encoded_for_weights(problem, params, run, params.features_from)
        likelihood = params.likelihood and problem.labeled.n_sentences > 0
        if likelihood:
            train_supervised(crf, text, params, run)
        with run.phase("targets"):
            if given is not None:
                targets = given.of(crf)
            else:
                targets = counted(text, crf, params.attributes, params.smoothing)
            expectations = Expectations.of(targets, crf, text.unlabeled)
        run.trace["attributes"] = len(targets.attributes)
        if not text.unlabeled or not params.weight:
            return crf
        parts = [
            (data, ExpectationTerm(expectations, rows, number, params.weight))
            for number, (data, rows) in enumerate(
                zip(text.unlabeled, expectations.rows, strict=True)
            )
        ]
        options = params.options(max_iterations=params.joint_iterations)
        gold = [text.labeled] if likelihood else []
        with run.phase("train"):
            run.record(run.train(crf, [*gold, *parts], params, options=options), "joint")
            crf.evaluate(parts)
        run.trace["divergence"] = expectations.divergence()
        return crf


def named_labels(problem: Problem, given: TargetFile | None) -> Problem:
    """A problem without labeled sentences, with the labels of the targets, or of its codec."""
    if given is None:
        hint = "give label distributions of attributes: --set targets=FILE"
        raise UserError("there is no labeled sentence to count targets in", hint=hint)
    return problem if problem.labels else replace(problem, labels=given.labels)


@dataclass
class Expectations:
    """Of one evaluation: label shares of the attributes in the whole unlabeled text.

    targets: float64[K, L].  rows: of each shard float64[N, K], which token has which attribute.
    often: float64[K], their tokens.  sums: float64[K, L], sums of marginals.
    """

    targets: F64
    rows: list[sparse.csr_array]
    often: F64
    sums: F64

    @classmethod
    def of(cls, targets: Targets, crf: ChainCRF, text: list) -> Expectations:  # type: ignore[type-arg]
        """Of encoded shards; targets of attributes that do not occur have no effect."""
        rows = [targets.occurrences(data, crf.index.n_node) for data in text]
        often = np.zeros(len(targets.attributes))
        for each in rows:
            often += np.asarray(each.sum(axis=0)).ravel()
        return cls(targets.labels, rows, often, np.zeros_like(targets.labels))

    @property
    def shares(self) -> F64:
        """e_k: float64[K, L]."""
        return np.maximum(self.sums / np.maximum(self.often, 1.0)[:, None], FLOOR)

    def divergence(self) -> float:
        """Return sum_k KL(g_k || e_k)."""
        g, used = self.targets, self.often > 0
        ratio = np.where(g > 0, g, 1.0) / np.where(g > 0, self.shares, 1.0)
        return float((g * np.log(ratio))[used].sum())

    def slopes(self) -> F64:
        """Return -d KL / d marginal of a token with attribute k: float64[K, L]."""
        g = np.where(self.often[:, None] > 0, self.targets, 0.0)
        return g / (self.shares * np.maximum(self.often, 1.0)[:, None])


@dataclass
class ExpectationTerm:
    """The middle term, of one shard; its value is counted by the first of them."""

    stateless: ClassVar[bool] = True

    expectations: Expectations
    rows: sparse.csr_array
    number: int
    weight: float

    def survey(self, potentials: Iterator[BatchPotentials]) -> None:
        """Add up the marginals of the shard; see `sslbench.engine.crf.terms.Term`."""
        if self.number == 0:
            self.expectations.sums[:] = 0.0
        for batch in potentials:
            rows = self.rows[batch.batch.tokens]
            self.expectations.sums[:] += rows.T @ batch.posterior().node

    def evaluate(self, potentials: BatchPotentials) -> PotentialGradient:
        """Evaluate: the whole value at the first sentence, derivatives at all."""
        batch, (n, L) = potentials.batch, potentials.node.shape
        value = np.zeros(len(batch.offsets) - 1)
        if self.number == 0 and batch.sentence_lo == 0:
            value[0] = -self.weight * self.expectations.divergence()
        direction = self.weight * (self.rows[batch.tokens] @ self.expectations.slopes())
        step = STEP / max(float(np.abs(direction).max(initial=0.0)), 1e-300)
        if not direction.any():
            step = 1.0
        plus, minus = (
            potentials.with_node(potentials.node + sign * step * direction).posterior()
            for sign in (1, -1)
        )
        gradient = PotentialGradient.difference(np.zeros(len(value)), plus, minus, 0.5 / step)
        gradient.check(n, L)
        return PotentialGradient(value, gradient.node, gradient.edge, gradient.triples)

    def n_tokens(self, lengths: F64) -> float:
        return float(self.rows.sum())
