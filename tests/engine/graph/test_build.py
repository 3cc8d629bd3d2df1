"""Graphs from text: docs/specs/graph.md, oracle G15, and the cache."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from sslbench.engine.corpus import Corpus, Vocabulary
from sslbench.engine.errors import UserError
from sslbench.engine.graph import similarity as similarities
from sslbench.engine.graph.build import build_graph
from sslbench.engine.graph.cache import cached
from sslbench.engine.graph.options import GraphOptions
from sslbench.engine.graph.similarity import ContextSimilarity, Similarity
from sslbench.engine.graph.templates import TemplateSet, words
from sslbench.experiment.inputs.problem_graph import registered_similarity
from sslbench.plugins import registry
from sslbench_methods.graph_pr.templates import HE2013
from support.graph_oracle import dense, random_sentences, trigram_names, vertex_text, weights
from support.texts import corpus_of

SUFFIXES = frozenset(["ing", "ng"])
CONTEXTS = registered_similarity("subramanya2010")
SETS = {
    "subramanya2010": (CONTEXTS, GraphOptions()),
    "he2013": (ContextSimilarity(HE2013, SUFFIXES), GraphOptions(k=6, symmetry="mutual")),
    "zeng2013": (registered_similarity("zeng2013"), GraphOptions(k=3)),
}


@pytest.fixture
def text():
    return corpus_of(random_sentences(21, 30))


@pytest.fixture
def counted(monkeypatch):
    """The arguments of all calls of the neighbor search."""
    calls = []
    real = similarities.nearest

    def nearest(X, k, **options):
        calls.append((k, options))
        return real(X, k, **options)

    monkeypatch.setattr(similarities, "nearest", nearest)
    return calls


def same(a, b):
    assert a.sizes == b.sizes
    for name in ("vertex_of", "count", "first"):
        np.testing.assert_array_equal(getattr(a.vertices, name), getattr(b.vertices, name))
        assert getattr(a.vertices, name).dtype == getattr(b.vertices, name).dtype
    assert (a.vertices.column, a.vertices.form) == (b.vertices.column, b.vertices.form)
    np.testing.assert_array_equal(a.lookup.grams, b.lookup.grams)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(a.W, name), getattr(b.W, name))
    assert a.W.shape == b.W.shape


def test_min_count_excludes_rare_types_from_vertices_only(text):
    whole, frequent = (build_graph(text, CONTEXTS, GraphOptions(min_count=n)) for n in (1, 2))
    of, count = whole.vertices.vertex_of, whole.vertices.count
    assert 0 < (count >= 2).sum() < len(count)
    np.testing.assert_array_equal(frequent.vertices.vertex_of >= 0, count[of] >= 2)
    np.testing.assert_array_equal(frequent.vertices.count, count[count >= 2])
    assert frequent.sizes["excluded"] == (count[of] < 2).sum()
    one = int(frequent.vertices.first[0])
    name = vertex_text(text, frequent.vertices, int(frequent.vertices.vertex_of[one]))
    assert name == vertex_text(text, whole.vertices, int(of[one]))


@pytest.mark.parametrize("name", list(SETS))
def test_graph_equals_the_one_built_from_strings(name):
    sentences, (similarity, options) = random_sentences(20, 30), SETS[name]
    text = corpus_of(sentences)
    if name == "zeng2013":
        text = corpus_of(sentences := random_sentences(20, 30, list("中文字人二3，。a")))
    graph = build_graph(text, similarity, options)
    order = trigram_names(text, graph.vertices)
    X = np.nan_to_num(dense(weights(name, sentences, suffixes=SUFFIXES), order))
    cosine = X @ X.T / np.outer(*[np.linalg.norm(X, axis=1)] * 2)
    np.fill_diagonal(cosine, 0)
    W = graph.W.toarray()
    np.testing.assert_array_equal(W, W.T)
    assert W[W > 0] == pytest.approx(cosine[W > 0], abs=1e-6)
    # Ties are broken by rounding: check only pairs that are clearly among the first k, or not.
    kth = -np.sort(-cosine, axis=1)[:, options.k - 1 : options.k + 1]
    sure, never = cosine > np.maximum(kth[:, 1:], 0) + 1e-6, cosine < kth[:, :1] - 1e-6
    if options.symmetry == "union":
        sure, never = sure | sure.T, never & never.T
    else:
        sure, never = sure & sure.T, never | never.T
    assert (W[sure] > 0).all()
    assert not W[never | (cosine <= 0)].any()
    assert graph.sizes["edges"] == (W > 0).sum() / 2 > 20
    assert graph.sizes["vertices"] == len(order) == len(graph.vertices)


def test_punctuation_is_excluded_by_he2013(text):
    graph = build_graph(text, *SETS["he2013"])
    outside = [word in (",", ".", "...") for word in text.column("word").strings()]
    np.testing.assert_array_equal(graph.vertices.vertex_of < 0, outside)
    assert graph.sizes["excluded"] == sum(outside) > 0
    assert graph.vertices.form == "number"


@pytest.mark.parametrize("name", list(SETS))
def test_g15_sentence_order_does_not_matter(name, text):
    shuffled = text.select(np.random.default_rng(3).permutation(text.n_sentences))
    a, b = (build_graph(t, *SETS[name]) for t in (text, shuffled))
    np.testing.assert_array_equal(a.W.toarray(), b.W.toarray())
    np.testing.assert_array_equal(a.vertices.count, b.vertices.count)


def test_a_graph_is_cached(tmp_path, text, counted):
    made = build_graph(text, CONTEXTS, GraphOptions(), cache=tmp_path, threads=1)
    result = build_graph(text, CONTEXTS, GraphOptions(), cache=tmp_path, threads=2)
    same(made, result)
    assert len(counted) == 1
    same(made, build_graph(text, CONTEXTS, GraphOptions()))
    assert len(counted) == 2


def test_both_symmetries_share_cached_neighbors(tmp_path, text, counted):
    union = build_graph(text, CONTEXTS, GraphOptions(k=4), cache=tmp_path)
    mutual = build_graph(text, CONTEXTS, GraphOptions(k=4, symmetry="mutual"), cache=tmp_path)
    assert len(counted) == 1
    assert mutual.W.nnz < union.W.nnz
    same(mutual, build_graph(text, CONTEXTS, GraphOptions(k=4, symmetry="mutual")))


class Other(ContextSimilarity):
    """Another class with the same parameters, as two plugins may have."""


def test_cache_key_covers_all_arguments(tmp_path, text, counted):
    base = {"text": text, "similarity": CONTEXTS, "options": GraphOptions()}
    cut = Corpus(text.columns, np.array([0, text.n_tokens]))
    others = [
        {"text": text.select(np.arange(text.n_sentences)[::-1])},
        {"text": cut},
        {"counting_text": text},
        {"options": GraphOptions(k=4)},
        {"options": GraphOptions(max_df=3)},
        {"similarity": registered_similarity("zeng2013")},
        {"similarity": registered_similarity("he2013")},
        {"similarity": SETS["he2013"][0], "options": SETS["he2013"][1]},
        {"similarity": Other(CONTEXTS.templates)},
        {"similarity": ContextSimilarity(replace(CONTEXTS.templates, excluded_characters=","))},
        {"similarity": ContextSimilarity(replace(CONTEXTS.templates, vertex_form="number"))},
        {"similarity": ContextSimilarity(replace(CONTEXTS.templates, feature_form="number"))},
    ]
    for n, changed in enumerate([{}, *others], start=1):
        arguments = {**base, **changed}
        stored = build_graph(**arguments, cache=tmp_path)
        assert len(counted) == n
        same(stored, build_graph(**arguments, cache=tmp_path))
        assert len(counted) == n
    options = [call for _, call in counted]
    assert [o["max_df"] for o in options] == [None] * 5 + [3] + [None] * 7
    assert [k for k, _ in counted] == [5, 5, 5, 5, 4, 5, 5, 5, 6, 5, 5, 5, 5]


def test_options_change_the_graph():
    # few types with many contexts each: some meet less often than by chance
    sentences = random_sentences(25, 60, ["a", "b", "c"])
    text = corpus_of([[word for sentence in sentences for word in sentence]])
    more = corpus_of(random_sentences(22, 60), text.column("word").vocabulary)
    base = {"text": text, "similarity": CONTEXTS, "options": GraphOptions()}
    plain = build_graph(**base).W
    for changed in (
        {"options": GraphOptions(max_df=3)},
        {"counting_text": more},
    ):
        assert abs(build_graph(**{**base, **changed}).W - plain).max() > 1e-3


def test_vocabulary_does_not_matter(tmp_path, counted):
    sentences = random_sentences(23)
    a = build_graph(corpus_of(sentences), CONTEXTS, GraphOptions(), cache=tmp_path)
    other = corpus_of(sentences, Vocabulary(["never", "x1", "the"]))
    same(a, build_graph(other, CONTEXTS, GraphOptions(), cache=tmp_path))
    assert len(counted) == 1
    same(a, build_graph(other, CONTEXTS, GraphOptions()))


def test_damaged_cache_files_are_replaced(tmp_path, text, counted):
    made = build_graph(text, CONTEXTS, GraphOptions(), cache=tmp_path)
    files = sorted(tmp_path.rglob("*.npz"))
    assert len(files) == 2
    for damage in (lambda data: data[: len(data) // 2], lambda data: b"", lambda _: b"no zip"):
        for file in files:
            file.write_bytes(damage(file.read_bytes()))
        same(made, build_graph(text, CONTEXTS, GraphOptions(), cache=tmp_path))
    assert len(counted) == 4
    build_graph(text, CONTEXTS, GraphOptions(), cache=tmp_path)
    assert len(counted) == 4
    assert sorted(tmp_path.rglob("*")) == sorted([*{f.parent for f in files}, *files])


def test_flipped_bits_in_cache_files_are_detected(tmp_path):
    made = {"of": np.arange(3, dtype=np.int32), "sizes": np.array('{"a": 1}')}
    calls = []

    def get():
        return cached(tmp_path, "kind", {"a": 1}, lambda: calls.append(1) or made)

    get()
    (file,) = tmp_path.rglob("*.npz")
    whole = file.read_bytes()
    for i in range(0, len(whole), 5):
        file.write_bytes(whole[:i] + bytes([whole[i] ^ 4]) + whole[i + 1 :])
        result = get()
        assert {name: array.tolist() for name, array in result.items()} == {
            name: array.tolist() for name, array in made.items()
        }
    assert len(calls) > len(whole) / 10


def test_cache_files_of_another_key_or_edited_are_dropped(tmp_path):
    """Compiled code indexes with these arrays, and does not check bounds."""
    made = {"of": np.arange(3)}

    def get(key, arrays):
        return cached(tmp_path, "kind", {"a": key}, lambda: arrays)["of"].tolist()

    get(1, made)
    (file,) = tmp_path.rglob("*.npz")
    get(2, {"of": np.arange(9)})
    (other,) = set(tmp_path.rglob("*.npz")) - {file}
    file.write_bytes(other.read_bytes())
    assert get(1, made) == [0, 1, 2]
    with np.load(file) as archive:
        edited = {**archive, "of": np.arange(3) + 10**9}
    np.savez(file, **edited)
    assert get(1, made) == [0, 1, 2]
    file.unlink()
    file.mkdir()
    (file / "x").touch()
    assert get(1, made) == [0, 1, 2]
    assert get(1, None) == [0, 1, 2]


def test_unwritable_cache_is_ignored(tmp_path, text):
    (tmp_path / "file").write_text("")
    graph = build_graph(text, CONTEXTS, GraphOptions(), cache=tmp_path / "file")
    same(graph, build_graph(text, CONTEXTS, GraphOptions()))


def test_options_are_checked():
    for wrong in ({"k": 0}, {"max_df": 1}, {"symmetry": "both"}, {"kk": 1}):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(wrong, GraphOptions)


def test_text_without_vertices_or_column_is_refused():
    for sentences in ([[","], ["."]], []):
        with pytest.raises(UserError, match=r"no vertices.*give the graph some text"):
            build_graph(corpus_of(sentences), *SETS["he2013"])
    with pytest.raises(UserError, match="no column 'char'"):
        build_graph(corpus_of([["a"]]), CONTEXTS, GraphOptions(), column="char")


class SameFirstLetter:
    """Similarity 1 if the center words have the same first letter; excludes commas and periods."""

    vertex_form = "number"

    def excluded(self, text, column):
        return np.array([word in (",", ".") for word in text.column(column).strings()], np.bool_)

    def neighbors(self, text, vertices, options, *, counting_text=None, threads=1, progress=None):
        initial = [vertex_text(text, vertices, v)[1][0] for v in range(len(vertices))]
        index = np.full((len(initial), options.k), -1, np.int32)
        for v, letter in enumerate(initial):
            others = [u for u, other in enumerate(initial) if other == letter and u != v]
            index[v, : len(others)] = others[: options.k]
        return similarities.NeighborLists(index, np.where(index >= 0, 1.0, 0.0))

    def cache_key(self):
        return {}

    def neighbor_digest(self, text, vertices):
        return None


def test_graph_with_a_custom_similarity(tmp_path):
    text = corpus_of([["ab", ",", "ax"], ["b", "12", "17"]])
    assert isinstance(SameFirstLetter(), Similarity)
    graph = build_graph(text, SameFirstLetter(), GraphOptions(k=2), cache=tmp_path)
    assert graph.vertices.vertex_of[1] == -1
    of = graph.vertices.vertex_of
    edges = {(int(u), int(v)) for u, v in zip(*graph.W.nonzero(), strict=True)}
    pairs = [(of[0], of[2]), (of[4], of[5])]  # "12" and "17" are both <num>
    assert edges == {*pairs, *(pair[::-1] for pair in pairs)}
    same(graph, build_graph(text, SameFirstLetter(), GraphOptions(k=2), cache=tmp_path))
    assert graph.lookup.vertices(text).tolist()[::2] == of.tolist()[::2]


def test_registered_similarities():
    assert set(SETS) < set(registry().similarities)
    assert registered_similarity("he2013") == ContextSimilarity(HE2013)
    with pytest.raises(UserError, match="did you mean he2013"):
        registered_similarity("he2014")


def test_a_list_of_suffixes_in_place_of_the_learned_one():
    given = registered_similarity("he2013", ("ing", "s", "ing"))
    assert given == replace(registered_similarity("he2013"), suffixes=frozenset(["ing", "s"]))
    for name in ("subramanya2010", "letters"):
        with pytest.raises(UserError, match=f"similarity {name} reads no list of suffixes"):
            registered_similarity(name, ())


def test_target_that_is_not_a_similarity_is_refused(monkeypatch):
    info = replace(registry().similarity("he2013"), name="wrong", target="builtins:dict")
    monkeypatch.setitem(registry().similarities, "wrong", info)
    with pytest.raises(UserError, match="wrong: dict is not a Similarity"):
        registered_similarity("wrong")


def test_reach_of_a_template_set():
    assert TemplateSet((words("a", -3, 1), words("b", 0))).reach == 3
    assert CONTEXTS.templates.reach == 2


def test_progress_is_reported(text):
    messages = []
    build_graph(text, CONTEXTS, GraphOptions(), progress=messages.append)
    assert len(messages) == 2
    assert all("vertices" in line for line in messages)
