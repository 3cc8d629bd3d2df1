"""Posterior regularization from a problem to a tagger, and what holds for any text."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sslbench_datasets.synth.load as synth
from sslbench.engine.corpus import CorpusShards
from sslbench.engine.crf import STRICT, ChainCRF, Options, TrainingParams, read_model
from sslbench.engine.errors import UserError
from sslbench.engine.types import I32
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.data import DataHome, Dataset
from sslbench.experiment.inputs.problem import Problem, without_labels
from sslbench.experiment.inputs.protocol import Sample
from sslbench.experiment.planning.task import RunTask
from sslbench.experiment.records.record import ProtocolSpec, RunSpec
from sslbench.experiment.run.fitting import Session
from sslbench.experiment.run.training import train
from sslbench.method import ProblemGraph
from sslbench.plugins import registry
from sslbench.taggers import PosteriorTagger
from sslbench_methods.graph_pr import method as graph_pr
from sslbench_methods.graph_pr.e_step import (
    Backtracking,
    Posterior,
    RegularizedPosterior,
    Release,
    Value,
)
from sslbench_methods.graph_pr.method import PR1, GraphPR
from sslbench_methods.graph_pr.penalties import AtLeastOnce
from sslbench_methods.supervised import Supervised
from support.compare import close
from support.eight_sentences import eight_sentences
from support.graph_problems import random_problem
from support.graph_toys import corpus
from support.regularization_toys import SOLVED, Params, em_b

pytestmark = pytest.mark.usefixtures("own_cache")


FAST: dict[str, Any] = {
    "neighbors": 5,
    "symmetry": "union",
    "sigma2": 10.0,
    "lam": 1.0,
    "decoding": "posterior",
}


class StrictPR(GraphPR):
    """Trainings that run to the optimum."""

    class Params(GraphPR.Params, frozen=True, kw_only=True):
        """The same parameters."""

        m_iterations: int = STRICT.max_iterations
        m_ftol: float = STRICT.ftol

        def options(self, **changes: Any) -> Options:
            return replace(STRICT, **changes)


@pytest.fixture(scope="module")
def problem() -> Problem:
    """Eight labeled sentences, sixteen others without labels, in two shards."""
    return eight_sentences()


def fitted(
    problem: Problem, method: type[GraphPR | PR1] = GraphPR, **options: Any
) -> tuple[Any, dict[str, Any]]:
    run = RunContext()
    fit = method().fit(problem, method.Params(**{**FAST, **options}), run)
    return fit, run


def test_the_record(problem: Problem) -> None:
    fit, run = fitted(problem, em_iters=3)
    trace = run.trace
    json.dumps(run.trace)
    assert isinstance(fit, PosteriorTagger)
    assert {"graph", "features", "train", "estep", "mstep"} <= set(run.timing)
    assert trace["falls"] == []
    assert len(trace["rounds"]) == 3
    J = trace["J"]
    for entry in trace["rounds"]:
        assert J < entry["J_E"] < entry["J_M"]
        assert entry["J_M"] - J == pytest.approx(entry["J_gain"], abs=1e-9)
        J = entry["J_M"]
        assert entry["R"] == pytest.approx(entry["KL"] + entry["h"])
        assert entry["stopped"] == "converged"
        assert entry["residual"] < 1e-3
        assert entry["etas"]
        assert 0 <= entry["dev_accuracy"] <= 1
    assert "dev_accuracy" in trace["supervised"]
    assert run.trace["graph"]["vertices"] > 0


def test_m_steps_are_whole_at_both_ends(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    """J rises in all rounds, and the end is that of whole M-steps, as far as EM has converged."""
    asked: list[float] = []
    train = ChainCRF.train

    def watched(self: ChainCRF, *args: Any, options: Any = None, **others: Any) -> Any:
        asked.extend([] if options is None else [options.share])
        return train(self, *args, options=options, **others)

    monkeypatch.setattr(ChainCRF, "train", watched)
    run = fitted(problem, StrictPR, em_iters=6, em_tol=0.0, m_share=0.3)[1]
    assert asked == [0.0, 0.3, 0.3, 0.3, 0.3, 0.0]
    assert run.trace["falls"] == []
    asked.clear()
    ends = [
        fitted(problem, StrictPR, em_iters=400, em_tol=1e-4, m_share=share)[1].trace
        for share in (0.0, 0.3)
    ]
    assert [end["stopped"] for end in ends] == ["converged"] * 2
    assert asked[-1] == 0.0
    loose = len(ends[0]["rounds"]) + 1
    assert asked[:loose] == [0.0] * loose
    assert asked[loose : loose + 2] == [0.3] * 2
    J = [end["rounds"][-1]["J_M"] for end in ends]
    assert J[1] == pytest.approx(J[0], rel=0.02)


def test_pr1_is_the_first_round(problem: Problem) -> None:
    one, other = fitted(problem, PR1)[0], fitted(problem, em_iters=1)[0]
    np.testing.assert_array_equal(one.crf.weights, other.crf.weights)
    more = fitted(problem, em_iters=2)[0]
    assert np.abs(more.crf.weights - one.crf.weights).max() > 1e-3
    np.testing.assert_array_equal(more.variants["pr1"].crf.weights, one.crf.weights)
    assert set(one.variants) == {"q"}
    assert not hasattr(PR1.Params(), "em_iters")


@pytest.mark.parametrize("options", [{"lam": 0.0}, {"W": 0}])
def test_without_a_penalty_it_is_the_supervised_crf(
    problem: Problem, monkeypatch: pytest.MonkeyPatch, options: dict[str, float]
) -> None:
    """Exactly so for lam = 0; for a graph without edges, as far as trainings are exact."""
    lam, exact = options.get("lam", 1.0), "lam" in options
    if not exact:
        built = Problem.graph

        def no_edges(self: Problem, *args: Any, **options: Any) -> ProblemGraph:
            found = built(self, *args, **options)
            return replace(found, graph=replace(found.graph, W=(0.0 * found.W).tocsr()))

        monkeypatch.setattr(Problem, "graph", no_edges)
    params = StrictPR.Params(**{**FAST, "lam": lam}, em_iters=2)
    fit = StrictPR().fit(problem, params, RunContext())
    wanted = StrictPR().fit(problem, StrictPR.Params(**{**FAST, "lam": 0.0}), RunContext())
    close(fit.crf.weights, wanted.crf.weights, 0.0 if exact else 1e-6)
    plain = Supervised().fit(problem, Supervised.Params(sigma2=10.0, ftol=1e-9), RunContext())
    labels = without_labels(problem.dev)
    close(fit.crf.marginals(fit.crf.encode(labels)), plain.marginals(plain.encode(labels)), 1e-3)


def test_without_unlabeled_text(problem: Problem) -> None:
    alone = replace(problem, unlabeled=CorpusShards(next(iter(problem.unlabeled)).select([])))
    wanted = Supervised().fit(alone, Supervised.Params(sigma2=10.0), RunContext())
    for penalty in ("graph", "label_in_sentence"):
        label = problem.labels[0]
        fit, run = fitted(alone, penalty=penalty, required_label=label)
        np.testing.assert_array_equal(fit.crf.weights, wanted.weights)
        assert run.trace["stopped"] == "nothing_to_do"


def test_isolated_vertices_and_punctuation_are_left_alone() -> None:
    """Offsets are zero where no edge is, and tokens outside the graph have none."""
    problem = random_problem(3)
    run = RunContext()
    params = GraphPR.Params(**FAST, max_df=2)
    penalty, _ = graph_pr.penalty_of(problem, params, run)
    crf = problem.crf(params, features_from="labeled+unlabeled")
    parts = [crf.encode(shard) for shard in problem.unlabeled]
    crf.weights[:] = np.random.default_rng(0).normal(size=len(crf.weights))
    text = RegularizedPosterior(crf, parts, penalty, 1.0)
    model = text.model(crf.weights)
    q, _ = text.minimize(model, model, Backtracking())
    isolated = penalty.edges.degree == 0
    assert 0 < isolated.sum() < len(isolated)
    assert (penalty.rows.row_of == -1).any()
    np.testing.assert_array_equal(q.offset[:-1][isolated], 0.0)
    assert q.offset[:-1][~isolated].any(axis=1).mean() > 0.5
    np.testing.assert_array_equal(q.offset[-1], 0.0)


def test_shards_and_order_of_the_text(problem: Problem) -> None:
    """One shard or two: the same bits; another order of the sentences: the same optimum."""
    parts = list(problem.unlabeled)
    whole = type(parts[0]).concatenate(parts)
    one = replace(problem, unlabeled=CorpusShards(whole))
    turned = replace(problem, unlabeled=CorpusShards(whole.select(np.arange(16)[::-1])))
    weights = []
    for either in (problem, one, turned):
        fit = StrictPR().fit(either, StrictPR.Params(**FAST, em_iters=1), RunContext())
        index = fit.crf.index
        order = np.argsort([index.node_text(i) for i in range(index.n_node)])
        state = fit.crf.layout.part(fit.crf.weights, "state").reshape(index.n_node, -1)[order]
        weights.append(state)
    close(weights[0], weights[1], 1e-4)
    close(weights[0], weights[2], 1e-4)


def test_saved_and_restored(problem: Problem, tmp_path: Path) -> None:
    text = without_labels(problem.dev)
    for method in (GraphPR, PR1):
        fit, _ = fitted(
            problem, method, m_iterations=20, **({"em_iters": 1} if method is GraphPR else {})
        )
        fit.save(tmp_path / "model")
        kind, arrays, facts = read_model(tmp_path / "model")
        assert kind == "graph_pr"
        restored = GraphPR.restore(arrays, facts)
        np.testing.assert_array_equal(restored.predict(text), fit.predict(text))
        np.testing.assert_array_equal(restored.crf.weights, fit.crf.weights)


def test_decoding(problem: Problem) -> None:
    posterior, viterbi = (
        fitted(problem, em_iters=1, decoding=way)[0] for way in ("posterior", "viterbi")
    )
    np.testing.assert_array_equal(posterior.crf.weights, viterbi.weights)
    text = without_labels(problem.dev)
    best: I32 = viterbi.marginals(viterbi.encode(text)).argmax(axis=1)
    np.testing.assert_array_equal(posterior.predict(text), best)


# -- another penalty -------------------------------------------------------------------------------


def test_a_label_in_every_sentence(problem: Problem) -> None:
    gold = list(problem.labeled.column("label").strings())
    label = min(problem.labels, key=gold.count)
    fit, run = fitted(
        problem, penalty="label_in_sentence", required_label=label, lam=5.0, em_iters=3
    )
    trace = run.trace
    assert trace["falls"] == []
    assert "graph" not in run.trace
    assert trace["rounds"][-1]["h"] < 0.5 * trace["rounds"][0]["h"]
    plain = Supervised().fit(problem, Supervised.Params(sigma2=10.0), RunContext())
    code, shard = problem.labels.index(label), next(iter(problem.unlabeled))
    more, less = (crf.marginals(crf.encode(shard))[:, code].sum() for crf in (fit.crf, plain))
    assert more > less


def test_a_label_that_nothing_has_is_refused(problem: Problem) -> None:
    with pytest.raises(UserError, match=r"required_label=nope.*labels are"):
        fitted(problem, penalty="label_in_sentence", required_label="nope")


# -- J ---------------------------------------------------------------------------------------------


@settings(max_examples=15)
@given(
    seed=st.integers(0, 10_000),
    lam=st.sampled_from([0.1, 1.0, 20.0]),
    beta=st.sampled_from([0.3, 1.0]),
    kind=st.sampled_from(["graph", "label"]),
    way=st.sampled_from(["restart", "carry", "one step"]),
)
def test_p14_j_never_falls(seed: int, lam: float, beta: float, kind: str, way: str) -> None:
    rng = np.random.default_rng(seed)
    sentences = [rng.integers(0, 4, rng.integers(1, 6)).tolist() for _ in range(4)]
    text = corpus(*sentences)
    W = np.triu(rng.uniform(0, 1, (4, 4)), 1)
    vertices = rng.integers(-1, 4, text.n_tokens).astype(np.int32)
    params = Params(lam=lam, beta=beta, warm="restart" if way == "restart" else "carry")
    em = em_b(params, W + W.T, text, vertices)
    if kind == "label":
        em.posterior = replace(em.posterior, penalty=AtLeastOnce.build(1, np.diff(text.offsets), 2))
    em.schedule = {
        "restart": SOLVED,
        "carry": Backtracking(most_steps=2),
        "one step": Backtracking(most_steps=1),
    }[way]
    em.train(5, 0.0)
    trace = em.run.trace
    assert trace["falls"] == []
    assert np.diff(em.path).min() >= -1e-9
    for entry in trace["rounds"]:
        assert entry["stopped"] in ("converged", "steps")


def test_beta_weighs_all_of_r() -> None:
    one, other = em_b(Params(beta=1.0)), em_b(Params(beta=0.25))
    value = Value(8.0, 5.0, 3.0)
    close(other.objective(value) - one.objective(value), 6.0, 1e-14)


def test_a_restart_that_is_cut_short_is_not_worse_than_the_old_posterior() -> None:
    em = em_b(Params(beta=10.0, sigma2=1e4))
    em.crf.train([em.text.labeled], TrainingParams(sigma2=1e4), options=Options())
    model = em.posterior.model(em.crf.weights)
    q, _ = em.e_step(model, em.posterior.value(model, model), model)
    model, value, _ = em.m_step(q)
    assert em.posterior.value(em.posterior.restarted(q, model), model).r > value.r + 1e-3
    em.schedule = Backtracking(first=0.01, most_steps=1)
    kept, entry = em.e_step(q, value, model)
    assert entry["kept_old"]
    assert kept is q
    assert entry["R"] == value.r
    em.schedule = SOLVED
    _, entry = em.e_step(q, value, model)
    assert not entry["kept_old"]
    assert entry["R"] < value.r


def test_a_fall_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The round that lowers J says so, the ones after it do not."""
    em = em_b()
    em.run = RunContext(quiet=False)
    honest = em.m_step

    def worse_at_first(q: Posterior, share: float) -> Any:
        found = honest(q, share)
        if len(em.path) == 3:
            em.path[-1] = em.path[-2] - 1e-3
        return found

    monkeypatch.setattr(em, "m_step", worse_at_first)
    em.train(2, 0.0)
    assert em.falls() == em.run.trace["falls"] == [2]
    told = [line for line in capsys.readouterr().err.splitlines() if "J fell" in line]
    assert len(told) == 1
    assert told[0].startswith("round 1: ")


def test_r_never_rises_within_an_e_step() -> None:
    for seed in range(5):
        em = em_b(Params(lam=30.0))
        em.crf.weights[:] = np.random.default_rng(seed).normal(size=12)
        model = em.posterior.model(em.crf.weights)
        q, R = model, [em.posterior.value(model, model).r]
        for steps in range(1, 12):
            q, _ = em.posterior.minimize(model, model, Backtracking(most_steps=steps, residual=0.0))
            R.append(em.posterior.value(q, model).r)
        assert (np.diff(R) <= q.rounding).all()
        assert R[-1] < R[0]


def test_the_stop_of_the_release() -> None:
    rule = Release()
    assert rule.done(1.0, 0.995, 1.0)
    assert rule.done(1.0, 1.1, 0.0)
    assert not rule.done(1.0, 0.98, 1.0)
    close([rule.rate(t, 0.0) for t in range(10)], 0.2 / np.arange(1, 11), 1e-16)
    close(np.prod([1 - rule.rate(t, 0.0) for t in range(10)]), 0.538, 5e-4)


def test_the_release_carries_its_posterior(problem: Problem) -> None:
    _, run = fitted(problem, schedule="release", em_iters=2)
    first, second = run.trace["rounds"]
    close(first["etas"][:2], [0.2, 0.1])
    assert len(first["etas"]) <= 10
    assert second["start"] < first["R"]  # from the old posterior, under a model that is nearer


def test_the_number_of_rounds_is_chosen_on_held_out_sentences() -> None:
    splits = synth.load(DataHome(), train=30, dev=8, test=5).splits
    data = Dataset("d", "tagging", "accuracy", None, {k: splits[k] for k in ("train", "test")})
    spec = RunSpec(
        method="graph_pr",
        dataset="synth",
        featurizer="basic",
        model="crf1",
        params={**FAST, "lam": 0.5, "m_iterations": 5},
        protocol=ProtocolSpec(labeled=15, seed=0, tune=5),
    )
    session = Session.open(RunTask(spec, "accuracy"), registry())
    trained = train(session, Sample.of(spec, data))
    trials = trained.tuning.trials
    assert [set(t.params) for t in trials] == [{"em_iters"}] * 5
    assert trials[0].params == {"em_iters": 3}
    best = max(trials, key=lambda trial: trial.score or 0.0).params[
        "em_iters"
    ]  # the first of equals
    assert trained.fitted.params["em_iters"] == best
    assert len(trained.run.trace["rounds"]) <= best
