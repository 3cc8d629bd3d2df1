"""Entropy regularization as a method: scales, schedules, its record, what it does to labels."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from sslbench.engine.corpus import Corpus
from sslbench.engine.crf import ChainCRF
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.inputs.problem import Problem, without_labels
from sslbench.experiment.metrics import SentenceCounts, metrics_from_counts
from sslbench_methods.entropy_regularization.method import EntropyRegularization, EntropyTrainer
from sslbench_methods.supervised import Supervised
from support.eight_sentences import eight_sentences
from support.entropy_toys import LAMBDA, TEXT, Params, close, entropy_at, objective_at, trainer
from support.graph_toys import corpus, crf_over, encoded

# -- 16 and 18 -------------------------------------------------------------------------------------


def test_twice_the_text_at_half_the_weight() -> None:
    double = Corpus.concatenate([TEXT, TEXT])
    value, gradient = objective_at(LAMBDA, 0.7)
    twice, other = objective_at(LAMBDA, 0.35, double)
    close(twice, value, 1e-13)
    close(other, gradient, 1e-13)
    for scale in ("ratio_tokens", "ratio_sentences"):
        ends = []
        for text in ((TEXT,), (double,), (TEXT, TEXT)):
            one = trainer(text, gamma=2.0, gamma_scale=scale)
            one.train()
            ends.append(one.crf.weights)
        close(ends[1], ends[0], 1e-7)
        close(ends[2], ends[0], 1e-7)
    assert trainer(gamma=2.0, gamma_scale="ratio_tokens").gamma() == 2.0 * 5 / 7
    assert trainer(gamma=2.0, gamma_scale="ratio_sentences").gamma() == 2.0 * 2 / 3
    assert trainer(gamma=2.0).gamma() == 2.0
    assert trainer((), gamma=2.0, gamma_scale="ratio_tokens").gamma() == 0.0


def test_entropy_per_token() -> None:
    """Each sentence's entropy by its length: (4, 1, 2) tokens."""
    sure = np.array([2.6029042988 / 4, 0.6931471806, 1.2974673224 / 2])
    one = trainer(gamma=0.7, entropy_of="token")
    one.crf.weights[:] = LAMBDA
    report = one.report(one.gamma())
    close(report["negative_entropy"], -0.7 * sure.sum())
    close(7 * report["entropy"], 4.5935188017)  # what is reported stays per token of the text
    one.train()
    record = one.run.trace
    after = record["after"]
    close(after["RL"], record["stages"][0]["objective"], 1e-12)
    parts = [entropy_at(one.crf.weights, TEXT.between(i, i + 1)) for i in range(3)]
    close(
        after["negative_entropy"],
        0.7 * sum(v / t for (v, _), t in zip(parts, (4, 1, 2), strict=True)),
    )
    labeled = objective_at(one.crf.weights, 0.0)[1]
    slope = 0.7 * sum(g / t for (_, g), t in zip(parts, (4, 1, 2), strict=True))
    close(abs(labeled + slope).max(), 0, 1e-7)


TABLE_2 = """3334 2435 .7304 .3259 .4507
3345 2446 .7312 .3274 .4523   3376 2470 .7316 .3306 .4554   3366 2466 .7326 .3300 .4551
3413 2489 .7293 .3331 .4573   3450 2510 .7275 .3359 .4596   3376 2469 .7313 .3304 .4552
3446 2503 .7263 .3350 .4585   3588 2580 .7191 .3453 .4665   3607 2590 .7180 .3466 .4676
4089 2878 .7038 .3852 .4979   4206 2947 .7007 .3944 .5047   4165 2888 .6934 .3865 .4963
4450 2799 .6290 .3746 .4696   4762 2827 .5937 .3783 .4622   4778 2845 .5954 .3808 .4645"""


def test_the_table_of_the_paper() -> None:
    for row in np.array(TABLE_2.split(), float).reshape(-1, 5):
        one, guessed, correct = (np.array([int(n)]) for n in (1, row[0], row[1]))
        counts = SentenceCounts(one, one, np.array([7472]), guessed, correct)
        metrics = metrics_from_counts(counts)
        close([metrics[name] for name in ("precision", "recall", "f1")], row[2:], 0.5001e-4)


# -- the method ------------------------------------------------------------------------------------


def trained(**options: Any) -> dict[str, Any]:
    one = trainer(**options)
    one.train()
    return one.run.trace


def test_a_start_before_the_optimum() -> None:
    optimum, early, control = (
        trainer(gamma=gamma, start_iterations=most)
        for gamma, most in ((0.7, None), (0.7, 2), (0.0, 2))
    )
    for one in (optimum, early, control):
        one.train()
    assert optimum.run.trace["supervised"]["iterations"] > 2
    assert early.run.trace["supervised"]["iterations"] == 2
    assert early.run.trace["before"]["RL"] < optimum.run.trace["before"]["RL"]
    # without the entropy, the control goes on to the supervised optimum
    supervised = trainer(gamma=0.0)
    supervised.train()
    close(control.crf.weights, supervised.crf.weights, 1e-4)


def test_schedule_and_restarts() -> None:
    stages = trained(gamma=5.0, anneal="geometric")["stages"]
    assert [stage["gamma"] for stage in stages] == [5 / 16, 5 / 8, 5 / 4, 5 / 2, 5.0]
    assert max(stage["iterations"] for stage in stages) <= 50
    again = trained(gamma=5.0, restarts=2)["stages"]
    assert [stage["iterations"] for stage in again[1:]] == [0, 0]  # it was a strict optimum
    short = trained(gamma=5.0, restarts=2, joint_iterations=3)["stages"]
    assert [(stage["iterations"], stage["status"]) for stage in short] == [(3, "max_iterations")]


def test_collapse_is_told() -> None:
    """A bias alone goes to the label that is likelier; a weak pull does not."""
    text = corpus(*[[0]] * 10)
    labels = np.array([1] * 3 + [0] * 7, np.int32)

    def collapsed(gamma: float) -> tuple[dict[str, Any], tuple[str, ...]]:
        crf, run = crf_over(text, labels, template="bias"), RunContext()
        encoded_text = encoded(crf, [text], text, labels)
        EntropyTrainer(crf, encoded_text, Params(gamma=gamma, sigma2=1e6), run).train()
        return run.trace, run.warnings

    record, told = collapsed(50.0)
    assert record["collapsed"] == ["b"]
    close(record["before"]["labels"], [0.7, 0.3], 1e-2)
    assert record["after"]["labels"][1] < 0.06
    assert any("collapsed: b lost" in line for line in told)
    record, told = collapsed(0.05)
    assert record["collapsed"] == []
    assert told == ()
    assert record["after"]["entropy"] < record["before"]["entropy"]


@pytest.fixture(scope="module")
def problem() -> Problem:
    """With transitions that depend on the text."""
    return eight_sentences(templates=["word[0]", "word.suffix2[0]", "edge: word.suffix1[0]"])


def fitted(problem: Problem, **options: Any) -> tuple[ChainCRF, dict[str, Any]]:
    run = RunContext()
    crf = EntropyRegularization().fit(problem, EntropyRegularization.Params(**options), run)
    return crf, run.trace


def test_the_record(problem: Problem) -> None:
    crf, trace = fitted(problem, gamma=0.2)
    json.dumps(trace)
    before, after = trace["before"], trace["after"]
    assert 0 < after["entropy"] < before["entropy"]
    assert after["RL"] > before["RL"]
    close(sum(after["labels"]), 1.0)
    close(after["RL"], after["log_likelihood"] - after["penalty"] + after["negative_entropy"])
    p = np.concatenate([crf.marginals(crf.encode(shard)) for shard in problem.unlabeled])
    close(after["labels"], p.mean(axis=0))
    tokens = problem.unlabeled.n_tokens
    gamma = 0.2 * problem.labeled.n_tokens / tokens
    close(trace["gamma"], gamma)
    close(after["negative_entropy"], -gamma * tokens * after["entropy"])
    dev = problem.dev
    assert dev is not None
    right = crf.predict(without_labels(dev)) == problem.label_codes(dev)
    assert after["dev_accuracy"] == right.mean()
    stage = trace["stages"][0]
    assert len(stage["loss"]) == len(stage["entropy"]) == stage["iterations"] + 1
    close(stage["entropy"][0], before["entropy"])
    assert list(stage["labels"]) == [str(i) for i in range(0, stage["iterations"] + 1, 10)]


def test_limits_of_the_method(problem: Problem) -> None:
    supervised = Supervised().fit(problem, Supervised.Params(), RunContext())
    same, trace = fitted(problem, gamma=0.0)
    np.testing.assert_array_equal(same.weights, supervised.weights)
    assert trace["after"] == trace["before"]
    assert trace["before"]["entropy"] > 0


def test_attributes_of_unlabeled_sentences(problem: Problem) -> None:
    """Indexed, they are learned from the company that they keep."""
    known, _ = fitted(problem, gamma=0.2)
    more, trace = fitted(problem, gamma=0.2, features_from="labeled+unlabeled")
    assert more.index.n_node > known.index.n_node
    seen = {known.index.node_text(i) for i in range(known.index.n_node)}
    new = [i for i in range(more.index.n_node) if more.index.node_text(i) not in seen]
    assert (
        abs(
            more.weights[: more.index.n_node * len(more.labels)].reshape(more.index.n_node, -1)[new]
        ).max()
        > 1e-3
    )
    assert trace["after"]["entropy"] < trace["before"]["entropy"]
