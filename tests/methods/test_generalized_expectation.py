"""Generalized expectation against enumeration and finite differences."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sslbench import UserError
from sslbench.engine.corpus import CorpusShards
from sslbench.engine.crf import ChainModel
from sslbench.engine.features import TemplateFeaturizer
from sslbench.experiment.planning.plan import plan
from sslbench.experiment.request.request import RunRequest
from sslbench.testing.cases import method_case
from sslbench.testing.toys import corpus_of, toy_dataset
from sslbench_methods.generalized_expectation.method import (
    Expectations,
    ExpectationTerm,
    GeneralizedExpectation,
)
from sslbench_methods.generalized_expectation.targets import (
    Targets,
    counted,
    information,
    read_targets,
)

TEXT = [
    [("a", "X"), ("b", "Y"), ("a", "Z")],
    [("b", "Y")],
    [("c", "X"), ("a", "Y"), ("b", "X"), ("c", "Z")],
    [("a", "Z"), ("a", "X")],
]


def problem_parts(order: int, seed: int = 0, shard_tokens: int = 4) -> Any:
    """A CRF with random weights, encoded shards, targets, expectations and terms."""
    rng, corpus = np.random.default_rng(seed), corpus_of(TEXT)
    featurizer = TemplateFeaturizer(["word[0]", "word[-1]", "edge: word[0]"])
    labels = ("X", "Y", "Z")
    codes = corpus.column("label").codes
    crf = ChainModel(order).prepare(featurizer, corpus, codes, labels)
    crf.weights[:] = rng.normal(size=len(crf.weights))
    shards = [crf.encode(part) for part in CorpusShards(corpus.drop("label"), shard_tokens)]
    target = rng.dirichlet(np.ones(3), 3)
    target[0] = [0.0, 0.25, 0.75]
    targets = Targets(np.array([0, 2, 4]), target)
    expectations = Expectations.of(targets, crf, shards)
    terms = [
        ExpectationTerm(expectations, rows, i, 2.5) for i, rows in enumerate(expectations.rows)
    ]
    return crf, shards, targets, expectations, list(zip(shards, terms, strict=True))


def enumerated(crf: Any, shards: Any, targets: Targets) -> float:
    """sum_k KL(g_k || e_k) from the probabilities of all labelings."""
    L, sums, often = len(crf.labels), np.zeros(targets.labels.shape), np.zeros(len(targets.labels))
    for data in shards:
        for s, (first, last) in enumerate(zip(data.offsets, data.offsets[1:], strict=False)):
            paths = list(product(range(L), repeat=int(last - first)))
            scores = np.array([path_score(crf, data, s, path) for path in paths])
            p = np.exp(scores - scores.max())
            p /= p.sum()
            for t in range(first, last):
                marginal = np.zeros(L)
                for path, mass in zip(paths, p, strict=True):
                    marginal[path[t - first]] += mass
                for k, attribute in enumerate(targets.attributes):
                    if (data.attributes.node[:, t] == attribute).any():
                        sums[k] += marginal
                        often[k] += 1
    e, g = sums / often[:, None], targets.labels
    return float(sum(g[g > 0] * np.log(g[g > 0] / e[g > 0])))


def path_score(crf: Any, data: Any, sentence: int, path: tuple[int, ...]) -> float:
    for potentials in crf.potentials(data):
        batch = potentials.batch
        if batch.sentence_lo <= sentence < batch.sentence_hi:
            labels = np.zeros(batch.n_tokens, np.int32)
            first = batch.offsets[sentence - batch.sentence_lo]
            labels[first : first + len(path)] = path
            return float(potentials.path_scores(labels)[first : first + len(path)].sum())
    raise AssertionError


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("shard_tokens", [4, 100])
def test_value_by_enumeration(order: int, shard_tokens: int) -> None:
    crf, shards, targets, expectations, parts = problem_parts(order, shard_tokens=shard_tokens)
    value = crf.evaluate(parts).sum()
    assert value == pytest.approx(-2.5 * enumerated(crf, shards, targets), rel=1e-10)
    assert expectations.divergence() == pytest.approx(-value / 2.5)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("shard_tokens", [4, 100])
def test_gradient_by_finite_differences(order: int, shard_tokens: int) -> None:
    crf, _, _, _, parts = problem_parts(order, 1, shard_tokens)
    gradient = crf.expect(parts).counts
    assert np.abs(gradient).max() > 0.01
    for i in range(len(crf.weights)):
        both = []
        for step in (1e-5, -1e-5):
            weights = crf.weights.copy()
            weights[i] += step
            both.append(crf.evaluate(parts, weights).sum())
        assert gradient[i] == pytest.approx((both[0] - both[1]) / 2e-5, abs=2e-8)


@pytest.mark.parametrize("order", [1, 2])
def test_own_expectations_as_targets_leave_the_model_where_it_is(order: int) -> None:
    crf, _, _, expectations, parts = problem_parts(order, 2)
    crf.evaluate(parts)
    expectations.targets = expectations.shares.copy()
    found = crf.expect(parts)
    assert found.values.sum() == pytest.approx(0.0, abs=1e-12)
    assert np.abs(found.counts).max() < 1e-9


def test_information_by_its_definition() -> None:
    counts, total = np.array([[3.0, 0.0, 1.0], [2.0, 2.0, 2.0], [0.0, 0.0, 0.0]]), np.full(3, 4.0)
    found = information(counts, total)
    for row, gain in zip(counts, found, strict=True):
        joint = np.stack([row, total - row]) / total.sum()
        expected = 0.0
        for a, b in product(range(2), range(3)):
            if joint[a, b]:
                expected += joint[a, b] * np.log(joint[a, b] / (joint[a].sum() * joint[:, b].sum()))
        assert gain == pytest.approx(expected)
    assert found[2] == 0.0


def fit(**params: Any) -> Any:
    case = method_case(GeneralizedExpectation, params, ())
    return case.fit(toy_dataset())


def test_counted_targets() -> None:
    fitted = fit(max_iterations=2, joint_iterations=1)
    problem, crf = fitted.problem, fitted.own_tagger
    text = problem.encode(crf)
    targets = counted(text, crf, 5, 2.0)
    assert len(targets.attributes) == 5
    assert np.allclose(targets.labels.sum(axis=1), 1.0)
    node, labels = text.labeled[0].attributes.node, text.labels
    share = np.bincount(labels, minlength=len(crf.labels)) / len(labels)
    for attribute, target in zip(targets.attributes, targets.labels, strict=True):
        own = labels[(node == attribute).any(axis=0)]
        mass = np.bincount(own, minlength=len(crf.labels)) + 2.0 * share
        assert np.allclose(target, mass / mass.sum())


def test_weight_zero_is_supervised() -> None:
    fitted = fit(weight=0.0)
    crf = fitted.own_tagger
    text = fitted.problem.encode(crf)
    other = fitted.problem.crf(GeneralizedExpectation.Params(), features_from="labeled+unlabeled")
    other.train([text.labeled], GeneralizedExpectation.Params())
    assert other.weights.tolist() == crf.weights.tolist()


@pytest.mark.parametrize("labeled", [0, 6])
def test_a_file_of_targets_without_any_label(labeled: int, tmp_path: Path) -> None:
    """With labeled sentences of which only the names of the labels are used, and with none."""
    dataset = toy_dataset()
    train = dataset.splits["train"]
    words, labels = train.column("word"), train.column("label")
    path, count = tmp_path / "targets", {}
    for word, label in zip(words.strings(), labels.strings(), strict=True):
        count.setdefault(word, []).append(label)
    lines = [f"word[0]={w}\t{max(set(c), key=c.count)}:0.9\n" for w, c in sorted(count.items())]
    path.write_text("# targets\n" + "".join(lines))
    case = method_case(
        GeneralizedExpectation, {"targets": str(path), "likelihood": labeled == 0}, ()
    )
    fitted = case.fit(dataset, labeled=labeled)
    assert fitted.problem.labeled.n_sentences == labeled
    assert set(fitted.own_tagger.labels) == set(labels.vocabulary.strings)
    assert fitted.trained.run.trace["attributes"] > 5
    assert "supervised" not in fitted.trained.run.trace
    test = dataset.splits["test"]
    gold = test.column("label").strings()
    right = np.mean([a == b for a, b in zip(fitted.predicted(test), gold, strict=True)])
    assert right > 0.7  # words with two labels, and new words


def test_without_labels_and_without_targets() -> None:
    with pytest.raises(UserError, match="no labeled sentence to count targets in"):
        method_case(GeneralizedExpectation, {}, ()).fit(toy_dataset(), labeled=0)


def test_labels_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "targets"
    path.write_text("word[0]=a\tY:0.5 B-X:0.25\n# word[0]=c\tQ:1\nword[0]=b\t.:1\n")
    assert read_targets(str(path)).labels == (".", "B-X", "Y")


@pytest.mark.parametrize(("name", "number", "least"), [("ud_el", 11, 100), ("conll00", 10, 80)])
def test_the_files_of_the_benchmark(name: str, number: int, least: int) -> None:
    path = Path(__file__).parents[1] / "benchmarks" / "targets" / f"{name}.txt"
    found = read_targets(str(path))
    assert len(found.labels) == number
    assert len(found.entries) >= least


def test_other_methods_need_labels() -> None:
    methods = ("supervised", "generalized_expectation", "self_training")
    request = RunRequest(method=methods, dataset=("synth",), labeled=0)
    reasons = [task.skip_reason for task in plan(request, store=None, notice=lambda text: None)]
    line = "without labeled sentences, and learns from them"
    assert reasons == [line, None, line]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("word[0]=a X:0.5", "1: no target"),
        ("word[0]=a\tX:2", "'X:2' is no label"),
        ("word[0]=a\tX:nan", "is no label"),
        ("word[0]=a\tQ:0.5", "1: no label 'Q'"),
        ("word[0]=a\tX:0.9 Y:0.9", "1: no target"),
        ("word[0]=a\tX:0.1 Y:0.1 Z:0.1", "1: no target"),
        ("word[0]=a\t", "1: no target"),
        ("word[0]=never\tX:0.5", "none of its attributes"),
        ("", "none of its attributes"),
    ],
)
def test_wrong_files_of_targets(line: str, message: str, tmp_path: Path) -> None:
    crf = problem_parts(1)[0]
    path = tmp_path / "targets"
    path.write_text(line + "\n")
    with pytest.raises(UserError, match=message):
        read_targets(str(path)).of(crf)


def test_labels_that_are_not_named_share_the_rest(tmp_path: Path) -> None:
    crf = problem_parts(1)[0]
    path = tmp_path / "targets"
    path.write_text("word[0]=a\tX:0.5\nword[-1]=a\tX:0.5 Y:0.25 Z:0.25\n")
    assert read_targets(str(path)).of(crf).labels.tolist() == [[0.5, 0.25, 0.25]] * 2
