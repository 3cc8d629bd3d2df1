"""Alternating structural optimization: predictors of words share a subspace, which has features.

Ando & Zhang (2005), ASO-semi. Auxiliary problems on the text, for each of the most frequent words:
is it the current, the last, the next word of a token? Each is a linear predictor of the attributes
that do not tell, by squared loss with the ridge 1e-4. Of the predictors' positive weights, for each
group of features, the first h left singular vectors are Theta. The tagger reads Theta x, scaled,
besides its attributes. Their alternation changes little: this is its first round.

The groups are words, other columns, affixes and shapes, and the rest (docs/specs/cited_systems.md,
section 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np

from sslbench import Count, Problem, RunContext, SearchAxis, TrainingParams, UserError, doc
from sslbench.engine.corpus import Corpus, HeadTokens, sentence_ids
from sslbench.engine.features import AttributeIndex, Template
from sslbench.engine.types import F32, I32, Arrays
from sslbench_methods.aso_semi.subspace import (
    Subspace,
    attribute_matrix,
    ridge,
    seen_without,
    shared_directions,
    word_targets,
)
from sslbench_methods.on_text_features import OnTextFeatures
from sslbench_methods.shared import WIDE_PRIOR, TaskDefaults
from sslbench_methods.text_words import TextWords

AsoWords = Annotated[int, doc("frequent words, each with three problems", ge=1, le=100_000)]
AsoSize = Annotated[int, doc("columns per group of features; 0 = none", ge=0, le=1_000)]
AsoRidge = Annotated[float, doc("of the predictors", gt=0, le=1e6)]
AsoScale = Annotated[float, doc("standard deviation of columns", gt=0, le=1e3)]
AsoMinCount = Annotated[Count, doc("rarer attributes predict no words")]
AsoTokens = Annotated[Count, doc("of unlabeled text, at most, for the predictors")]
AsoColumn = Annotated[str, doc("whose words are predicted")]

OFFSETS = (0, -1, 1)
ITERATIONS, TOLERANCE = 30, 0.03  # of conjugate gradients
BLOCK = 100  # problems that are solved side by side
KINDS = ("words", "other columns", "parts", "rest")


class AsoSemi:
    """The subspace of predictors of words."""

    class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
        """Parameters of the auxiliary problems."""

        aso_words: AsoWords = 200
        aso_size: AsoSize = 50
        aso_ridge: AsoRidge = 1e-4
        aso_scale: AsoScale = 0.5
        aso_min_count: AsoMinCount = 5
        aso_tokens: AsoTokens = 100_000
        aso_column: AsoColumn = "word"

    columns: ClassVar[type[Subspace]] = Subspace

    def text(self, problem: Problem, params: Params) -> list[Corpus]:
        """Return the text of the problems."""
        return list(HeadTokens(problem.unlabeled, params.aso_tokens))

    def words(self, problem: Problem, params: Params) -> list[str]:
        """Return the words that are predicted."""
        return TextWords.of(problem, params.aso_column, 1).words[: params.aso_words]

    def learn(self, problem: Problem, params: Params, run: RunContext) -> Subspace:
        """Solve the problems on the text; UserError for a featurizer of edges alone."""
        templates = [t for t in problem.featurizer.templates if not t.edge]
        if not templates:
            raise UserError("the featurizer has no attributes to predict words from")
        column = params.aso_column
        shards = self.text(problem, params)
        index = AttributeIndex.fit(templates, shards, params.aso_min_count)
        kinds = np.array([_kind(t, column) for t in index.node_templates], np.int32)
        _, group = np.unique(kinds, return_inverse=True)
        slots, words = group.astype(np.int32)[index.node_slots], self.words(problem, params)
        empty = self.columns(index, slots, _none(index.n_node, 0))
        if not shards or not words or not params.aso_size or not index.n_node:
            return empty
        predictors = auxiliary_predictors(words, Corpus.concatenate(shards), index, params)
        theta = _none(index.n_node, params.aso_size)
        owner = np.repeat(group, np.diff(index.node_start))
        for g in range(int(group.max()) + 1):
            shared = shared_directions([part[owner == g] for part in predictors], params.aso_size)
            theta[owner == g, : shared.shape[1]] = shared
        raw = self.columns(index, slots, theta)
        spread = float(np.sqrt(np.mean(raw.dense(shards[0]) ** 2)))
        run.trace["problems"] = len(OFFSETS) * len(words)
        run.trace["attributes"], run.trace["groups"] = index.n_node, raw.n_groups
        factor = np.float32(params.aso_scale / spread if spread else 1.0)
        return self.columns(index, slots, theta * factor)

    @classmethod
    def restore(cls, arrays: Arrays, facts: dict[str, Any]) -> Subspace:
        """Return features of a saved tagger."""
        return cls.columns.from_arrays(arrays, facts)


class AsoCRF(OnTextFeatures):
    """A supervised CRF that reads the columns."""

    name = "aso_semi"
    learner = AsoSemi

    class Params(TrainingParams, frozen=True, kw_only=True):
        """Those of the training and of the auxiliary problems."""

        aso_words: AsoWords = 200
        aso_size: AsoSize = 50
        aso_ridge: AsoRidge = 1e-4
        aso_scale: AsoScale = 0.5
        aso_min_count: AsoMinCount = 5
        aso_tokens: AsoTokens = 100_000
        aso_column: AsoColumn = "word"
        task_defaults: ClassVar[TaskDefaults] = WIDE_PRIOR
        search: ClassVar[tuple[SearchAxis, ...]] = (
            SearchAxis("aso_size", (25, 50, 100)),
            SearchAxis("aso_scale", low=0.05, high=5, log=True),
        )


def _none(n: int, h: int) -> F32:
    return np.zeros((n, h), np.float32)


def _kind(template: Template, column: str) -> int:
    """Return a number into KINDS: what the atoms of a template are, if all are the same."""
    kinds = {(atom.column == column, "." in atom.column) for atom in template.atoms}
    numbers = {(True, False): 0, (False, False): 1, (False, True): 2}
    return numbers[kinds.pop()] if len(kinds) == 1 else 3


def auxiliary_predictors(
    words: Sequence[str], text: Corpus, index: AttributeIndex, params: AsoSemi.Params
) -> list[F32]:
    """Return float32[A, words] each: weights of the attributes for blocks of problems."""
    table = {word: number for number, word in enumerate(words)}
    column = text.column(params.aso_column)
    codes = [table.get(word, -1) for word in column.vocabulary.strings]
    number: I32 = np.array(codes, np.int32)[column.codes]
    sentence = sentence_ids(text.offsets)
    node = index.encode(text).node
    predictors = []
    for offset in OFFSETS:
        blind = [seen_without(t, params.aso_column, offset) for t in index.node_templates]
        slots = np.array(blind, np.bool_)[index.node_slots]
        X = attribute_matrix(node, slots, index.n_node)
        Y = word_targets(number, offset, sentence, len(words))
        for begin in range(0, len(words), BLOCK):
            block = Y[:, begin : begin + BLOCK].toarray()
            predictors.append(ridge(X, block, params.aso_ridge, ITERATIONS, TOLERANCE))
    return predictors
