"""JESS-CM: joint probability models embedded in a conditional model.

Suzuki & Isozaki (2008).  The discriminant function is a CRF times J hidden Markov models, one per
template, each with a weight (equation 2 of the paper; docs/specs/jess_cm.md, section
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

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from sslbench import (
    Count,
    CRFMethod,
    Positive,
    Problem,
    Rounds,
    RunContext,
    SearchAxis,
    TrainingParams,
    Weight,
    doc,
)
from sslbench.engine.corpus.units import TextUnits
from sslbench.engine.crf import ChainCRF, HardLabels, TrainingResult
from sslbench.engine.crf.dual.ascent import FEWEST_WITH_FACTORS
from sslbench.engine.types import F64, Arrays
from sslbench_methods.jess_cm.counts import SymbolCounts
from sslbench_methods.jess_cm.models import EmbeddedModels
from sslbench_methods.jess_cm.tagger import JessCMTagger
from sslbench_methods.shared import WIDE, Notes, Presets, TaskDefaults, by_task

#: with so many labeled tokens the first lambda' step may begin on the dual; later ones stop early
LARGE = FEWEST_WITH_FACTORS
#: such a step stops when 5 iterations give at most this share of its gain, since Theta still moves
SHARE = 0.5
#: the step after the last round is made to the end; with so many labeled tokens it stops at this
#: share (docs/performance.md: what is left is about a hundredth of L1, and gives no accuracy)
HUGE, LAST_SHARE = 100_000, 0.01


class JessCM(CRFMethod):
    """CRF with embedded hidden Markov models, estimated on unlabeled text."""

    order_invariant = True

    class Params(TrainingParams, frozen=True, kw_only=True):
        """Parameters of JESS-CM."""

        eta: Annotated[Weight, doc("Dirichlet pseudo-count of the embedded models")] = 0.01
        rounds: Annotated[Rounds, doc("most outer iterations (T in the paper)")] = 10
        epsilon: Annotated[Positive, doc("stop when rows of tables move less (mean L1)")] = 0.01
        sign: Annotated[
            Literal["nonneg", "free"], doc("weights of the embedded models: >= 0, or unconstrained")
        ] = "nonneg"
        m_step: Annotated[
            Literal["plain", "lambda"], doc("plain: tempered prior; lambda: the literal reading")
        ] = "plain"
        symbol_min_count: Annotated[Count, doc("rarer symbols of unlabeled text share <UNK>")] = 2
        unknown: Annotated[
            Literal["symbol", "neutral"],
            doc("unknown symbols: one symbol <UNK>, or no evidence at all"),
        ] = "symbol"
        drop_duplicate_chain: Annotated[
            bool, doc("no model of the transition, equal to that of [y_s]")
        ] = False
        # the paper does not print eta
        presets: ClassVar[Presets] = {
            "reproduced": {"eta": 0.01, "rounds": 10, "sign": "nonneg", "symbol_min_count": 2}
        }
        preset_notes: ClassVar[Notes] = {
            "reproduced": "the defaults: names gain as in the paper, of chunks and tags no gain is"
            " clear (replications/suzuki2008/report.md)"
        }
        task_defaults: ClassVar[TaskDefaults] = by_task(
            tagging={"sign": "free", **WIDE},
            spans={"sign": "free", **WIDE},
            segmentation={"eta": 1.0},
            joint={"sign": "free", **WIDE},
        )
        search: ClassVar[tuple[SearchAxis, ...]] = (
            SearchAxis("eta", low=1e-4, high=100, log=True),
            SearchAxis("symbol_min_count", low=1, high=10, log=True, integer=True),
            SearchAxis("sign", ("nonneg", "free")),
        )

    def fit(self, problem: Problem, params: Params, run: RunContext) -> JessCMTagger:
        """Alternate until the tables stop moving; the trace has an entry per round."""
        trainer = Trainer.of(problem, params, run)
        rounds = run.rounds(params.rounds, trainer)
        for number in rounds:
            entry = trainer.round(number, rounds.keep)
            message = f"L1 {entry['L1']:.2f}, distance {entry['distance']:.4f}"
            rounds.record(message, **entry)
            if entry["distance"] < params.epsilon:
                rounds.stop("converged")
            elif rising([entry["distance"] for entry in rounds.entries]):
                rounds.stop("oscillating")
        run.record(trainer.fit_weights(last=True))
        run.trace["model_weights"] = trainer.model_weights.tolist()
        run.trace["l2_monotone"] = trainer.l2_monotone
        return JessCMTagger(trainer.crf, trainer.models)

    restore = JessCMTagger.from_arrays


def rising(distances: list[float]) -> bool:
    """Return whether the last three rounds had no smaller distance: the alternation oscillates."""
    last = distances[-4:]
    return len(last) == 4 and all(b >= a for a, b in pairwise(last))


@dataclass
class Trainer:
    """The two steps of a round.

    A checkpoint within an E-step has the counts of the units of text that are done.
    """

    crf: ChainCRF
    models: EmbeddedModels
    problem: Problem
    text: TextUnits
    params: JessCM.Params
    run: RunContext
    l2_monotone: bool = True
    fitted: dict[str, Any] | None = None  # outcome of this round's lambda' step, once it is done
    units: int = 0  # of the text that this round's E-step has done

    checkpointed: ClassVar = ("models.uniform", "l2_monotone", "fitted", "units", "arrays")

    @property
    def arrays(self) -> Arrays:
        """lambda', Theta, and the counts of an E-step that is not finished."""
        counts = self.models.counts.arrays if self.units else {}
        return {"weights": self.crf.weights, **self.models.tables, **counts}

    @classmethod
    def of(cls, problem: Problem, params: JessCM.Params, run: RunContext) -> Trainer:
        """Start with uniform models over the symbols of the unlabeled text."""
        text, templates = TextUnits(problem.unlabeled), problem.featurizer.templates
        options = {
            "unknown": int(params.unknown == "symbol"),
            "bare_chain": not params.drop_duplicate_chain,
        }
        with run.phase("features"):
            L, least = len(problem.labels), params.symbol_min_count
            models = EmbeddedModels.build(templates, L, text, least, **options)
            crf = problem.chain_crf(params, n_factors=models.n_models)
        return cls(crf, models, problem, text, params, run)

    @property
    def model_weights(self) -> F64:
        """lambda_{I+1} ... lambda_{I+J}: float64[J]."""
        return self.crf.weights[self.crf.factor_indices]

    def round(self, number: int, keep: Callable[[], None] = lambda: None) -> dict[str, Any]:
        """Make one round of figure 1; return an entry for the record.

        keep: called after each unit of text.
        """
        fitted = self.fitted = self.fitted or self.fit_weights().record()
        weights = self.model_weights
        counts = self.e_step(keep)
        self.fitted, self.units = None, 0
        # after the first round all weights are zero: the literal M-step could never leave uniform
        tempering = np.ones_like(weights) if number == 1 else weights
        self.l2_monotone &= not (tempering < 0).any()
        with self.run.phase("m_step"):
            eta, m_step = self.params.eta, self.params.m_step
            distance = self.models.update(counts, eta, tempering, m_step)
        self.models.forget_counts()
        return {
            "L1": fitted["objective"],
            "log_g": counts.log_z,
            "distance": distance,
            "iterations": fitted["iterations"],
            "status": fitted["status"],
            "weight_sum": float(weights.sum()),
            "nonzero": int((weights != 0).sum()),
            "negative": int((weights < 0).sum()),
        }

    def fit_weights(self, *, last: bool = False) -> TrainingResult:
        """lambda' <- argmax L1(lambda' | Theta), warm start (docs/specs/jess_cm.md, section 4.2).

        While Theta is uniform the models' features are the same for all label sequences: they are
        left out, and the prior keeps their weights at exactly zero.
        """
        problem, crf, uniform = self.problem, self.crf, self.models.uniform
        large = problem.labeled.n_tokens >= LARGE
        share = self._share(last=last)
        bounded = self.params.sign == "nonneg" and not (uniform and large)
        with self.run.phase("train"):
            bound = None if uniform else self.models.bind(problem.labeled).in_order()
            gold = HardLabels(problem.label_codes(problem.labeled))
            return self.run.train(
                crf,
                [(crf.encode(problem.labeled, bound), gold)],
                self.params,
                options=self.params.options(share=share) if share else None,
                nonnegative=crf.factor_indices if bounded else None,
            )

    def _share(self, *, last: bool) -> float:
        """Return at which share of its gain a lambda' step ends; 0: by its other rules."""
        if self.models.uniform:
            return 0.0
        share, fewest = (LAST_SHARE, HUGE) if last else (SHARE, LARGE)
        return share if self.problem.labeled.n_tokens >= fewest else 0.0

    def e_step(self, keep: Callable[[], None]) -> SymbolCounts:
        """Return expected counts under g(x, y; lambda', Theta); start at the first open unit."""

        def done(units: int) -> None:
            self.units = units
            keep()

        with self.run.phase("e_step"):
            return self.models.expected_counts(
                self.crf, self.text, begin=self.units, after_unit=done
            )
