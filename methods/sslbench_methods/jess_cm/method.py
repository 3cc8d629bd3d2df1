"""JESS-CM: joint probability models embedded in a conditional model.

Suzuki & Isozaki (2008).  The discriminant function is a CRF times J hidden Markov models, one per
template, each with a weight of its own (equation 2 of the paper; docs/specs/jess_cm.md, section
3.1):

    g(x, y; lambda', Theta) = exp(sum_i lambda_i f_i(x, y)) prod_j p_j(x_j, y; theta_j)^lambda_{I+j}

Training alternates (figure 1; the last line means its step 2):

    lambda' <- argmax L1(lambda' | Theta) = sum_labeled log P(y | x) - |lambda'|^2 / (2 sigma^2)
    Theta   <- one EM step of L2(Theta | lambda') = sum_unlabeled log sum_y g + log p(Theta)

Theta starts uniform, so the first lambda' is the supervised CRF.  How lambda_{I+j} enters the
M-step is not printed; "plain" tempers the prior with the model, "lambda" is the literal reading
(docs/specs/jess_cm.md, section 4.4 says why it is not the default).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np

from sslbench import CRFMethod, Problem, RunContext, SearchAxis, TrainingParams
from sslbench.corpus import Corpus, CorpusShards
from sslbench.crf import ChainCRF, HardLabels, TrainingResult
from sslbench.types import F64

from .hmm import Counts, EmbeddedModels
from .tagger import JessCMTagger

#: tokens per piece of unlabeled text in memory at a time, and per batch of the E-step
PIECE, BATCH = 65_536, 256


class JessCM(CRFMethod):
    """CRF with embedded hidden Markov models, estimated on unlabeled text."""

    order_invariant = True

    class Params(TrainingParams, frozen=True, kw_only=True):
        """Parameters of JESS-CM."""

        eta: Annotated[
            float, msgspec.Meta(ge=0, description="Dirichlet pseudo-count of the embedded models")
        ] = 0.01
        rounds: Annotated[
            int, msgspec.Meta(ge=1, description="most outer iterations (T in the paper)")
        ] = 10
        epsilon: Annotated[
            float,
            msgspec.Meta(gt=0, description="stop when the tables move less (mean L1 of a row)"),
        ] = 0.01
        sign: Annotated[
            Literal["nonneg", "free"],
            msgspec.Meta(description="weights of the embedded models: >= 0, or unconstrained"),
        ] = "nonneg"
        m_step: Annotated[
            Literal["plain", "lambda"],
            msgspec.Meta(description="plain: tempered prior; lambda: the literal reading"),
        ] = "plain"
        symbol_min_count: Annotated[
            int, msgspec.Meta(ge=1, description="rarer symbols of unlabeled text share <UNK>")
        ] = 2
        unknown: Annotated[
            Literal["symbol", "neutral"],
            msgspec.Meta(description="unknown symbols: one symbol <UNK>, or no evidence at all"),
        ] = "symbol"
        drop_duplicate_chain: Annotated[
            bool,
            msgspec.Meta(
                description="leave out the model of the transition, equal to that of [y_s]"
            ),
        ] = False
        search: ClassVar[tuple[SearchAxis, ...]] = (
            SearchAxis("eta", low=1e-4, high=100, log=True),
            SearchAxis("symbol_min_count", low=1, high=10, log=True, integer=True),
            SearchAxis("sign", ("nonneg", "free")),
        )

    def fit(self, problem: Problem, params: Params, run: RunContext) -> JessCMTagger:
        """Alternate until the tables stop moving; the trace has an entry per round."""
        with run.phase("features"):
            models = EmbeddedModels.build(
                problem.featurizer.templates,
                len(problem.labels),
                problem.unlabeled,
                params.symbol_min_count,
                unknown=int(params.unknown == "symbol"),
                bare_chain=not params.drop_duplicate_chain,
            )
            crf = problem.crf(params, n_factors=models.n_models)
        trainer = Trainer(crf, models, problem, params, run)
        distances: list[float] = []
        rounds = run.rounds(params.rounds)
        for number in rounds:
            entry = trainer.round(number)
            distances.append(entry["distance"])
            message = f"L1 {entry['L1']:.2f}, distance {entry['distance']:.4f}"
            rounds.record(message, **entry)
            if entry["distance"] < params.epsilon:
                rounds.stop("converged")
            elif rising(distances):
                rounds.stop("oscillating")
        run.record(trainer.fit_weights())
        run.trace["model_weights"] = trainer.model_weights.tolist()
        run.trace["l2_monotone"] = trainer.l2_monotone
        return JessCMTagger(crf, models)

    @staticmethod
    def restore(arrays: dict[str, Any], metadata: dict[str, Any]) -> JessCMTagger:
        """A saved tagger."""
        return JessCMTagger.from_arrays(arrays, metadata)


def rising(distances: list[float]) -> bool:
    """Whether the last three rounds had no smaller distance: the alternation oscillates."""
    last = distances[-4:]
    return len(last) == 4 and all(b >= a for a, b in pairwise(last))


@dataclass
class Trainer:
    """The two steps of a round."""

    crf: ChainCRF
    models: EmbeddedModels
    problem: Problem
    params: JessCM.Params
    run: RunContext
    l2_monotone: bool = True

    @property
    def model_weights(self) -> F64:
        """lambda_{I+1} ... lambda_{I+J}: float64[J]."""
        return self.crf.weights[self.crf.factor_indices]

    def round(self, number: int) -> dict[str, Any]:
        """lambda' step, E-step, M-step; an entry for the record."""
        params = self.params
        result = self.fit_weights()
        with self.run.phase("e_step"):
            counts = self.expected_counts()
        weights = self.model_weights
        # after the first round all weights are zero: the literal M-step could never leave uniform
        m_weights = np.ones_like(weights) if number == 1 else weights
        if (m_weights < 0).any():
            self.l2_monotone = False
        with self.run.phase("m_step"):
            distance = self.models.update(counts, params.eta, m_weights, params.m_step)
        return {
            "L1": result.objective,
            "log_g": float(counts.log_g[0]),
            "distance": distance,
            "iterations": result.iterations,
            "status": result.status,
            "weight_sum": float(weights.sum()),
            "nonzero": int((weights != 0).sum()),
            "negative": int((weights < 0).sum()),
        }

    def fit_weights(self) -> TrainingResult:
        """lambda' <- argmax L1(lambda' | Theta), warm start (docs/specs/jess_cm.md, section 4.2).

        While Theta is uniform the models' features are the same for all label sequences: they are
        left out, and the prior keeps their weights at exactly zero.
        """
        problem, crf = self.problem, self.crf
        with self.run.phase("train"):
            bound = None if self.models.uniform else self.models.bind(problem.labeled)
            labels = HardLabels(problem.label_codes(problem.labeled))
            part = crf.encode(problem.labeled, bound), labels
            nonnegative = crf.factor_indices if self.params.sign == "nonneg" else None
            return crf.train([part], self.params, nonnegative=nonnegative)

    def expected_counts(self) -> Counts:
        """E-step over the unlabeled text, piece by piece: memory does not grow with the text."""
        counts = self.models.zero_counts()
        for shard in self.problem.unlabeled:
            for piece in CorpusShards(shard, PIECE):
                add_counts(self.crf, self.models, piece, counts)
        return counts


def add_counts(crf: ChainCRF, models: EmbeddedModels, corpus: Corpus, counts: Counts) -> None:
    """Add posterior counts under the combined model (docs/specs/jess_cm.md, section 4.3)."""
    bound = models.bind(corpus)
    for potentials in crf.potentials(crf.encode(corpus, bound), batch_tokens=BATCH):
        posterior = potentials.posterior()
        bound.count(potentials.batch, posterior.node, posterior.edge, counts)
        counts.log_g[0] += posterior.log_scale.sum()
