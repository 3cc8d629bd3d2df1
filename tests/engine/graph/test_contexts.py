"""Context vectors: docs/specs/graph.md, oracles G1, G2, G4 and G15, and brute force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sslbench.engine.corpus import Corpus
from sslbench.engine.graph.contexts import (
    context_vectors,
    count_tokens,
    excluded_tokens,
    pmi,
    weigh,
)
from sslbench.engine.graph.forms import character_type, learned_suffixes, longest_suffix
from sslbench.engine.graph.templates import TemplateSet, words
from sslbench.engine.graph.vertices import ngram_vertices
from sslbench.experiment.inputs.problem_graph import registered_similarity
from support import graph_oracle as oracle
from support.graph_oracle import CHARACTERS, COUNTS, G2, WORDS, random_sentences
from support.texts import corpus_of

NAMES = ["subramanya2010", "he2013", "zeng2013"]
TEMPLATE_SETS = {name: registered_similarity(name).templates for name in NAMES}
G1 = [
    [0.7525706010, 0, 0.6190392084, 0, -0.0741079722],
    [0.6190392084, -0.4795730803, 0.7731898882, 0, 0],
    [0, 0.9757141523, 0, -0.0741079722, -0.0741079722],
    [0, -0.0741079722, 0, 1.5841201044, 0],
    [0, 0, 0, 0, 1.8718021769],
]
NEXT_WORD = TemplateSet((words("next", 1),))


def counts_as_text():
    """Sentences of two words: the types a to e, then a feature, which has no vertex."""
    sentences = [
        [t, str(f)] for i, t in enumerate("abcde") for f in range(5) for _ in range(COUNTS[i, f])
    ]
    text = corpus_of(sentences)
    return text, ngram_vertices(text, n=1, excluded=np.arange(text.n_tokens) % 2 == 1)


def vertices_for(text, name):
    templates = TEMPLATE_SETS[name]
    excluded = excluded_tokens(text, "word", templates)
    return ngram_vertices(text, excluded=excluded, form=templates.vertex_form)


def weighed(text, vertices, templates, more=None, **options):
    return weigh(count_tokens(text, vertices, templates, more), templates.templates, **options)


def columns(matrix):
    """The columns sorted by their values."""
    return matrix[:, np.lexsort(np.round(matrix, 9)[::-1])]


def test_g1_pmi():
    rows, cols = np.nonzero(COUNTS)
    result = np.zeros((5, 5))
    of_type, of_feature = COUNTS.sum(1), COUNTS.sum(0)
    result[rows, cols] = pmi(COUNTS[rows, cols], of_type[rows], of_feature[cols], 26)
    np.testing.assert_allclose(result, G1, atol=5e-11)


def test_g1_from_text():
    contexts = weighed(*counts_as_text(), NEXT_WORD)
    np.testing.assert_allclose(contexts.pmi.toarray(), G1, atol=5e-11)
    np.testing.assert_allclose(contexts.norm, np.linalg.norm(G1, axis=1), atol=1e-9)


def test_g2_cosines():
    X = context_vectors(*counts_as_text(), NEXT_WORD)
    assert X.dtype == np.float32
    result = (X.astype(np.float64) @ X.T.astype(np.float64)).toarray()
    for (u, v), want in G2.items():
        assert result[u, v] == result[v, u] == pytest.approx(want, abs=1e-7)
    np.testing.assert_allclose(result.diagonal(), 1, atol=1e-6)
    assert abs(result[0, 1] - 0.5126407641) > 0.1  # the value without the factor N


def test_g4_type_specific_features_stay_in_the_norm():
    shared = [["p", "q", "a", "b", "c", "u", "v"]] * 2 + [["o", "q", "a", "b", "c", "u", "w"]]
    text = corpus_of([*shared, ["d", "e", "f", "g", "h"]])
    assert text.n_tokens == 26
    vertices = ngram_vertices(text)
    own = replace(
        TEMPLATE_SETS["subramanya2010"], templates=TEMPLATE_SETS["subramanya2010"].templates[:2]
    )
    abc = vertices.vertex_of[3]
    assert vertices.count[abc] == 3
    # "q a b c u" in all three: one feature of each kind
    assert weighed(text, vertices, own).norm[abc] ** 2 == pytest.approx(2 * 2.1594842494**2)
    three = [[x, "a", "b", "c", y] for x, y in ("pu", "pv", "qu")]
    text = corpus_of([*three, ["d"] * 11])
    vertices = ngram_vertices(text)
    abc = vertices.vertex_of[2]
    assert (text.n_tokens, vertices.count[abc]) == (26, 3)
    contexts = weighed(text, vertices, own)
    assert contexts.norm[abc] ** 2 == pytest.approx(4 * 2.1594842494**2, rel=1e-10)
    assert contexts.pmi.nnz == 0


@pytest.mark.parametrize("more_seed", [None, 7])
@pytest.mark.parametrize("name", NAMES)
def test_weights_equal_those_of_string_dictionaries(name, more_seed):
    pool = CHARACTERS if name == "zeng2013" else WORDS
    sentences = random_sentences(5, 40, pool)
    more = [] if more_seed is None else random_sentences(more_seed, 40, pool)
    suffixes = frozenset(["ing", "ng", "um>"])
    text = corpus_of(sentences)
    counting = corpus_of(more, text.column("word").vocabulary) if more else None
    vertices = vertices_for(text, name)
    templates = TEMPLATE_SETS[name]
    result = weighed(text, vertices, templates, counting, suffixes=suffixes)

    order = oracle.trigram_names(text, vertices)
    want = oracle.dense(oracle.weights(name, sentences, more, suffixes), order)
    norms = np.sqrt(np.nansum(want**2, axis=1))
    np.testing.assert_allclose(result.norm, norms, rtol=1e-12)
    matching = want[:, (~np.isnan(want)).sum(0) > 1]
    assert result.pmi.nnz == (~np.isnan(matching)).sum()
    np.testing.assert_allclose(
        columns(result.pmi.toarray()), columns(np.nan_to_num(matching)), atol=1e-12
    )
    X = context_vectors(text, vertices, templates, counting_text=counting, suffixes=suffixes)
    assert X.has_sorted_indices
    np.testing.assert_allclose(
        (X @ X.T).toarray(),
        (result.pmi @ result.pmi.T).toarray() / np.outer(norms, norms),
        atol=1e-6,
    )


def test_counting_text_changes_weights():
    text = corpus_of(random_sentences(8))
    vertices, templates = vertices_for(text, "subramanya2010"), TEMPLATE_SETS["subramanya2010"]
    alone, twice = (weighed(text, vertices, templates, more) for more in (None, text))
    np.testing.assert_allclose(twice.norm, alone.norm, rtol=1e-12)  # all counts doubled
    other = corpus_of(random_sentences(9), text.column("word").vocabulary)
    assert not np.allclose(weighed(text, vertices, templates, other).norm, alone.norm)


def test_an_excluded_token_does_not_exclude_its_type():
    text = corpus_of([["a"], ["b"], ["a"]])
    vertices = ngram_vertices(text, excluded=np.array([False, False, True]))
    more = corpus_of([["a"], ["a"]], text.column("word").vocabulary)
    counted = count_tokens(text, vertices, TEMPLATE_SETS["subramanya2010"], more)
    assert counted.vertex.tolist() == [0, 1, 0, 0]
    assert counted.totals.tolist() == [3, 1]


def test_suffixes_are_learned_from_the_text_not_the_vocabulary():
    sentences = random_sentences(10, 60)
    text = corpus_of(sentences)
    # Words of other text in the same vocabulary, with which "the" would end five words.
    text.column("word").vocabulary.encode(f"{c}the" for c in "abcdefgh")
    learned = learned_suffixes({oracle.number(w.lower()) for s in sentences for w in s})
    assert {"ng", "ing"} <= learned
    assert "he" not in learned
    vertices, templates = vertices_for(text, "he2013"), TEMPLATE_SETS["he2013"]
    given = context_vectors(text, vertices, templates, suffixes=learned)
    result = context_vectors(text, vertices, templates)
    assert (given != result).nnz == 0
    none = context_vectors(text, vertices, templates, suffixes=())
    assert none.shape != result.shape or (none != result).nnz


def test_an_empty_list_of_suffixes_is_no_feature():
    text = corpus_of(random_sentences(11, 60))
    listed = registered_similarity("subramanya2010_listed").templates
    vertices = vertices_for(text, "subramanya2010")
    plain = replace(listed, templates=listed.templates[:-1])
    given = context_vectors(text, vertices, listed, suffixes=())
    without = context_vectors(text, vertices, plain)
    assert listed.reads("suffix")
    assert not plain.reads("suffix")
    np.testing.assert_allclose(
        (given @ given.T).toarray(), (without @ without.T).toarray(), atol=1e-6
    )
    some = context_vectors(text, vertices, listed, suffixes=("ing",))
    assert abs(some @ some.T - without @ without.T).max() > 1e-3


def test_learned_suffixes_need_one_word_in_fifty_and_five():
    words = [f"{chr(ord('a') + i)}ly" for i in range(20)]
    assert "ly" in learned_suffixes(words)
    fill = [chr(0x4E00 + i % 200) + chr(0x5E00 + i) for i in range(981)]
    assert "ly" not in learned_suffixes(words + fill)  # 20 of 1,001
    assert "ly" in learned_suffixes(words + fill[:-1])
    no_words = ["3ly", "-", "<num>"]
    assert "ly" in learned_suffixes(words + fill[:-1] + no_words)
    assert learned_suffixes(["aly", "bly", "cly", "dly"] * 9) == frozenset()
    assert learned_suffixes(["aly", "bly", "cly", "dly", "ly"]) == {"ly"}


def test_longest_suffix_is_shorter_than_the_word():
    known = frozenset(["ing", "ng", "g", "king"])
    result = [longest_suffix(w, known) for w in ("walking", "king", "ing", "ng", "x", "")]
    assert result == ["king", "ing", "ng", "", "", ""]


@pytest.mark.parametrize(
    ("word", "want"),
    [
        *(("7", "number"), ("１", "number"), ("两", "number"), ("1996", "number")),
        *(("。", "punctuation"), ("$", "punctuation"), ("ａ", "letter"), ("é", "letter")),
        *(("中", "other"), ("я", "other"), ("a1", "other"), ("", "other"), ("²", "other")),
    ],
)
def test_character_types(word, want):
    assert character_type(word) == want


def test_single_type_has_a_zero_vector():
    text = corpus_of([["x"], ["x"]])
    for name in NAMES:
        templates = TEMPLATE_SETS[name]
        X = context_vectors(text, vertices_for(text, name), templates)
        assert X.shape[0] == 1
        assert not X.toarray().any()


def test_g15_vertex_numbers_permute_rows():
    text = corpus_of(random_sentences(11))
    vertices, templates = vertices_for(text, "he2013"), TEMPLATE_SETS["he2013"]
    order = np.random.default_rng(1).permutation(len(vertices))
    new = np.argsort(order).astype(np.int32)
    vertex_of = np.where(vertices.vertex_of < 0, np.int32(-1), new[vertices.vertex_of])
    moved = replace(
        vertices, vertex_of=vertex_of, count=vertices.count[order], first=vertices.first[order]
    )
    more = corpus_of(random_sentences(12), text.column("word").vocabulary)
    X = context_vectors(text, vertices, templates, counting_text=more)
    Y = context_vectors(text, moved, templates, counting_text=more)
    np.testing.assert_array_equal(Y.toarray(), X.toarray()[order])


@pytest.mark.parametrize("name", NAMES)
def test_g15_sentence_order_does_not_matter(name):
    text = corpus_of(random_sentences(13, words=CHARACTERS if name == "zeng2013" else WORDS))
    shuffled = text.select(np.random.default_rng(2).permutation(text.n_sentences))
    X, Y = (
        context_vectors(t, vertices_for(t, name), TEMPLATE_SETS[name]) for t in (text, shuffled)
    )
    np.testing.assert_array_equal(X.toarray(), Y.toarray())


def test_only_the_column_of_the_vertices_is_read():
    text = corpus_of(random_sentences(14))
    renamed = Corpus({"char": text.column("word"), "label": text.column("word")}, text.offsets)
    vertices = ngram_vertices(renamed, "char")
    templates = TEMPLATE_SETS["zeng2013"]
    X = context_vectors(renamed, vertices, templates, counting_text=renamed.drop("label"))
    Y = context_vectors(text, ngram_vertices(text), templates, counting_text=text)
    assert (X != Y).nnz == 0
