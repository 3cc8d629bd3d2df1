"""Texts with transitions by position, a few sentences at a time, against batches of matrices."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

from sslbench.engine.compilation.threads import using_threads
from sslbench.engine.corpus import Corpus
from sslbench.engine.crf import (
    ChainCRF,
    ChainModel,
    HardLabels,
    InfeasibleSentenceError,
    LogPartition,
    Objective,
    Term,
    encoded_corpus,
    fused,
)
from sslbench.engine.crf.encoded_corpus import EncodedCorpus
from sslbench.engine.crf.first_order.live import LivePotentials
from sslbench.engine.crf.weights import bundles
from sslbench.engine.features import TemplateFeaturizer
from sslbench.engine.types import F64, I32, Bool
from support.compare import close
from support.synth_text import synth_text
from support.threads import THREADS

TEMPLATES = [
    "bias",
    "word[0]",
    "word.suffix2[-1]",
    "edge: word[0]",
    "edge: word.suffix1[0]",
]


class LabelsByMatrices(HardLabels):
    """The same term, which gets a matrix for each position."""

    live: ClassVar[bool] = False


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short texts have bundles, and several batches of several steps."""
    monkeypatch.setattr(bundles, "FEWEST_TOKENS", 0)
    monkeypatch.setattr(fused, "STEP_TOKENS", 40)
    monkeypatch.setattr(encoded_corpus, "LIVE_BATCH", 150)
    monkeypatch.setattr(encoded_corpus, "FUSED_TOKENS", 0)


def problem(scale: float = 0.5) -> tuple[ChainCRF, Corpus, I32]:
    corpus = synth_text(60, seed=4, lexicon=200)
    column = corpus.column("label")
    codes, labels = column.codes.astype(np.int32), tuple(column.vocabulary.strings)
    featurizer = TemplateFeaturizer(TEMPLATES)
    crf = ChainModel().prepare(featurizer, corpus, codes, labels, state_support="observed")
    crf.weights = np.random.default_rng(0).normal(0, scale, len(crf.weights))
    return crf, corpus, codes


def value_and_gradient(
    crf: ChainCRF, data: EncodedCorpus, term: Term, mask: Bool | None
) -> tuple[float, F64]:
    objective = Objective(crf.layout, [(data, term)], 10.0, transition_mask=mask)
    gradient = np.empty(crf.layout.size)
    return objective.value_and_gradient(crf.weights, gradient), gradient


def allowed(codes: I32, corpus: Corpus, n_labels: int) -> Bool:
    """Only the transitions of the labels."""
    mask = np.zeros((n_labels + 1, n_labels), np.bool_)
    mask[codes[:-1], codes[1:]] = mask[n_labels, codes[corpus.offsets[:-1]]] = True
    return mask


@pytest.mark.parametrize("reused", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("scale", [0.5, 60.0])
def test_the_same_with_a_matrix_for_each_position(scale: float, masked: bool, reused: bool) -> None:
    """With a scale of 60, most sentences are done in log space."""
    crf, corpus, codes = problem(scale)
    data = replace(crf.encode(corpus), reused=reused)
    assert data.live is not None
    assert len(data.live_batches) > 2
    weights = np.random.default_rng(1).uniform(0, 2, corpus.n_sentences)
    weights[::5] = 0.0
    mask = allowed(codes, corpus, len(crf.labels)) if masked else None
    for given in ((codes,), (codes, weights)):
        term, plain = HardLabels(*given), LabelsByMatrices(*given)
        value, gradient = value_and_gradient(crf, data, term, mask)
        wanted, other = value_and_gradient(crf, data, plain, mask)
        assert value == pytest.approx(wanted, rel=1e-11)
        close(gradient, other, 1e-9)


def test_the_same_bits_for_any_number_of_threads() -> None:
    crf, corpus, codes = problem()
    found = []
    for threads in THREADS:
        with using_threads(threads):
            data = replace(crf.encode(corpus), reused=True)
            value, gradient = value_and_gradient(crf, data, HardLabels(codes), None)
        found.append((value, gradient.tobytes()))
    assert len(set(found)) == 1


def test_the_same_bits_as_with_the_potentials_of_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records need not be made again."""
    crf, corpus, codes = problem()
    data = replace(crf.encode(corpus), reused=True)
    found = value_and_gradient(crf, data, HardLabels(codes), None)
    monkeypatch.setattr(EncodedCorpus, "suits_fused", False)
    value, gradient = value_and_gradient(crf, data, HardLabels(codes), None)
    assert found[0] == value
    np.testing.assert_array_equal(found[1], gradient)


def test_terms_on_potentials_are_left_to_other_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dense columns, factor features and forced labels need the potentials of a batch."""
    crf, corpus, codes = problem()
    text = crf.encode(corpus)
    forced = replace(text, forced_labels=codes)
    value, _ = value_and_gradient(crf, forced, HardLabels(codes), None)
    assert value == pytest.approx(-0.5 * crf.weights @ crf.weights / 10.0)  # nothing else is left

    def fails(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(LivePotentials, "__post_init__", fails)
    value_and_gradient(crf, text, HardLabels(codes), None)
    with pytest.raises(AssertionError):
        value_and_gradient(crf, forced, HardLabels(codes), None)


@pytest.mark.parametrize("threads", THREADS)
def test_labels_that_are_impossible(threads: int) -> None:
    crf, corpus, codes = problem()
    mask = allowed(codes, corpus, len(crf.labels))
    lo = corpus.offsets[7]
    wrong = codes.copy()
    banned = np.argwhere(~mask[:-1])[0]
    wrong[lo : lo + 2] = banned
    with using_threads(threads):
        data = crf.encode(corpus)
        with pytest.raises(InfeasibleSentenceError, match="sentence 7: its labels break"):
            value_and_gradient(crf, data, HardLabels(wrong), mask)
        mask[-1] = False
        with pytest.raises(InfeasibleSentenceError, match="sentence 0: no label sequence"):
            value_and_gradient(crf, data, LogPartition(), mask)
    with pytest.raises(ValueError, match="labels"):
        value_and_gradient(crf, data, HardLabels(codes + np.int32(99)), None)
