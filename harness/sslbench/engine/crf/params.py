"""Parameters that every training of a CRF has, and how one ended."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import msgspec

from sslbench.engine.crf.optim.lbfgs import Options, Result
from sslbench.engine.parameters import Count, Iterations, Tolerance, Variance, doc

Sigma2 = Annotated[Variance, doc("variance of the Gaussian prior on the weights")]


class TrainingParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Prior, attributes with weights, and stopping rules of the optimizer."""

    sigma2: Sigma2 = 10.0
    min_count: Annotated[Count, doc("attributes with fewer occurrences get no weight")] = 1
    state_support: Annotated[
        Literal["all", "observed"], doc("which (attribute, label) pairs get a weight")
    ] = "all"
    max_iterations: Annotated[Iterations, doc("of L-BFGS, per training")] = 500
    ftol: Annotated[Tolerance, doc("stop at this relative decrease over 5 iterations")] = 1e-4

    def options(self, **changes: Any) -> Options:
        """Return the stopping rules of the optimizer; `changes` are fields of `Options`."""
        return replace(Options(ftol=self.ftol, max_iterations=self.max_iterations), **changes)


#: a training that has converged is within this share of the maximum of its objective
CLOSE = 1e-4


@dataclass(frozen=True)
class TrainingResult:
    """How a training ended; `objective` is F (unscaled), `gradient` per token.

    gap: how far the objective may be below its maximum, as a share of it (`optim.gap`); None: not
    estimated.  converged: a stopping rule ended the training, and the gap is at most CLOSE or, if
    that is larger, `ftol`.
    """

    objective: float
    status: str
    converged: bool
    iterations: int
    evaluations: int
    gradient: float
    n_weights: int
    gap: float | None = None

    @classmethod
    def of(
        cls, optimum: Result, passes: int, n_tokens: float, size: int, gap: float, ftol: float
    ) -> TrainingResult:
        """Describe an optimum.

        passes: number of passes of `dual` before L-BFGS; n_tokens: tokens of the objective; size:
        number of weights; gap: see `optim.gap`, not as a share; ftol: see `Options`.
        """
        return cls(
            objective=-optimum.value * n_tokens,
            status=optimum.status,
            converged=optimum.finished and gap <= max(CLOSE, ftol) * abs(optimum.value),
            iterations=passes + optimum.iterations,
            evaluations=passes + optimum.evaluations,
            gradient=optimum.gradient,
            n_weights=size,
            gap=gap / abs(optimum.value) if optimum.value else None,
        )

    def record(self) -> dict[str, Any]:
        """Return the fields as the run record has them."""
        return dict(vars(self))
