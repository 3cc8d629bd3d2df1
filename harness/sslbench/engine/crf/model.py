"""The linear-chain CRF: from a corpus to weights, from weights to labels.

`ChainCRF` holds the index of the attributes and the weights, which `chain_model` lays out.  It
trains on any sum of terms, decodes, and is saved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np

from sslbench.engine.checked import (
    Saved,
    check_array,
    check_borders,
    joined,
    part_of,
    table,
    vector,
)
from sslbench.engine.corpus import Corpus, LabelConstraint
from sslbench.engine.crf import dual
from sslbench.engine.crf.bundle_sums import BundleSums
from sslbench.engine.crf.data import Batch, batches
from sslbench.engine.crf.encoded_corpus import SHARED_BATCH, EncodedCorpus
from sslbench.engine.crf.factors import FactorFeatures
from sslbench.engine.crf.first_order.batch import BatchPotentials
from sslbench.engine.crf.objective import (
    Objective,
    add_gradient,
    batch_potentials,
    evaluate_terms,
)
from sslbench.engine.crf.optim import lbfgs
from sslbench.engine.crf.params import TrainingParams, TrainingResult
from sslbench.engine.crf.prune import prune
from sslbench.engine.crf.sequence import Expectation, Parts, Pullback, SequenceModel
from sslbench.engine.crf.terms import PotentialGradient
from sslbench.engine.crf.weights.deduplicate import Deduplication
from sslbench.engine.crf.weights.layout import Layout, saved_layout
from sslbench.engine.crf.weights.tables import WeightTables
from sslbench.engine.errors import UserError
from sslbench.engine.features import AttributeIndex
from sslbench.engine.types import F64, I32, I64, Arrays, Bool


@dataclass
class ChainCRF(SequenceModel):
    """A CRF of order 1 or 2 over `labels`; the flat weights (layout in `layout`) start at zero.

    transition_mask: bool[L+1, L], the transitions allowed in training and in decoding (row L is
    START); None: all.
    label_constraint: gives the only possible label of some tokens, in training and in decoding;
    None: every token may have every label.
    backoff_tags: the tag of each label, if tags have weights beside those of labels in training.
    """

    labels: tuple[str, ...]
    index: AttributeIndex
    layout: Layout
    weights: F64 = field(repr=False)
    transition_mask: Bool | None = None
    label_constraint: LabelConstraint | None = None
    backoff_tags: tuple[str, ...] | None = None
    kind = "chain_crf"

    def encode(self, corpus: Corpus, factors: FactorFeatures | None = None) -> EncodedCorpus:
        """Return the attributes of a corpus as the engine reads them."""
        forced = None
        if self.label_constraint is not None:
            forced = self.label_constraint.forced_labels(corpus, self.labels)
        return EncodedCorpus.build(self.layout, self.index.encode(corpus), factors, forced)

    def reencode(self, text: EncodedCorpus, *, reused: bool = False) -> EncodedCorpus:
        """Encode for this model a corpus that was encoded for another layout of its attributes."""
        encoded = EncodedCorpus.build(
            self.layout, text.attributes, text.factors, text.forced_labels
        )
        return replace(encoded, reused=reused)

    def train(
        self,
        parts: Parts,
        params: TrainingParams,
        *,
        options: lbfgs.Options | None = None,
        l1: float = 0.0,
        nonnegative: I64 | None = None,
        zero: I64 | None = None,
        expected_counts: F64 | None = None,
        callback: Callable[[int, float, float], None] | None = None,
        progress: lbfgs.Progress | None = None,
    ) -> TrainingResult:
        """Maximize the sum of the terms minus the priors, starting at the current weights.

        Parameters
        ----------
        parts: encoded corpora, each with a term of the objective.
        params: prior variance and, unless `options` are given, the stopping rules.
        l1: weight of the L1 penalty (docs/specs/crf_engine.md, section 9).
        nonnegative: indices of weights, other than state weights, that must stay at or above 0.
        zero: indices of weights, other than state weights, that stay 0.
        expected_counts: float64 per weight; adds expected_counts . weights to the objective.
            With a `LogPartition` term per part this is the M-step of EM.
        callback: called with (iteration, loss per token, largest gradient) after each iteration.
        progress: stores states of L-BFGS, from which an interrupted training resumes. The passes of
            `dual` before it are repeated.

        Raises InfeasibleSentenceError when labels break the constraints, ArithmeticError when the
        objective or its maximum is not finite, ValueError for arrays of wrong sizes.
        """
        for data, _ in parts:
            data.check_layout(self.layout)
        check_array(self.weights, "weights", np.float64, (self.layout.size,))
        deduplication = Deduplication.build(self.layout, [data.attributes for data, _ in parts])
        objective = self._objective(parts, params, deduplication, expected_counts)
        shift = self.layout.size - deduplication.reduced.size
        objective.zero = None if zero is None else zero - shift
        factors = [data.factors.preconditioner for data, _ in parts if data.factors is not None]
        if nonnegative is not None:
            nonnegative = nonnegative - shift
        options = params.options() if options is None else options
        start = dual.DualPoint(deduplication.merge(self.weights), -np.inf, 0)
        if nonnegative is None and zero is None and not l1 and not self.weights.any():
            start = dual.start(objective, options) or start
            objective.settled = start.settled
        optimum = lbfgs.minimize(
            objective.scaled_loss,
            start.weights,
            replace(options, max_iterations=options.max_iterations - start.passes),
            preconditioner=deduplication.preconditioner(*factors[:1]),
            nonnegative=nonnegative,
            l1=l1 / objective.n_tokens,
            bound=start.bound / objective.n_tokens,
            callback=callback,
            progress=progress,
        )
        self.weights = deduplication.split(self._checked(optimum, params).weights)
        left = objective.gap(optimum, start.bound)
        sizes = objective.n_tokens, self.layout.size
        return TrainingResult.of(optimum, start.passes, *sizes, left, options.ftol)

    def _checked(self, optimum: lbfgs.Result, params: TrainingParams) -> lbfgs.Result:
        if not (np.isfinite(optimum.value) and np.isfinite(optimum.weights).all()):
            raise ArithmeticError(
                f"the training of {self.layout.size:,} weights gave numbers that are not finite"
                f" (sigma2={params.sigma2:g})"
            )
        return optimum

    def _objective(
        self,
        parts: Parts,
        params: TrainingParams,
        deduplication: Deduplication,
        expected_counts: F64 | None,
    ) -> Objective:
        """Return the objective of a training, in which one attribute stands for its copies."""
        if expected_counts is not None:
            check_array(expected_counts, "expected counts", np.float64, (self.layout.size,))
            expected_counts = deduplication.project(expected_counts)
        return Objective(
            deduplication.reduced,
            [(data.deduplicated(deduplication), term) for data, term in parts],
            params.sigma2,
            transition_mask=self.transition_mask,
            copies=deduplication.weight_copies,
            expected_counts=expected_counts,
            tags=self.backoff_tags,
        )

    @property
    def parameters(self) -> F64:
        """The flat weights; see `SequenceModel`."""
        return self.weights

    @parameters.setter
    def parameters(self, values: F64) -> None:
        self.weights = values

    def pruned(
        self, gold: EncodedCorpus, labels: I32, posteriors: Iterable[tuple[EncodedCorpus, F64]]
    ) -> ChainCRF:
        """Return the CRF without implausible state weights, see `prune`.

        Encoded text must go through `reencode` of the new CRF.
        """
        layout, weights = prune(self.layout, self.weights, gold, labels, posteriors)
        return replace(self, layout=layout, weights=weights)

    # -- inference ---------------------------------------------------------------------------
    def scorer(
        self, text: EncodedCorpus, parameters: F64 | None = None
    ) -> Callable[[Batch], BatchPotentials]:
        """Return a function that gives the log-potentials of any batch of a corpus."""
        tables = WeightTables.unpack(
            self.layout, self.weights if parameters is None else parameters
        )
        sums = BundleSums.of_weights(tables, text)
        return lambda batch: batch_potentials(tables, text, batch, self.transition_mask, sums)

    def open(
        self, text: EncodedCorpus, batch: Batch, noise: np.random.Generator | None = None
    ) -> tuple[BatchPotentials, Pullback]:
        """Return the log-potentials of one batch, and the way back to the weights.

        `train` does the same for all batches at once, which is faster.
        """

        def pull(by_potential: PotentialGradient, gradient: F64) -> None:
            own = np.empty(self.layout.size)
            tables = WeightTables.gradient(self.layout, own)
            sums = BundleSums.zeros(tables, text)
            add_gradient(tables, text, batch, by_potential, sums)
            sums.spread(tables, text)
            tables.pack(own)
            gradient += own

        return self.scorer(text)(batch), pull

    def transition_potentials(
        self, text: EncodedCorpus, *, centered: bool = False
    ) -> Iterator[BatchPotentials]:
        """Yield the potentials of `transitions_only`."""
        return self.transitions_only(centered=centered).potentials(text)

    def expect(self, parts: Parts, parameters: F64 | None = None) -> Expectation:
        """Return the values of `evaluate`, and the derivative of their sum by every weight.

        With ``LogPartition(-1.0)`` these are log-partitions and expected feature counts.
        """
        weights = self.weights if parameters is None else parameters
        counts = np.empty(self.layout.size)
        accumulator = WeightTables.gradient(self.layout, counts)
        values = evaluate_terms(self.layout, weights, parts, self.transition_mask, accumulator)
        accumulator.pack(counts)
        return Expectation(np.concatenate([np.empty(0), *values]), counts)

    def objective(self, parts: Parts, params: TrainingParams) -> float:
        """Return the sum of the terms minus the Gaussian prior, at the current weights."""
        objective = Objective(
            self.layout,
            list(parts),
            params.sigma2,
            transition_mask=self.transition_mask,
            tags=self.backoff_tags,
        )
        return objective.value_and_gradient(self.weights, np.empty(self.layout.size))

    def transitions_only(self, *, centered: bool = False) -> ChainCRF:
        """Return a copy whose state and column weights are zero: transition scores remain.

        These are START, transition and stop weights and those of edge attributes and factor
        features. centered: subtract row and column means of the transition weights; START and stop
        weights, which act as node scores at the ends, become zero. UserError for second-order
        chains.
        """
        if self.layout.order != 1:
            raise UserError("transition scores alone need a first-order chain", hint="--model crf1")
        return replace(self, weights=self.layout.transitions_only(self.weights, centered))

    @property
    def factor_indices(self) -> I64:
        """int64[n_factors]: where the weights of factor features are in the flat vector."""
        return np.arange(self.layout.size - self.layout.n_factors, self.layout.size)

    # -- saving ------------------------------------------------------------------------------
    def arrays(self) -> Saved:
        """Return arrays and JSON-able metadata that `from_arrays` restores the tagger from."""
        arrays, metadata = joined(index=self.index.arrays())
        layout = self.layout
        arrays |= {
            "weights": self.weights,
            "arc_start": layout.transition_start,
            "arc_code": layout.transition_code,
        }
        if layout.state_start is not None and layout.state_label is not None:
            arrays |= {"state_start": layout.state_start, "state_label": layout.state_label}
        if self.transition_mask is not None:
            arrays["mask"] = self.transition_mask
        return arrays, metadata | {
            "labels": list(self.labels),
            "n_columns": layout.n_columns,
            "n_clique": layout.n_factors,
            "use_start": layout.use_start,
            "use_stop": layout.use_stop,
            "order": layout.order,
            "rule": msgspec.to_builtins(self.label_constraint),
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays, metadata: dict[str, Any]) -> ChainCRF:
        """Restore a saved model.

        A function of dense columns cannot be saved: the caller puts it into ``metadata["dense"]``.
        Raises ValueError when arrays and metadata do not fit together, or when the model needs such
        a function and there is none.
        """
        dense = metadata.get("dense")
        if metadata["n_columns"] and not callable(dense):
            raise ValueError("it has weights for dense columns, and no featurizer makes them")
        dense = dense if metadata["n_columns"] else None  # it may be of other parts of a tagger
        index = AttributeIndex.from_arrays(*part_of(arrays, metadata, "index"), dense)
        labels = tuple(map(str, metadata["labels"]))
        if len(set(labels)) != len(labels):
            raise ValueError("a label occurs twice")
        layout = saved_layout(arrays, metadata, len(labels), index.n_node, index.n_edge)
        weights = vector(arrays, "weights", np.float64, layout.size)
        if not np.isfinite(weights).all():
            raise ValueError("a weight is not finite")
        transition_mask = None
        if "mask" in arrays:
            shape = (len(labels) + 1, len(labels))
            transition_mask = table(arrays, "mask", np.bool_, shape)
        # models saved before there were label constraints have none
        label_constraint = msgspec.convert(metadata.get("rule"), LabelConstraint | None)
        return cls(labels, index, layout, weights, transition_mask, label_constraint)


def best_sequences(scores: F64, offsets: I64, transition_mask: Bool) -> I32:
    """Return the legal labels, int32[N], with the largest sum of scores float64[N, L].

    offsets: int64[S + 1] of the sentences; transition_mask: bool[L + 1, L], row L is START.
    Raises ValueError for arrays of other types or shapes.
    """
    check_array(np.ascontiguousarray(scores), "scores", np.float64, (None, None))
    N, L = scores.shape
    check_borders(offsets, "sentence offsets", N)
    check_array(transition_mask, "the transition mask", np.bool_, (L + 1, L))
    allowed = np.where(transition_mask, 0.0, -np.inf)
    paths = [np.empty(0, np.int32)]
    for batch in batches(offsets, SHARED_BATCH):
        node = scores[batch.tokens].copy()
        node[batch.offsets[:-1]] += allowed[L]
        paths.append(BatchPotentials(batch, node, allowed[None, :L]).viterbi())
    return np.concatenate(paths)
