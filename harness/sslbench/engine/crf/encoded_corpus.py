"""A text as the objective reads it: attributes under the numbers of a layout, and its batches."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sslbench.engine.checked import check_array, check_borders
from sslbench.engine.crf.data import Attributes, Batch, batches
from sslbench.engine.crf.factors import FactorFeatures
from sslbench.engine.crf.first_order.live import LiveTransitions
from sslbench.engine.crf.memory import check_sentence
from sslbench.engine.crf.weights.bundles import Bundled
from sslbench.engine.crf.weights.deduplicate import Deduplication
from sslbench.engine.crf.weights.layout import Layout
from sslbench.engine.lazy import lazy
from sslbench.engine.types import F64, I32, I64, Bool

#: most tokens per batch when all positions share one transition matrix, and when each has its own
SHARED_BATCH, VARYING_BATCH = 4096, 256
#: a batch with its own transition matrices stays below this many of their cells (1 MB, so that they
#: stay in the second-level cache): 256 tokens of 22 labels, 64 of 45
VARYING_CELLS = 1 << 17
#: most tokens per batch of `LivePotentials`, and most of their scores by position (2 MB)
LIVE_BATCH, LIVE_CELLS = 4096, 1 << 18
#: shorter texts are not for `fused`: a first run need not wait for its kernel to compile
FUSED_TOKENS = 5_000


@dataclass(frozen=True)
class EncodedCorpus:
    """The attributes of a corpus, numbered as a layout numbers its weights, and factor features.

    number: int32[A + 1], the engine's code of every attribute id, -1 for id -1; None: the ids.
    forced_labels: int32[N], the only label that a token may have, -1: any; None: any for all.
    reused: potentials will be computed many times, so that `Bundled` is worth its time.

    ValueError for arrays that do not fit the layout or each other: kernels read them unchecked.
    UserError for a sentence too long for the memory.
    """

    layout: Layout
    attributes: Attributes
    number: I32 | None
    factors: FactorFeatures | None = None
    forced_labels: I32 | None = None
    reused: bool = False

    def __post_init__(self) -> None:
        layout, attributes = self.layout, self.attributes
        check_array(attributes.node, "node attributes", np.int32, (None, None))
        n, A = (
            attributes.node.shape[1],
            layout.n_node if self.number is None else len(self.number) - 1,
        )
        check_borders(attributes.offsets, "sentence offsets", n)
        check_array(attributes.node, "node attributes", np.int32, (None, n), (-1, A))
        check_array(attributes.edge, "edge attributes", np.int32, (None, n), (-1, layout.n_edge))
        if attributes.dense is None and layout.n_columns:
            raise ValueError(f"no dense columns, the model has weights for {layout.n_columns}")
        if attributes.dense is not None:
            check_array(attributes.dense, "dense columns", np.float64, (n, layout.n_columns))
            if not np.isfinite(attributes.dense).all():
                raise ValueError("a value of a dense column is not finite")
        if self.forced_labels is not None:
            forced, L = self.forced_labels, layout.n_labels
            check_array(forced, "forced labels", np.int32, (n,), (-1, L))
        if self.factors is not None and self.factors.n_weights != layout.n_factors:
            raise ValueError(
                f"{self.factors.n_weights} factor features, the model has {layout.n_factors}"
            )
        if layout.order == 2 or self.varying:
            longest = int(self.lengths.max(initial=0))
            check_sentence(longest, layout.n_labels, layout.order)

    @classmethod
    def build(
        cls,
        layout: Layout,
        attributes: Attributes,
        factors: FactorFeatures | None = None,
        forced_labels: I32 | None = None,
    ) -> EncodedCorpus:
        number = None if layout.states is None else layout.states.code
        return cls(layout, attributes, number, factors, forced_labels)

    def check_layout(self, layout: Layout) -> None:
        """ValueError if the corpus was encoded for a model with other weights."""
        if not self.layout.same_as(layout):
            raise ValueError("the corpus was encoded for another model")

    def deduplicated(self, deduplication: Deduplication) -> EncodedCorpus:
        """Return the same corpus for the reduced layout, on which a training runs."""
        layout, number = deduplication.reduced, deduplication.codes
        return replace(self, layout=layout, number=number, reused=True)

    @lazy
    def states(self) -> Bundled:
        node, rows, width = self.attributes.node, self.layout.states, self.layout.n_labels
        return Bundled.build(node, self.number, rows, width, spelled=True, reused=self.reused)

    @lazy
    def edges(self) -> Bundled:
        edge, rows = self.attributes.edge, self.layout.edges
        return Bundled.build(edge, rows.code, rows, rows.width, spelled=False, reused=self.reused)

    @property
    def dense(self) -> F64 | None:
        return self.attributes.dense

    @property
    def offsets(self) -> I64:
        return self.attributes.offsets

    @property
    def n_tokens(self) -> int:
        return int(self.attributes.node.shape[1])

    @lazy
    def first(self) -> Bool:
        """bool[N]: whether a token is the first of its sentence."""
        first = np.zeros(self.n_tokens, np.bool_)
        first[self.offsets[:-1]] = True
        return first

    @lazy
    def varying(self) -> bool:
        """Whether transition scores depend on the position."""
        on_edges = self.factors is not None and self.factors.on_edges
        return on_edges or bool((self.attributes.edge >= 0).any())

    @lazy
    def batches(self) -> list[Batch]:
        if not self.varying:
            return list(batches(self.offsets, SHARED_BATCH))
        cells = VARYING_CELLS // self.layout.n_labels**2
        return list(batches(self.offsets, max(1, min(VARYING_BATCH, cells))))

    @lazy
    def live(self) -> LiveTransitions | None:
        """The transitions that depend on the position; None: none, or all by factor features."""
        layout = self.layout
        on_edges = self.factors is not None and self.factors.on_edges
        if on_edges or layout.order == 2 or not self.varying:
            return None
        codes = layout.transitions[: layout.inner_transitions]
        return LiveTransitions.of(codes, layout.n_labels)

    @property
    def suits_fused(self) -> bool:
        """Whether `fused` can evaluate labels of the text, which is worth its compilation."""
        plain = self.dense is None and self.factors is None and self.forced_labels is None
        return plain and self.n_tokens >= FUSED_TOKENS

    @lazy
    def live_batches(self) -> list[Batch]:
        """Batches of `LivePotentials`."""
        tokens = LIVE_CELLS // max(1, len(self.layout.transitions))
        return list(batches(self.offsets, max(1, min(LIVE_BATCH, tokens))))

    def sentence(self, i: int) -> Batch:
        """Return a batch of one sentence."""
        lo, hi = int(self.offsets[i]), int(self.offsets[i + 1])
        return Batch(lo, hi, i, i + 1, np.array([0, hi - lo]))

    @lazy
    def lengths(self) -> F64:
        """float64[S]: the number of tokens of each sentence."""
        return np.diff(self.offsets).astype(np.float64)
