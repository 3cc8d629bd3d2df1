"""Graph-based posterior regularization, and its first round, PR1.

He et al. (2013) maximize, over the weights theta of a CRF and over free distributions q of the
label sequences of the unlabeled sentences,

    J = L(theta) - beta [ sum_unlabeled KL(q || p_theta) + lam h(m(q)) ]

with L the log-likelihood of the labeled sentences and its prior, and h a penalty of the marginals
m of q: tokens of similar n-grams should have similar labels. The folder in the paper's order:

    params      of graph_pr and pr1
    penalties   h, the graph Laplacian of the mean marginals of n-grams (equation 15)
    e_step      q <- argmin of the bracket by exponentiated gradient (equation 20)
    em          E-steps and M-steps in turn, from the supervised optimum
    propagation, gp_crf   the baselines GP and GP->CRF (equation 22)

J is not jointly concave (docs/specs/graph_pr.md, sections 3 and 6).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated, ClassVar

import numpy as np

from sslbench import (
    CRFMethod,
    Problem,
    Rounds,
    RunContext,
    SearchAxis,
    Share,
    Tagger,
    Tolerance,
    UserError,
    doc,
)
from sslbench.engine.graph.lookup import NgramLookup, NgramScores
from sslbench.taggers import PosteriorTagger
from sslbench_methods.graph_pr.e_step import (
    SCHEDULES,
    RegularizedPosterior,
)
from sslbench_methods.graph_pr.em import RegularizedEM
from sslbench_methods.graph_pr.params import PAPER, REPRODUCED, RegularizationParams
from sslbench_methods.graph_pr.penalties import AtLeastOnce, GraphLaplacian, Regularizer
from sslbench_methods.shared import WIDE, WIDEST, Presets, TaskDefaults, by_task, encoded

KIND = "graph_pr"


class _Regularized(CRFMethod):
    """What the methods share."""

    order_invariant = True


class GraphPR(_Regularized):
    """A CRF and regularized posteriors of the unlabeled text, trained in turn."""

    class Params(RegularizationParams, frozen=True, kw_only=True):
        """Parameters of graph-based posterior regularization."""

        em_iters: Annotated[Rounds, doc("most rounds of EM")] = 3
        em_tol: Annotated[Tolerance, doc("EM stops at this relative change of J")] = 1e-3
        m_share: Annotated[
            Share,
            doc(
                "an M-step between the first and the last round stops when 5 iterations"
                " add at most this share to its gain; 0 = only by m_ftol, as the paper"
            ),
        ] = 0.02
        presets: ClassVar[Presets] = {
            "paper": {**PAPER, "em_iters": 20, "m_share": 0.0},
            "reproduced": {**REPRODUCED, "em_iters": 6},
        }
        task_defaults: ClassVar[TaskDefaults] = by_task(
            tagging={"lam": 1.0, "em_iters": 6, "m_iterations": 30},
            spans=WIDE,
            segmentation=WIDE,
            joint=WIDEST,
        )
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

    class Params(RegularizationParams, frozen=True, kw_only=True):
        """Those of one round."""

        task_defaults: ClassVar[TaskDefaults] = by_task(
            tagging={"lam": 1.0, **WIDE},
            spans=WIDE,
            segmentation=WIDE,
            joint=WIDEST,
        )

    def fit(self, problem: Problem, params: Params, run: RunContext) -> Tagger:
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
    q = PosteriorTagger(crf.with_parameters(em.q.weights), KIND, extra=extra)
    model = PosteriorTagger(crf, KIND, {**others, "q": q})
    return replace(q, variants=others) if params.decode_from == "q" else model


def penalty_of(
    problem: Problem, params: RegularizationParams, run: RunContext
) -> tuple[Regularizer, NgramLookup | None]:
    """Return h on the unlabeled text, and a look-up of the rows of h for new text, if any.

    UserError for a required label that no labeled token has.
    """
    names, required = problem.labels, params.required_label
    if params.penalty == "graph":
        graph = problem.graph(params, run)
        text, codes = graph.text, problem.label_codes(problem.labeled)
        tokens = text.vertex_of[: text.n_labeled], codes, text.unlabeled
        return GraphLaplacian.build(graph.W, *tokens, len(names)), graph.lookup
    if required not in names:
        hint = "labels are " + " ".join(names)
        raise UserError(f"required_label={required}: no labeled token has it", hint=hint)
    lengths = [np.empty(0, np.int64), *(shard.lengths for shard in problem.unlabeled)]
    return AtLeastOnce.build(names.index(required), np.concatenate(lengths), len(names)), None
