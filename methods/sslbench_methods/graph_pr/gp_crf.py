"""A CRF trained on labels propagated over a graph: the baseline GP->CRF.

He et al. (2013): graph propagation labels the unlabeled text once, token by token, and a
CRF is trained on these labels and the gold ones (docs/specs/graph_pr.md, section 8).
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, ClassVar

import numpy as np

from sslbench import CRFMethod, GraphCRFParams, Problem, RunContext, SearchAxis, Tagger, Weight, doc
from sslbench.engine.crf import HardLabels, best_sequences
from sslbench.engine.types import F64, I32, I64, Bool
from sslbench.taggers import Decoding, PosteriorTagger
from sslbench_methods.shared import encoded

from .propagation import Mode, likeliest, propagated

KIND = "gp_crf"


class GraphPropagationCRF(CRFMethod):
    """CRF trained on gold labels and on those of graph propagation."""

    order_invariant = True

    class Params(GraphCRFParams, frozen=True, kw_only=True):
        """Parameters of graph propagation and of the CRF that follows."""

        mode: Mode = "solve"
        eta: Annotated[Weight, doc("weight of a propagated sentence (labeled: 1)")] = 1.0
        decoding: Decoding = "posterior"
        search: ClassVar[tuple[SearchAxis, ...]] = (SearchAxis("eta", low=0.01, high=10, log=True),)

    def fit(self, problem: Problem, params: Params, run: RunContext) -> Tagger:
        """Propagate the labels, then train once on all of the text."""
        tokens, rows = propagated(problem, run, params, params.mode)
        crf, text = encoded(problem, params, run)
        parts, counts = [text.labeled], np.zeros(len(problem.labels), np.int64)
        for shard, data in zip(problem.unlabeled, text.unlabeled, strict=True):
            guess = hard_labels(rows[tokens.of(shard)], shard.offsets, problem.transition_mask)
            if problem.label_constraint is not None:
                guess = problem.label_constraint.apply_to(guess, shard, problem.labels)
            counts += np.bincount(guess, minlength=len(counts))
            parts.append((data, HardLabels(guess, np.full(shard.n_sentences, params.eta))))
        with run.phase("train"):
            run.record(run.train(crf, parts, params))
        run.trace["propagated_labels"] = counts.tolist()
        return crf if params.decoding == "viterbi" else PosteriorTagger(crf, KIND)

    restore = staticmethod(partial(PosteriorTagger.from_arrays, kind=KIND))


def hard_labels(distributions: F64, offsets: I64, transition_mask: Bool | None) -> I32:
    """Return labels int32[N] from the distributions float64[N, L] of tokens.

    The likeliest label of each; under a transition mask, the legal sequence with the most expected
    correct labels, since a CRF cannot be trained on sequences that it excludes.
    """
    if transition_mask is None:
        return likeliest(distributions)
    return best_sequences(distributions, offsets, transition_mask)
