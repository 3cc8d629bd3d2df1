"""The models ``crf1`` and ``crf2``: from a labeled corpus to an untrained CRF."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sslbench.engine.checked import check_array
from sslbench.engine.corpus import Corpus, LabelConstraint
from sslbench.engine.crf.memory import check_weights
from sslbench.engine.crf.model import ChainCRF
from sslbench.engine.crf.weights.layout import Support, build_layout
from sslbench.engine.features import TemplateFeaturizer
from sslbench.engine.types import I32, Bool


@dataclass(frozen=True)
class _After:
    """A corpus, then the shards of some text; can be iterated over again."""

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
        self,
        featurizer: TemplateFeaturizer,
        corpus: Corpus,
        label_codes: I32,
        labels: Sequence[str],
        *,
        min_count: int = 1,
        state_support: Support = "all",
        transition_support: Support = "observed",
        n_factors: int = 0,
        transition_mask: Bool | None = None,
        label_constraint: LabelConstraint | None = None,
        use_start: bool = True,
        use_stop: bool = True,
        text: Iterable[Corpus] = (),
    ) -> ChainCRF:
        """Index the attributes of a labeled corpus and lay out zero weights.

        label_codes: int32[N] gold labels as numbers into `labels`.
        state_support "all" gives every attribute a weight for every label, which SSL needs:
        unlabeled text may move a pair that the labels never show.  "observed" keeps the pairs
        seen in the labels.
        use_start, use_stop: weights for the label of the first and of the last token.
        text: unlabeled text whose attributes are indexed too (iterated twice).
        ValueError for labels or a mask of other types or shapes, UserError for a model that does
        not fit into memory.
        """
        L = len(labels)
        if transition_mask is not None:
            check_array(transition_mask, "the transition mask", np.bool_, (L + 1, L))
        index = featurizer.index(_After(corpus, text), min_count)
        layout = build_layout(
            index.encode(corpus),
            label_codes,
            L,
            n_node=index.n_node,
            n_edge=index.n_edge,
            state_support=state_support,
            transition_support=transition_support,
            n_factors=n_factors,
            use_start=use_start,
            use_stop=use_stop,
            order=self.order,
        )
        check_weights(layout.size, L, self.order, observed=state_support == "observed")
        return ChainCRF(
            tuple(labels), index, layout, np.zeros(layout.size), transition_mask, label_constraint
        )


class SecondOrderModel(ChainModel):
    """`ChainModel` of order 2, as a plugin's target."""

    def __init__(self) -> None:
        super().__init__(order=2)
