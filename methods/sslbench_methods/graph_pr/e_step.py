"""Regularized posteriors: exponentiated gradient on the posteriors of all text.

Over distributions q of whole label sequences, minimize

    R(q) = sum_i KL(q_i || p_theta(. | x_i)) + lam h(m(q)).

The penalty h sees marginals of tokens through rows (`sslbench_methods.graph_pr.penalties`), so that
q keeps the form of a CRF with weights theta~ and one number a more per row and label; a step of
length eta is (He et al. 2013, section 4, equation 20; docs/specs/graph_pr.md, section 4)

    theta~ <- (1 - eta) theta~ + eta theta,    a <- (1 - eta) a - eta lam dh/dm.          (*)

One forward-backward a step. What is stored has the size of the weights and of the rows; the node
scores of the text under the model, which all steps of an E-step share, have that of its attributes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from sslbench.engine.crf import (
    BatchPosterior,
    BatchPotentials,
    EncodedText,
    FrozenChain,
    LogLinear,
    LogPartition,
    PotentialGradient,
    SequenceModel,
    split_tokens,
)
from sslbench.engine.crf.optim.vectors import combine, dot
from sslbench.engine.graph.propagation.solver import LINE, from_line
from sslbench.engine.types import F64, Arrays
from sslbench_methods.graph_pr.penalties import Regularizer
from sslbench_methods.graph_pr.rows import BatchRows

#: a search for the length of a step gives up below this
SHORTEST = 1e-9
#: lengthen the step only while the divergence exceeds rounding by this factor; otherwise an
#: overlong step would go unnoticed
DECISIVE = 1e3


@dataclass(frozen=True, eq=False)
class Posterior:
    """q = CRF with `weights` (theta~) and `offset` (a): float64[R + 1, K], the last row zero.

    log_z: float64[S]; sums: float64[R, K] of marginals; rows: float64[R, P], `Rows` of them;
    penalty: h; gradient: float64[R, K], dh by the marginal of a token; counts: float64 per weight,
    expected features, where they were asked for.
    """

    weights: F64
    offset: F64
    log_z: F64
    sums: F64
    rows: F64
    penalty: float
    gradient: F64
    counts: F64 | None

    @cached_property
    def rounding(self) -> float:
        """Differences of log Z summed over the text mean nothing below this."""
        return 4.0 * np.finfo(float).eps * float(np.abs(self.log_z).sum())

    def arrays(self) -> Arrays:
        """Return what `from_arrays` reads."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: np.asarray(value) for name, value in named.items() if value is not None}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Posterior:
        """Restore what `arrays` returned."""
        named: dict[str, Any] = {"counts": None, **arrays, "penalty": float(arrays["penalty"])}
        return cls(**named)

    def expected_counts(self) -> F64:
        """Return `counts`; ValueError if they were not asked for."""
        if self.counts is None:
            raise ValueError("the expected features of this posterior were not counted")
        return self.counts


class _Space(NamedTuple):
    """For the arrays of a `Posterior` of these names."""

    offset: F64
    sums: F64
    rows: F64


class Value(NamedTuple):
    """R and its parts: KL from the model, and the penalty h."""

    r: float
    kl: float
    h: float


@dataclass(frozen=True)
class Backtracking:
    """Steps that are sure to lower R, until it is flat and the fixed point reached.

    checked: a step is halved until it is sure to lower R.
    """

    first: float = 0.5
    longest: float = 0.9
    growth: float = 1.25
    most_steps: int = 50
    tolerance: float = 1e-6
    residual: float = 1e-3
    checked: bool = True

    def rate(self, step: int, last: float) -> float:
        """Return the length to try at step 0, 1, ...; last: length of the step before."""
        return self.first if step == 0 else min(self.longest, self.growth * last)

    def done(self, old: float, new: float, residual: float) -> bool:
        """Return whether to stop: R before and after a step, and the residual, 0 at the optimum."""
        return old - new <= self.tolerance * abs(new) and residual < self.residual


@dataclass(frozen=True)
class Release:
    """The program of He et al.: few steps that shrink; it stops early, or when R rises."""

    first: float = 0.2
    most_steps: int = 10
    tolerance: float = 0.01
    checked: bool = False

    def rate(self, step: int, last: float) -> float:
        return self.first / (1.0 + step)

    def done(self, old: float, new: float, residual: float) -> bool:
        return old - new < self.tolerance * abs(old)


Schedule: TypeAlias = Backtracking | Release
SCHEDULES: MappingProxyType[str, Schedule] = MappingProxyType(
    {"backtracking": Backtracking(), "release": Release()}
)


@dataclass(frozen=True, eq=False)
class _OffsetLogPartition:
    """log Z with offsets float64[R + 1, K] added to node scores by row; sums marginals by row.

    rows: of the tokens of each batch, by its first token. sums: float64[R, K].
    """

    offset: F64
    rows: Mapping[int, BatchRows]
    sums: F64

    def posterior(self, potentials: BatchPotentials, *, counted: bool) -> BatchPosterior:
        """Run forward-backward; potentials that depend on the position are overwritten.

        counted: also sum the marginals of edges.
        """
        rows = self.rows[potentials.batch.lo]
        node = rows.shifted(potentials.node, self.offset)
        posterior = replace(potentials, node=node).posterior(counted=counted)
        rows.add_sums(posterior.node, self.sums)
        return posterior

    def evaluate(self, potentials: BatchPotentials) -> PotentialGradient:
        return PotentialGradient.of_log_z(self.posterior(potentials, counted=True), 1.0)

    def n_tokens(self, lengths: F64) -> float:
        return float(lengths.sum())


@dataclass(frozen=True, eq=False)
class RegularizedPosterior:
    """The problem of the E-step. parts: the unlabeled text, in the order of `penalty.rows`."""

    crf: SequenceModel
    parts: Sequence[EncodedText]
    penalty: Regularizer
    lam: float
    #: weights of the last model and log-potentials of all parts under them, as most steps need them
    _scored: list[tuple[F64, list[list[BatchPotentials]]]] = field(default_factory=list, init=False)

    @cached_property
    def _rows(self) -> list[dict[int, BatchRows]]:
        """Of each part: the rows of the tokens of its batches, by their first token."""
        rows = self.penalty.rows
        return [
            {x.lo: BatchRows.build(row_of[x.tokens], len(rows.fixed)) for x in data.batches}
            for data, row_of in zip(self.parts, split_tokens(rows.row_of, self.parts), strict=True)
        ]

    def model(self, weights: F64) -> Posterior:
        """Return p_theta; store the scores of the text if all transitions are the same."""
        self._scored.clear()
        if not any(getattr(data, "varying", True) for data in self.parts):
            self._scored.append((weights, [list(text) for text in self._text(weights)]))
        space = self._new_space()
        space.offset[:] = 0.0
        return self._posterior(weights, space)

    def _text(self, weights: F64) -> Sequence[Iterable[BatchPotentials]]:
        """Return the log-potentials of each part, batch by batch."""
        for scored, text in self._scored:
            if scored is weights:
                return text
        return [self.crf.potentials(data, weights) for data in self.parts]

    def _new_space(self) -> _Space:
        """Allocate space for a posterior, in one piece.

        The C library hands the pages of several large arrays back to the system when they are
        freed; to get new ones took a third of a step.
        """
        (R, K), (_, P) = self.penalty.rows.fixed.shape, self.penalty.rows.shape
        space = from_line(np.empty(R * P + (2 * R + 1) * K + LINE))
        rows, offset, sums = np.split(space[: R * P + (2 * R + 1) * K], [R * P, R * (P + K) + K])
        return _Space(offset.reshape(R + 1, K), sums.reshape(R, K), rows.reshape(R, P))

    def posterior(self, weights: F64, offset: F64, *, counted: bool = False) -> Posterior:
        """Run one forward-backward over the text; counted: with expected features."""
        space = self._new_space()
        space.offset[:] = offset
        return self._posterior(weights, space, counted=counted)

    def _posterior(self, weights: F64, space: _Space, *, counted: bool = False) -> Posterior:
        """Do the work of `posterior`.  space: its offset is filled in."""
        (offset, sums, rows), counts = space, None
        sums[:] = 0.0
        terms = [_OffsetLogPartition(offset, part, sums) for part in self._rows]
        if counted and isinstance(self.crf, LogLinear):
            expectation = self.crf.expect(list(zip(self.parts, terms, strict=True)), weights)
            log_z, counts = expectation.values, expectation.counts
        else:
            text = zip(terms, self._text(weights), strict=True)
            values = [
                term.posterior(batch, counted=False).log_z()
                for term, part in text
                for batch in part
            ]
            log_z = np.concatenate([np.empty(0), *values])
        m = self.penalty.rows.from_sums(sums, rows)
        h, slope = self.penalty.value_and_gradient(m)
        return Posterior(weights, offset, log_z, sums, m, h, slope, counts)

    def restarted(self, q: Posterior, model: Posterior) -> Posterior:
        """Return the posterior of the model's weights and the offsets of q."""
        return self.posterior(model.weights, q.offset) if q.offset.any() else model

    def counted(self, q: Posterior) -> Posterior:
        """Return the same posterior with its expected features, which a log-linear model has."""
        if q.counts is not None or not isinstance(self.crf, LogLinear):
            return q
        return self.posterior(q.weights, q.offset, counted=True)

    def divergence(self, q: Posterior, p: Posterior) -> float:
        """Return sum_i KL(q_i || p_i); q needs its counts unless both have the same weights."""
        total = float(np.vdot(q.sums, (q.offset - p.offset)[:-1]))
        total -= math.fsum(q.log_z - p.log_z)
        if q.weights is p.weights:
            return total
        if isinstance(self.crf, LogLinear):
            return total + dot(q.expected_counts(), q.weights - p.weights)
        return total + self._expected_scores(q, q.weights) - self._expected_scores(q, p.weights)

    def frozen(self, q: Posterior, weight: float = 1.0) -> list[tuple[EncodedText, FrozenChain]]:
        """Return E_q log p_theta of the text, times a weight, as parts of an objective."""
        rows, L = split_tokens(self.penalty.rows.row_of, self.parts), len(self.crf.labels)
        return [
            (
                data,
                FrozenChain.of(
                    self.crf.potentials(data, q.weights), L, evidence=q.offset[at], weight=weight
                ),
            )
            for data, at in zip(self.parts, rows, strict=True)
        ]

    def _expected_scores(self, q: Posterior, weights: F64) -> float:
        """Return the sum over the text of E_q phi, with the potentials phi under some weights."""
        likelihood = self.crf.evaluate(self.frozen(q), weights)
        negative_log_z = self.crf.evaluate([(x, LogPartition()) for x in self.parts], weights)
        return math.fsum(likelihood) - math.fsum(negative_log_z)

    def value(self, q: Posterior, model: Posterior) -> Value:
        """Return R(q) under a model, with its parts."""
        kl = self.divergence(q, model)
        return Value(kl + self.lam * q.penalty, kl, q.penalty)

    def residual(self, q: Posterior) -> float:
        """Return the largest |a + lam dh/dm|: 0 at the optimum, if theta~ = theta."""
        return float(np.abs(q.offset[:-1] + self.lam * q.gradient).max(initial=0.0))

    def step(self, q: Posterior, model: Posterior, eta: float) -> Posterior:
        """Make the step (*) of length eta: equation 20."""
        weights = model.weights
        if moved := q.weights is not weights:
            weights = np.empty_like(q.weights)
            combine(1.0 - eta, q.weights, eta, model.weights, weights)
        space = self._new_space()
        new, at = space.offset[:-1].reshape(-1), q.offset[:-1].reshape(-1)
        combine(1.0 - eta, at, -eta * self.lam, q.gradient.reshape(-1), new)
        space.offset[-1] = 0.0
        return self._posterior(weights, space, counted=moved)

    def descends(self, new: Posterior, old: Posterior, eta: float, gap: float) -> bool:
        """Test lam D_h(new, old) <= (1 / eta - 1) KL(new || old): then R(new) <= R(old).

        gap: KL(new || old).
        """
        bend = self.lam * self.penalty.divergence(new.rows, old.rows)
        return bend <= (1.0 / eta - 1.0) * (gap + new.rounding)

    def minimize(
        self, start: Posterior, model: Posterior, schedule: Schedule
    ) -> tuple[Posterior, dict[str, Any]]:
        """Step from `start`; return the best q that was met, and what happened, for the record."""
        q, value = start, self.value(start, model)
        best, least = q, value.r
        notes: dict[str, Any] = {"start": value.r, "etas": [], "halvings": 0, "stopped": "steps"}
        eta, grows = 0.0, True
        for number in range(schedule.most_steps):
            eta = schedule.rate(number, eta) if grows else eta
            new = self.step(q, model, eta)
            if schedule.checked:
                new, eta, grows, halvings = self._halved(new, q, model, eta)
                notes["halvings"] += halvings
                if eta < SHORTEST:
                    notes["stopped"] = "no step"
                    break
            notes["etas"].append(eta)
            q, before, value = new, value, self.value(new, model)
            if value.r <= least + q.rounding:  # of equals the last: nearest to the fixed point
                best, least = q, min(least, value.r)
            if schedule.done(before.r, value.r, self.residual(q)):
                # R is a sum of terms that are each rounded, q.rounding that of its divergence.
                rose = value.r > before.r + q.rounding + 4 * np.finfo(float).eps * abs(before.r)
                notes["stopped"] = "rise" if rose else "converged"
                break
        return best, {**notes, "residual": self.residual(best)}

    def _halved(
        self, new: Posterior, q: Posterior, model: Posterior, eta: float
    ) -> tuple[Posterior, float, bool, int]:
        """Return the first step of length eta, eta / 2, ... that descends; its length; whether the
        next may be longer, where rounding does not hide it; the number of halvings.
        """
        halvings = 0
        while not self.descends(new, q, eta, gap := self.divergence(new, q)):
            eta, halvings = eta / 2.0, halvings + 1
            if eta < SHORTEST:
                break
            new = self.step(q, model, eta)
        return new, eta, gap > DECISIVE * new.rounding, halvings
