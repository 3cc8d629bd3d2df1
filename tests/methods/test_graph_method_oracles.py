"""Worked numbers of graph self-training and virtual evidence, on the code that methods run.

`test_graph_self_training` and `test_virtual_evidence` test the parts; here propagation, clamping
and whole methods stand in the place of a test's own arithmetic.
"""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from sslbench.engine.corpus import Column, CorpusShards, Vocabulary, first_tokens
from sslbench.engine.crf import ChainCRF, ChainModel, HardLabels, Objective, VirtualEvidence
from sslbench.engine.crf.encoded_corpus import EncodedCorpus
from sslbench.engine.crf.objective import batch_potentials
from sslbench.engine.crf.weights.tables import WeightTables
from sslbench.engine.features import TemplateFeaturizer
from sslbench.engine.graph.propagation.quadratic import propagate_optimum
from sslbench.engine.types import F64, I32
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.inputs.problem import Problem, relabeled
from sslbench.experiment.metrics import coverage, score
from sslbench_datasets.chinese.text import SegmentedText, characters
from sslbench_methods.graph_self_training.algorithm import TypeTrainer, decode, mix, propagate
from sslbench_methods.graph_self_training.method import GraphSelfTraining, TypeParams
from sslbench_methods.supervised import Supervised
from sslbench_methods.virtual_evidence.em import EStep
from sslbench_methods.virtual_evidence.method import VirtualEvidenceTraining
from support.chunks import spans_of
from support.compare import close
from support.evidence_toys import OPTIMUM, TOKENS, Q
from support.graph_toys import LABELED, UNLABELED, Y, corpus, crf_over, encoded, toy
from support.self_training_toys import (
    GRAPH,
    GUESS,
    IN_LABELED,
    VERTEX_OF,
    WEIGHTS,
    R,
    three_tokens,
    vertices,
)
from support.self_training_toys import score as path_score
from support.texts import corpus_of

pytestmark = pytest.mark.usefixtures("own_cache")


MU, NU = 0.5, 0.01


def log_z(crf: ChainCRF, data: EncodedCorpus) -> F64:
    tables = WeightTables.unpack(crf.layout, crf.weights)
    return np.concatenate(
        [batch_potentials(tables, data, batch).posterior().log_z() for batch in data.batches]
    )


# -- S: graph self-training ------------------------------------------------------------------------


def test_s3_decoding_is_no_choice_token_by_token() -> None:
    crf, data = three_tokens([[0.4, -0.6], [-0.1, 0.3]])
    mixed = np.array([[0.86, 0.14], [0.26, 0.74], [0.62, 0.38]])
    assert decode(crf, data, mixed).tolist() == [0, 0, 0]
    assert mixed.argmax(axis=1).tolist() == [0, 1, 0]


@pytest.mark.parametrize("L", [2, 3, 4])
def test_s3_decoding_against_all_sequences(L: int) -> None:
    rng = np.random.default_rng(L)
    for T in range(1, 7):
        text = corpus([t % 4 for t in range(T)])
        crf = crf_over(text, np.zeros(T, np.int32), n_labels=L)
        crf.weights[:] = rng.normal(size=len(crf.weights))
        A, mixed = crf.weights[-L * L :].reshape(L, L), rng.dirichlet(np.ones(L), size=T)
        best = max(product(range(L), repeat=T), key=lambda y: path_score(mixed, A, y))
        assert decode(crf, crf.encode(text), mixed).tolist() == list(best)


def test_s4_the_same_crf_written_in_another_way() -> None:
    A, U = np.array([[0.2, -0.2], [-0.2, 0.2]]), np.array([[0.3, -0.1], [0.2, 0.5], [-0.4, 0.1]])
    mixed = np.array([[0.6, 0.4], [0.45, 0.55], [0.55, 0.45]])
    marginals = []
    for move, raw in ((0.0, [0, 0, 0]), (0.9, [0, 1, 1])):
        crf, data = three_tokens(A + np.array([0, move]))
        crf.weights[:6] = (U - move * np.array([[0, 0], [0, 1], [0, 1]])).ravel()
        marginals.append(crf.marginals(data))
        assert decode(crf, data, mixed).tolist() == raw
        assert decode(crf, data, mixed, centered=True).tolist() == [0, 0, 0]
    close(marginals[0], marginals[1], 1e-15)


def test_s5_one_full_round() -> None:
    crf, W, seen = toy(WEIGHTS), csr_array(GRAPH), {}

    def smooth(q: F64) -> F64:
        seen["means"] = q
        for steps in (1, 10):
            seen[steps] = propagate(W, q, R, IN_LABELED, MU, NU, steps)
        return seen[10]

    text, params = encoded(crf, [UNLABELED]), TypeParams(omega=1.0)
    one = TypeTrainer(crf, text, vertices(VERTEX_OF), smooth, params.label, params, RunContext())
    close(log_z(crf, text.labeled[0]), 2.0582789501)
    close(log_z(crf, text.unlabeled[0]), [2.3449936727, 1.4748658270])
    one.relabel()
    printed = {
        "means": [0.7990105952, 0.2723542539, 0.5490440592, 0.3237631411, 0.4116711196],
        1: [0.8719863050, 0.0953937989, 0.7893650921, 0.3617042411, 0.3305414818],
        10: [0.9524693196, 0.0538012046, 0.9375746050, 0.1695576890, 0.1895665828],
    }
    for name, column in printed.items():
        close(seen[name][:, 0], column)
    best = propagate_optimum(W, R, IN_LABELED, MU, NU, tolerance=1e-13)
    close(best[:, 0], [0.9517785279, 0.0503959708, 0.9372050270, 0.1651457971, 0.1780248049])
    assert one.guesses[0].tolist() == GUESS.tolist() == [0, 0, 1, 0, 1]
    mixed = mix(one.marginals()[1], seen[10], VERTEX_OF[2:], 0.6)
    close(mixed[:, 0], [0.7044562775, 0.8196228750, 0.2620809602, 0.2685231536, 0.3228293049])
    A = np.array(WEIGHTS[4:])
    for rows, y, value in (
        (mixed[:3], (0, 0, 1), -0.3531611269),
        (mixed[3:], (0, 1), -0.9046500390),
    ):
        close(path_score(rows, A, y), value)
        assert max(product((0, 1), repeat=len(y)), key=lambda z: path_score(rows, A, z)) == y


def test_s6_the_gradient_is_that_of_the_value() -> None:
    crf, gradient = toy(WEIGHTS), np.empty(12)
    parts = [
        (crf.encode(LABELED), HardLabels(Y)),
        (crf.encode(UNLABELED), HardLabels(GUESS, np.full(2, 0.1))),
    ]
    objective = Objective(crf.layout, parts, 50.0)
    objective.value_and_gradient(crf.weights, gradient)
    slopes = [
        (
            objective.value_and_gradient(crf.weights + h, np.empty(12))
            - objective.value_and_gradient(crf.weights - h, np.empty(12))
        )
        / 2e-5
        for h in 1e-5 * np.eye(12)
    ]
    close(gradient, slopes, 3e-10)


def test_s3_text_of_several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    text = corpus(*(rng.integers(0, 4, n).tolist() for n in (3, 1, 4, 2, 5)))
    crf = crf_over(text, np.zeros(15, np.int32), n_labels=3)
    crf.weights[:] = rng.normal(size=len(crf.weights))
    mixed, data = rng.dirichlet(np.ones(3), size=15), crf.encode(text)
    (_,) = data.batches
    whole = decode(crf, data, mixed)
    monkeypatch.setattr("sslbench.engine.crf.encoded_corpus.SHARED_BATCH", 4)
    parts = crf.encode(text)
    assert len(parts.batches) == 3
    np.testing.assert_array_equal(decode(crf, parts, mixed), whole)


def places() -> Problem:
    """ "b", never labeled, stands where "a" does; by its own the CRF takes it for label 0."""
    labeled = [["l", "a", "r"]] * 2 + [["m", "f", "n"]] * 4
    gold = [0, 1, 0] * 2 + [0, 0, 0] * 4
    text = corpus_of([*labeled, *[["l", "b", "r"]] * 5])
    labels = Column(Vocabulary(["0", "1"]), np.array(gold, np.int32))
    labeled = relabeled(text.select(np.arange(6)).with_column("label", labels))
    shards = CorpusShards(text.select(np.arange(6, 11)))
    featurizer = TemplateFeaturizer(["word[0]"])
    return Problem("tagging", None, ("0", "1"), labeled, shards, None, featurizer, ChainModel())


def tags_of_b(**options: Any) -> tuple[list[int], F64]:
    params = GraphSelfTraining.Params(
        feature_pruning="none",
        retraining=10_000,
        eta_scale="sentence",
        **{"sigma2": 50.0, "omega": 1.0, "alpha": 0.1, "eta": 1.0, "ftol": 1e-10, **options},
    )
    fit = GraphSelfTraining().fit(places(), params, RunContext())
    return fit.predict(corpus_of([["l", "b", "r"], ["l", "a", "r"]])).tolist(), fit.weights


def test_s10_an_unseen_word_is_tagged_as_the_one_in_its_place() -> None:
    problem = places()
    alone = Supervised().fit(problem, Supervised.Params(sigma2=50.0), RunContext())
    assert alone.predict(corpus_of([["l", "b", "r"]])).tolist() == [0, 0, 0]
    assert tags_of_b()[0] == [0, 1, 0] * 2
    assert tags_of_b(mu=0.0)[0] == [0, 0, 0, 0, 1, 0]  # no edges


def test_s8_limits_of_the_method() -> None:
    """No share of the graph: neither mu, nu nor neighbors matter; no weight: supervised."""
    others = [{"mu": 3.0}, {"nu": 1.0}, {"neighbors": 1, "symmetry": "mutual"}, {"steps": 0}]
    one = tags_of_b(alpha=1.0)[1]
    for changed in others:
        np.testing.assert_array_equal(tags_of_b(alpha=1.0, **changed)[1], one)
    plain = [tags_of_b(eta=0.0, **changed)[1] for changed in ({}, *others)]
    for weights in plain:
        close(weights, plain[0], 1e-5)
    assert abs(one - plain[0]).max() > 0.01
    problem = places()
    alone = Supervised().fit(problem, Supervised.Params(sigma2=50.0, ftol=1e-10), RunContext())
    assert not plain[0][12:14].any()  # of "b"
    close(np.delete(plain[0], range(12, 14)), alone.weights, 1e-4)


# -- V: virtual evidence ---------------------------------------------------------------------------


def test_v1_the_clamped_posterior() -> None:
    crf = toy(OPTIMUM)
    data, term = crf.encode(UNLABELED), VirtualEvidence(Q, TOKENS, 0.7)
    (batch,) = data.batches
    free = batch_potentials(WeightTables.unpack(crf.layout, crf.weights), data, batch)
    clamped, plain = term.clamp(free).posterior(), free.posterior()
    p = [0.6550076354, 0.6455296758, 0.3439435025, 0.4565687346, 0.2895767473]
    close(clamped.node[:, 0], p, 2e-10)
    close(clamped.log_z() - plain.log_z(), [0.5474714865, 0.6433012086], 2e-10)
    U, A = OPTIMUM[:8].reshape(4, 2), OPTIMUM[8:].reshape(2, 2)
    for codes, rows, lo in (([2, 0, 3], Q[:3], 0), ([1, 3], Q[3:], 3)):
        share = np.zeros((len(codes), 2))
        for y in product((0, 1), repeat=len(codes)):
            total = sum(U[x, b] + 0.7 * q[b] for x, q, b in zip(codes, rows, y, strict=True))
            weight = np.exp(total + sum(A[arc] for arc in pairwise(y)))
            share[np.arange(len(y)), y] += weight
        close(clamped.node[lo : lo + len(codes)], share / share.sum(axis=1, keepdims=True), 1e-14)


def test_v2_text_of_several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    crf, found = toy(OPTIMUM), []
    for batch in (4096, 2):
        monkeypatch.setattr("sslbench.engine.crf.encoded_corpus.SHARED_BATCH", batch)
        data, term = crf.encode(UNLABELED), VirtualEvidence(Q, TOKENS, 0.7)
        assert len(data.batches) == (1 if batch > 5 else 2)
        gradient = np.empty(12)
        value = Objective(crf.layout, [(data, term)], 4.0).value_and_gradient(OPTIMUM, gradient)
        expected = EStep.under(crf, [(data, term)])
        entropy = expected.record()["clamped_entropy"]
        found.append([value, *gradient, expected.value, *expected.counts, entropy])
    close(found[0], found[1], 1e-14)


def evidence(problem: Problem, **options: Any) -> tuple[ChainCRF, dict[str, Any]]:
    method, run = VirtualEvidenceTraining(), RunContext()
    fit = method.fit(problem, method.Params(ftol=1e-10, **options), run)
    return fit, run.trace


def test_v10_the_method_without_evidence_is_supervised() -> None:
    problem = places()
    (no_scale, one), (no_weight, other), (some, _) = (
        evidence(problem, **options)
        for options in ({"alpha": 0.0}, {"omega": 0.0}, {"alpha": 2.0, "rounds": 3})
    )
    assert other["stopped"] == "nothing_to_do" != one["stopped"]
    np.testing.assert_array_equal(no_scale.weights, no_weight.weights)
    alone = Supervised().fit(problem, Supervised.Params(ftol=1e-10), RunContext())
    close(np.delete(no_scale.weights, range(12, 14)), alone.weights, 1e-4)
    assert abs(some.weights - no_scale.weights).max() > 0.01


def test_the_weight_and_the_scale_of_the_evidence() -> None:
    """F of the supervised CRF is linear in omega, and its evidence grows with alpha."""
    F = {
        (omega, alpha): evidence(places(), omega=omega, alpha=alpha, rounds=1)[1]["start"]["F"]
        for omega, alpha in ((0.25, 0.7), (0.5, 0.7), (1.0, 0.7), (1.0, 0.9))
    }
    half = F[0.5, 0.7] - F[0.25, 0.7]
    assert F[1.0, 0.7] - F[0.5, 0.7] == pytest.approx(2 * half, rel=1e-6)
    assert half > 0
    assert F[1.0, 0.7] < F[1.0, 0.9]


def legal(prefixes: list[str], n_tags: int) -> F64:
    """bool[L + 1, L]: transitions of words over prefix and tag; row L: which may begin."""
    labels = [(p, tag) for tag in range(n_tags) for p in prefixes]
    transitions = [
        [(q in "ME" and t == tag) if p in "BM" else q in "BS" for q, t in labels]
        for p, tag in labels
    ]
    return np.array([*transitions, [q in "BS" for q, _ in labels]])


def test_v12_words_and_labels() -> None:
    words = SegmentedText(
        ["上海市", "的", "体育", "锻炼身体", "ab"], ["NR", "DEG", "NN", "NN", "FW"], [2, 3]
    )
    text = characters(words, {})
    found = []
    for i in range(text.n_sentences):
        sentence = text.sentence(i, "word")
        spans = spans_of(text.sentence(i, "label"), "BMES")
        found += [("".join(sentence[s.start : s.end]), s.type) for s in spans]
    assert found == list(zip(words.words, words.tags, strict=True))
    labels = text.column("label")
    both = labels.vocabulary.strings, labels.codes
    assert score("joint", both, both, text.offsets, encoding="BMES").metrics["f1"] == 1


def test_v12_recall_of_new_words() -> None:
    """Gold [ab][c][de], predicted [ab][cd][e]; of the words, only ab was seen."""
    names = ["B", "M", "E", "S"]

    def tagged(text: str, tags: str) -> Any:
        column = Column(Vocabulary(names), [names.index(tag) for tag in tags])
        return corpus_of([list(text)]).with_column("label", column)

    gold, seen = tagged("abcde", "BESBE"), tagged("ab", "BE")
    metrics = score(
        "segmentation",
        (names, gold.column("label").codes),
        (names, tagged("abcde", "BEBES").column("label").codes),
        gold.offsets,
        encoding="BMES",
        coverage=coverage(gold, seen),
    ).metrics
    assert metrics["precision"] == metrics["recall"] == pytest.approx(1 / 3)
    assert metrics["oov_recall"] == 0


@pytest.mark.parametrize("order", [["B", "M", "E", "S"], ["S", "E", "M", "B"]])
def test_v12_constrained_decoding_never_breaks_a_word(order: list[str]) -> None:
    for n_tags in (1, 2, 33):
        assert legal(order, n_tags)[:-1].sum() == 4 * n_tags + 4 * n_tags**2
    transition_mask, rng = legal(order, 2), np.random.default_rng(0)
    text = corpus(*(rng.integers(0, 4, n).tolist() for n in rng.integers(1, 9, 60)))
    crf = crf_over(text, np.zeros(text.n_tokens, np.int32), n_labels=8)
    crf.weights[:] = 2 * rng.normal(size=len(crf.weights))
    free = crf.predict(text)
    crf.transition_mask = transition_mask
    bound = crf.predict(text)

    def broken(y: I32) -> int:
        first = first_tokens(text.offsets)
        begins = ~transition_mask[-1, y[first]]
        inner = ~transition_mask[y[:-1], y[1:]] & ~first[1:]
        return int(begins.sum() + inner.sum())

    assert broken(free) > 0
    assert broken(bound) == 0
