"""Labels spread over a similarity graph, without a sequence model: the baseline GP.

He et al. (2013), equation 22 (the superscript k on w is a slip).  Vertices with labeled tokens keep
their label distribution, every other vertex takes the mean of its neighbors; a token gets the
likeliest label of its trigram, whatever the labels beside it.  The method is transductive: it knows
the trigrams of its text and no others (docs/specs/graph_pr.md, section 8).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import msgspec
import numpy as np

from sslbench import GraphParams, Problem, RunContext, SearchAxis, doc
from sslbench.engine.checked import Saved, vector
from sslbench.engine.corpus import Corpus, LabelConstraint, Vocabulary
from sslbench.engine.crf import SavedModel
from sslbench.engine.graph.lookup import NgramLookup
from sslbench.engine.graph.propagation.harmonic import harmonic, harmonic_descent
from sslbench.engine.graph.propagation.quadratic import roughness
from sslbench.engine.graph.words import CodedForms
from sslbench.engine.types import F64, I32, I64, Arrays, Bool
from sslbench.experiment.inputs.problem_graph import registered_similarity
from sslbench.method import HasGraphParams

Mode: TypeAlias = Annotated[
    Literal["solve", "gd"], doc("harmonic solution, or the gradient steps of the paper's release")
]

#: probabilities closer than this are equal: more than the solver leaves undecided
TIE = 1e-6


class GraphPropagation:
    """Likeliest label of a token's trigram after label propagation."""

    order_invariant = True

    class Params(GraphParams, frozen=True, kw_only=True):
        """Parameters of graph propagation (the paper's values)."""

        mode: Mode = "solve"
        search: ClassVar[tuple[SearchAxis, ...]] = (
            SearchAxis("neighbors", low=5, high=200, log=True, integer=True),
            SearchAxis("symmetry", ("mutual", "union")),
        )

    def fit(self, problem: Problem, params: Params, run: RunContext) -> GraphTagger:
        """Build the graph, spread the labels; the tagger keeps the label of every trigram."""
        tokens, rows = propagated(problem, run, params, params.mode)
        return GraphTagger(problem.labels, tokens, likeliest(rows), problem.label_constraint)

    @staticmethod
    def restore(arrays: Arrays, facts: dict[str, Any]) -> GraphTagger:
        """Restore a saved tagger."""
        return GraphTagger.from_arrays(arrays, facts)


@dataclass(frozen=True, eq=False)
class TokenRows:
    """The row of a table that each token reads.

    Rows are the vertices; then the forms outside the graph (punctuation) that have gold labels;
    then all other forms outside the graph; then n-grams that are no vertices.

    outside: these forms. similarity: registered name of the one that leaves them out.
    """

    lookup: NgramLookup
    outside: Vocabulary
    similarity: str

    def __len__(self) -> int:
        return len(self.lookup) + len(self.outside) + 2

    def of(self, text: Corpus) -> I64:
        """Return the row of every token, int64[N]."""
        vertex = self.lookup.vertices(text).astype(np.int64)
        words = CodedForms.from_column(text.column(self.lookup.column))
        form = np.array([self.outside.lookup(word) for word in words.strings], dtype=np.int64)
        form[form < 0] = len(self.outside)
        excluded = registered_similarity(self.similarity).excluded(text, self.lookup.column)
        alone = np.where(excluded, len(self.lookup) + form[words.codes], len(self) - 1)
        return np.where(vertex >= 0, vertex, alone)


@dataclass(frozen=True, eq=False)
class GraphTagger(SavedModel):
    """One label for every row of `tokens`: int32[len(tokens)] codes into `labels`.

    Labels are chosen token by token: sequences of chunk tags may be ill-formed.
    label_constraint: tells the label of some tokens, whatever their row; None = of none.
    """

    decodes_sequences: ClassVar[bool] = False
    kind = "graph_propagation"

    labels: tuple[str, ...]
    tokens: TokenRows
    label: I32
    label_constraint: LabelConstraint | None = None

    def predict(self, corpus: Corpus) -> I32:
        """Return label codes of a corpus, int32[N]."""
        codes, constraint = self.label[self.tokens.of(corpus)], self.label_constraint
        return codes if constraint is None else constraint.apply_to(codes, corpus, self.labels)

    def arrays(self) -> Saved:
        """Return n-grams and labels."""
        arrays, facts = self.tokens.lookup.arrays()
        facts |= {
            "labels": list(self.labels),
            "outside": self.tokens.outside.strings,
            "similarity": self.tokens.similarity,
            "rule": msgspec.to_builtins(self.label_constraint),
        }
        return {**arrays, "label": self.label}, facts

    @classmethod
    def from_arrays(cls, arrays: Arrays, facts: dict[str, Any]) -> GraphTagger:
        """Restore a tagger.

        ValueError when arrays and facts do not fit together, UserError if the similarity is not
        registered.
        """
        labels, similarity = tuple(map(str, facts["labels"])), str(facts["similarity"])
        registered_similarity(similarity)
        outside = Vocabulary(map(str, facts["outside"]))
        tokens = TokenRows(NgramLookup.from_arrays(arrays, facts), outside, similarity)
        label = vector(arrays, "label", np.int32, len(tokens), (0, len(labels)))
        constraint = msgspec.convert(facts.get("rule"), LabelConstraint | None)
        return cls(labels, tokens, label, constraint)


def propagated(
    problem: Problem, run: RunContext, params: HasGraphParams, mode: Mode
) -> tuple[TokenRows, F64]:
    """Return rows of tokens and their label distributions, float64[rows, L]; record sizes.

    A vertex without a path to a labeled one stays uniform; such rows, and that of n-grams that are
    no vertices, become the majority label of the labeled sample. A form outside the graph has the
    distribution of its gold labels; one without any has that of all such forms.
    """
    graph = problem.graph(params, run)
    text = graph.text
    with run.phase("propagate"):
        spread = harmonic if mode == "solve" else harmonic_descent
        q = spread(graph.W, text.distribution, text.labeled)
        forms, counts = outside_counts(problem, params)
        rows = np.concatenate([q, counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)])
        open_rows = undecided(rows)
        gold = np.bincount(problem.label_codes(problem.labeled), minlength=len(problem.labels))
        rows[open_rows] = 0.0
        rows[open_rows, gold.argmax()] = 1.0
    decided = ~open_rows[: len(q)]
    run.trace["graph_propagation"] = {
        "majority": problem.labels[gold.argmax()],
        "roughness": roughness(graph.W, q),
        "decided_vertices": _share(decided[~text.labeled]),
        "decided_tokens": _share(np.append(decided, False)[text.unlabeled]),
        "outside_tokens": _share(text.unlabeled < 0),
    }
    return TokenRows(graph.lookup, forms, params.similarity), rows


def outside_counts(problem: Problem, params: HasGraphParams) -> tuple[Vocabulary, F64]:
    """Return the forms outside the graph, with the counts of their gold labels.

    float64[E + 2, L]: E forms of the labeled sample, all of them together, zeros.
    """
    text, L = problem.labeled, len(problem.labels)
    words = CodedForms.from_column(text.column(params.column))
    out = registered_similarity(params.similarity).excluded(text, params.column)
    used, form = np.unique(words.codes[out], return_inverse=True)
    pairs = form * L + problem.label_codes(text)[out]
    counts = np.bincount(pairs, minlength=len(used) * L).reshape(-1, L).astype(np.float64)
    forms = Vocabulary(words.strings[code] for code in used.tolist())
    return forms, np.concatenate([counts, counts.sum(axis=0, keepdims=True), np.zeros((1, L))])


def undecided(rows: F64) -> Bool:
    """Return bool[n]: no label of the row float64[n, L] is likelier than another."""
    flat: Bool = rows.max(axis=1) - rows.min(axis=1) <= TIE
    return flat


def likeliest(rows: F64) -> I32:
    """Return int32[n], the label of largest probability; of equal ones the first."""
    near = rows >= rows.max(axis=1, keepdims=True) - TIE
    first: I32 = near.argmax(axis=1).astype(np.int32)
    return first


def _share(true: Bool) -> float:
    return float(true.mean()) if len(true) else 0.0
