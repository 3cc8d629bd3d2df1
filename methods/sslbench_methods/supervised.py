"""The supervised CRF: labeled sentences only (Lafferty, McCallum & Pereira 2001).

The baseline of every comparison: same features, same engine, same prior as the semi-supervised
methods.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from sslbench.corpus import Corpus
from sslbench.crf import ChainCRF, HardLabels, Options
from sslbench.experiment.context import RunContext
from sslbench.experiment.problem import Problem
from sslbench.experiment.tune import SearchAxis

#: variance of the Gaussian prior: powers of four as in Suzuki & Isozaki (2008), strongest first
SIGMA2_GRID = (0.25, 1.0, 4.0, 16.0)


class TrainingParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What every method that trains a CRF lets the user set."""

    sigma2: Annotated[
        float, msgspec.Meta(gt=0, description="variance of the Gaussian prior on the weights")
    ] = 10.0
    min_count: Annotated[
        int, msgspec.Meta(ge=1, description="attributes with fewer occurrences get no weight")
    ] = 1
    state_support: Annotated[
        Literal["all", "observed"],
        msgspec.Meta(description="which (attribute, label) pairs get a weight"),
    ] = "all"
    max_iterations: Annotated[int, msgspec.Meta(ge=1, description="of L-BFGS, per training")] = 500
    ftol: Annotated[
        float, msgspec.Meta(ge=0, description="stop at this relative decrease over 5 iterations")
    ] = 1e-4

    def options(self) -> Options:
        """Stopping rules of the optimizer."""
        return Options(ftol=self.ftol, max_iterations=self.max_iterations)


def prepare(
    problem: Problem, params: TrainingParams, n_factors: int = 0, text: Iterable[Corpus] = ()
) -> ChainCRF:
    """An untrained CRF over the attributes of the labeled part of a problem, and of `text`."""
    crf: ChainCRF = problem.model.prepare(
        problem.featurizer,
        problem.labeled,
        problem.label_codes(problem.labeled),
        problem.labels,
        min_count=params.min_count,
        state_support=params.state_support,
        n_factors=n_factors,
        transition_mask=problem.transition_mask,
        label_constraint=problem.label_constraint,
        text=text,
    )
    return crf


class Supervised:
    """Conditional log-likelihood of the labeled sentences with a Gaussian prior."""

    uses_unlabeled = False

    class Params(TrainingParams, frozen=True, kw_only=True):
        """Parameters of the supervised CRF."""

        search: ClassVar[tuple[SearchAxis, ...]] = (SearchAxis("sigma2", SIGMA2_GRID, refine=1),)

    def fit(self, problem: Problem, params: Params, run: RunContext) -> ChainCRF:
        """Train; the record says how the optimizer ended."""
        with run.phase("features"):
            crf = prepare(problem, params)
            data = crf.encode(problem.labeled)
        labels = HardLabels(problem.label_codes(problem.labeled))
        with run.phase("train"):
            result = crf.train([(data, labels)], params.sigma2, options=params.options())
        run.trace["training"] = result.record()
        run.progress(f"trained: {result.iterations} iterations, {result.status}")
        return crf

    @staticmethod
    def restore(arrays: dict[str, Any], facts: dict[str, Any]) -> ChainCRF:
        """A saved tagger."""
        return ChainCRF.from_arrays(arrays, facts)
