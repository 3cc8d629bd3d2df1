"""Virtual evidence against worked numbers: docs/specs/virtual_evidence.md, section 10."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from sslbench.engine.corpus import Corpus
from sslbench.engine.crf import (
    ChainModel,
    HardLabels,
    LogPartition,
    Objective,
    PartialLabels,
    VirtualEvidence,
)
from sslbench.engine.crf.first_order.batch import BatchPotentials
from sslbench.engine.crf.terms import PotentialGradient, Term
from sslbench.engine.features import TemplateFeaturizer
from sslbench.engine.types import F64
from sslbench.experiment.context.context import RunContext
from sslbench_methods.virtual_evidence.em import EStep, EvidenceTrainer
from sslbench_methods.virtual_evidence.propagation import above_base_rates, normalized
from support.compare import close
from support.evidence_toys import (
    OPTIMUM,
    THETA,
    TOKENS,
    Params,
    Part,
    Q,
    objective_of,
    rounds_of,
    supervised,
    trainer,
)
from support.graph_toys import LABELED, UNLABELED, Y, corpus, crf_over, encoded, pairs, toy
from support.log_space_chain import Potentials, infer, negative_entropy


def test_what_exceeds_base_rates_by_hand() -> None:
    """docs/specs/virtual_evidence.md, oracle V14."""
    q = np.array([[0.6, 0.2], [0.1, 0.5], [0.0, 0.0]])
    at = np.array([0, 0, 1, -1, 2], np.int32)
    rates = np.array([1.3, 0.9]) / 2.2
    close(above_base_rates(q, at), [q[0] - 0.8 * rates, q[1] - 0.6 * rates, [0, 0]], 1e-15)
    close(above_base_rates(q, at).sum(axis=1), [0, 0, 0], 1e-15)
    same = np.outer([0.3, 0.9, 0.0], [0.7, 0.3])  # all rows are base rates
    close(above_base_rates(same, at), np.zeros((3, 2)), 1e-15)
    close(above_base_rates(np.zeros((3, 2)), at), np.zeros((3, 2)), 0)


def test_the_clamped_posterior() -> None:
    one = supervised()
    crf, (data, term) = one.crf, one.parts[0]
    close(crf.weights, OPTIMUM, 2e-10)
    free = [0.5365991021, 0.7320163583, 0.3165786969, 0.4164313298, 0.4164313298]
    close(crf.marginals(data)[:, 0], free, 2e-10)
    U, A = crf.weights[:8].reshape(4, 2), crf.weights[8:].reshape(1, 2, 2)
    clamped, gain = [], []
    for codes, rows in (([2, 0, 3], Q[:3]), ([1, 3], Q[3:])):
        posterior = infer(Potentials(U[codes] + 0.7 * rows, A))
        gain.append(posterior.log_z - infer(Potentials(U[codes], A)).log_z)
        clamped.extend(posterior.node[:, 0])
    close(clamped, [0.6550076354, 0.6455296758, 0.3439435025, 0.4565687346, 0.2895767473], 2e-10)
    close(gain, [0.5474714865, 0.6433012086], 2e-10)
    close(one.expect().value, sum(gain), 1e-14)
    assert term.informed() == 4


def test_the_gain_of_all_sequences() -> None:
    """log E exp(alpha sum of q) over every labeling of the first sentence."""
    crf = toy(THETA)
    data = crf.encode(UNLABELED.between(0, 1))
    term = VirtualEvidence(Q, TOKENS[:3], 0.7)
    U, A = THETA[:8].reshape(4, 2), THETA[8:].reshape(2, 2)
    free = clamped = 0.0
    for y in product((0, 1), repeat=3):
        score = sum(U[x, b] for x, b in zip((2, 0, 3), y, strict=True)) + A[y[:2]] + A[y[1:]]
        free += np.exp(score)
        clamped += np.exp(score + 0.7 * (Q[0, y[0]] + Q[1, y[1]]))
    close(EStep.under(crf, [(data, term)]).value, np.log(clamped / free), 1e-14)


def test_the_objective() -> None:
    one = supervised()
    close(objective_of(one, one.crf.weights)[0], 0.7019202839, 2e-10)
    value, gradient = objective_of(one, THETA)
    close(value, -0.2957085773)
    close(
        gradient,
        [
            0.5553351748,
            -0.4212442657,
            -0.4250428807,
            0.4954974262,
            0.1159700283,
            -0.1091518464,
            -0.1540392013,
            0.0972210195,
            -0.3478050213,
            0.8122920425,
            -0.4576156374,
            -0.3114168384,
        ],
    )
    steps = 1e-5 * np.eye(12)
    slopes = [
        (objective_of(one, THETA + h)[0] - objective_of(one, THETA - h)[0]) / 2e-5 for h in steps
    ]
    close(gradient, slopes, 2e-10)


def test_the_term_is_that_of_the_engine() -> None:
    """Partial labels with log evidence and nothing forbidden, with weights per sentence."""
    one = trainer(toy(THETA), omega=0.3)
    rows = np.where(TOKENS[:, None] >= 0, Q, 0.0)
    term = PartialLabels(np.ones((5, 2), np.bool_), 0.7 * rows, np.full(2, 0.3))
    gradient = np.empty(12)
    parts: list[Part] = [one.text.labeled, (one.parts[0][0], term)]
    engine = Objective(one.crf.layout, parts, 4.0)
    value, mine = objective_of(one, THETA)
    close(engine.value_and_gradient(THETA, gradient), value, 1e-14)
    close(gradient, mine, 1e-14)
    lengths = np.array([3.0, 2.0])
    assert term.n_tokens(lengths) == one.parts[0][1].n_tokens(lengths)


def test_em_never_decreases_the_objective() -> None:
    rounds = rounds_of(trainer(toy(), rounds=5))
    # no optima of F: errors of the printed weights enter to first order
    close(
        [entry["F"] for entry in rounds],
        [0.7019202839, 0.7753256990, 0.8122900170, 0.8303358785, 0.8391484573, 0.8435066634],
        4e-9,
    )
    partial = rounds_of(trainer(toy(), rounds=8, m_iterations=2))
    assert len(partial) == 9
    assert (np.diff([entry["F"] for entry in partial]) > 0).all()


FIRST_ROUND = [
    *pairs(0.4262674387, -0.4769216328, 0.1227892020, -0.0417346877),
    -0.3759829652,
    0.9288082431,
    -0.2714960317,
    -0.2813292463,
]
LIMIT = [
    *pairs(0.2710725060, -0.3538814020, 0.3215730192, -0.2156971603),
    -0.4960442768,
    1.1799869708,
    -0.5244832820,
    -0.1594594120,
]


def test_em_and_direct_end_at_the_same_point() -> None:
    close(trainer(toy(), rounds=1).train().weights, FIRST_ROUND, 6e-10)
    direct = trainer(toy(), solver="direct")
    before, after = rounds_of(direct)
    close(direct.crf.weights, LIMIT, 3e-8)
    close(before["F"], 0.7019202839, 2e-10)
    close(after["F"], 0.8478488843)
    close(trainer(toy(), rounds=60).train().weights, direct.crf.weights, 1e-6)


def m_gradient(one: EvidenceTrainer, expected: EStep) -> F64:
    """Gradient of Q at the current weights."""
    free, gradient = np.empty(12), np.empty(12)
    parts: list[Part] = [one.text.labeled]
    Objective(one.crf.layout, parts, 4.0).value_and_gradient(one.crf.weights, gradient)
    none = [(data, VirtualEvidence(term.q, term.vertex_of, 0.0)) for data, term in one.parts]
    free[:] = EStep.under(one.crf, none).counts
    return gradient + expected.counts - free


def test_both_solvers_start_with_the_same_gradient() -> None:
    one = trainer(toy(THETA), m_iterations=1)
    expected = one.expect()
    gradient = m_gradient(one, expected)
    close(gradient, objective_of(one, THETA)[1], 1e-14)
    # one tiny step of the M-step's own optimizer goes that way
    one.m_step(expected)
    step = one.crf.weights - THETA
    assert step @ gradient / np.linalg.norm(step) / np.linalg.norm(gradient) > 1 - 1e-6


def test_a_shift_of_the_evidence_changes_a_constant() -> None:
    shift = np.array([0.5, 1.0, -0.3, 0.5, 1.0])[:, None]
    one = trainer(toy(THETA))
    value, gradient = objective_of(one, THETA)
    tokens = np.arange(5, dtype=np.int32)
    one.terms = [VirtualEvidence(Q + shift, tokens, 0.7)]
    shifted, same = objective_of(one, THETA)
    close(shifted - value, 0.7 * 2.7, 1e-14)
    close(same, gradient, 1e-14)
    one.terms = [VirtualEvidence(np.full((5, 2), 0.4), tokens, 0.7)]
    close(
        objective_of(one, THETA)[1], objective_of(trainer(toy(THETA), alpha=0.0), THETA)[1], 1e-14
    )


def test_normalizing_over_labels_alone_would_never_move() -> None:
    """The reading that is rejected: an M-step against Z of the clamped potentials; and ours."""

    class Rejected(VirtualEvidence):
        def evaluate(self, potentials: BatchPotentials) -> PotentialGradient:
            return LogPartition().evaluate(self.clamp(potentials))

    one = supervised()
    expected, start = one.expect(), one.crf.weights.copy()
    gradients = np.empty((2, 12))
    terms: tuple[Term, ...] = (Rejected(Q, TOKENS, 0.7), LogPartition())
    for term, gradient in zip(terms, gradients, strict=True):
        parts: list[Part] = [one.text.labeled, (one.parts[0][0], term)]
        objective = Objective(one.crf.layout, parts, 4.0, expected_counts=expected.counts)
        objective.value_and_gradient(start, gradient)
    close(gradients[0], 0.0, 1e-9)
    assert abs(gradients[1]).max() > 0.1
    close(gradients[1], objective_of(one, start)[1], 1e-14)


def test_one_token_drifts_to_the_likelier_label() -> None:
    """Alone and without a prior, each round multiplies the odds by exp(alpha (q_a - q_b))."""
    text = corpus([0])
    crf = crf_over(text, np.zeros(1, np.int32), template="bias")
    encoded_text = encoded(crf, [text], text.select([]), np.empty(0, np.int32))
    (data,) = encoded_text.unlabeled
    term = VirtualEvidence(np.array([[0.6, 0.4]]), np.zeros(1, np.int32), 0.7)
    one = EvidenceTrainer(crf, encoded_text, [term], Params(sigma2=1e12), RunContext())
    found, F_values = [], []
    for _ in range(5):
        one.m_step(one.expect())
        found.append(crf.marginals(data)[0, 0])
        F_values.append(one.report(one.expect())["F"])
    close(found, [0.5349429452, 0.5695462239, 0.6034832499, 0.6364525403, 0.6681877722], 2e-10)
    close(found, 1 / (1 + np.exp(-0.14 * np.arange(1, 6))), 2e-10)
    assert (np.diff(F_values) > 0).all()
    crf.weights[:2] = pairs(20.0)
    close(one.expect().value, 0.42)


def test_the_entropy_of_a_chain() -> None:
    U = np.array([[0.3, -0.2], [0.1, 0.4], [-0.5, 0.2]])
    found = negative_entropy(
        Potentials(U, np.array([[[0.5, -0.3], [-0.2, 0.4]]])), per_position=False
    )
    close(-found.mean, 1.9053070488)
    close(
        -found.node,
        [
            [-0.0466656762, 0.0466656762],
            [0.0633537745, -0.0633537745],
            [0.1306574240, -0.1306574240],
        ],
    )
    close(-found.edge[0], [[-0.0235222391, 0.0402103374], [0.2175334376, -0.2342215359]])


@pytest.mark.parametrize("solver", ["em", "direct"])
def test_limits(solver: str) -> None:
    wanted = supervised().crf.weights
    options: dict[str, Any] = {"solver": solver, "rounds": 3, "m_iterations": 20}
    nothing = np.full(5, -1, np.int32)
    without_text, without_vertices = trainer(toy(), **options), trainer(toy(), **options)
    without_text.text, without_text.terms = encoded(without_text.crf, []), []
    without_vertices.terms = [VirtualEvidence(Q, nothing, 0.7)]
    for one, stopped in (
        (trainer(toy(), alpha=0.0, **options), "rounds"),
        (trainer(toy(), omega=0.0, **options), "nothing_to_do"),
        (trainer(toy(), q=np.zeros((5, 2)), **options), "nothing_to_do"),
        (without_text, "nothing_to_do"),
        (without_vertices, "nothing_to_do"),
    ):
        close(one.train().weights, wanted, 2e-10)
        reason = one.run.trace["stopped"]
        assert (reason == "nothing_to_do") == (stopped == "nothing_to_do")
        assert bool(one.run.trace["rounds"]) == (stopped == "rounds")
    moved = trainer(toy(), **options)
    moved.train()
    assert abs(moved.crf.weights - wanted).max() > 0.1


@pytest.mark.parametrize("solver", ["em", "direct"])
def test_invariances(solver: str) -> None:
    options: dict[str, Any] = {"solver": solver, "rounds": 3}
    one = trainer(toy(), **options)
    one.train()
    # labels swapped
    crf = toy()
    other = trainer(crf, q=Q[:, ::-1].copy(), **options)
    gold = other.text.labeled[0], HardLabels(1 - Y)
    other.text = replace(other.text, labeled=gold)
    other.train()
    swapped = np.concatenate(
        [
            crf.weights[:8].reshape(4, 2)[:, ::-1].ravel(),
            crf.weights[8:].reshape(2, 2)[::-1, ::-1].ravel(),
        ]
    )
    close(swapped, one.crf.weights, 1e-7)
    # vertices permuted
    new = np.array([3, 0, 4, 1, 2])
    q = np.empty_like(Q)
    q[new] = Q
    renamed = trainer(toy(), q=q, **options)
    tokens = np.where(TOKENS >= 0, new[TOKENS], -1).astype(np.int32)
    renamed.terms = [VirtualEvidence(q, tokens, 0.7)]
    renamed.train()
    np.testing.assert_array_equal(renamed.crf.weights, one.crf.weights)
    # twice the text at half the weight
    double = Corpus.concatenate([UNLABELED, UNLABELED])
    twice = trainer(toy(), text=double, omega=0.5, **options)
    twice.train()
    close(twice.crf.weights, one.crf.weights, 1e-7)


def test_the_record() -> None:
    one = trainer(toy(), rounds=200, tolerance=1e-4)
    one.train()
    trace = one.run.trace
    assert trace["evidence_tokens"] == 4 / 5
    assert trace["stopped"] == "converged"
    last, before = trace["rounds"][-1], trace["rounds"][-2]
    assert 0 < last["F"] - before["F"] < 1e-4 * last["F"]
    assert sum(last["labels"]) == 5
    p = one.crf.marginals(one.parts[0][0])
    close(last["free_entropy"], -(p * np.log(p)).sum() / 5, 1e-14)
    assert last["clamped_entropy"] != last["free_entropy"]


def trainer_with_dev(**options: Any) -> EvidenceTrainer:
    one = trainer(toy(), **options)
    dev = one.parts[0][0], np.array([0, 0, 0, 1, 1], np.int32)
    one.text = replace(one.text, dev=dev)
    return one


def dev_accuracy(one: EvidenceTrainer) -> float:
    assert one.text.dev is not None
    data, labels = one.text.dev
    return float(np.mean(one.crf.decode(data) == labels))


def test_the_best_round_on_dev_is_kept() -> None:
    last = trainer_with_dev(rounds=3)
    scores = [entry["dev_accuracy"] for entry in rounds_of(last)]
    assert "kept_round" not in last.run.trace
    # training for fewer rounds gives the models of the rounds before
    supervised_only = supervised()
    supervised_only.text = last.text
    models = [supervised_only]
    for number in (1, 2, 3):
        models.append(trainer_with_dev(rounds=number))
        models[-1].train()
    assert [dev_accuracy(one) for one in models] == scores
    best = trainer_with_dev(rounds=3, keep="best")
    best.train()
    kept = int(np.argmax(scores))
    assert best.run.trace["kept_round"] == kept
    np.testing.assert_array_equal(best.crf.weights, models[kept].crf.weights)


def test_normalized_rows() -> None:
    close(normalized(np.array([[0.2, 0.6], [0, 0]])), [[0.25, 0.75], [0, 0]], 1e-15)


def test_transitions_that_depend_on_the_text() -> None:
    """Inference consumes such scores: the free and the clamped pass need copies of their own."""
    crf = ChainModel().prepare(
        TemplateFeaturizer(["x[0]", "edge: x[0]"]),
        LABELED,
        Y,
        "ab",
        transition_support="all",
        text=[UNLABELED],
    )
    crf.weights[:] = np.random.default_rng(0).normal(size=crf.layout.size)
    data, rows = crf.encode(UNLABELED), np.where(TOKENS[:, None] >= 0, Q, 0.0)
    found, wanted = np.empty_like(crf.weights), np.empty_like(crf.weights)
    terms = VirtualEvidence(Q, TOKENS, 0.7), PartialLabels(np.ones((5, 2), np.bool_), 0.7 * rows)
    for term, gradient in zip(terms, (found, wanted), strict=True):
        Objective(crf.layout, [(data, term)], 4.0).value_and_gradient(crf.weights, gradient)
    close(found, wanted, 1e-13)
