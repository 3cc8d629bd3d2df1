"""Graphs, neighbor lists and codes of a plugin are checked before compiled code reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from sslbench.engine.graph.build import build_graph
from sslbench.engine.graph.forms import longest_suffix, number
from sslbench.engine.graph.neighbors import NeighborLists, nearest
from sslbench.engine.graph.options import GraphOptions
from sslbench.engine.graph.propagation.quadratic import roughness
from sslbench.engine.graph.similarity import Similarity
from sslbench_methods.graph_self_training.algorithm import propagate
from support.texts import corpus_of


@dataclass
class Wrong(Similarity):
    """A similarity that returns what it is given."""

    lists: Any = None
    tokens: Any = None

    def excluded(self, text, column):
        return np.zeros(text.n_tokens, bool) if self.tokens is None else self.tokens

    def neighbors(self, text, vertices, options, **more):
        return self.lists

    def cache_key(self):
        return {}


TEXT = corpus_of([["a", "b", "c"], ["d"]])  # four vertices
GOOD = np.array([[1], [0], [3], [2]], np.int32)
SIMILAR = np.full((4, 1), 0.5)
BAD_LISTS = [
    (np.full((4, 1), 4, np.int32), SIMILAR, "values 4 to 4"),
    (np.full((4, 1), 2**30, np.int32), SIMILAR, "values"),
    (np.full((4, 1), -2, np.int32), SIMILAR, "values -2"),
    (GOOD[:3], SIMILAR[:3], "neighbors: int32"),
    (GOOD, SIMILAR[:, 0], "similarities"),
    (GOOD, np.full((4, 2), 0.5), "similarities"),
    (GOOD.astype(np.int64), SIMILAR, "int64"),
    (GOOD, SIMILAR.astype(np.float32), "float32"),
    (GOOD, np.full((4, 1), np.nan), "not finite"),
]


@pytest.mark.parametrize(("index", "similarity", "message"), BAD_LISTS)
def test_neighbor_lists_of_a_plugin(index, similarity, message):
    options = GraphOptions(k=1)
    assert build_graph(TEXT, Wrong(NeighborLists(GOOD, SIMILAR)), options).W.nnz == 4
    with pytest.raises(ValueError, match=f"the neighbors that Wrong found: .*{message}"):
        build_graph(TEXT, Wrong(NeighborLists(index, similarity)), options)


@pytest.mark.parametrize("tokens", [np.zeros(3, bool), np.zeros(4, int), [False] * 4])
def test_excluded_tokens_of_a_plugin(tokens):
    with pytest.raises(ValueError, match="excluded tokens"):
        build_graph(TEXT, Wrong(NeighborLists(GOOD, SIMILAR), tokens), GraphOptions(k=1))


def broken(**changes):
    """A graph of three vertices with arrays replaced after scipy's own checks."""
    W = sparse.csr_array(np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]))
    for name, array in changes.items():
        setattr(W, name, np.array(array, getattr(W, name).dtype))
    return W


BROKEN = [
    {"indices": [1, 0, 3, 1]},
    {"indices": [1, 0, -1, 1]},
    {"indptr": [0, 3, 1, 4]},
    {"indptr": [0, 1, 3, 40]},
]


@pytest.mark.parametrize("changes", BROKEN)
def test_matrices_that_are_no_graph(changes):
    q, labeled = np.full((3, 2), 0.5), np.array([True, False, False])
    propagate(broken(), q, q, labeled, 1.0, 0.1)
    with pytest.raises(ValueError):
        propagate(broken(**changes), q, q, labeled, 1.0, 0.1)
    with pytest.raises(ValueError):
        roughness(broken(**changes), q)
    with pytest.raises(ValueError):
        nearest(broken(**changes), 1)


def test_vectors_that_are_not_finite():
    with pytest.raises(ValueError, match="not finite"):
        nearest(broken(data=[1.0, np.inf, 1.0, 1.0]), 1)


class Counted(str):
    """A word that counts how often a part of it is copied."""

    __slots__ = ("copies",)

    def __getitem__(self, key):
        self.copies = getattr(self, "copies", 0) + 1
        return str.__getitem__(self, key)


def test_a_long_word_has_few_candidates_for_suffixes():
    word = Counted("x" * 1000 + "ing")
    assert longest_suffix(word, frozenset(["ing", "ng", "xy"])) == "ing"
    assert word.copies <= 2
    assert longest_suffix("ing", frozenset(["ing", "ng"])) == "ng"
    assert longest_suffix("ing", frozenset(["g", "ing"])) == ""
    assert longest_suffix("", frozenset(["ng"])) == ""


def test_a_number_of_many_digits():
    """A pattern with two repetitions of digits side by side takes hours."""
    assert number("1" * 300_000) == "<num>"
    assert number("1" * 300_000 + "x") == "1" * 300_000 + "x"
    numbers = ["1", "12", "1.5", "1,200", "1,,", "1,2,", "007"]
    assert {number(word) for word in numbers} == {"<num>"}
    for word in ["", ".5", "1.", ",1", "1.2.3", "1.2,3", "1,2.3", "-1"]:
        assert number(word) == word
