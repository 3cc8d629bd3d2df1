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

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np

from sslbench.corpus import Corpus
from sslbench.crf import ChainCRF, HardLabels, TrainingResult, write_model
from sslbench.crf.data import batches
from sslbench.crf.objective import batch_potentials
from sslbench.crf.weights.layout import Tables
from sslbench.experiment.context import RunContext
from sslbench.experiment.problem import Problem
from sslbench.experiment.tune import SearchAxis
from sslbench.features import Streams, Template
from sslbench.types import F64, I32
from sslbench_methods.jess_cm.hmm import Counts, EmbeddedModels
from sslbench_methods.supervised import SIGMA2_GRID, TrainingParams, prepare

#: tokens per piece of unlabeled text in memory at a time, and per batch of the E-step (small
#: enough that a batch's arc posteriors stay in the second-level cache)
PIECE, BATCH = 65_536, 256


@dataclass
class JessCMTagger:
    """A CRF with its embedded models; labels come from Viterbi on the combined potentials."""

    crf: ChainCRF
    models: EmbeddedModels

    @property
    def labels(self) -> tuple[str, ...]:
        return self.crf.labels

    @property
    def weights(self) -> F64:
        """lambda_{I+1} ... lambda_{I+J}: float64[J], a view of the CRF's flat weights."""
        return self.crf.layout.part(self.crf.weights, 6)

    def predict(self, corpus: Corpus) -> I32:
        """int32[N]."""
        return self.crf.decode(self.crf.encode(corpus, self.models.bind(corpus)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """One file: the CRF, the log tables and their dictionaries."""
        arrays, facts = self.crf.arrays()
        streams, stream_facts = self.models.streams.arrays()
        arrays |= {f"streams.{k}": v for k, v in streams.items()}
        arrays |= {"chain": self.models.chain, "state": self.models.state, "arc": self.models.arc}
        facts |= {
            "streams": stream_facts,
            "templates": [str(t) for t in self.models.templates],
            "unknown": self.models.unknown,
            "bare_chain": self.models.bare_chain,
        }
        write_model(path, "jess_cm", arrays, facts)

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any], facts: dict[str, Any]) -> JessCMTagger:
        """What `save` wrote; ValueError when arrays and facts do not fit together."""
        if arrays["state"].dtype.kind != "f" or facts["unknown"] not in (0, 1):
            raise ValueError(f"tables of {arrays['state'].dtype}, unknown = {facts['unknown']}")
        crf = ChainCRF.from_arrays(arrays, facts)
        start = "streams."
        mine = {k[len(start) :]: v for k, v in arrays.items() if k.startswith(start)}
        streams = Streams.from_arrays(mine, facts["streams"])
        templates = tuple(Template.parse(t) for t in facts["templates"])
        models = EmbeddedModels(
            templates,
            streams,
            len(crf.labels),
            arrays["state"].dtype,
            facts["unknown"],
            facts["bare_chain"],
        )
        for name in ("chain", "state", "arc"):
            table, expected = arrays[name], getattr(models, name)
            if (table.shape, table.dtype) != (expected.shape, expected.dtype):
                raise ValueError(f"table {name} is {table.dtype} {table.shape}")
            if np.isnan(table).any():
                raise ValueError(f"table {name} holds what is no number")
            setattr(models, name, arrays[name])
        if len(models.chain) != crf.layout.n_factors:
            raise ValueError(f"{len(models.chain)} models, {crf.layout.n_factors} weights of them")
        models.uniform = False
        return cls(crf, models)


class JessCM:
    """CRF with embedded hidden Markov models, estimated on unlabeled text."""

    class Params(TrainingParams, frozen=True, kw_only=True):
        """Parameters of JESS-CM; sigma2 is tuned by the supervised CRF, as in the paper."""

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
            SearchAxis("sigma2", SIGMA2_GRID, refine=1, via="supervised"),
        )

    def fit(self, problem: Problem, params: Params, run: RunContext) -> JessCMTagger:
        """Alternate until the tables stop moving; the trace of every round goes into the record."""
        with run.phase("features"):
            templates = problem.featurizer.templates
            models = EmbeddedModels.build(
                templates,
                len(problem.labels),
                problem.unlabeled,
                params.symbol_min_count,
                unknown=int(params.unknown == "symbol"),
                bare_chain=not params.drop_duplicate_chain,
            )
            crf = prepare(problem, params, n_factors=models.n_models)
        tagger = JessCMTagger(crf, models)
        trainer = Trainer(tagger, problem, params, run)
        trace: dict[str, Any] = {"rounds": [], "stopped": "rounds"}
        run.trace["jess_cm"] = trace
        distances: list[float] = []
        for number in range(1, params.rounds + 1):
            entry = trainer.round(number)
            trace["rounds"].append(entry)
            distances.append(entry["distance"])
            run.progress(f"round {number}: L1 {entry['L1']:.2f}, distance {entry['distance']:.4f}")
            if entry["distance"] < params.epsilon:
                trace["stopped"] = "converged"
                break
            if rising(distances):
                trace["stopped"] = "oscillating"
                break
        trace["final"] = trainer.fit_weights().record()
        trace["weights"] = [float(w) for w in tagger.weights]
        trace["l2_monotone"] = trainer.l2_monotone
        return tagger

    @staticmethod
    def restore(arrays: dict[str, Any], facts: dict[str, Any]) -> JessCMTagger:
        """A saved tagger."""
        return JessCMTagger.from_arrays(arrays, facts)


def rising(distances: list[float]) -> bool:
    """Three rounds running without a smaller distance: the alternation oscillates."""
    last = distances[-4:]
    return len(last) == 4 and all(b >= a for a, b in pairwise(last))


@dataclass
class Trainer:
    """The two steps of a round."""

    tagger: JessCMTagger
    problem: Problem
    params: JessCM.Params
    run: RunContext
    l2_monotone: bool = True

    def round(self, number: int) -> dict[str, Any]:
        """lambda' step, E-step, M-step; what happened, for the record."""
        tagger, params = self.tagger, self.params
        result = self.fit_weights()
        with self.run.phase("e_step"):
            counts = self.expected_counts()
        weights = tagger.weights
        # after the first round all weights are zero: the literal M-step could never leave uniform
        m_weights = np.ones_like(weights) if number == 1 else weights
        if (m_weights < 0).any():
            self.l2_monotone = False
        with self.run.phase("m_step"):
            distance = tagger.models.update(counts, params.eta, m_weights, params.m_step)
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
        crf, models, problem = self.tagger.crf, self.tagger.models, self.problem
        with self.run.phase("train"):
            bound = None if models.uniform else models.bind(problem.labeled)
            data = crf.encode(problem.labeled, bound)
            labels = HardLabels(problem.label_codes(problem.labeled))
            lower = None
            if self.params.sign == "nonneg":
                lower = np.arange(crf.layout.bounds[6], crf.layout.bounds[7])
            return crf.train(
                [(data, labels)],
                self.params.sigma2,
                options=self.params.options(),
                nonnegative=lower,
            )

    def expected_counts(self) -> Counts:
        """E-step over the unlabeled text, piece by piece: memory does not grow with the text."""
        counts = self.tagger.models.zero_counts()
        for piece in pieces(self.problem, PIECE):
            add_counts(self.tagger, piece, counts)
        return counts


def pieces(problem: Problem, tokens: int) -> Iterator[Corpus]:
    """The unlabeled text in runs of sentences of about this many tokens."""
    for shard in problem.unlabeled:
        for batch in batches(shard.offsets, tokens):
            yield shard.between(batch.sentence_lo, batch.sentence_hi)


def add_counts(tagger: JessCMTagger, corpus: Corpus, counts: Counts) -> None:
    """Posterior counts of one piece under the combined model.

    Source: docs/specs/jess_cm.md, section 4.3.
    """
    crf = tagger.crf
    bound = tagger.models.bind(corpus)
    data = crf.encode(corpus, bound)
    tables = Tables.unpack(crf.layout, crf.weights)
    for batch in batches(corpus.offsets, BATCH):
        posterior = batch_potentials(tables, data, batch, crf.transition_mask).posterior()
        bound.count(batch, posterior.node, posterior.edge, counts)
        counts.log_g[0] += posterior.log_scale.sum()
