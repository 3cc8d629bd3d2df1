"""Bundles of attributes: what is in them, and that they change neither scores nor gradients."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sslbench.engine.compilation.threads import using_threads
from sslbench.engine.corpus import Corpus
from sslbench.engine.crf import ChainCRF, ChainModel, HardLabels, TrainingParams
from sslbench.engine.crf.chain_model import SecondOrderModel
from sslbench.engine.crf.dual import ascent
from sslbench.engine.crf.encoded_corpus import EncodedCorpus
from sslbench.engine.crf.objective import evaluate_terms
from sslbench.engine.crf.weights import bundles
from sslbench.engine.crf.weights.bundles import Bundled, TokenSums
from sslbench.engine.crf.weights.tables import WeightTables
from sslbench.engine.features import TemplateFeaturizer
from sslbench.engine.types import F64, I32
from support.synth_text import synth_text
from support.threads import THREADS

TEMPLATES = [
    "bias",
    *(f"word{form}[{k}]" for k in (-1, 0, 1) for form in ("", ".suffix1", ".suffix2", ".shape")),
    "word[-1]|word[0]",
    "bag: word[-3..-1]",
    "edge: word[0]",
    "edge: word.suffix2[0]",
    "edge: word.suffix1[0]",
    "edge: word.shape[-1]",
]


@pytest.fixture(autouse=True)
def short_texts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundles, "FEWEST_TOKENS", 0)


def problem(model: ChainModel, support: str) -> tuple[ChainCRF, Corpus, I32]:
    corpus = synth_text(120, seed=2, lexicon=300)
    column = corpus.column("label")
    codes, labels = column.codes.astype(np.int32), tuple(column.vocabulary.strings)
    crf = model.prepare(TemplateFeaturizer(TEMPLATES), corpus, codes, labels, state_support=support)
    crf.weights = np.random.default_rng(0).normal(0, 0.3, len(crf.weights))
    return crf, corpus, codes


def value_and_gradient(crf: ChainCRF, data: EncodedCorpus, codes: I32) -> tuple[F64, F64]:
    counts = np.empty(crf.layout.size)
    gradient = WeightTables.gradient(crf.layout, counts)
    values = evaluate_terms(crf.layout, crf.weights, [(data, HardLabels(codes))], None, gradient)
    gradient.pack(counts)
    return np.concatenate(values), counts


@pytest.mark.parametrize("model", [ChainModel(), SecondOrderModel()])
@pytest.mark.parametrize("support", ["all", "observed"])
def test_scores_and_gradients_are_those_without_bundles(model: ChainModel, support: str) -> None:
    crf, corpus, codes = problem(model, support)
    plain = crf.encode(corpus)
    bundled = replace(plain, reused=True)
    assert plain.states.n_bundles == plain.edges.n_bundles == 0
    assert bundled.states.n_bundles > 50
    assert bundled.edges.n_bundles > 20
    for found, wanted in zip(
        value_and_gradient(crf, bundled, codes), value_and_gradient(crf, plain, codes), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)
    for a, b in zip(crf.potentials(bundled), crf.potentials(plain), strict=True):
        np.testing.assert_allclose(a.node, b.node, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(a.edge, b.edge, rtol=1e-12, atol=1e-12)


def test_the_same_bits_for_any_number_of_threads() -> None:
    crf, corpus, codes = problem(ChainModel(), "observed")
    results = []
    for threads in THREADS:
        with using_threads(threads):
            data = replace(crf.encode(corpus), reused=True)
            results.append(value_and_gradient(crf, data, codes))
            assert data.states.tokens.shares == threads
    for values, gradient in results[1:]:
        np.testing.assert_array_equal(values, results[0][0])
        np.testing.assert_array_equal(gradient, results[0][1])


@pytest.mark.parametrize(("ftol", "bundled"), [(1e-2, False), (0.0, True)])
def test_a_start_that_is_good_enough_is_evaluated_without_them(
    ftol: float, bundled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bundles pay off from the second evaluation on."""
    crf, corpus, codes = problem(ChainModel(), "observed")
    crf.weights[:] = 0.0
    monkeypatch.setattr(ascent, "FEWEST_TOKENS", 0)
    build, seen = Bundled.build, []

    def collect(*args: Any, reused: bool, **options: Any) -> Bundled:
        seen.append(reused)
        return build(*args, reused=reused, **options)

    monkeypatch.setattr(Bundled, "build", collect)
    params = TrainingParams(sigma2=1.0, ftol=ftol)
    result = crf.train([(crf.encode(corpus), HardLabels(codes))], params)
    assert result.converged
    assert any(seen) == bundled


def attributes_of(sums: TokenSums, members: TokenSums, n: int) -> list[int]:
    """Rows of token n, those of its bundles included."""
    own = sums.row[sums.row_border[n * sums.shares] : sums.row_border[(n + 1) * sums.shares]]
    found = own.tolist()
    for b in sums.bundle[n]:
        if b < len(members.bundle):
            found += attributes_of(members, members, b)
    return sorted(found)


@pytest.mark.parametrize("threads", THREADS)
def test_a_token_adds_up_its_attributes_whether_in_bundles_or_not(threads: int) -> None:
    rng = np.random.default_rng(3)
    word = np.minimum(rng.geometric(0.02, 4000), 300).astype(np.int32)
    tag = rng.integers(0, 3, (2, 4000), dtype=np.int32)
    ids = np.stack([word, 400 + word % 50, 500 + word % 7, 600 + tag[0], 610 + tag[1]])
    ids[1, ::9] = -1
    with using_threads(threads):
        found = Bundled.build(ids, None, None, 12, spelled=True, reused=True)
    assert len(found.members.bundle) == found.n_bundles > 60
    assert (found.tokens.bundle <= found.n_bundles).all()
    for n in range(4000):
        wanted = sorted(i for i in ids[:, n].tolist() if i >= 0)
        assert attributes_of(found.tokens, found.members, n) == wanted
    used = np.bincount(found.tokens.bundle.reshape(-1), minlength=found.n_bundles)
    assert used[: found.n_bundles].min() >= 2
    own = found.tokens.row_border[-1] + used[: found.n_bundles].sum()
    assert own < 0.6 * (ids >= 0).sum()


def test_what_never_recurs_is_in_no_bundle() -> None:
    ids = np.arange(8000, dtype=np.int32).reshape(2, 4000)
    found = Bundled.build(ids, None, None, 12, spelled=True, reused=True)
    assert found.n_bundles == 0
    assert found.tokens.bundle.shape == (4000, 0)
