"""Neighbors of a vertex, against the matrix and the text themselves."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from sslbench.engine.errors import UserError
from sslbench.engine.graph.build import Graph, build_graph
from sslbench.engine.graph.neighborhood import neighborhood, ngram
from sslbench.engine.graph.options import GraphOptions
from sslbench.experiment.inputs.problem_graph import registered_similarity
from support.graph_oracle import WORDS, random_sentences
from support.texts import corpus_of

LABELS = ("A", "B", "C")
PLAIN = [word for word in WORDS if word not in ("<s1>", "</s1>")]
SENTENCES = [s for s in random_sentences(3, 80, PLAIN) if s]


def graph_of(name: str, k: int = 6) -> Graph:
    text = corpus_of(SENTENCES)
    return build_graph(text, registered_similarity(name), GraphOptions(k=k))


@pytest.mark.parametrize("name", ["subramanya2010", "he2013"])
def test_weights_words_tokens_and_labels(name: str) -> None:
    graph = graph_of(name)
    n_labeled = sum(map(len, SENTENCES[:30]))
    codes = np.random.default_rng(0).integers(0, 3, n_labeled).astype(np.int32)
    W, vertex_of = graph.W.toarray(), graph.vertices.vertex_of
    for vertex in range(0, len(W), 7):
        own, *near = neighborhood(graph, ngram(graph, vertex), codes, LABELS)
        assert (own.words, own.weight) == (ngram(graph, vertex), 1.0)
        assert own.tokens == (vertex_of == vertex).sum()
        weights = [each.weight for each in near]
        assert weights == sorted(W[vertex][W[vertex] > 0], reverse=True)
        number = {ngram(graph, v): v for v in range(len(W))}
        for each in (own, *near):
            v = number[each.words]
            want = Counter(LABELS[c] for c in codes[vertex_of[:n_labeled] == v])
            assert each.labels == want
            assert list(each.labels.values()) == sorted(each.labels.values(), reverse=True)
            assert each.weight in (1.0, W[vertex, v])


def test_ngrams_are_written_as_in_the_text() -> None:
    graph, start = graph_of("he2013"), 0
    for sentence in SENTENCES:
        padded = ["<s>", *sentence, "</s>"]
        for place in range(len(sentence)):
            vertex = graph.vertices.vertex_of[start + place]
            if vertex >= 0:
                codes = np.empty(0, np.int32)
                own = neighborhood(graph, padded[place : place + 3], codes, LABELS)[0]
                assert own.words == ngram(graph, vertex)
        start += len(sentence)


def test_an_unknown_ngram_is_an_error_that_names_similar_ones() -> None:
    text = corpus_of([["the", "book", "of"], ["the", "look", "of"], ["a", "cat"]])
    graph = build_graph(text, registered_similarity("subramanya2010"), GraphOptions())
    for words, hint in (
        (["the", "hook", "of"], "did you mean 'the [bl]ook of' or 'the [bl]ook of'"),
        (["dogs", "and", "men"], "none of its words"),
        (["book"], "vertices have 3 words"),
        (["the", "book", "of", "the"], "vertices have 3 words"),
    ):
        with pytest.raises(UserError, match=hint):
            neighborhood(graph, words, np.empty(0, np.int32), LABELS)
