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

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np

from sslbench import CRFMethod, Problem, RunContext, SearchAxis, TrainingParams
from sslbench.engine.checked import Saved, table
from sslbench.engine.corpus import Corpus
from sslbench.engine.corpus.units import TextUnits
from sslbench.engine.crf import (
    ChainCRF,
    EncodedCorpus,
    HardLabels,
    LabelPass,
    NBest,
    SymbolCounts,
    SymbolTables,
    TrainingResult,
)
from sslbench.engine.types import F64, I32, Arrays
from sslbench.taggers import CRFTagger

#: the logarithm of a zero probability stops here, so that one unseen event cannot forbid a label
LOG_FLOOR = float(np.log(1e-12))

#: of the optimizer when the weights of the first models are fitted for a forecast
EVIDENCE_ITERATIONS = 8

MStep = Literal["plain", "lambda"]


@dataclass
class JessCMTagger(CRFTagger):
    """A CRF with its embedded models; labels come from Viterbi on the combined potentials."""

    crf: ChainCRF
    models: EmbeddedModels
    kind = "jess_cm"

    @property
    def labeling(self) -> LabelPass:
        """How text is labeled."""
        return LabelPass(self.crf, self.models)

    def predict(self, corpus: Corpus) -> I32:
        """int32[N]."""
        return self.labeling.run(corpus)

    def predict_marginals(self, corpus: Corpus) -> F64:
        """float64[N, L]: the probability of each label for each token."""
        return self.crf.marginals(self.crf.encode(corpus, self.models.bind(corpus)))

    def predict_n_best(self, corpus: Corpus, number: int) -> list[NBest]:
        """The best label sequences of each sentence."""
        return self.crf.n_best(self.crf.encode(corpus, self.models.bind(corpus)), number)

    def arrays(self) -> Saved:
        (arrays, facts), (tables, more) = self.crf.arrays(), self.models.arrays()
        return arrays | tables, facts | more

    @classmethod
    def from_arrays(cls, arrays: Arrays, facts: dict[str, Any]) -> JessCMTagger:
        """What `arrays` gave; ValueError when arrays and facts do not fit together."""
        crf = ChainCRF.from_arrays(arrays, facts)
        models = EmbeddedModels.from_arrays(arrays, facts, len(crf.labels))
        if len(models.chain) != crf.layout.n_factors:
            raise ValueError(f"{len(models.chain)} models, {crf.layout.n_factors} weights of them")
        return cls(crf, models)


class JessCM(CRFMethod):
    """CRF with embedded hidden Markov models, estimated on unlabeled text."""

    order_invariant = True

    class Params(TrainingParams, frozen=True, kw_only=True):
        """Parameters of JESS-CM."""

        eta: Annotated[
            float,
            msgspec.Meta(ge=0, le=1e9, description="Dirichlet pseudo-count of the embedded models"),
        ] = 0.01
        rounds: Annotated[
            int,
            msgspec.Meta(ge=1, le=100_000, description="most outer iterations (T in the paper)"),
        ] = 10
        epsilon: Annotated[
            float,
            msgspec.Meta(gt=0, le=1e9, description="stop when rows of tables move less (mean L1)"),
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
            int,
            msgspec.Meta(ge=1, le=10**9, description="rarer symbols of unlabeled text share <UNK>"),
        ] = 2
        unknown: Annotated[
            Literal["symbol", "neutral"],
            msgspec.Meta(description="unknown symbols: one symbol <UNK>, or no evidence at all"),
        ] = "symbol"
        drop_duplicate_chain: Annotated[
            bool, msgspec.Meta(description="no model of the transition, equal to that of [y_s]")
        ] = False
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
        run.record(trainer.fit_weights())
        run.trace["model_weights"] = trainer.model_weights.tolist()
        run.trace["l2_monotone"] = trainer.l2_monotone
        return JessCMTagger(trainer.crf, trainer.models)

    restore = JessCMTagger.from_arrays

    def evidence(
        self,
        problem: Problem,
        crf: ChainCRF,
        held_out: EncodedCorpus,
        params: Params,
        run: RunContext,
    ) -> F64:
        """Posteriors with the models of the first EM step, whose weights are fitted once."""
        trainer = Trainer.of(problem, params, run)
        joint = trainer.crf
        joint.weights[: crf.layout.size] = crf.weights
        counts = trainer.models.expected_counts(joint, trainer.text)
        ones = np.ones(trainer.models.n_tables)
        trainer.models.update(counts, params.eta, ones, params.m_step)
        trainer.models.forget_counts()
        trainer.fit_weights(EVIDENCE_ITERATIONS)
        return JessCMTagger(joint, trainer.models).predict_marginals(next(iter(problem.unlabeled)))


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
    text: TextUnits
    params: JessCM.Params
    run: RunContext
    l2_monotone: bool = True
    result: TrainingResult | None = None  # of this round, once its lambda' step is done
    units: int = 0  # of the text that this round's E-step has done

    @classmethod
    def of(cls, problem: Problem, params: JessCM.Params, run: RunContext) -> Trainer:
        """With uniform models over the symbols of the unlabeled text."""
        text, templates = TextUnits(problem.unlabeled), problem.featurizer.templates
        options = {
            "unknown": int(params.unknown == "symbol"),
            "bare_chain": not params.drop_duplicate_chain,
        }
        with run.phase("features"):
            L, least = len(problem.labels), params.symbol_min_count
            models = EmbeddedModels.build(templates, L, text, least, **options)
            crf = problem.crf(params, n_factors=models.n_tables)
        return cls(crf, models, problem, text, params, run)

    @property
    def model_weights(self) -> F64:
        """lambda_{I+1} ... lambda_{I+J}: float64[J]."""
        return self.crf.weights[self.crf.factor_indices]

    def state(self) -> dict[str, Any]:
        """See `Resumable`: Theta, lambda', and the counts of a pass that is not finished."""
        models, facts = self.models, {"uniform": self.models.uniform, "monotone": self.l2_monotone}
        arrays = {"weights": self.crf.weights, **models.tables}
        if self.result is None:
            return arrays | facts
        within = {"result": vars(self.result), "units": self.units, "log_z": models.counts.log_z}
        return arrays | facts | within | models.counts.arrays

    def resume(self, state: Mapping[str, Any]) -> None:
        """See `Resumable`."""
        models, within = self.models, "result" in state
        arrays = models.tables | {"weights": self.crf.weights}
        arrays |= models.counts.arrays if within else {}
        for name, array in arrays.items():
            table(state, name, array.dtype, array.shape)  # all fit before any is changed
        for name, array in arrays.items():  # in memory one at a time
            array[...] = state[name]
        models.uniform, self.l2_monotone = state["uniform"], state["monotone"]
        if within:
            self.result, self.units = TrainingResult(**state["result"]), state["units"]
            models.counts.log_z = state["log_z"]

    def round(self, number: int, keep: Callable[[], None] = lambda: None) -> dict[str, Any]:
        """lambda' step, E-step, M-step; an entry for the record. keep: called after each unit."""
        result = self.result = self.result or self.fit_weights()
        weights = self.model_weights

        def done(units: int) -> None:
            self.units = units
            keep()

        with self.run.phase("e_step"):
            counts = self.models.expected_counts(
                self.crf, self.text, begin=self.units, after_unit=done
            )
        self.result, self.units = None, 0
        # after the first round all weights are zero: the literal M-step could never leave uniform
        tempering = np.ones_like(weights) if number == 1 else weights
        self.l2_monotone &= not (tempering < 0).any()
        with self.run.phase("m_step"):
            eta, m_step = self.params.eta, self.params.m_step
            distance = self.models.update(counts, eta, tempering, m_step)
        self.models.forget_counts()
        return {
            "L1": result.objective,
            "log_g": counts.log_z,
            "distance": distance,
            "iterations": result.iterations,
            "status": result.status,
            "weight_sum": float(weights.sum()),
            "nonzero": int((weights != 0).sum()),
            "negative": int((weights < 0).sum()),
        }

    def fit_weights(self, most: int | None = None) -> TrainingResult:
        """lambda' <- argmax L1(lambda' | Theta), warm start (docs/specs/jess_cm.md, section 4.2).

        While Theta is uniform the models' features are the same for all label sequences: they are
        left out, and the prior keeps their weights at exactly zero.

        most: iterations of the optimizer; None = as the parameters say.
        """
        problem, crf = self.problem, self.crf
        with self.run.phase("train"):
            bound = None if self.models.uniform else self.models.bind(problem.labeled)
            gold = HardLabels(problem.label_codes(problem.labeled))
            nonnegative = crf.factor_indices if self.params.sign == "nonneg" else None
            part = crf.encode(problem.labeled, bound), gold
            options = None if most is None else self.params.options(max_iterations=most)
            return self.run.train(
                crf, [part], self.params, nonnegative=nonnegative, options=options
            )


@dataclass
class EmbeddedModels(SymbolTables):
    """Theta: log tables of all models, one per template (docs/specs/jess_cm.md, sections 3.2, 4.4).

    All models share the label set as states. Rows of a and (per state or arc) of b sum to one over
    all labels and all symbols, <UNK> included, also under a label transition_mask. The paper counts
    the bare transition [y_{s-1:s}] as a template too (its model equals the constant template's).
    """

    uniform: bool = field(init=False, default=True)

    def update(self, counts: SymbolCounts, eta: float, weights: F64, m_step: MStep) -> float:
        """One M-step; returns the mean L1 change of a row (docs/specs/jess_cm.md, section 4.5).

        eta: Dirichlet pseudo-count; theta_k = (c_k + eta) / (sum c + K eta), with c scaled by the
        model's weight for m_step "lambda".  A row without any mass keeps its value.
        """
        L, n_models = self.n_labels, len(self.chain)
        factor = weights if m_step == "lambda" else np.ones(n_models)
        moved = 0.0
        for j in range(n_models):
            old = np.exp(self.chain[j]).reshape(L + 1, L)
            new = _smoothed(factor[j] * counts.chain.reshape(L + 1, L), eta, old)
            self.chain[j] = _log(new).reshape(-1)
            moved += float(np.abs(new - old).sum())
        moved += self.renew("state", counts.state, factor, eta, LOG_FLOOR)
        moved += self.renew("arc", counts.arc, factor, eta, LOG_FLOOR)
        self.uniform = False
        # emission rows of the constant template are 1 and never move, nor do those of the bare arc
        emissions = sum((L + 1) * L if t.edge else L for t in self.templates)
        return moved / (n_models * (L + 1) + emissions + self.bare_chain * (L + 1) * L)


def _smoothed(counts: F64, eta: float, old: F64) -> F64:
    """Dirichlet-smoothed rows of transition probabilities."""
    mass = counts + eta
    total = mass.sum(axis=1, keepdims=True)
    return np.where(total > 0.0, mass / np.where(total > 0.0, total, 1.0), old)


def _log(theta: F64) -> F64:
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(theta), LOG_FLOOR)
