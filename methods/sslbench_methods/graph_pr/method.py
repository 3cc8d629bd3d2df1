"""Graph-based posterior regularization, and its first round, PR1.

He et al. (2013) maximize, over the weights theta of a CRF and over free distributions q of the
label sequences of the unlabeled sentences,

    J = L(theta) - beta [ sum_unlabeled KL(q || p_theta) + lam h(m(q)) ]

with L the log-likelihood of the labeled sentences and its prior, and h a penalty of the marginals
m of q: tokens of similar n-grams should have similar labels. E-steps (`e_step`) and M-steps
alternate from the supervised optimum; neither lowers J. J is not jointly concave
(docs/specs/graph_pr.md, sections 3 and 6).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np

from sslbench import CRFMethod, GraphCRFParams, Problem, RunContext, SearchAxis, Tagger, UserError
from sslbench.engine.checked import Saved
from sslbench.engine.crf import ChainCRF, EncodedCorpus, EncodedProblem, LogPartition, Parts
from sslbench.engine.graph.lookup import NgramLookup, NgramScores
from sslbench.engine.graph.regularized import (
    SCHEDULES,
    Backtracking,
    Posterior,
    RegularizedPosterior,
    Schedule,
    Value,
)
from sslbench.engine.graph.regularizers import AtLeastOnce, GraphLaplacian, Regularizer
from sslbench.engine.types import F64
from sslbench.taggers import Decoding, PosteriorTagger
from sslbench_methods.shared import Presets, encoded, train_supervised

KIND = "graph_pr"
PAPER = {"sigma2": 1e4, "neighbors": 60, "lam": 1.0, "decoding": "posterior"}
#: rounds before the change of J may end the training (docs/specs/graph_pr.md, section 6)
LEAST_ROUNDS = 3
#: of the E-step for a forecast, where the direction of q matters, not its length
EVIDENCE_STEPS = 5
#: a relative fall of J up to this is rounding of sums over all text
ROUNDING = 1e-9


class RegularizationParams(GraphCRFParams, frozen=True, kw_only=True):
    """Parameters of graph_pr and pr1."""

    penalty: Annotated[
        Literal["graph", "label_in_sentence"],
        msgspec.Meta(
            description="differences of marginals over edges, or sentences lacking a label"
        ),
    ] = "graph"
    required_label: Annotated[
        str, msgspec.Meta(description="the label of penalty=label_in_sentence")
    ] = "VERB"
    lam: Annotated[
        float, msgspec.Meta(ge=0, le=1e9, description="weight of the penalty (lambda in the paper)")
    ] = 0.03
    beta: Annotated[
        float, msgspec.Meta(gt=0, le=1e9, description="weight of the unlabeled text (labeled: 1)")
    ] = 1.0
    schedule: Annotated[
        Literal["backtracking", "release"],
        msgspec.Meta(description="of the E-step: until solved, or the authors' ten steps"),
    ] = "backtracking"
    warm: Annotated[
        Literal["restart", "carry"],
        msgspec.Meta(description="E-steps start at the new model and old offsets, or at the old q"),
    ] = "restart"
    m_iterations: Annotated[
        int, msgspec.Meta(ge=1, le=1_000_000, description="of L-BFGS in one M-step")
    ] = 300
    m_ftol: Annotated[float, msgspec.Meta(ge=0, le=1e9, description="ftol of the M-steps")] = 1e-5
    decoding: Decoding = "viterbi"
    decode_from: Annotated[
        Literal["model", "q"],
        msgspec.Meta(description="the CRF alone, or with what the graph adds for known n-grams"),
    ] = "model"
    presets: ClassVar[Presets] = {"paper": PAPER}
    search: ClassVar[tuple[SearchAxis, ...]] = (SearchAxis("lam", low=0.01, high=10, log=True),)


class _Regularized(CRFMethod):
    """What the methods share."""

    order_invariant = True

    def evidence(
        self,
        problem: Problem,
        crf: ChainCRF,
        held_out: EncodedCorpus,
        params: RegularizationParams,
        run: RunContext,
    ) -> F64:
        """The posteriors of the first E-step."""
        penalty, _ = penalty_of(problem, params, run)
        text = problem.encode(crf).unlabeled
        posterior = RegularizedPosterior(crf, text, penalty, params.lam)
        model = posterior.model(crf.weights)
        q, _ = posterior.minimize(model, model, Backtracking(most_steps=EVIDENCE_STEPS))
        row_of = penalty.rows.row_of[: int(held_out.offsets[-1])]
        return replace(crf, weights=q.weights).marginals(held_out, q.offset[row_of])


class GraphPR(_Regularized):
    """A CRF and regularized posteriors of the unlabeled text, trained in turn."""

    class Params(RegularizationParams, frozen=True, kw_only=True):
        """Parameters of graph-based posterior regularization."""

        em_iters: Annotated[
            int, msgspec.Meta(ge=1, le=100_000, description="most rounds of EM")
        ] = 3
        em_tol: Annotated[
            float, msgspec.Meta(ge=0, le=1e9, description="EM stops at this relative change of J")
        ] = 1e-3
        m_share: Annotated[
            float,
            msgspec.Meta(
                ge=0,
                lt=1,
                description="an M-step between the first and the last round stops when 5 iterations"
                " add at most this share to its gain; 0 = only by m_ftol, as the paper",
            ),
        ] = 0.02
        presets: ClassVar[Presets] = {"paper": {**PAPER, "em_iters": 20, "m_share": 0.0}}
        # With a poor graph, J keeps rising while accuracy falls.
        search: ClassVar[tuple[SearchAxis, ...]] = (
            *RegularizationParams.search,
            SearchAxis("em_iters", low=1, high=40, log=True, integer=True),
        )

    def fit(self, problem: Problem, params: Params, run: RunContext) -> Tagger:
        """Train on the labeled sentences, then alternate."""
        return train(problem, params, run, params.em_iters, params.em_tol, params.m_share)

    restore = staticmethod(partial(PosteriorTagger.from_arrays, kind=KIND))


class PR1(_Regularized):
    """The model after the first round: the E-step sees the supervised CRF, the M-step the rest."""

    Params = RegularizationParams

    def fit(self, problem: Problem, params: RegularizationParams, run: RunContext) -> Tagger:
        """Train on the labeled sentences, then one round."""
        return train(problem, params, run, 1, 0.0)


def train(
    problem: Problem,
    params: RegularizationParams,
    run: RunContext,
    rounds: int,
    tolerance: float,
    share: float = 0.0,
) -> Tagger:
    """Build the penalty, train, and make the tagger that the parameters ask for."""
    if params.decode_from == "q" and (params.penalty, params.decoding) != ("graph", "posterior"):
        raise UserError("decode_from=q needs penalty=graph and decoding=posterior")
    penalty, lookup = penalty_of(problem, params, run)
    crf, text = encoded(problem, params, run)
    posterior = RegularizedPosterior(crf, text.unlabeled, penalty, params.lam)
    em = RegularizedEM(posterior, text, params, run, SCHEDULES[params.schedule], share)
    em.train(rounds, tolerance)
    if params.decoding == "viterbi":
        return crf
    others = {} if em.first is None else {"pr1": PosteriorTagger(em.first, KIND)}
    if em.q is None or lookup is None:  # q is the model
        return PosteriorTagger(crf, KIND, others)
    extra = NgramScores(lookup, em.q.offset)
    q = PosteriorTagger(replace(crf, weights=em.q.weights), KIND, extra=extra)
    model = PosteriorTagger(crf, KIND, {**others, "q": q})
    return replace(q, variants=others) if params.decode_from == "q" else model


def penalty_of(
    problem: Problem, params: RegularizationParams, run: RunContext
) -> tuple[Regularizer, NgramLookup | None]:
    """h on the unlabeled text of a problem, and the rows of h that new text belongs to, if any.

    UserError for a required label that no labeled token has.
    """
    names, required = problem.labels, params.required_label
    if params.penalty == "graph":
        graph = problem.graph(params, run)
        text, codes = graph.text, problem.label_codes(problem.labeled)
        tokens = text.vertex_of[: text.n_labeled], codes, text.unlabeled
        return GraphLaplacian.build(graph.W, *tokens, len(names)), graph.lookup
    if required not in names:
        known = "labels are " + " ".join(names)
        raise UserError(f"required_label={required}: no labeled token has it", hint=known)
    lengths = [np.empty(0, np.int64), *(shard.lengths for shard in problem.unlabeled)]
    return AtLeastOnce.build(names.index(required), np.concatenate(lengths), len(names)), None


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
    first: ChainCRF | None = None
    q: Posterior | None = None

    def train(self, most_rounds: int, tolerance: float) -> None:
        """The supervised optimum, then rounds until J settles, from there with whole M-steps."""
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
                self.first = replace(self.crf, weights=self.crf.weights.copy())
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
        """As `RegularizedPosterior.minimize`; a killed run finds what it did."""

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
        free = [(data, LogPartition(params.beta)) for data in self.text.unlabeled]
        parts: Parts = [self.text.labeled, *free]
        stop = params.options(ftol=params.m_ftol, max_iterations=params.m_iterations, share=share)
        sums = params.beta * q.expected_counts()
        with self.run.phase("mstep"):
            result = self.run.train(self.crf, parts, params, options=stop, expected_counts=sums)
        model = self._model()
        value = self.posterior.value(q, model)
        self.path.append(self.objective(value))
        m_step = {"iterations": result.iterations, "status": result.status}
        return model, value, {"J_M": self.path[-1], "m_step": m_step}

    def objective(self, value: Value) -> float:
        """J at the current weights; value: R of q there."""
        labeled = self.crf.objective([self.text.labeled], self.params)
        return labeled - self.params.beta * value.r

    def falls(self) -> list[int]:
        """Steps (E and M in turn, from 1) after which J is lower than before: none, in theory."""
        J = np.array(self.path)
        lower = np.diff(J) < -ROUNDING * np.abs(J[1:])
        return [int(step) + 1 for step in np.flatnonzero(lower)]

    def _model(self) -> Posterior:
        with self.run.phase("estep"):
            return self.posterior.model(self.crf.weights)

    @property
    def crf(self) -> ChainCRF:
        return self.posterior.crf
