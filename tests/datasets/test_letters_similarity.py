"""Graphs of handwritten letters: images, similarities, nearest letters, options, methods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sslbench.engine.compilation.threads import using_threads
from sslbench.engine.corpus import Column, CorpusShards, Vocabulary
from sslbench.engine.crf import ChainModel, read_model
from sslbench.engine.errors import UserError
from sslbench.engine.features import TemplateFeaturizer
from sslbench.engine.graph.build import build_graph
from sslbench.engine.graph.options import GraphOptions
from sslbench.engine.graph.tokens import empirical
from sslbench.engine.graph.vertices import ngram_vertices
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.inputs.problem import Problem, relabeled
from sslbench_datasets.letters.emd import emd
from sslbench_datasets.letters.search import BORDER
from sslbench_datasets.letters.similarity import (
    LetterSimilarity,
    nearest_letters,
    vertex_images,
)
from sslbench_methods.featurizers.pixels import images
from sslbench_methods.graph_pr.gp_crf import GraphPropagationCRF
from sslbench_methods.graph_pr.propagation import GraphPropagation, likeliest
from support.letters_oracle import image_of, pixels_of, random_words, similarity, text_of
from support.propagation_oracle import harmonic_optimum


def graph_of(words: list[list[str]], similarity: Any = None, **options: Any) -> Any:
    similarity = similarity or LetterSimilarity()
    return build_graph(text_of(words), similarity, GraphOptions(**options), column="image")


# -- images ----------------------------------------------------------------------------------------
def test_pixels_are_in_the_order_of_the_featurizer() -> None:
    words = random_words(1, 30)
    text = text_of(words)
    vertices = ngram_vertices(text, "image")
    letters = vertex_images(text, vertices)
    bits = np.stack([letters.high, letters.low], axis=2).astype(">u8")[1]
    lit = np.unpackbits(bits.view(np.uint8), axis=1)
    np.testing.assert_array_equal(lit, images(text)[vertices.first])
    np.testing.assert_array_equal(lit.sum(axis=1), letters.lit[1])


@pytest.mark.parametrize("image", ["", "0" * 31, "0" * 33, "A" * 32, "word", "0" * 31 + "\n"])
def test_malformed_images_are_refused(image: str) -> None:
    with pytest.raises(UserError, match="32 lower-case hexadecimal digits"):
        graph_of([["0" * 32, image]])


# -- similarities ----------------------------------------------------------------------------------
def weight(words: list[list[str]], u: int, v: int, similarity: Any = None) -> float:
    """The weight of the edge between two tokens."""
    graph = graph_of(words, similarity, k=20)
    return float(graph.W[graph.vertices.vertex_of[u], graph.vertices.vertex_of[v]])


def test_ends_of_words() -> None:
    a, b, c, far = (image_of(*((r, x) for x in range(8))) for r in (3, 4, 5, 12))
    # Images of one row each have nothing in common: only equal ones have a cosine above 0.
    assert BORDER == 0.6
    # both alone in their words; alone and first; first and second; both in the middle
    assert weight([[a, b], [a, far]], 0, 2) == pytest.approx(0.8 + 0.1 * 0.6)
    assert weight([[b, a], [far, a]], 1, 3) == pytest.approx(0.8 + 0.1 * 0.6)
    assert weight([[a], [a, b]], 0, 1) == pytest.approx(0.8 + 0.1 * 0.6)
    assert weight([[a, b], [b, a, b]], 0, 3) == pytest.approx(0.8 + 0.1 * 1.0)
    assert weight([[c, a, b], [c, a, far]], 1, 4) == pytest.approx(0.8 + 0.1 * 1.0)
    assert weight([[c, a, b], [far, a, c]], 1, 4) == pytest.approx(0.8)
    assert weight([[c, a], [c, a, far]], 1, 3, LetterSimilarity(0.2)) == pytest.approx(0.8 + 0.2)


def test_cosine_must_be_above_0_3() -> None:
    def of(common: int, only: int) -> list[tuple[int, int]]:
        return [divmod(i, 8) for i in range(common)] + [divmod(64 + i, 8) for i in range(only)]

    P = image_of(*of(3, 7))
    less = image_of(*((y, x) if y < 8 else (y + 4, x) for y, x in of(3, 7)))
    more = image_of(*((y, x) if y < 8 else (y + 4, x) for y, x in of(3, 6)))
    assert weight([[P, P], [less]], 0, 2) == 0.0
    assert weight([[P], [more]], 0, 1) > 0.0


@pytest.mark.parametrize("beta", [0.1, 0.2, 0.0])
@pytest.mark.parametrize("k", [1, 4, 70])
def test_neighbors_equal_those_of_all_pairs(beta: float, k: int) -> None:
    words = random_words(5, 60)
    text = text_of(words)
    vertices = ngram_vertices(text, "image")
    result = nearest_letters(vertex_images(text, vertices), k, neighbor_weight=beta, threads=1)
    lit = [[pixels_of(image) for image in word] for word in words]
    places = [(w, t) for w, word in enumerate(words) for t in range(len(word))]
    place = [places[token] for token in vertices.first]
    want = np.array([[similarity(lit, u, v, beta) for v in place] for u in place])
    np.fill_diagonal(want, 0.0)
    assert 0.2 < (want > 0).mean() < 0.9
    for i, row in enumerate(want):
        best = np.sort(row)[::-1][:k]
        size = int((best > 0).sum())
        np.testing.assert_allclose(result.similarity[i, :size], best[:size], rtol=0, atol=1e-12)
        ids = result.index[i, :size]
        np.testing.assert_allclose(row[ids], result.similarity[i, :size], rtol=0, atol=1e-12)
        assert len(set(ids.tolist())) == size
        assert (result.index[i, size:] == -1).all()
        assert not result.similarity[i, size:].any()
        # the smaller index first among equals, as far as equal ones are known to be
        same = np.flatnonzero(np.diff(result.similarity[i, :size]) == 0)
        assert (ids[same] < ids[same + 1]).all()


def test_ties_at_the_end_of_a_list_go_to_the_smaller_index() -> None:
    one = image_of((0, 0), (0, 1), (5, 5), (6, 6))
    words = [[one, image_of((r, c))] for r in range(6) for c in range(8)]
    text = text_of(words)
    vertices = ngram_vertices(text, "image")
    result = nearest_letters(vertex_images(text, vertices), 3, threads=1)
    first = sorted(vertices.vertex_of[::2].tolist())
    for u in first:
        assert result.index[u].tolist() == [v for v in first if v != u][:3]


def test_order_of_words_does_not_matter() -> None:
    words = random_words(7, 80)
    order = np.random.default_rng(1).permutation(len(words))
    a, b = graph_of(words, k=5), graph_of([words[i] for i in order], k=5)
    assert (a.W != b.W).nnz == 0
    assert a.W.nnz > 0
    np.testing.assert_array_equal(
        a.lookup.vertices(text_of([words[i] for i in order])), b.vertices.vertex_of
    )


@pytest.mark.parametrize("symmetry", ["union", "mutual"])
def test_edges_have_the_same_bits_in_both_directions(symmetry: str) -> None:
    W = graph_of(random_words(8, 80), k=6, symmetry=symmetry).W
    assert (W != W.T).nnz == 0
    assert not W.diagonal().any()


def test_results_are_independent_of_threads() -> None:
    text = text_of(random_words(9, 400))
    letters = vertex_images(text, ngram_vertices(text, "image"))
    one, two = (nearest_letters(letters, 9, threads=n) for n in (1, 2))
    np.testing.assert_array_equal(one.index, two.index)
    np.testing.assert_array_equal(one.similarity, two.similarity)
    P = np.repeat(np.stack([letters.high[1], letters.low[1]], axis=1), 8, axis=0)
    result = []
    for threads in (1, 2):
        with using_threads(threads):
            result.append(emd(P, P[::-1]))
    np.testing.assert_array_equal(*result)


# -- options and runs ------------------------------------------------------------------------------
def test_neighbor_weight_is_in_the_cache_key(tmp_path: Path) -> None:
    text, options = text_of(random_words(10, 60)), GraphOptions(k=4)
    similarities = [LetterSimilarity(beta) for beta in (0.1, 0.2)]
    for _ in range(2):
        stored = [
            build_graph(text, s, options, column="image", cache=tmp_path) for s in similarities
        ]
    fresh = [build_graph(text, s, options, column="image") for s in similarities]
    for a, b in zip(stored, fresh, strict=True):
        assert (a.W != b.W).nnz == 0
    assert (stored[0].W != stored[1].W).nnz > 0
    assert len(list((tmp_path / "graphs").iterdir())) == 2


def test_orders_of_words_share_cached_neighbors(tmp_path: Path) -> None:
    words = random_words(10, 60)
    graphs = []
    for ordered in (words, words[::-1]):
        text = text_of(ordered)
        graphs.append(
            build_graph(text, LetterSimilarity(), GraphOptions(k=4), column="image", cache=tmp_path)
        )
    assert (graphs[0].W != graphs[1].W).nnz == 0
    assert len(list((tmp_path / "neighbors").iterdir())) == 1
    assert len(list((tmp_path / "graphs").iterdir())) == 2


def test_options_of_context_features_are_refused() -> None:
    words, text = random_words(11, 10), text_of(random_words(11, 10))
    for options in ({"max_df": 5}, {"search": "approximate"}):
        with pytest.raises(UserError, match="image by image"):
            graph_of(words, **options)
    with pytest.raises(UserError, match="image by image"):
        build_graph(text, LetterSimilarity(), GraphOptions(), column="image", counting_text=text)
    with pytest.raises(UserError, match="1 or more"):
        nearest_letters(vertex_images(text, ngram_vertices(text, "image")), 0)
    for beta in (-0.1, float("nan")):
        with pytest.raises(UserError, match="0 or more"):
            LetterSimilarity(beta)


def test_progress_ends_with_all_letters() -> None:
    text, messages = text_of(random_words(12, 300)), []
    letters = vertex_images(text, ngram_vertices(text, "image"))
    n = letters.lit.shape[1]
    nearest_letters(letters, 3, threads=1, progress=messages.append)
    assert f"{n:,} of {n:,} letters" in messages[-1]
    assert len(messages) > 1


METHODS = {"graph_propagation": GraphPropagation, "gp_crf": GraphPropagationCRF}
OPTIONS: dict[str, Any] = {"column": "image", "similarity": "letters", "neighbors": 5}


def problem(seed: int = 13) -> Problem:
    """Words of letters with random labels; every fourth word is labeled."""
    text = text_of(random_words(seed, 160))
    is_labeled = np.arange(text.n_sentences) % 4 == 0
    labeled = text.select(np.flatnonzero(is_labeled))
    codes = np.random.default_rng(seed).integers(0, 3, labeled.n_tokens).astype(np.int32)
    gold = relabeled(labeled.with_column("label", Column(Vocabulary("abc"), codes)))
    rest = text.select(np.flatnonzero(~is_labeled))
    labels = tuple(gold.column("label").vocabulary.strings)
    featurizer = TemplateFeaturizer(["image[0]"])
    shards = CorpusShards(rest, rest.n_tokens // 2 + 1)
    return Problem("tagging", None, labels, gold, shards, None, featurizer, ChainModel())


@pytest.mark.parametrize("name", list(METHODS))
def test_methods_run_on_letters(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSLBENCH_CACHE", str(tmp_path / "cache"))
    given, method, run = problem(), METHODS[name], RunContext()
    fit: Any = method().fit(given, method.Params(**OPTIONS), run)
    text = given.text("image")
    result = fit.predict(text)
    assert run.trace["graph"]["edges"] > 0
    fit.save(tmp_path / "my.model")
    _, arrays, metadata = read_model(tmp_path / "my.model")
    np.testing.assert_array_equal(method.restore(arrays, metadata).predict(text), result)
    if name == "gp_crf":
        return
    options = GraphOptions(k=5, symmetry="mutual")
    graph = build_graph(text, LetterSimilarity(), options, column="image")
    gold, of = given.labeled, graph.vertices.vertex_of
    codes = given.label_codes(gold)
    r, labeled = empirical(of[: gold.n_tokens], codes, len(graph.vertices), 3)
    q = harmonic_optimum(graph.W, r, labeled)
    q[np.ptp(q, axis=1) < 1e-6] = np.eye(3)[np.bincount(codes).argmax()]
    np.testing.assert_array_equal(result, likeliest(q)[of])


@pytest.mark.parametrize("name", list(METHODS))
def test_missing_column_is_refused(name: str) -> None:
    method = METHODS[name]
    with pytest.raises(UserError, match="no column 'word'"):
        method().fit(problem(), method.Params(**{**OPTIONS, "column": "word"}), RunContext())
