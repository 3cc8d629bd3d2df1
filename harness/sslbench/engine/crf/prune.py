"""Feature pruning: keep the state weights of the labels that an attribute plausibly has.

With the attributes of unlabeled text there are observations x labels weights, nearly all of which
stay near zero.  Zeng et al. (2013) do not state which weights they keep.  Here a pair (attribute,
label) is kept if it occurs in the labeled sentences, or if under the model trained so far the label
has a posterior of at least `LEAST` at some token with the attribute
(docs/specs/virtual_evidence.md, section 11).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from sslbench.engine.checked import check_array
from sslbench.engine.compilation.compiled import kernel
from sslbench.engine.crf.encoded_corpus import EncodedCorpus
from sslbench.engine.crf.weights.layout import Layout, supported_pairs
from sslbench.engine.errors import UserError
from sslbench.engine.types import F64, I32, Bool

LEAST = 0.01


def prune(
    layout: Layout,
    weights: F64,
    gold: EncodedCorpus,
    labels: I32,
    parts: Iterable[tuple[EncodedCorpus, F64]],
) -> tuple[Layout, F64]:
    """Return the layout with fewer state weights, and the weights that it has; values are the same.

    layout: with weights for all labels of every attribute; UserError if it is not.
    gold: labeled sentences; labels: int32[N].  parts: texts, each with posteriors float64[n, L].
    """
    if layout.state_start is not None:
        raise UserError(
            "feature_pruning=posterior needs state_support=all", hint="leave one of the two out"
        )
    gold.check_layout(layout)
    n = gold.attributes.node.shape[1]
    check_array(labels, "labels", np.int32, (n,), (-1, layout.n_labels))
    seen = supported_pairs(gold.attributes.node, labels, layout.n_node, layout.n_labels)
    for data, posterior in parts:
        data.check_layout(layout)
        n = data.attributes.node.shape[1]
        check_array(posterior, "posteriors", np.float64, (n, layout.n_labels))
        mark(data.attributes.node, posterior, LEAST, seen)
    start = np.concatenate([[0], np.cumsum(seen.sum(axis=1))]).astype(np.int64)
    pruned = replace(layout, state_start=start, state_label=np.nonzero(seen)[1].astype(np.int32))
    state = layout.span("state")
    plausible = weights[state].reshape(seen.shape)[seen]
    return pruned, np.concatenate([plausible, weights[state.stop :]])


@kernel
def mark(codes: I32, posterior: F64, least: float, seen: Bool) -> None:
    """seen[a, y] = True where attribute a has a token with posterior[y] >= least.

    codes int32[S, n], -1 = none; posterior float64[n, L]; seen bool[A, L].
    """
    for n in range(codes.shape[1]):
        for y in range(posterior.shape[1]):
            if posterior[n, y] >= least:
                for s in range(codes.shape[0]):
                    if codes[s, n] >= 0:
                        seen[codes[s, n], y] = True
