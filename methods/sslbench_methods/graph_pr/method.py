"""Graph-based posterior regularization, and its first round, PR1.

He et al. (2013) maximize, over the weights theta of a CRF and over free
distributions q of the label sequences of the unlabeled sentences,

    J = L(theta) - beta [ sum_unlabeled KL(q || p_theta) + lam h(m(q)) ]

with L the log-likelihood of the labeled sentences and its prior, and h a penalty of the marginals
m of q: tokens of similar n-grams should have similar labels. E-steps (`e_step`) and M-steps
alternate from the supervised optimum; neither lowers J. J is not jointly concave.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np

from sslbench import CRFMethod, GraphCRFParams, Problem, RunContext, SearchAxis, UserError
from sslbench.crf import ChainCRF, EncodedProblem, LogPartition, Options
from sslbench.graph.lookup import NgramLookup
from sslbench.graph.regularizers import AtLeastOnce, GraphLaplacian, Regularizer

from .e_step import Backtracking, Posterior, RegularizedPosterior, Release, Schedule, Value
from .tagger import Arrays, Decoding, PosteriorTagger, VertexShift

#: rounds before the change of J may end the training (docs/specs/graph_pr.md, section 6)
LEAST_ROUNDS = 3
#: a relative fall of J up to this is rounding of sums over all text
ROUNDING = 1e-9
#: kind of saved taggers
KIND = "graph_pr"


class RegularizationParams(GraphCRFParams, frozen=True, kw_only=True):
    """Parameters of graph_pr and pr1."""

    sigma2: Annotated[
        float, msgspec.Meta(gt=0, description="variance of the Gaussian prior on the weights")
    ] = 1e4
    penalty: Annotated[
        Literal["graph", "label_in_sentence"],
        msgspec.Meta(
            description="graph: differences of label marginals over edges; label_in_sentence:"
            " unlabeled sentences where a label is expected less than once"
        ),
    ] = "graph"
    required_label: Annotated[
        str, msgspec.Meta(description="the label of penalty=label_in_sentence")
    ] = "VERB"
    lam: Annotated[
        float, msgspec.Meta(ge=0, description="weight of the penalty (lambda in the paper)")
    ] = 1.0
    beta: Annotated[
        float, msgspec.Meta(gt=0, description="weight of the unlabeled text (labeled: 1)")
    ] = 1.0
    schedule: Annotated[
        Literal["backtracking", "release"],
        msgspec.Meta(description="of the E-step: until solved, or the authors' ten steps"),
    ] = "backtracking"
    warm: Annotated[
        Literal["restart", "carry"],
        msgspec.Meta(
            description="E-steps start from the new model under the old offsets, or from the old"
            " posterior (release: the latter)"
        ),
    ] = "restart"
    m_iterations: Annotated[int, msgspec.Meta(ge=1, description="of L-BFGS in one M-step")] = 300
    m_ftol: Annotated[float, msgspec.Meta(ge=0, description="ftol of the M-steps")] = 1e-5
    decoding: Decoding = "posterior"
    decode_from: Annotated[
        Literal["model", "q"],
        msgspec.Meta(
            description="tag with the CRF, or with the regularized posterior: the CRF and what the"
            " graph adds for the n-grams that it knows"
        ),
    ] = "model"
    search: ClassVar[tuple[SearchAxis, ...]] = (SearchAxis("lam", low=0.01, high=10, log=True),)

    def m_options(self) -> Options:
        """Stopping rules of an M-step."""
        return self.options(ftol=self.m_ftol, max_iterations=self.m_iterations)


class GraphPR(CRFMethod):
    """A CRF and regularized posteriors of the unlabeled text, trained in turn."""

    order_invariant = True

    class Params(RegularizationParams, frozen=True, kw_only=True):
        """Parameters of graph-based posterior regularization."""

        em_iters: Annotated[int, msgspec.Meta(ge=1, description="most rounds of EM")] = 20
        em_tol: Annotated[
            float, msgspec.Meta(ge=0, description="EM stops at this relative change of J")
        ] = 1e-3
        # J goes on to rise while labels get worse, where the graph is wrong often enough
        search: ClassVar[tuple[SearchAxis, ...]] = (
            *RegularizationParams.search,
            SearchAxis("em_iters", low=1, high=40, log=True, integer=True),
        )

    def fit(self, problem: Problem, params: Params, run: RunContext) -> ChainCRF | PosteriorTagger:
        """Train on the labeled sentences, then alternate."""
        return train(problem, params, run, params.em_iters, params.em_tol)

    @staticmethod
    def restore(arrays: Arrays, facts: dict[str, Any]) -> PosteriorTagger:
        """A saved tagger; one that decodes by Viterbi is saved as the CRF that it is."""
        return PosteriorTagger.from_arrays(arrays, facts, KIND)


class PR1(CRFMethod):
    """The model after the first round: the E-step sees the supervised CRF, the M-step the rest."""

    order_invariant = True

    class Params(RegularizationParams, frozen=True, kw_only=True):
        """Parameters of the first round."""

    def fit(self, problem: Problem, params: Params, run: RunContext) -> ChainCRF | PosteriorTagger:
        """Train on the labeled sentences, then one round."""
        return train(problem, params, run, 1, 0.0)


def train(
    problem: Problem, params: RegularizationParams, run: RunContext, rounds: int, tolerance: float
) -> ChainCRF | PosteriorTagger:
    """Build the penalty, train, and make the tagger that the parameters ask for."""
    if params.decode_from == "q" and (params.penalty, params.decoding) != ("graph", "posterior"):
        raise UserError("decode_from=q needs penalty=graph and decoding=posterior")
    penalty, lookup = penalty_of(problem, params, run)
    with run.phase("features"):
        crf = problem.crf(params, features_from="labeled+unlabeled")
        text = problem.encode(crf)
    posterior = RegularizedPosterior(crf, text.unlabeled, penalty, params.lam)
    em = RegularizedEM(posterior, text, params, run)
    em.train(rounds, tolerance)
    if params.decoding == "viterbi":
        return crf
    others = {} if em.first is None else {"pr1": PosteriorTagger(em.first, KIND)}
    if em.q is None or lookup is None:  # q is the model
        return PosteriorTagger(crf, KIND, others)
    shift = VertexShift(lookup, em.q.offset)
    q = PosteriorTagger(replace(crf, weights=em.q.weights), KIND, shift=shift)
    if params.decode_from == "q":
        return replace(q, variants=others)
    return PosteriorTagger(crf, KIND, {**others, "q": q})


def penalty_of(
    problem: Problem, params: RegularizationParams, run: RunContext
) -> tuple[Regularizer, NgramLookup | None]:
    """h on the unlabeled text of a problem, and the rows of h that new text belongs to, if any.

    UserError for a required label that no labeled token has.
    """
    L = len(problem.labels)
    if params.penalty == "graph":
        graph = problem.graph(params, run)
        known, codes = graph.text, problem.label_codes(problem.labeled)
        labeled = known.vertex_of[: known.n_labeled]
        return GraphLaplacian.build(graph.W, labeled, codes, known.unlabeled, L), graph.lookup
    if params.required_label not in problem.labels:
        raise UserError(
            f"required_label={params.required_label}: no labeled token has it",
            hint="labels are " + " ".join(problem.labels),
        )
    label = problem.labels.index(params.required_label)
    lengths = [np.empty(0, np.int64), *(shard.lengths for shard in problem.unlabeled)]
    return AtLeastOnce.build(label, np.concatenate(lengths), L), None


@dataclass
class RegularizedEM:
    """Ascent on J from the supervised optimum (docs/specs/graph_pr.md, section 6)."""

    posterior: RegularizedPosterior
    text: EncodedProblem
    params: RegularizationParams
    run: RunContext
    #: J at the start, then after every E-step and M-step
    path: list[float] = field(default_factory=list)
    #: the model after the first of several rounds
    first: ChainCRF | None = None
    #: of the last E-step
    q: Posterior | None = None

    def train(self, most_rounds: int, tolerance: float) -> None:
        """The supervised optimum, then rounds until J settles."""
        with self.run.phase("train"):
            self.run.record(self.crf.train([self.text.labeled], self.params), "supervised")
        self.run.trace["supervised"] |= self.text.dev_accuracy(self.crf, record_only=True)
        rounds = self.run.rounds(most_rounds)
        if self.params.lam == 0 or not len(self.posterior.penalty.rows.row_of):
            rounds.stop("nothing_to_do")  # J is L: this is its optimum
            return
        model = self._model()
        q, value = model, self.posterior.value(model, model)
        self.path.append(self.objective(value))
        self.run.trace["J"] = self.path[0]
        for number in rounds:
            q, e_step = self.e_step(q, value, model)
            model, value, m_step = self.m_step(q)
            gain = self.path[-1] - self.path[-3]
            accuracy = self.text.dev_accuracy(self.crf, record_only=True)
            message = f"J {self.path[-1]:.3f}, {len(e_step['etas'])} E-steps"
            if self.falls()[-1:] and self.falls()[-1] > 2 * (number - 1):
                message += "; warning: J fell"
            rounds.record(message, **e_step, **m_step, J_gain=gain, **accuracy)
            if number == 1 < most_rounds:
                self.first = replace(self.crf, weights=self.crf.weights.copy())
            if number >= LEAST_ROUNDS and abs(gain) < tolerance * abs(self.path[-3]):
                rounds.stop("converged")
        self.q = q
        self.run.trace["falls"] = self.falls()

    def e_step(
        self, old: Posterior, value: Value, model: Posterior
    ) -> tuple[Posterior, dict[str, Any]]:
        """q <- argmin R(theta, q), never worse than the old one, whose R is `value`."""
        with self.run.phase("estep"):
            carried = self.params.warm == "carry" or self.params.schedule == "release"
            start = old if carried else self.posterior.restarted(old, model)
            q, steps = self.posterior.minimize(start, model, self.schedule())
            now = self.posterior.value(q, model)
            # a restart that was stopped early may have a larger R than the old posterior
            if worse := now.r > value.r:
                q, now = old, value
            q = self.posterior.counted(q)
        self.path.append(self.objective(now))
        parts = {"J_E": self.path[-1], "R": now.r, "KL": now.kl, "h": now.h}
        return q, {**parts, **steps, "kept_old": worse}

    def m_step(self, q: Posterior) -> tuple[Posterior, Value, dict[str, Any]]:
        """theta <- argmax L + beta sum_unlabeled E_q log p_theta, from the current weights."""
        params = self.params
        if q.counts is None:
            raise ValueError("the M-step needs expected features")
        free = [(data, LogPartition(params.beta)) for data in self.text.unlabeled]
        with self.run.phase("mstep"):
            result = self.crf.train(
                [self.text.labeled, *free],
                params,
                options=params.m_options(),
                expected_counts=params.beta * q.counts,
            )
        model = self._model()
        value = self.posterior.value(q, model)
        self.path.append(self.objective(value))
        m_step = {"iterations": result.iterations, "status": result.status}
        return model, value, {"J_M": self.path[-1], "m_step": m_step}

    def objective(self, value: Value) -> float:
        """J at the current weights; value: R of q there."""
        labeled = self.crf.objective([self.text.labeled], self.params)
        return labeled - self.params.beta * value.r

    def schedule(self) -> Schedule:
        """Of the E-step."""
        return Release() if self.params.schedule == "release" else Backtracking()

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
        """The model that is trained."""
        return self.posterior.crf
