"""Fewer state weights: only for labels that an attribute's tokens may plausibly have.

With the attributes of unlabeled text there are observations x labels weights, of which nearly all
never leave zero.  Zeng et al. (2013) do not say what they kept; the policy here keeps a pair
(attribute, label) that occurs in the labeled sentences, or whose label has a posterior of at least
`LEAST` at some token with the attribute under the model trained so far
(docs/specs/virtual_evidence.md, section 11).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from sslbench.compiled import njit
from sslbench.crf.model import ChainCRF
from sslbench.crf.objective import EncodedCorpus
from sslbench.crf.weights.scores import supported_pairs
from sslbench.errors import UserError
from sslbench.types import F64, I32, Bool

LEAST = 0.01


def prune(
    crf: ChainCRF, gold: EncodedCorpus, labels: I32, parts: Iterable[tuple[EncodedCorpus, F64]]
) -> ChainCRF:
    """The CRF with the plausible state weights alone, as they are, and all others.

    crf: with weights for all labels of every attribute.  gold: labeled sentences, labels int32[N].
    parts: text with its posteriors float64[n, L], labeled or not.
    Encoded text needs the new one's `reencode`.
    """
    layout = crf.layout
    if layout.state_start is not None:
        raise UserError("pairs=plausible needs state_support=all", hint="leave one of the two out")
    seen = supported_pairs(gold.attributes.node, labels, layout.n_node, layout.n_labels)
    for data, posterior in parts:
        mark(data.attributes.node, posterior, LEAST, seen)
    start = np.concatenate([[0], np.cumsum(seen.sum(axis=1))]).astype(np.int64)
    kept = replace(layout, state_start=start, state_label=np.nonzero(seen)[1].astype(np.int32))
    state = layout.part(crf.weights, 0).reshape(seen.shape)[seen]
    weights = np.concatenate([state, crf.weights[layout.bounds[1] :]])
    return replace(crf, layout=kept, weights=weights)


@njit(cache=True, nogil=True, error_model="numpy")
def mark(codes: I32, posterior: F64, least: float, seen: Bool) -> None:
    """seen[a, y] = True where attribute a has a token with posterior[y] >= least.

    codes int32[S, n], -1 = absent; posterior float64[n, L]; seen bool[A, L].
    """
    for n in range(codes.shape[1]):
        for y in range(posterior.shape[1]):
            if posterior[n, y] >= least:
                for s in range(codes.shape[0]):
                    if codes[s, n] >= 0:
                        seen[codes[s, n], y] = True
