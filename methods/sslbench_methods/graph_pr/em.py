"""EM of graph-based posterior regularization (He et al. 2013, section 3).

    E:  q     <- argmin_q     R(theta, q) = sum_unlabeled KL(q || p_theta) + lam h(m(q))
    M:  theta <- argmax_theta L(theta) + beta sum_unlabeled E_q log p_theta(y | x)

from the supervised optimum.  Neither step lowers J = L - beta R (docs/specs/graph_pr.md, section
6).  `e_step` minimizes R; the M-step is the training of a CRF on soft targets.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sslbench import RunContext
from sslbench.engine.checked import Saved
from sslbench.engine.crf import EncodedProblem, LogLinear, LogPartition, Parts, SequenceModel
from sslbench_methods.graph_pr.e_step import Posterior, RegularizedPosterior, Schedule, Value
from sslbench_methods.graph_pr.params import RegularizationParams
from sslbench_methods.shared import train_supervised

#: rounds before the change of J may end the training (docs/specs/graph_pr.md, section 6)
LEAST_ROUNDS = 3
#: a relative fall of J up to this is rounding of sums over all text
ROUNDING = 1e-9


@dataclass
class RegularizedEM:
    """Ascent on J from the supervised optimum (docs/specs/graph_pr.md, section 6).

    share: M-steps between the first and the last round stop when 5 iterations add no more than this
    share to their gain.
    path: J at the start, then after every E-step and M-step.
    first: the model after the first of several rounds. q: of the last E-step.
    """

    posterior: RegularizedPosterior
    text: EncodedProblem
    params: RegularizationParams
    run: RunContext
    schedule: Schedule
    share: float = 0.0
    path: list[float] = field(default_factory=list)
    first: SequenceModel | None = None
    q: Posterior | None = None

    def train(self, most_rounds: int, tolerance: float) -> None:
        """Start at the supervised optimum; do rounds until J settles, then with whole M-steps."""
        train_supervised(self.crf, self.text, self.params, self.run)
        rounds = self.run.rounds(most_rounds)
        if self.params.lam == 0 or not len(self.posterior.penalty.rows.row_of):
            rounds.stop("nothing_to_do")  # J is L: this is its optimum
            return
        q = model = self._model()
        value = self.posterior.value(model, model)
        self.run.trace["J"] = self.objective(value)
        self.path.append(self.run.trace["J"])
        settled = self.share == 0
        for number in rounds:
            q, e_step = self.e_step(q, value, model)
            whole = settled or number in (1, most_rounds)
            model, value, m_step = self.m_step(q, 0.0 if whole else self.share)
            gain = self.path[-1] - self.path[-3]
            message = f"J {self.path[-1]:.3f}, {len(e_step['etas'])} E-steps"
            if max(self.falls(), default=0) > 2 * (number - 1):
                message += "; warning: J fell"
            accuracy = self.text.dev_accuracy(self.crf, record_only=True)
            rounds.record(message, **e_step, **m_step, J_gain=gain, **accuracy)
            if number == 1 < most_rounds:
                self.first = self.crf.with_parameters(self.crf.parameters.copy())
            if number >= LEAST_ROUNDS and abs(gain) < tolerance * abs(self.path[-3]):
                if whole:
                    rounds.stop("converged")
                settled = True
        self.q = q
        self.run.trace["falls"] = self.falls()

    def e_step(
        self, old: Posterior, value: Value, model: Posterior
    ) -> tuple[Posterior, dict[str, Any]]:
        """q <- argmin R(theta, q), never worse than the old one, whose R is `value`."""
        with self.run.phase("estep"):
            carried = self.params.warm == "carry" or self.params.schedule == "release"
            # a mixture of two models is a model only in log-linear ones
            carried = carried and isinstance(self.crf, LogLinear)
            start = old if carried else self.posterior.restarted(old, model)
            q, steps = self._minimized(start, model)
            now = self.posterior.value(q, model)
            # a restart that was stopped early may have a larger R than the old posterior
            if worse := now.r > value.r:
                q, now = old, value
            q = self.posterior.counted(q)
        self.path.append(self.objective(now))
        parts = {"J_E": self.path[-1], "R": now.r, "KL": now.kl, "h": now.h}
        return q, {**parts, **steps, "kept_old": worse}

    def _minimized(self, start: Posterior, model: Posterior) -> tuple[Posterior, dict[str, Any]]:
        """Minimize R; a run that goes on after a kill reads the result from a file."""

        def minimize() -> Saved:
            q, steps = self.posterior.minimize(start, model, self.schedule)
            return q.arrays(), {"steps": steps, "same_weights": q.weights is model.weights}

        arrays, facts = self.run.once(minimize)
        if facts["same_weights"]:  # its divergence needs no counts then
            arrays["weights"] = model.weights
        return Posterior.from_arrays(arrays), facts["steps"]

    def m_step(self, q: Posterior, share: float = 0.0) -> tuple[Posterior, Value, dict[str, Any]]:
        """theta <- argmax L + beta sum_unlabeled E_q log p_theta, from the current weights.

        share: see `share` of the class; 0 = the whole step.
        """
        params = self.params
        given: dict[str, Any] = {}
        if isinstance(self.crf, LogLinear):
            text: Parts = [(data, LogPartition(params.beta)) for data in self.text.unlabeled]
            given = {"expected_counts": params.beta * q.expected_counts()}
        else:
            text = self.posterior.frozen(q, params.beta)
        parts = [self.text.labeled, *text]
        stop = params.options(ftol=params.m_ftol, max_iterations=params.m_iterations, share=share)
        with self.run.phase("mstep"):
            result = self.run.train(self.crf, parts, params, options=stop, **given)
        model = self._model()
        value = self.posterior.value(q, model)
        self.path.append(self.objective(value))
        m_step = {"iterations": result.iterations, "status": result.status}
        return model, value, {"J_M": self.path[-1], "m_step": m_step}

    def objective(self, value: Value) -> float:
        """Return J at the current weights; value: R of q there."""
        labeled = self.crf.objective([self.text.labeled], self.params)
        return labeled - self.params.beta * value.r

    def falls(self) -> list[int]:
        """Return the steps (E and M in turn, from 1) that lowered J: none, in theory."""
        J = np.array(self.path)
        lower = np.diff(J) < -ROUNDING * np.abs(J[1:])
        return [int(step) + 1 for step in np.flatnonzero(lower)]

    def _model(self) -> Posterior:
        with self.run.phase("estep"):
            return self.posterior.model(self.crf.parameters)

    @property
    def crf(self) -> SequenceModel:
        return self.posterior.crf
