"""The embedded models: the same bits whatever the number of threads, and checks of their input."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sslbench.engine.compilation.threads import using_threads
from sslbench.engine.corpus import Column, Corpus, Vocabulary
from sslbench.engine.crf import ChainCRF, ChainModel
from sslbench.engine.crf.data import batches
from sslbench.engine.features import TemplateFeaturizer
from sslbench.engine.types import F64
from sslbench_methods.jess_cm.models import EmbeddedModels
from support.symbol_counts import whole
from support.synth_text import TEMPLATES, synth_text
from support.threads import THREADS


def counted() -> list[F64]:
    corpus = synth_text(300, seed=1)
    column = corpus.column("label")
    codes, labels = column.codes.astype(np.int32), tuple(column.vocabulary.strings)
    featurizer = TemplateFeaturizer(TEMPLATES)
    tables = EmbeddedModels.build(featurizer.templates, len(labels), [corpus], 2)
    crf = ChainModel().prepare(featurizer, corpus, codes, labels, n_factors=tables.n_models)
    rng = np.random.default_rng(0)
    crf.weights = rng.normal(0, 0.3, len(crf.weights))
    tables.state[:] = rng.normal(-5, 1, tables.state.shape)
    tables.arc[:] = rng.normal(-5, 1, tables.arc.shape)
    crf.weights[crf.factor_indices] = np.abs(crf.weights[crf.factor_indices])
    counts = tables.expected_counts(crf, [corpus])
    bound = tables.bind(corpus)
    assert bound.arc.shape[1] >= 2
    assert bound.state.shape[1] >= 3
    counted = [counts.chain, whole(counts.state), whole(counts.arc), np.array(counts.log_z)]
    moved = [
        tables.renew("state", counts.state, np.ones(tables.n_models), 0.1),
        tables.renew("arc", counts.arc, np.ones(tables.n_models), 0.1),
    ]
    return [*counted, np.array(moved), tables.state, tables.arc]


def test_counts_and_renewed_tables_have_the_same_bits() -> None:
    with using_threads(1):
        expected = counted()
    for threads in THREADS[1:]:
        with using_threads(threads):
            for found, wanted in zip(counted(), expected, strict=True):
                np.testing.assert_array_equal(found, wanted)


CORPUS = Corpus(
    {"word": Column(Vocabulary(["a", "b", "c"]), np.array([0, 1, 2, 0, 1], np.int32))},
    np.array([0, 3, 5]),
)


def crf_of(n_factors: int) -> ChainCRF:
    featurizer = TemplateFeaturizer(["word[0]", "edge: word[0]"])
    gold = np.array([0, 1, 0, 0, 1], np.int32)
    return ChainModel().prepare(featurizer, CORPUS, gold, ("X", "Y"), n_factors=n_factors)


def test_tables_of_another_text() -> None:
    tables = EmbeddedModels.build(TemplateFeaturizer(["word[0]"]).templates, 2, [CORPUS], 1)
    crf = crf_of(n_factors=tables.n_models)
    longer = Corpus.concatenate([CORPUS, CORPUS])
    with pytest.raises(ValueError, match="tables of 5 tokens"):
        crf.decode(crf.encode(longer, tables.bind(CORPUS)))
    with pytest.raises(ValueError, match="2 factor features, the model has 3"):
        crf_of(n_factors=3).encode(CORPUS, tables.bind(CORPUS))
    bound = tables.bind(CORPUS)
    with pytest.raises(ValueError, match="state rows"):
        replace(bound, state=bound.state + 99)


@pytest.mark.parametrize("unknown", [0, 1])
def test_copied_rows_have_the_same_scores_and_derivatives_and_no_counts(unknown: int) -> None:
    templates = TemplateFeaturizer(["word[0]", "bag: word[-1..1]", "edge: word[0]"]).templates
    read = Corpus.concatenate([CORPUS, CORPUS])
    tables = EmbeddedModels.build(templates, 2, [CORPUS], 2, unknown=unknown)
    rng = np.random.default_rng(0)
    tables.state[:] = rng.normal(-5, 1, tables.state.shape)
    tables.arc[:] = rng.normal(-5, 1, tables.arc.shape)
    bound = tables.bind(read)
    copied = bound.in_order()
    assert len(copied.arc_table) == len(np.unique(bound.arc[bound.arc >= 0]))
    first = copied.arc[copied.arc >= 0]
    in_order = first[np.sort(np.unique(first, return_index=True)[1])]
    np.testing.assert_array_equal(in_order, np.arange(len(copied.arc_table)))
    (batch,) = batches(read.offsets, 100)
    weights, edge = rng.normal(size=tables.n_models), rng.random((10, 2, 2))
    found = []
    for models in (bound, copied):
        node, pairs = np.zeros((10, 2)), np.zeros((10, 2, 2))
        models.add_scores(weights, batch, node, pairs)
        found.append((node, pairs[~batch.first], models.expectation(batch, node, edge)))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(ValueError, match="no counts"):
        copied.count(batch, node, edge, tables.counts)
