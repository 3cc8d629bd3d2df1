"""Second-order chains against every label sequence of small ones, spelled out weight by weight."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import check_grad
from test_crf_threads import THREADS, using

from sslbench.corpus import CorpusShards
from sslbench.crf import (
    STRICT,
    ChainCRF,
    ChainModel,
    EncodedCorpus,
    HardLabels,
    InfeasibleSentenceError,
    LogPartition,
    Objective,
    Options,
    PartialLabels,
    SoftTargets,
    Term,
    TrainingParams,
)
from sslbench.crf.data import Batch
from sslbench.crf.entropy import Entropy
from sslbench.crf.first_order.batch import BatchPosterior, BatchPotentials, LabelTriples
from sslbench.crf.model import SecondOrderModel
from sslbench.crf.persist import read_model
from sslbench.crf.second_order.batch import SecondOrderPotentials
from sslbench.crf.weights.layout import Layout, SecondOrder, build_layout
from sslbench.errors import UserError
from sslbench.experiment.context import RunContext
from sslbench.experiment.problem import Problem, labeled_part, without_labels
from sslbench.features import Attributes, TemplateFeaturizer
from sslbench.types import F64, I32, Bool
from sslbench_methods.graph_self_training.method import TypeSelfTraining
from support.crf_oracle import log_sum, random_attributes
from support.second_order_toys import LENGTHS, Chain, chains, check_sums, close, potentials_of
from support.synth_text import synth_text

KINDS = [
    pytest.param(L, scale, options, id=f"{L} labels, {scale:g}, {' '.join(options) or 'plain'}")
    for L, scale, options in [
        (3, 1.0, {}),
        (4, 5.0, {}),
        (2, 25.0, {}),
        (3, 30.0, {}),
        (2, 60.0, {}),
        (3, 200.0, {}),
        (1, 1.0, {}),
        (3, 1.0, {"varying": True}),
        (3, 1.0, {"masked": True}),
        (3, 30.0, {"masked": True}),
        (4, 1.0, {"masked": True, "varying": True}),
        (3, 900.0, {"masked": True}),
    ]
]


@pytest.mark.parametrize(("L", "scale", "options"), KINDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_posteriors_are_sums_over_all_sequences(
    L: int, scale: float, options: dict[str, bool], weighted: bool
) -> None:
    rng = np.random.default_rng([L, int(scale), len(options)])
    for _ in range(4):
        potentials = potentials_of(rng, LENGTHS, L, scale, **options)
        weights = rng.uniform(0.1, 3.0, len(LENGTHS)) if weighted else np.ones(len(LENGTHS))
        found = potentials.posterior(weights if weighted else None)
        close(found.log_z(), [c.log_z for c in chains(potentials)])
        check_sums(found, potentials, [c.p for c in chains(potentials)], weights)


@pytest.mark.parametrize(("L", "scale", "options"), KINDS)
def test_entropy_and_its_derivatives(L: int, scale: float, options: dict[str, bool]) -> None:
    rng = np.random.default_rng([L, int(scale), len(options)])
    potentials = potentials_of(rng, LENGTHS, L, scale, **options)
    weights = rng.uniform(0.1, 3.0, len(LENGTHS))
    found = Entropy(weights=weights).of(potentials)
    every = chains(potentials)
    close(found.entropy, [c.entropy for c in every])
    posterior = BatchPosterior(potentials.batch, np.zeros(0), found.node, found.edge, found.triples)
    check_sums(posterior, potentials, [c.entropy_slopes for c in every], weights)
    close(found.labels, sum(c.expected(c.p)[0].sum(axis=0) for c in every))


@pytest.mark.parametrize(("L", "scale", "options"), [k for k in KINDS if k.values[1] < 100])
def test_the_nested_program_on_pairs_agrees(L: int, scale: float, options: dict[str, bool]) -> None:
    rng = np.random.default_rng([L, int(scale), len(options), 1])
    potentials = potentials_of(rng, LENGTHS, L, scale, **options)
    weights = rng.uniform(0.1, 3.0, len(LENGTHS))
    found, nested = (
        Entropy(weights=weights, nested=nested).of(potentials) for nested in (False, True)
    )
    for name in ("entropy", "node", "edge", "labels"):
        close(getattr(nested, name), getattr(found, name), 1e-8)
    assert nested.triples is not None
    assert found.triples is not None
    for mine, other in zip(nested.triples, found.triples, strict=True):
        close(mine, other, 1e-8)
    pairs = potentials.as_pairs().posterior()
    close(pairs.log_z(), potentials.posterior().log_z())


@pytest.mark.parametrize(("L", "scale", "options"), KINDS)
def test_best_sequences(L: int, scale: float, options: dict[str, bool]) -> None:
    rng = np.random.default_rng([L, int(scale), len(options)])
    potentials = potentials_of(rng, LENGTHS, L, scale, **options)
    wanted = [c.paths[c.scores.argmax()] for c in chains(potentials)]
    np.testing.assert_array_equal(potentials.viterbi(), np.concatenate(wanted))


def test_equal_sequences_the_smallest_labels_win() -> None:
    L, batch = 3, Batch(0, 4, 0, 1, np.array([0, 4]))
    zeros = LabelTriples(np.zeros((L, L)), np.zeros((L, L, L)), np.zeros((L, L)))
    potentials = SecondOrderPotentials(batch, np.zeros((4, L)), np.zeros((1, L, L)), zeros)
    assert potentials.viterbi().tolist() == [0, 0, 0, 0]


def test_sentences_that_have_no_labeling() -> None:
    rng = np.random.default_rng(1)
    potentials = potentials_of(rng, [3, 2], 3)
    potentials.triples.begin[:] = -np.inf
    for act in (potentials.posterior, potentials.viterbi, lambda: Entropy().of(potentials)):
        with pytest.raises(InfeasibleSentenceError, match="sentence 0"):
            act()
    weights = np.zeros(2)  # what has no weight may be impossible
    close(potentials.posterior(weights).node, 0.0)
    close(Entropy(weights=weights).of(potentials).entropy, 0.0)


# -- worked numbers of docs/specs ------------------------------------------------------------------
U = np.array([[0.5, -0.2], [0.1, 0.3], [-0.4, 0.6]])
W = np.array([[0.2, -0.1], [-0.3, 0.4], [0.05, -0.05]])
E = np.array([0.1, -0.1])
E2 = np.array([[0.02, -0.03], [0.04, 0.01], [0.0, 0.0]])


def worked(T: int, zero: bool = False) -> SecondOrderPotentials:
    """The first T tokens of docs/specs/crf_engine.md, oracle 7."""
    w2 = np.array(
        [
            [
                [
                    0.1 * (z + 1) - 0.2 * (a + 1) * c + 0.05 * z * c - 0.07 * (z == c)
                    for c in range(2)
                ]
                for a in range(3)
            ]
            for z in range(3)
        ]
    )
    second = SecondOrder(w2, np.zeros((3, 2)), E2)
    if zero:
        second = SecondOrder(*(0.0 * part for part in second))
    node = U[:T].copy()
    node[0] += W[2] + second.first()
    node[T - 1] += E + (second.e2[2] if T == 1 else 0.0)
    batch = Batch(0, T, 0, 1, np.array([0, T]))
    return SecondOrderPotentials(batch, node, W[None, :2].copy(), second.potentials())


def test_oracle_7_of_the_engine() -> None:
    potentials = worked(3)
    close(chains(potentials)[0].scores, [1.40, 1.72, 0.72, 1.86, -0.23, 0.00, -0.11, 0.94])
    found = potentials.posterior()
    close(found.log_z(), 3.1513781594, 5e-11)
    close(found.node[:, 0], [0.7753212285, 0.4893076385, 0.3337863009], 5e-10)
    close(Entropy().of(potentials).entropy, 1.8318479218, 5e-11)
    assert potentials.viterbi().tolist() == [0, 1, 1]
    close(worked(1).posterior().log_z(), 1.1514132780, 5e-11)
    close(worked(2).posterior().log_z(), 2.2880395693, 5e-11)


def test_oracle_p12_of_graph_pr() -> None:
    u = np.array([[0.3, -0.2], [0.1, 0.4], [-0.5, 0.2], [0.0, 0.25]])
    a = np.array([[[0.5, -0.3], [-0.2, 0.4]]])
    c = np.array([[[0.1, -0.4], [0.2, 0.0]], [[-0.3, 0.5], [0.15, -0.05]]])
    batch = Batch(0, 4, 0, 1, np.array([0, 4]))
    potentials = SecondOrderPotentials(
        batch, u, a, LabelTriples(np.zeros((2, 2)), c, np.zeros((2, 2)))
    )
    found = potentials.posterior()
    close(found.log_z(), 3.6206639379, 5e-11)
    close(found.node[:, 0], [0.5647057222, 0.4177430838, 0.3611443769, 0.4423997161], 5e-10)
    assert found.triples is not None
    first = Chain(u, a, potentials.triples)
    joint = np.zeros((2, 2, 2))
    np.add.at(joint, tuple(first.paths[:, :3].T), first.p)
    close(
        joint.ravel(),
        [
            0.1789577636,
            0.1164132868,
            0.0675609910,
            0.2017736807,
            0.0361309493,
            0.0862410840,
            0.0784946729,
            0.2344275715,
        ],
        5e-10,
    )
    last = np.zeros((2, 2, 2))
    np.add.at(last, tuple(first.paths[:, 1:].T), first.p)
    close(found.triples.inner, joint + last)
    assert potentials.viterbi().tolist() == [1, 1, 1, 1]
    close(first.scores.max(), 1.75)


def test_without_triples_it_is_the_first_order() -> None:
    """docs/specs/crf_engine.md, oracle 7, last sentence."""
    close(worked(1, zero=True).posterior().log_z(), 0.9632616875, 5e-11)
    rng = np.random.default_rng(3)
    for varying in (False, True):
        second = potentials_of(rng, LENGTHS, 4, varying=varying)
        none = LabelTriples(*(0.0 * part for part in second.triples))
        second = SecondOrderPotentials(second.batch, second.node, second.edge, none)
        first = BatchPotentials(second.batch, second.node.copy(), second.edge.copy()).posterior()
        found = second.posterior()
        close(found.log_z(), first.log_z())
        close(found.node, first.node)
        close(found.edge, first.edge)


# -- from weights to potentials, and back to gradients ---------------------------------------------
SWITCHES = {
    "plain": {},
    "bare": {"use_start": False, "use_stop": False},
    "no stop": {"use_stop": False},
    "arcs": {"n_edge": 3},
}


@dataclass(frozen=True)
class Case:
    """A small corpus with a second-order layout and random weights."""

    layout: Layout
    attributes: Attributes
    labels: I32
    weights: F64
    transition_mask: Bool | None = None

    def encode(self) -> EncodedCorpus:
        return EncodedCorpus.build(self.layout, self.attributes)

    def score(self, weights: F64, lo: int, y: list[int]) -> float:
        """S(y) of a sentence that begins at token lo, weight by weight."""
        layout, L = self.layout, self.layout.n_labels
        state = layout.part(weights, 0).reshape(-1, L)
        w = layout.part(weights, 2).reshape(-1, L)
        e = layout.part(weights, 3)
        second, arcs = layout.part(weights, 4), layout.part(weights, 5)
        w2 = second[: (L + 1) * (L + 1) * L].reshape(L + 1, L + 1, L)
        skip, e2 = second[(L + 1) * (L + 1) * L :].reshape(2, L + 1, L)
        a, b, total = L, L, 0.0
        for t, c in enumerate(y):
            total += sum(state[i, c] for i in self.attributes.node[:, lo + t] if i >= 0)
            if b < L or layout.use_start:
                total += w[b, c]
            if a < L or layout.use_start:
                total += w2[a, b, c] + skip[a, c]
            for i in self.attributes.edge[:, lo + t]:
                for at in range(layout.arc_start[i], layout.arc_start[i + 1]) if i >= 0 else ():
                    total += arcs[at] * (layout.arc_code[at] == b * L + c)
            a, b = b, c
        if layout.use_stop:
            total += e[b] + (e2[a, b] if a < L or layout.use_start else 0.0)
        return total

    def paths(self, weights: F64) -> list[tuple[F64, F64]]:
        """Per sentence: all label sequences int[P, T] and their scores."""
        found = []
        for lo, hi in pairwise(self.attributes.offsets):
            paths = np.array(list(product(range(self.layout.n_labels), repeat=int(hi - lo))))
            scores = [self.score(weights, int(lo), y) for y in paths.tolist()]
            found.append((paths, np.array(scores)))
        return found


def case(name: str) -> Case:
    rng = np.random.default_rng([5, *map(ord, name)])
    options = dict(SWITCHES[name])
    n_edge = int(options.pop("n_edge", 0))
    attributes = random_attributes(rng, LENGTHS, n_edge=n_edge)
    labels = rng.integers(0, 3, sum(LENGTHS)).astype(np.int32)
    layout = build_layout(attributes, labels, 3, n_node=6, n_edge=n_edge, order=2, **options)
    return Case(layout, attributes, labels, rng.normal(size=layout.size))


def value_of(case: Case, term: Term, weights: F64) -> float:
    objective = Objective(case.layout, [(case.encode(), term)], np.inf)
    return objective.value_and_gradient(weights, np.empty(case.layout.size))


def gradient_of(case: Case, term: Term, weights: F64) -> F64:
    gradient = np.empty(case.layout.size)
    Objective(case.layout, [(case.encode(), term)], np.inf).value_and_gradient(weights, gradient)
    return gradient


def terms(case: Case) -> dict[str, Term]:
    rng = np.random.default_rng(6)
    n, weights = len(case.labels), rng.uniform(0.2, 2.0, len(LENGTHS))
    weights[3] = 0.0
    allowed = rng.random((n, 3)) < 0.6
    allowed[np.arange(n), case.labels] = True
    soft = rng.dirichlet(np.ones(3), n)
    return {
        "hard": HardLabels(case.labels),
        "weighted": HardLabels(case.labels, weights),
        "log Z": LogPartition(0.7),
        "partial": PartialLabels(allowed, weights=weights),
        "evidence": PartialLabels(allowed, log_evidence=rng.normal(size=(n, 3))),
        "soft": SoftTargets(soft, weights=weights),
        "entropy": Entropy(0.8, weights),
    }


@pytest.mark.parametrize("name", SWITCHES)
def test_scores_are_sums_of_weights(name: str) -> None:
    own = case(name)
    cut, value = own.attributes.offsets, 0.0
    soft, expected = np.random.default_rng(8).dirichlet(np.ones(3), len(own.labels)), 0.0
    entropy = 0.0
    for i, (paths, scores) in enumerate(own.paths(own.weights)):
        gold = own.labels[cut[i] : cut[i + 1]].tolist()
        value += own.score(own.weights, int(cut[i]), gold) - log_sum(scores)
        q = np.prod([soft[cut[i] + t, paths[:, t]] for t in range(paths.shape[1])], axis=0)
        expected += float(q @ scores) - log_sum(scores)
        p = np.exp(scores - log_sum(scores))
        entropy += float(p @ np.log(p))
    close(value_of(own, HardLabels(own.labels), own.weights), value)
    close(value_of(own, SoftTargets(soft), own.weights), expected)
    close(value_of(own, Entropy(), own.weights), entropy)


@pytest.mark.parametrize("name", SWITCHES)
@pytest.mark.parametrize("kind", terms(case("plain")))
def test_gradients_of_all_terms(name: str, kind: str) -> None:
    own = case(name)
    term = terms(own)[kind]
    found = gradient_of(own, term, own.weights)
    size = np.abs(found).max()
    error = check_grad(
        lambda x: value_of(own, term, x),
        lambda x: gradient_of(own, term, x),
        own.weights,
        epsilon=1e-6,
    )
    assert size > 0.1
    assert error < 2e-5 * (1 + size)


def test_targets_of_arcs_are_refused() -> None:
    own = case("plain")
    n = len(own.labels)
    with pytest.raises(ValueError, match="three labels"):
        value_of(own, SoftTargets(np.full((n, 3), 1 / 3), np.zeros((n, 3, 3))), own.weights)


def test_the_mask_forbids() -> None:
    own = case("plain")
    transition_mask = np.ones((4, 3), np.bool_)
    transition_mask[0, 1] = transition_mask[3, 2] = False
    labels = own.labels.copy()
    labels[own.attributes.offsets[:-1]] = 0
    labels[(np.roll(labels, 1) == 0) & (labels == 1)] = 2
    labels[own.attributes.offsets[:-1]] = 0
    following = np.roll(labels, 1) == 0
    following[own.attributes.offsets[:-1]] = False
    labels[following & (labels == 1)] = 0
    crf = ChainCRF(("a", "b", "c"), None, own.layout, own.weights.copy(), transition_mask)  # type: ignore[arg-type]
    crf.train([(own.encode(), HardLabels(labels))], TrainingParams(sigma2=1.0), options=Options())
    found = crf.decode(own.encode())
    starts = own.attributes.offsets[:-1]
    assert not (found[starts] == 2).any()
    inside = np.setdiff1d(np.arange(len(found)), starts)
    assert not ((found[inside - 1] == 0) & (found[inside] == 1)).any()


# -- the model -------------------------------------------------------------------------------------
def trained(order: int, iterations: int = 15) -> tuple[ChainCRF, EncodedCorpus, I32]:
    corpus = synth_text(300, seed=1)
    column = corpus.column("label")
    model = SecondOrderModel() if order == 2 else ChainModel()
    codes = column.codes.astype(np.int32)
    crf = model.prepare(TemplateFeaturizer(["word[0]"]), corpus, codes, column.vocabulary.strings)
    data = crf.encode(corpus)
    options = STRICT.__class__(max_iterations=iterations)
    crf.train([(data, HardLabels(codes))], TrainingParams(sigma2=1.0), options=options)
    return crf, data, codes


@pytest.mark.skipif(len(THREADS) < 2, reason="one thread only here")
def test_threads_change_no_bit() -> None:
    weights = []
    for n in THREADS[:3]:
        with using(n):
            weights.append(trained(2, 5)[0].weights)
    for other in weights[1:]:
        np.testing.assert_array_equal(weights[0], other)


def test_three_labels_in_a_row_fit_better() -> None:
    """The second order contains the first: it cannot fit worse."""
    values = []
    for order in (1, 2):
        crf, data, codes = trained(order, 200)
        objective = Objective(crf.layout, [(data, HardLabels(codes))], 1.0)
        values.append(objective.value_and_gradient(crf.weights, np.empty(crf.layout.size)))
    assert values[1] > values[0]


def test_saved_and_read_again(tmp_path: Path) -> None:
    crf, data, _ = trained(2)
    crf.save(tmp_path / "m.crf")
    _, arrays, facts = read_model(tmp_path / "m.crf")
    again = ChainCRF.from_arrays(arrays, facts)
    assert again.layout.order == 2
    np.testing.assert_array_equal(again.decode(data), crf.decode(data))
    with pytest.raises(ValueError, match="order"):
        ChainCRF.from_arrays(arrays, {**facts, "order": 3})


def test_types_are_relabeled_by_first_order_chains_only() -> None:
    corpus = synth_text(12, seed=1)
    labeled = labeled_part(corpus, np.arange(6))
    problem = Problem(
        "tagging",
        None,
        tuple(labeled.column("label").vocabulary.strings),
        labeled,
        CorpusShards(without_labels(corpus)),
        None,
        TemplateFeaturizer(["word[0]"]),
        SecondOrderModel(),
    )
    with pytest.raises(UserError, match="first-order"):
        TypeSelfTraining().fit(problem, TypeSelfTraining.Params(), RunContext())
