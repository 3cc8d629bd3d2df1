"""A CRF trained on labels that were spread over a graph: the baseline GP->CRF.

He et al. (2013): graph propagation labels the unlabeled text once, token by token, and a CRF is
trained on these labels and the gold ones.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np

from sslbench.crf import ChainCRF, HardLabels
from sslbench.crf.data import batches
from sslbench.crf.first_order.batch import BatchPotentials
from sslbench.experiment.context import RunContext
from sslbench.experiment.problem import Problem
from sslbench.experiment.tune import SearchAxis
from sslbench.types import F64, I32, I64, Bool
from sslbench_methods.graph_pr.propagation import Column, Mode, likeliest, propagated
from sslbench_methods.graph_pr.tagger import Decoding, PosteriorTagger
from sslbench_methods.graph_text import MaxDf, Neighbors, Symmetry, Templates
from sslbench_methods.supervised import SIGMA2_GRID, TrainingParams, prepare

BATCH = 16_384  # tokens whose distributions are gathered at a time


class GraphPropagationCRF:
    """CRF trained on gold labels and on those of graph propagation."""

    class Params(TrainingParams, frozen=True, kw_only=True):
        """Parameters of graph propagation and of the CRF that follows."""

        column: Column = "word"
        templates: Templates = "he2013"
        neighbors: Neighbors = 60
        symmetry: Symmetry = "mutual"
        max_df: MaxDf = None
        mode: Mode = "solve"
        eta: Annotated[
            float, msgspec.Meta(ge=0, description="weight of a propagated sentence (labeled: 1)")
        ] = 1.0
        decoding: Decoding = "posterior"
        search: ClassVar[tuple[SearchAxis, ...]] = (
            SearchAxis("sigma2", SIGMA2_GRID, refine=1, via="supervised"),
        )

    def fit(self, problem: Problem, params: Params, run: RunContext) -> ChainCRF | PosteriorTagger:
        """Spread the labels, then train once on all of the text."""
        tokens, rows = propagated(
            problem,
            run,
            params.column,
            params.mode,
            templates=params.templates,
            k=params.neighbors,
            symmetry=params.symmetry,
            max_df=params.max_df,
        )
        with run.phase("features"):
            crf = prepare(problem, params, text=problem.unlabeled)
            gold = problem.label_codes(problem.labeled)
            parts = [(crf.encode(problem.labeled), HardLabels(gold))]
            counts = np.zeros(len(problem.labels), np.int64)
            for shard in problem.unlabeled:
                guess = hard_labels(rows, tokens.of(shard), shard.offsets, problem.transition_mask)
                if problem.label_constraint is not None:
                    guess = problem.label_constraint.overrule(shard, problem.labels, guess)
                counts += np.bincount(guess, minlength=len(counts))
                weights = np.full(shard.n_sentences, params.eta)
                parts.append((crf.encode(shard), HardLabels(guess, weights)))
        with run.phase("train"):
            result = crf.train(parts, params.sigma2, options=params.options())
        run.trace["gp_crf"] = {"labels": counts.tolist(), **result.record()}
        run.progress(f"trained: {result.iterations} iterations, {result.status}")
        return crf if params.decoding == "viterbi" else PosteriorTagger(crf, "gp_crf")

    @staticmethod
    def restore(arrays: dict[str, Any], facts: dict[str, Any]) -> PosteriorTagger:
        """A saved tagger; one that decodes by Viterbi is saved as the CRF that it is."""
        return PosteriorTagger.from_arrays(arrays, facts, "gp_crf")


def hard_labels(rows: F64, row_of: I64, offsets: I64, legal: Bool | None) -> I32:
    """Labels of tokens from their distributions rows[row_of]: int32[N].

    The likeliest label of each; where arcs are forbidden (bool[L + 1, L]), the legal sequence with
    the most expected correct labels, as a CRF cannot be trained on what it holds impossible.
    """
    if legal is None:
        return likeliest(rows)[row_of]
    L = rows.shape[1]
    arcs = np.where(legal, 0.0, -np.inf)
    paths = [np.empty(0, np.int32)]
    for batch in batches(offsets, BATCH):
        node = rows[row_of[batch.tokens]]
        node[batch.offsets[:-1]] += arcs[L]
        paths.append(BatchPotentials(batch, node, arcs[None, :L]).viterbi())
    return np.concatenate(paths)
