"""Second-order models: from weights to potentials and back to gradients, training, files."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import check_grad

from sslbench.engine.compilation.threads import using_threads
from sslbench.engine.corpus import CorpusShards
from sslbench.engine.crf import (
    STRICT,
    ChainCRF,
    ChainModel,
    EncodedCorpus,
    HardLabels,
    LogPartition,
    Objective,
    Options,
    PartialLabels,
    SoftTargets,
    Term,
    TrainingParams,
)
from sslbench.engine.crf.chain_model import SecondOrderModel
from sslbench.engine.crf.entropy import Entropy
from sslbench.engine.crf.persist import read_model
from sslbench.engine.crf.weights.layout import Layout, build_layout
from sslbench.engine.errors import UserError
from sslbench.engine.features import Attributes, TemplateFeaturizer
from sslbench.engine.types import F64, I32, Bool
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.inputs.problem import Problem, relabeled, without_labels
from sslbench_methods.graph_self_training.method import TypeSelfTraining
from support.crf_oracle import log_sum
from support.second_order_toys import LENGTHS, close
from support.synth_text import synth_text
from support.threads import THREADS
from support.weights_oracle import random_attributes

# -- from weights to potentials, and back to gradients ---------------------------------------------


SWITCHES = {
    "plain": {},
    "bare": {"use_start": False, "use_stop": False},
    "no stop": {"use_stop": False},
    "edges": {"n_edge": 3},
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
        state = layout.part(weights, "state").reshape(-1, L)
        w = layout.part(weights, "transitions").reshape(-1, L)
        e = layout.part(weights, "stop")
        second, edges = layout.part(weights, "second_order"), layout.part(weights, "edges")
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
                for at in (
                    range(layout.transition_start[i], layout.transition_start[i + 1])
                    if i >= 0
                    else ()
                ):
                    total += edges[at] * (layout.transition_code[at] == b * L + c)
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
        with using_threads(n):
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
    _, arrays, metadata = read_model(tmp_path / "m.crf")
    again = ChainCRF.from_arrays(arrays, metadata)
    assert again.layout.order == 2
    np.testing.assert_array_equal(again.decode(data), crf.decode(data))
    with pytest.raises(ValueError, match="order"):
        ChainCRF.from_arrays(arrays, {**metadata, "order": 3})


def test_types_are_relabeled_by_first_order_chains_only() -> None:
    corpus = synth_text(12, seed=1)
    labeled = relabeled(corpus.select(np.arange(6)))
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
