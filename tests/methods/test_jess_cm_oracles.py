"""JESS-CM against worked numbers: docs/specs/jess_cm.md, section 13."""

from __future__ import annotations

import numpy as np
import pytest

from sslbench.engine.corpus import Column, Corpus, CorpusShards, Vocabulary
from sslbench.engine.corpus.units import TextUnits
from sslbench.engine.crf import (
    STRICT,
    ChainModel,
    EncodedCorpus,
)
from sslbench.engine.features import Template, TemplateFeaturizer
from sslbench.engine.types import F64
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.inputs.problem import Problem
from sslbench_methods.jess_cm import method as module
from sslbench_methods.jess_cm.kernels import _logarithms
from sslbench_methods.jess_cm.method import JessCM, Trainer, rising
from sslbench_methods.jess_cm.models import EmbeddedModels
from support.jess_cm_oracle import (
    A1,
    B1,
    CONSTANT,
    LABELED,
    LAMBDA_H,
    STATE,
    UNLABELED,
    Toy,
    Y,
    corpus,
    counts_of,
    l1,
    log_prior,
    printed_tables,
    toy,
)
from support.symbol_counts import whole


def test_discriminant_sums() -> None:
    tagger = printed_tables(toy())
    one_by_one = [counts_of(tagger, UNLABELED.select(np.array([i]))).log_z for i in range(3)]
    np.testing.assert_allclose(
        one_by_one, [-4.7646028192, -1.0426659495, -2.3968898492], atol=1e-10
    )
    assert counts_of(tagger).log_z == pytest.approx(-8.2041586179, abs=1e-10)


def test_l1_and_its_gradient() -> None:
    tagger = printed_tables(toy())
    objective, w = l1(tagger), tagger.crf.weights
    gradient = np.empty_like(w)
    assert objective.value_and_gradient(w, gradient) == pytest.approx(-2.1989079092, abs=1e-10)
    np.testing.assert_allclose(gradient[14:], [-0.0785681744, 0.5604685140], atol=1e-10)
    for i in range(len(w)):
        up, down, unused = w.copy(), w.copy(), np.empty_like(w)
        up[i] += 1e-6
        down[i] -= 1e-6
        slope = (
            objective.value_and_gradient(up, unused) - objective.value_and_gradient(down, unused)
        ) / 2e-6
        assert gradient[i] == pytest.approx(slope, abs=1e-8)


def test_expected_counts() -> None:
    counts = counts_of(printed_tables(toy()))
    np.testing.assert_allclose(
        counts.chain.reshape(3, 2),
        [[1.2021137331, 0.7016412408], [0.7077128354, 1.3885321906], [1.4105961718, 1.5894038282]],
        atol=1e-10,
    )
    np.testing.assert_allclose(
        whole(counts.state).T,
        [[1.5734286014, 1.0012455107, 0.7457486283], [0.4265713986, 0.9987544893, 2.2542513717]],
        atol=1e-10,
    )
    np.testing.assert_allclose(
        whole(counts.arc).T,
        [
            [0.1747482010, 0.5306331934, 0.4967323387],
            [0.0118801134, 0.1867029838, 0.5030581436],
            [0.5425879762, 0.0598066278, 0.1053182315],
            [0.2707837094, 0.2228571950, 0.8948912862],
            [0.8560924241, 0.4108056895, 0.1436980582],
            [0.1439075759, 0.5891943105, 0.8563019418],
        ],
        atol=1e-10,
    )
    assert whole(counts.state).sum() == pytest.approx(7)
    assert whole(counts.arc).sum() == pytest.approx(7)


def test_m_step_without_prior() -> None:
    tagger = printed_tables(toy())
    distance = tagger.models.update(counts_of(tagger), 0.0, tagger.weights, "plain")
    np.testing.assert_allclose(
        np.exp(tagger.models.chain[0]).reshape(3, 2),
        [[0.6314435154, 0.3685564846], [0.3376097864, 0.6623902136], [0.4701987239, 0.5298012761]],
        atol=1e-10,
    )
    assert counts_of(tagger).log_z == pytest.approx(-7.3584332947, abs=1e-10)
    assert distance == pytest.approx(0.3060782313, abs=1e-10)


@pytest.mark.parametrize("m_step", ["plain", "lambda"])
def test_m_step_with_prior(m_step: str) -> None:
    tagger = printed_tables(toy())
    tempered = LAMBDA_H if m_step == "plain" else None
    counts = counts_of(tagger)
    before = counts.log_z + log_prior(tagger.models, 0.5, tempered)
    distance = tagger.models.update(counts, 0.5, tagger.weights, m_step)
    after = counts_of(tagger).log_z + log_prior(tagger.models, 0.5, tempered)
    rows = np.exp(tagger.models.chain).reshape(2, 3, 2)
    if m_step == "plain":
        np.testing.assert_allclose(rows[0, 0], [0.5861767775, 0.4138232225], atol=1e-10)
        np.testing.assert_allclose(
            np.exp(tagger.models.state).T,
            [
                [0.4301341839, 0.3114344097, 0.2584314064],
                [0.1788893866, 0.2893584581, 0.5317521554],
            ],
            atol=1e-10,
        )
        assert (before, after) == pytest.approx((-17.6485644137, -16.5978225489), abs=1e-9)
        assert distance == pytest.approx(0.2308784876, abs=1e-10)
    else:
        np.testing.assert_allclose(rows[0, 0], [0.5750935581, 0.4249064419], atol=1e-10)
        np.testing.assert_allclose(rows[1, 0], [0.5568233809, 0.4431766191], atol=1e-10)
        assert (before, after) == pytest.approx((-27.3496542752, -25.5354120168), abs=1e-9)


@pytest.mark.parametrize("m_step", ["plain", "lambda"])
def test_each_m_step_never_lowers_its_own_objective(m_step: str) -> None:
    rng = np.random.default_rng(5)
    for _ in range(15):
        tagger = printed_tables(toy())
        tagger.crf.weights[:14] = rng.normal(size=14)
        tagger.weights[:] = rng.uniform(0.05, 2, 2)
        tempered = tagger.weights if m_step == "plain" else None
        values = []
        for _ in range(6):
            counts = counts_of(tagger)
            values.append(counts.log_z + log_prior(tagger.models, 0.3, tempered))
            tagger.models.update(counts, 0.3, tagger.weights, m_step)
        assert min(np.diff(values)) > -1e-10


def test_both_m_steps_coincide_at_weight_one() -> None:
    first, second = printed_tables(toy()), printed_tables(toy())
    for tagger, m_step in ((first, "plain"), (second, "lambda")):
        tagger.weights[:] = 1.0
        tagger.models.update(counts_of(tagger), 0.5, tagger.weights, m_step)
    np.testing.assert_array_equal(first.models.arc, second.models.arc)


def problem(unlabeled: Corpus = UNLABELED) -> Problem:
    labels = Vocabulary(["a", "b"])
    labeled = LABELED.with_column("label", Column(labels, Y))
    return Problem(
        "tagging",
        None,
        ("a", "b"),
        labeled,
        CorpusShards(unlabeled),
        None,
        TemplateFeaturizer([STATE]),
        ChainModel(),
    )


def trainer(tagger: Toy, monkeypatch: pytest.MonkeyPatch, **params: object) -> Trainer:
    params = {"sigma2": 10.0, "eta": 0.5, **params}
    monkeypatch.setattr(JessCM.Params, "options", lambda self: STRICT)
    text = TextUnits(problem().unlabeled)
    own = tagger.crf, tagger.models, problem(), text
    return Trainer(*own, JessCM.Params(**params), RunContext())


def test_the_trap_of_the_literal_m_step(monkeypatch: pytest.MonkeyPatch) -> None:
    tagger = toy()
    train = trainer(tagger, monkeypatch)
    assert train.fit_weights().objective == pytest.approx(-0.7716648950, abs=1e-8)
    counts = counts_of(tagger)
    np.testing.assert_allclose(
        counts.chain.reshape(3, 2),
        [[0.1013152700, 1.9762024300], [0.9567820807, 0.9657002193], [1.1844604178, 1.8155395822]],
        atol=1e-6,
    )
    assert tagger.models.update(counts, 0.5, tagger.weights, "lambda") < 1e-12
    distance = tagger.models.update(counts, 0.5, tagger.weights, "plain")
    assert distance == pytest.approx(0.3325012318, abs=1e-6)


def test_first_round_is_the_supervised_crf(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaving the uniform models out changes nothing: with them in, the optimum is the same."""
    tagger = toy()
    without = trainer(tagger, monkeypatch).fit_weights().objective
    weights = tagger.crf.weights.copy()
    tagger.models.uniform = False
    assert trainer(tagger, monkeypatch).fit_weights().objective == pytest.approx(without, abs=1e-9)
    np.testing.assert_allclose(tagger.crf.weights, weights, atol=1e-6)
    assert np.abs(tagger.weights).max() < 1e-9


@pytest.mark.parametrize("sign", ["nonneg", "free"])
def test_end_to_end(sign: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tagger = toy()
    train = trainer(tagger, monkeypatch, sign=sign)
    expected = [
        (-0.77166490, (0, 0), 0.33250123),
        (-0.25441627, (1.31762693, 0.98516472), 0.04383031),
        (-0.21736763, (1.25275060, 0.93402198), 0.00550505),
        (-0.21460831, (1.24985115, 0.93003231), 0.00171936),
        (-0.21404555, (1.24949640, 0.92956972), 0.00052557),
    ]
    for number, (value, weights, distance) in enumerate(expected, 1):
        entry = train.round(number)
        assert entry["L1"] == pytest.approx(value, abs=1e-6)
        np.testing.assert_allclose(tagger.weights, weights, atol=2e-6)
        assert entry["distance"] == pytest.approx(distance, abs=1e-6)
    assert train.fit_weights().objective == pytest.approx(-0.21388961, abs=1e-6)
    np.testing.assert_allclose(tagger.weights, (1.24940754, 0.92949114), atol=2e-6)


def test_baum_welch() -> None:
    tagger = toy((STATE,))
    m = tagger.models
    m.chain[:], m.state[:] = np.log(np.ravel(A1)), np.log(np.transpose(B1))
    tagger.weights[:] = 1.0
    counts = counts_of(tagger)
    assert counts.log_z == pytest.approx(-7.7481388582, abs=1e-10)
    m.update(counts, 0.0, tagger.weights, "plain")
    assert counts_of(tagger).log_z == pytest.approx(-7.6002738439, abs=1e-10)
    np.testing.assert_allclose(
        np.exp(m.chain).reshape(3, 2),
        [[0.6153560039, 0.3846439961], [0.4531859093, 0.5468140907], [0.5378762296, 0.4621237704]],
        atol=1e-10,
    )
    np.testing.assert_allclose(
        np.exp(m.state).T,
        [[0.4318525727, 0.3159599523, 0.2521874750], [0.1138988328, 0.2501543170, 0.6359468501]],
        atol=1e-10,
    )


def test_duplicate_chains_share_their_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    tagger = toy((CONSTANT, STATE), bare_chain=True)
    train = trainer(tagger, monkeypatch)
    train.round(1)
    entry = train.round(2)
    np.testing.assert_allclose(tagger.weights, (0.21721544, 1.72287893, 0.21721544), atol=1e-6)
    assert entry["L1"] == pytest.approx(-0.31732243, abs=1e-6)
    train.round(3)
    train.round(4)
    assert train.fit_weights().objective == pytest.approx(-0.27494700, abs=1e-6)
    assert tagger.weights[0] == pytest.approx(tagger.weights[2], abs=1e-6)


def test_a_strong_prior_is_the_supervised_crf(monkeypatch: pytest.MonkeyPatch) -> None:
    train = trainer(toy(), monkeypatch, eta=1e9)
    assert all(train.round(n)["distance"] < 1e-9 for n in (1, 2))
    assert train.fit_weights().objective == pytest.approx(-0.77166490, abs=1e-8)


def test_centering_changes_nothing() -> None:
    tagger = printed_tables(toy())
    objective, w = l1(tagger), tagger.crf.weights
    gradient, shifted = np.empty_like(w), np.empty_like(w)
    value = objective.value_and_gradient(w, gradient)
    tagger.models.state += np.array([[1.5], [-2.0], [0.3]])
    tagger.models.arc += np.array([[-1.0], [0.7], [2.0]])
    assert objective.value_and_gradient(w, shifted) == pytest.approx(value, abs=1e-10)
    np.testing.assert_allclose(shifted, gradient, atol=1e-10)


def test_negative_weights_in_free_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    tagger = printed_tables(toy())
    tagger.weights[:] = (0.7, -0.4)
    train = trainer(tagger, monkeypatch, sign="free")
    monkeypatch.setattr(
        train, "fit_weights", lambda: module.TrainingResult(0, "", True, 0, 0, 0, 0)
    )
    train.round(2)
    assert not train.l2_monotone
    for table in (np.exp(tagger.models.chain).reshape(2, 3, 2), np.exp(tagger.models.state).T):
        np.testing.assert_allclose(table.sum(axis=-1), 1.0, atol=1e-12)


def counted(tagger: Toy, text: Corpus, **sizes: int) -> list[F64]:
    counts = counts_of(tagger, text, **sizes)
    return [whole(counts.arc), whole(counts.state), np.array(counts.log_z)]


def random_text(n_sentences: int) -> Corpus:
    rng = np.random.default_rng(1)
    return corpus(*[list(rng.integers(0, 3, rng.integers(1, 9))) for _ in range(n_sentences)])


def test_counts_do_not_depend_on_pieces_or_batches() -> None:
    text, tagger = random_text(60), printed_tables(toy())
    expected = counted(tagger, text)
    for sizes in ({"piece_tokens": n} for n in (7, 40, 200)):
        for found, wanted in zip(counted(tagger, text, **sizes), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12)
    for found, wanted in zip(counted(tagger, text, batch_tokens=5), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("frequent", [0, 1, 10**9])
def test_counts_of_rare_and_frequent_symbols(
    frequent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dictionary has seen each symbol once: all are frequent, or none is."""
    text = random_text(500)
    expected = counted(printed_tables(toy()), text)
    monkeypatch.setattr("sslbench_methods.jess_cm.tables.FREQUENT", frequent)
    tagger = printed_tables(toy(dtype=np.float32))
    assert len(tagger.models.counts.state.frequent) == (3 if frequent == 0 else 0)
    for found, wanted in zip(counted(tagger, text), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-6)


def test_counting_of_frequent_symbols_never_stalls() -> None:
    """2^25 unit counts: float32 would stop at 2^24."""
    frequent = EmbeddedModels.build((STATE,), 2, [corpus([1] * 5_000)], 1).counts.state
    assert frequent.place.tolist() == [0, 1]  # <UNK>, whose occurrences are not known, and "1"
    assert frequent.frequent.dtype == np.float64


def test_logarithms() -> None:
    x = np.concatenate([np.logspace(-300, 300, 5_001), [1.0, 0.5, 2.0, np.sqrt(2), 1 - 1e-15]])
    found = x.copy()
    _logarithms(found, -1e9)
    np.testing.assert_allclose(found, np.log(x), rtol=4e-16, atol=2e-14)
    low = np.array([0.0, 1e-13, -1.0, 1e-12, 2e-12])
    _logarithms(low, np.log(1e-12))
    np.testing.assert_allclose(low, np.log([1e-12, 1e-12, 1e-12, 1e-12, 2e-12]))


def test_unknown_symbols() -> None:
    """With <UNK>, unseen symbols read row 0 of their table; without, they say nothing."""
    seen, unseen = corpus([0, 0, 1]), corpus([2])
    for unknown in (0, 1):
        tagger = toy(unknown=unknown)
        tagger.models = EmbeddedModels.build((STATE,), 2, [seen], 1, unknown=unknown)
        tagger.models.state[:] = np.arange(tagger.models.state.size).reshape(-1, 2)
        bound = tagger.models.bind(unseen)
        data = EncodedCorpus.build(tagger.crf.layout, tagger.crf.index.encode(unseen))
        node = np.zeros((1, 2))
        bound.add_scores(np.ones(2), data.batches[0], node, np.zeros((1, 2, 2)))
        chain = -2 * np.log(2) if tagger.models.bare_chain else -np.log(2)
        np.testing.assert_allclose(node[0], chain + (np.arange(2) if unknown else 0))


def test_bags_count_every_word_and_stay_inside() -> None:
    bag = Template.parse("bag: x[-2..-1]")
    tagger = toy((bag,))
    text = corpus([0, 0, 1, 2], [1])
    counts = counts_of(tagger, text)
    # token 1 sees 0; token 2 sees 0 0; token 3 sees 0 1: the sums over labels are occurrences
    np.testing.assert_allclose(whole(counts.state).sum(axis=1)[:2], [4, 1])


def test_oscillation_is_noticed() -> None:
    assert rising([0.5, 0.1, 0.2, 0.2, 0.3])
    assert not rising([0.5, 0.4, 0.2, 0.2, 0.1])
    assert not rising([0.1, 0.2, 0.3])


def test_saved_tagger_predicts_the_same(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    from sslbench.engine.crf import read_model

    fit = JessCM().fit(problem(), JessCM.Params(rounds=2), RunContext())
    fit.save(tmp_path / "m.npz")
    kind, arrays, facts = read_model(tmp_path / "m.npz")
    assert kind == "jess_cm"
    again = JessCM.restore(arrays, facts)
    np.testing.assert_array_equal(again.predict(UNLABELED), fit.predict(UNLABELED))
    np.testing.assert_array_equal(again.models.state, fit.models.state)
