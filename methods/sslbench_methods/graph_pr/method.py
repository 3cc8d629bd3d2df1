"""Graph-based posterior regularization, and its first round, PR1.

He et al. (2013) maximize, over the weights theta of a CRF and over free distributions q of the
label sequences of the unlabeled sentences,

    J = L(theta) - beta [ sum_unlabeled KL(q || p_theta) + lam h(m(q)) ]

with L the log-likelihood of the labeled sentences and its prior, and h a penalty of the marginals m
of q: tokens of similar n-grams should have similar labels.  E-steps (`e_step`) and M-steps
alternate from the supervised optimum; neither lowers J.  J is not jointly concave.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np

from sslbench.crf import ChainCRF, EncodedCorpus, HardLabels, LogPartition, Objective, Options
from sslbench.errors import UserError
from sslbench.experiment.context import RunContext
from sslbench.experiment.problem import Problem
from sslbench.experiment.tune import SearchAxis
from sslbench.graph.lookup import NgramLookup
from sslbench.graph.regularizers import AtLeastOnce, GraphLaplacian, Regularizer
from sslbench.types import I32
from sslbench_methods.graph_pr.e_step import (
    Backtracking,
    Posterior,
    RegularizedPosterior,
    Release,
    Schedule,
    Value,
)
from sslbench_methods.graph_pr.propagation import Column
from sslbench_methods.graph_pr.tagger import Arrays, Decoding, PosteriorTagger, VertexShift
from sslbench_methods.graph_text import (
    MaxDf,
    Neighbors,
    Symmetry,
    Templates,
    graph_text,
    problem_graph,
    with_dev,
)
from sslbench_methods.supervised import TrainingParams, prepare

#: rounds before the change of J may end the training (docs/specs/graph_pr.md, section 6)
LEAST_ROUNDS = 3
#: J falls when it does so by more than this share of itself: sums over all text are rounded
ROUNDING = 1e-9
#: of saved taggers
KIND = "graph_pr"


class RegularizationParams(TrainingParams, frozen=True, kw_only=True):
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
    column: Column = "word"
    templates: Templates = "he2013"
    neighbors: Neighbors = 60
    symmetry: Symmetry = "mutual"
    max_df: MaxDf = None
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
    search: ClassVar[tuple[SearchAxis, ...]] = (
        SearchAxis("sigma2", (1.0, 100.0, 1e4), via="supervised"),
        SearchAxis("lam", (0.1, 0.5, 1.0, 2.0)),
    )

    def m_options(self) -> Options:
        """Stopping rules of an M-step."""
        return Options(ftol=self.m_ftol, max_iterations=self.m_iterations)


class GraphPR:
    """A CRF and regularized posteriors of the unlabeled text, trained in turn."""

    class Params(RegularizationParams, frozen=True, kw_only=True):
        """Parameters of graph-based posterior regularization."""

        em_iters: Annotated[int, msgspec.Meta(ge=1, description="most rounds of EM")] = 20
        em_tol: Annotated[
            float, msgspec.Meta(ge=0, description="EM stops at this relative change of J")
        ] = 1e-3
        # J goes on to rise while labels get worse, where the graph is wrong often enough
        search: ClassVar[tuple[SearchAxis, ...]] = (
            *RegularizationParams.search,
            SearchAxis("em_iters", (1, 2, 4, 6, 10)),
        )

    def fit(self, problem: Problem, params: Params, run: RunContext) -> ChainCRF | PosteriorTagger:
        """Train on the labeled sentences, then alternate."""
        return fit(problem, params, run, params.em_iters, params.em_tol)

    @staticmethod
    def restore(arrays: Arrays, facts: dict[str, Any]) -> PosteriorTagger:
        """A saved tagger; one that decodes by Viterbi is saved as the CRF that it is."""
        return PosteriorTagger.from_arrays(arrays, facts, KIND)


class PR1:
    """The model after the first round: the E-step sees the supervised CRF, the M-step the rest."""

    class Params(RegularizationParams, frozen=True, kw_only=True):
        """Parameters of the first round."""

    def fit(self, problem: Problem, params: Params, run: RunContext) -> ChainCRF | PosteriorTagger:
        """Train on the labeled sentences, then one round."""
        return fit(problem, params, run, 1, 0.0)


def fit(
    problem: Problem, params: RegularizationParams, run: RunContext, rounds: int, tolerance: float
) -> ChainCRF | PosteriorTagger:
    """Penalty, features, training; the record goes to "graph_pr"."""
    if params.decode_from == "q" and (params.penalty, params.decoding) != ("graph", "posterior"):
        raise UserError("decode_from=q needs penalty=graph and decoding=posterior")
    penalty, lookup = penalty_of(problem, params, run)
    with run.phase("features"):
        crf = prepare(problem, params, text=problem.unlabeled)
        parts = [crf.encode(shard) for shard in problem.unlabeled]
        dev = None
        if problem.dev is not None:
            dev = crf.encode(problem.dev), problem.label_codes(problem.dev)
    trainer = RegularizedEM(
        RegularizedPosterior(crf, parts, penalty, params.lam),
        crf.encode(problem.labeled),
        problem.label_codes(problem.labeled),
        params,
        run,
        dev,
    )
    run.trace["graph_pr"] = trainer.train(rounds, tolerance)
    if params.decoding == "viterbi":
        return crf
    others = {} if trainer.first is None else {"pr1": PosteriorTagger(trainer.first, KIND)}
    if trainer.q is None or lookup is None:  # nothing moved q away from the model
        return PosteriorTagger(crf, KIND, others)
    shift = VertexShift(lookup, trainer.q.offset)
    q = PosteriorTagger(replace(crf, weights=trainer.q.weights), KIND, shift=shift)
    if params.decode_from == "q":
        return replace(q, variants=others)
    return PosteriorTagger(crf, KIND, {**others, "q": q})


def penalty_of(
    problem: Problem, params: RegularizationParams, run: RunContext
) -> tuple[Regularizer, NgramLookup | None]:
    """h on the unlabeled text of a problem, and which of its rows new text belongs to, if any.

    UserError for a label that nothing has.
    """
    if params.penalty == "label_in_sentence":
        if params.required_label not in problem.labels:
            raise UserError(
                f"required_label={params.required_label}: no labeled token has it",
                hint="labels are " + " ".join(problem.labels),
            )
        lengths = [shard.lengths for shard in problem.unlabeled]
        label = problem.labels.index(params.required_label)
        tokens = np.concatenate([np.empty(0, np.int64), *lengths])
        return AtLeastOnce.build(label, tokens, len(problem.labels)), None
    graph, known = problem_graph(
        problem,
        run,
        params.column,
        templates=params.templates,
        k=params.neighbors,
        symmetry=params.symmetry,
        max_df=params.max_df,
    )
    of, n = known.vertex_of, known.n_labeled
    codes = problem.label_codes(problem.labeled)
    lookup = NgramLookup.of(graph_text(problem, params.column), graph.vertices)
    return GraphLaplacian.build(graph.W, of[:n], codes, of[n:], len(problem.labels)), lookup


@dataclass
class RegularizedEM:
    """Ascent on J from the supervised optimum (docs/specs/graph_pr.md, section 6).

    labels: int32[N_l] of gold; dev: text with labels int32[N], scored after every round.
    """

    text: RegularizedPosterior
    gold: EncodedCorpus
    labels: I32
    params: RegularizationParams
    run: RunContext
    dev: tuple[EncodedCorpus, I32] | None = None
    #: J at the start, then after every E-step and M-step
    path: list[float] = field(default_factory=list)
    #: the model after the first of several rounds
    first: ChainCRF | None = None
    #: of the last E-step
    q: Posterior | None = None

    def train(self, most_rounds: int, tolerance: float) -> dict[str, Any]:
        """The supervised optimum, then rounds; what happened, for the record."""
        params = self.params
        with self.run.phase("train"):
            first = self.crf.train([self._labeled], params.sigma2, options=params.options())
        self.run.progress(f"supervised: {first.iterations} iterations, {first.status}")
        rounds: list[dict[str, Any]] = []
        trace: dict[str, Any] = {
            "first": with_dev(first.record(), self.crf, self.dev),
            "rounds": rounds,
            "stopped": "rounds",
        }
        if params.lam == 0 or not len(self.text.penalty.rows.row_of):  # J is L: this is its optimum
            return {**trace, "stopped": "no penalty"}
        model = self._model()
        q, value = model, self.text.value(model, model)
        self.path.append(self.objective(value))
        trace["J"] = self.path[0]
        for number in range(1, most_rounds + 1):
            q, e_step = self.e_step(q, value, model)
            model, value, m_step = self.m_step(q)
            change = self.path[-1] - self.path[-3]
            entry = {**e_step, **m_step, "J_gain": change}
            rounds.append(with_dev(entry, self.crf, self.dev))
            self.tell(number, rounds[-1])
            if number == 1 < most_rounds:
                self.first = replace(self.crf, weights=self.crf.weights.copy())
            if number >= LEAST_ROUNDS and abs(change) < tolerance * abs(self.path[-3]):
                trace["stopped"] = "converged"
                break
        self.q = q
        return {**trace, "falls": self.falls()}

    def e_step(
        self, old: Posterior, value: Value, model: Posterior
    ) -> tuple[Posterior, dict[str, Any]]:
        """q <- argmin R(theta, q), never worse than the old one, whose R is `value`."""
        with self.run.phase("estep"):
            carried = self.params.warm == "carry" or self.params.schedule == "release"
            start = old if carried else self.text.restarted(old, model)
            q, found = self.text.minimize(start, model, self.schedule())
            now = self.text.value(q, model)
            # a restart that was stopped before it was solved may be behind the old posterior
            if worse := now.r > value.r:
                q, now = old, value
            q = self.text.counted(q)
        self.path.append(self.objective(now))
        parts = {"J_E": self.path[-1], "R": now.r, "KL": now.kl, "h": now.h}
        return q, {**parts, **found, "kept_old": worse}

    def m_step(self, q: Posterior) -> tuple[Posterior, Value, dict[str, Any]]:
        """theta <- argmax L + beta sum_unlabeled E_q log p_theta, from the current weights."""
        params = self.params
        if q.counts is None:
            raise ValueError("the M-step needs expected features")
        free = [(data, LogPartition(params.beta)) for data in self.text.parts]
        with self.run.phase("mstep"):
            result = self.crf.train(
                [self._labeled, *free],
                params.sigma2,
                options=params.m_options(),
                expected_counts=params.beta * q.counts,
            )
        model = self._model()
        value = self.text.value(q, model)
        self.path.append(self.objective(value))
        m_step = {"iterations": result.iterations, "status": result.status}
        return model, value, {"J_M": self.path[-1], "m_step": m_step}

    def objective(self, value: Value) -> float:
        """J at the current weights; value: R of q there."""
        objective = Objective(
            self.crf.layout,
            [self._labeled],
            self.params.sigma2,
            transition_mask=self.crf.transition_mask,
        )
        labeled = objective.value_and_gradient(self.crf.weights, np.empty(self.crf.layout.size))
        return labeled - self.params.beta * value.r

    def schedule(self) -> Schedule:
        """Of the E-step."""
        return Release() if self.params.schedule == "release" else Backtracking()

    def falls(self) -> list[int]:
        """Steps (E and M in turn, from 1) after which J is lower than before: none, in theory."""
        J = np.array(self.path)
        lower = np.diff(J) < -ROUNDING * np.abs(J[1:])
        return [int(step) + 1 for step in np.flatnonzero(lower)]

    def tell(self, number: int, entry: dict[str, Any]) -> None:
        """A line about a round, and one more if J fell."""
        self.run.progress(
            f"round {number}: J {entry['J_M']:.3f}, {len(entry['etas'])} E-steps"
            f" ({entry['stopped']}), {entry['m_step']['iterations']} iterations"
        )
        if self.falls()[-1:] and self.falls()[-1] > 2 * (number - 1):
            self.run.progress(f"round {number}: warning: J fell")

    def _model(self) -> Posterior:
        with self.run.phase("estep"):
            return self.text.model(self.crf.weights)

    @property
    def crf(self) -> ChainCRF:
        return self.text.crf

    @property
    def _labeled(self) -> tuple[EncodedCorpus, HardLabels]:
        return self.gold, HardLabels(self.labels)
