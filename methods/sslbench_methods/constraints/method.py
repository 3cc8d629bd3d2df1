"""Posterior regularization: labels that a file expects in the unlabeled text.

Ganchev et al. (2010), section 2, with a squared penalty, for a conditional model:

    E:  q     <- argmin_q     KL(q || p_theta) + penalty sum_k n_k lack_k(q)^2
    M:  theta <- argmax_theta L(theta) + weight sum_unlabeled E_q log p_theta(y | x)

where lack_k is how far the expected labels of row k are from its bound (`bounds`). The dual of the
E-step has one number mu_k >= 0 per row:

    D(mu) = sum_k n_k (sign_k bound_k mu_k - mu_k^2 / (4 penalty)) - log E_p exp(sum_k mu_k f_k(y))

with f_k the signed count of row k, and q is p with the scores of mu. D is concave; its derivative
is n_k (sign_k bound_k - mu_k / (2 penalty)) - E_q f_k.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy.optimize import minimize

from sslbench import (
    CRFMethod,
    Positive,
    Problem,
    Rounds,
    RunContext,
    SearchAxis,
    TrainingParams,
    UserError,
    doc,
)
from sslbench.engine.checked import Saved
from sslbench.engine.crf import EncodedProblem, FrozenChain, SequenceModel, split_tokens
from sslbench.engine.types import F64
from sslbench.experiment.planning.values import UserFile
from sslbench_methods.constraints.bounds import Bounds, read_lines
from sslbench_methods.self_labeled import WeightScale, sentence_weight
from sslbench_methods.shared import WIDE_PRIOR, TaskDefaults, encoded, train_supervised

_E_STEP: Any = {"maxiter": 200, "gtol": 1e-3, "ftol": 1e-10}  # gtol: about a token of a row


class PosteriorConstraints(CRFMethod):
    """A CRF, and posteriors of the unlabeled text that obey the bounds of a file, in turn."""

    order_invariant = True

    class Params(TrainingParams, frozen=True, kw_only=True):
        """Parameters of posterior regularization."""

        constraints: Annotated[UserFile, doc("lines where<TAB>labels<TAB>at least NUMBER")] = ""
        penalty: Annotated[Positive, doc("of a squared lack, in nats per token or sentence")] = 10.0
        weight: Annotated[Positive, doc("weight of the unlabeled sentences")] = 1.0
        weight_scale: WeightScale = "ratio"
        rounds: Annotated[Rounds, doc("of E-step and M-step")] = 5
        task_defaults: ClassVar[TaskDefaults] = WIDE_PRIOR
        search: ClassVar[tuple[SearchAxis, ...]] = (
            SearchAxis("penalty", low=0.1, high=100, log=True),
            SearchAxis("weight", low=0.01, high=100, log=True),
        )

    def fit(self, problem: Problem, params: Params, run: RunContext) -> SequenceModel:
        """Train on the labeled sentences, then alternate; the trace has the lack by round."""
        if not params.constraints:
            raise UserError("no constraints", hint="--set constraints=FILE")
        bounds = Bounds.of(read_lines(params.constraints), problem, params.constraints)
        crf, text = encoded(problem, params, run)
        train_supervised(crf, text, params, run)
        posterior = ConstrainedPosterior(bounds, params.penalty)
        weight = sentence_weight(params.weight, params.weight_scale, text)
        run.trace["constraints"] = len(bounds.bound)
        for number in (rounds := run.rounds(params.rounds if len(bounds.bound) else 0)):
            with run.phase("estep"):
                found = run.once(lambda: posterior.minimized(crf, text))
                posterior.mu = found[0]["mu"]
                frozen = posterior.frozen(crf, text, weight)
            with run.phase("mstep"):
                result = run.train(crf, [text.labeled, *frozen], params)
            rounds.record(f"round {number}", **found[1], iterations=result.iterations)
        return crf


@dataclass
class ConstrainedPosterior:
    """The minimum of the E-step, by its multipliers mu, float64[K]."""

    bounds: Bounds
    penalty: float
    mu: F64 = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        self.mu = np.zeros(len(self.bounds.bound))

    def minimized(self, crf: SequenceModel, text: EncodedProblem) -> Saved:
        """Return mu of the minimum, and the mean lack under the model and at the minimum.

        Rows of many tokens are as steep as their number: L-BFGS works on sqrt(n_k) mu_k.
        """
        root = np.sqrt(self.bounds.size)

        def loss(scaled: F64) -> tuple[float, F64]:
            value, slope, _ = self.dual(scaled / root, crf, text)
            return -value, -slope / root

        limits = [(0.0, None)] * len(root)
        start = self.mu * root
        found: Any = minimize(
            loss, start, jac=True, method="L-BFGS-B", bounds=limits, options=_E_STEP
        )
        mu = np.asarray(found.x, np.float64) / root
        counts = [self.dual(each, crf, text)[2] for each in (np.zeros_like(mu), mu)]
        before, after = (float(self.bounds.lack(each).mean()) for each in counts)
        return {"mu": mu}, {"lack_model": before, "lack": after, "evaluations": int(found.nfev)}

    def dual(self, mu: F64, crf: SequenceModel, text: EncodedProblem) -> tuple[float, F64, F64]:
        """Return D(mu) less log Z of the model, its derivative, and the expected counts under q."""
        rows, log_z, marginals = self.bounds, 0.0, [np.empty((0, len(crf.labels)))]
        for data, scores in self._scored(mu, text):

            def posterior(potentials: Any, scores: F64 = scores) -> tuple[float, F64]:
                node = potentials.node + scores[potentials.batch.tokens]
                q = potentials.with_node(node).posterior(counted=False)
                return float(q.log_z().sum()), q.node

            for value, node in crf.each(posterior, data):
                log_z += value
                marginals.append(node)
        counts = rows.counts(np.concatenate(marginals))
        slack = rows.sign * rows.bound * mu - mu * mu / (4 * self.penalty)
        slope = rows.size * (rows.sign * rows.bound - mu / (2 * self.penalty)) - rows.sign * counts
        return float(rows.size @ slack) - log_z, slope, counts

    def frozen(
        self, crf: SequenceModel, text: EncodedProblem, weight: float
    ) -> list[tuple[Any, FrozenChain]]:
        """Return E_q log p of each shard, q at `mu`, as terms of the M-step."""
        return [
            (
                data,
                FrozenChain.of(
                    crf.potentials(data), len(crf.labels), evidence=scores, weight=weight
                ),
            )
            for data, scores in self._scored(self.mu, text)
        ]

    def _scored(self, mu: F64, text: EncodedProblem) -> Iterator[tuple[Any, F64]]:
        """Yield each shard with what mu adds to its node scores."""
        shards = text.unlabeled
        yield from zip(shards, split_tokens(self.bounds.scores(mu), shards), strict=True)
