"""The linear-chain CRF: from a corpus to weights, from weights to labels.

`ChainModel` is the model plugin ``crf1``, `SecondOrderModel` is ``crf2``: they index the attributes
of the labelled corpus and lay out the weights.  `ChainCRF` holds these, trains on any sum of terms,
decodes, and is saved.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..checked import vector
from ..corpus import CharacterRule, Corpus
from ..features import AttributeIndex, TemplateFeaturizer
from ..types import F64, I32, I64, Bool
from . import lbfgs
from .collapse import Collapse
from .layout import Layout, Support, Tables, build_layout, saved_layout
from .objective import CliqueFeatures, EncodedCorpus, Objective, block_potentials
from .persist import write_model
from .terms import Term

Parts = Sequence[tuple[EncodedCorpus, Term]]


@dataclass
class ChainCRF:
    """A CRF of order 1 or 2 over `labels`; the flat weights (layout in `layout`) start at zero.

    mask: bool[L+1, L] legal arcs (row L = START), used in training and in decoding; None = all.
    rule: tells the one label of some tokens, likewise; None = all tokens may have all labels.
    """

    labels: tuple[str, ...]
    index: AttributeIndex
    layout: Layout
    weights: F64 = field(repr=False)
    mask: Bool | None = None
    rule: CharacterRule | None = None

    def encode(self, corpus: Corpus, clique: CliqueFeatures | None = None) -> EncodedCorpus:
        """Attributes of a corpus as the engine reads them."""
        only = None if self.rule is None else self.rule.only(corpus, self.labels)
        return EncodedCorpus.build(self.layout, self.index.encode(corpus), clique, only)

    def reencode(self, data: EncodedCorpus) -> EncodedCorpus:
        """A corpus that was encoded for another layout over the same attributes."""
        return EncodedCorpus.build(self.layout, data.attributes, data.clique, data.only)

    def train(
        self, parts: Parts, sigma2: float, *, l1: float = 0.0, options: lbfgs.Options | None = None,
        nonnegative: I64 | None = None, linear: F64 | None = None, callback: Any = None,
    ) -> TrainingResult:  # fmt: skip
        """Maximise the sum of the terms minus the priors, starting at the current weights.

        sigma2: variance of the Gaussian prior; l1: weight of the L1 penalty (as c1 in the
        specification); nonnegative: indices of weights after the state weights kept >= 0;
        linear: float64 per weight, adds linear . weights: expected counts over text of the parts.
        """
        collapse = Collapse.build(self.layout, [data.attributes for data, _ in parts])
        objective = Objective(
            collapse.reduced, [(data.collapsed(collapse), term) for data, term in parts], sigma2,
            mask=self.mask, copies=collapse.copies_per_weight(),
            linear=None if linear is None else collapse.project(linear),
        )  # fmt: skip
        cliques = [data.clique.metric for data, _ in parts if data.clique is not None]
        if nonnegative is not None:
            nonnegative = nonnegative - (self.layout.size - collapse.reduced.size)
        found = lbfgs.minimize(
            objective.scaled_loss, collapse.shrink(self.weights), options,
            metric=collapse.metric(*cliques[:1]), nonnegative=nonnegative,
            l1=l1 / objective.n_tokens, callback=callback,
        )  # fmt: skip
        self.weights = collapse.expand(found.weights)
        return TrainingResult(
            objective=-found.value * objective.n_tokens, status=found.status,
            converged=found.converged, iterations=found.iterations,
            evaluations=found.evaluations, gradient=found.gradient,
            n_weights=self.layout.size,
        )  # fmt: skip

    def decode(self, data: EncodedCorpus) -> I32:
        """Viterbi labels int32[N]."""
        tables = Tables.unpack(self.layout, self.weights)
        parts = [block_potentials(tables, data, b, self.mask).viterbi() for b in data.blocks]
        return np.concatenate(parts) if parts else np.empty(0, np.int32)

    def marginals(self, data: EncodedCorpus, extra: F64 | None = None) -> F64:
        """Node marginals float64[N, L]; extra: float64[N, L], added to the scores of labels."""
        tables, parts = Tables.unpack(self.layout, self.weights), []
        for block in data.blocks:
            potentials = block_potentials(tables, data, block, self.mask)
            if extra is not None:
                potentials.node[:] += extra[block.tokens]
            parts.append(potentials.posterior().node)
        return np.concatenate(parts) if parts else np.empty((0, len(self.labels)))

    def predict(self, corpus: Corpus) -> I32:
        """Viterbi labels of a corpus, int32[N] codes in the order of `labels`."""
        return self.decode(self.encode(corpus))

    # -- saving ------------------------------------------------------------------------------
    def arrays(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays and JSON-able facts that `from_arrays` restores the tagger from."""
        index, facts = self.index.arrays()
        arrays: dict[str, NDArray[Any]] = {f"index.{k}": v for k, v in index.items()}
        layout = self.layout
        arrays |= {"weights": self.weights, "arc_start": layout.arc_start,
                   "arc_code": layout.arc_code}  # fmt: skip
        if layout.state_start is not None and layout.state_label is not None:
            arrays |= {"state_start": layout.state_start, "state_label": layout.state_label}
        if self.mask is not None:
            arrays["mask"] = self.mask
        return arrays, {
            "labels": list(self.labels), "index": facts, "n_columns": layout.n_columns,
            "n_clique": layout.n_clique, "use_start": layout.use_start,
            "use_stop": layout.use_stop, "order": layout.order,
            "rule": msgspec.to_builtins(self.rule),
        }  # fmt: skip

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], facts: dict[str, Any]) -> ChainCRF:
        """Restore; ValueError when arrays and facts do not fit together.

        A function of dense columns cannot be saved: the caller puts it into ``facts["dense"]``.
        ValueError when the model needs one and there is none.
        """
        start = "index."
        mine = {k[len(start) :]: v for k, v in arrays.items() if k.startswith(start)}
        dense = facts.get("dense")
        if facts["n_columns"] and not callable(dense):
            raise ValueError("it has weights for dense columns, and no featurizer makes them")
        index = AttributeIndex.from_arrays(mine, facts["index"], dense)
        labels = tuple(map(str, facts["labels"]))
        layout = saved_layout(arrays, facts, len(set(labels)), index.n_node, index.n_edge)
        weights = vector(arrays, "weights", np.float64)
        if len(weights) != layout.size or len(labels) != layout.n_labels:
            raise ValueError(f"{len(weights)} weights, but the layout has {layout.size}")
        if not np.isfinite(weights).all():
            raise ValueError("a weight is not finite")
        mask = arrays.get("mask")
        shape = (len(labels) + 1, len(labels))
        if mask is not None and (mask.dtype != np.bool_ or mask.shape != shape):
            raise ValueError(f"the mask is {mask.dtype} {mask.shape}")
        # models saved before there were rules have none
        rule = msgspec.convert(facts.get("rule"), CharacterRule | None)
        return cls(labels, index, layout, weights, mask, rule)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write weights and alphabets to one file (npz and JSON, no pickle)."""
        write_model(path, "chain_crf", *self.arrays())


@dataclass(frozen=True)
class TrainingResult:
    """How a training ended; `objective` is F (unscaled), `gradient` per token."""

    objective: float
    status: str
    converged: bool
    iterations: int
    evaluations: int
    gradient: float
    n_weights: int

    def record(self) -> dict[str, Any]:
        """For the run record."""
        return dict(vars(self))


@dataclass(frozen=True)
class _After:
    """A corpus, then the shards of some text, as often as one likes."""

    corpus: Corpus
    text: Iterable[Corpus]

    def __iter__(self) -> Iterator[Corpus]:
        yield self.corpus
        yield from self.text


@dataclass(frozen=True)
class ChainModel:
    """Linear-chain CRF with state and observation-dependent transition features.

    order 2: with weights of three labels in a row, and the back-offs of `layout`.
    """

    order: int = 1

    def prepare(
        self, featurizer: TemplateFeaturizer, corpus: Corpus, label_codes: I32,
        labels: Sequence[str], *, min_count: int = 1, state_support: Support = "all",
        arc_support: Support = "observed", n_clique: int = 0, mask: Bool | None = None,
        rule: CharacterRule | None = None, use_start: bool = True, use_stop: bool = True,
        text: Iterable[Corpus] = (),
    ) -> ChainCRF:  # fmt: skip
        """Index the attributes of a labelled corpus and lay out zero weights.

        label_codes: int32[N] gold labels as numbers into `labels`.
        state_support "all" gives every attribute a weight for every label, which SSL needs:
        unlabelled text may move a pair that the labels never show.  "observed" keeps the pairs
        seen in the labels.
        use_start, use_stop: weights for the label of the first and of the last token.
        text: unlabelled text whose attributes are indexed too (iterated twice).
        """
        index = featurizer.index(_After(corpus, text), min_count)
        layout = build_layout(
            index.encode(corpus), label_codes, len(labels), n_node=index.n_node,
            n_edge=index.n_edge, state_support=state_support, arc_support=arc_support,
            n_clique=n_clique, use_start=use_start, use_stop=use_stop, order=self.order,
        )  # fmt: skip
        return ChainCRF(tuple(labels), index, layout, np.zeros(layout.size), mask, rule)


class SecondOrderModel(ChainModel):
    """`ChainModel` of order 2, as a plugin's target."""

    def __init__(self) -> None:
        super().__init__(order=2)
