"""Rules that tell labels from forms: on text, in the engine, in every method that tags words."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import check_grad
from test_graph_baselines import random_problem

from sslbench.corpus import Column, Corpus, LabelConstraint, Vocabulary
from sslbench.corpus.codecs import PreviousType
from sslbench.crf import ChainCRF, HardLabels, LogPartition, Objective, read_model
from sslbench.crf.entropy import Entropy
from sslbench.experiment.context import RunContext
from sslbench.experiment.data import Dataset
from sslbench.experiment.problem import Problem, relabeled
from sslbench.experiment.protocol import draw
from sslbench.experiment.record import ProtocolSpec, RunSpec
from sslbench.experiment.training import RunSetup, Task
from sslbench.features import TemplateFeaturizer
from sslbench.plugins import registry
from sslbench_datasets.ud.load import PUNCTUATION
from sslbench_methods.graph_self_training.rounds import decode
from support.crf_oracle import log_sum
from support.graph_oracle import WORDS, corpus_of, hgt13_excludes

RULE = LabelConstraint("word", ".,!?:;", "P")
METHODS = (
    "supervised",
    "self_training",
    "jess_cm",
    "graph_self_training",
    "type_self_training",
    "virtual_evidence",
    "entropy_regularization",
    "graph_pr",
    "pr1",
    "graph_propagation",
    "gp_crf",
)
FAST = {
    "neighbors": 4,
    "symmetry": "mutual",
    "rounds": 2,
    "em_iters": 2,
    "max_iterations": 20,
    "gamma": 0.1,
    "eta": 0.5,
}


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSLBENCH_CACHE", str(tmp_path / "cache"))


def labeled(sentences: list[list[str]], labels: str) -> Corpus:
    column = Column(Vocabulary("ABCP"), ["ABCP".index(label) for label in labels])
    return corpus_of(sentences).with_column("label", column)


# -- on text ---------------------------------------------------------------------------------------


def test_a_token_is_told_when_all_its_characters_are() -> None:
    text = labeled([["..", "a.", ":", "A"], ["", ",!?;"]], "ABCPAB")
    assert RULE.applies(text).tolist() == [True, False, True, False, False, True]
    imposed = RULE.impose(text)
    assert imposed.column("label").strings() == ["P", "B", "P", "P", "A", "P"]
    assert text.column("label").strings() == list("ABCPAB")
    assert RULE.forced_labels(text, ("A", "P")).tolist() == [1, -1, 1, -1, -1, 1]
    assert RULE.forced_labels(text, ("A", "B")).tolist() == [-1] * 6
    codes = np.array([0, 0, 0, 0, 0, 1], np.int32)
    assert RULE.apply_to(codes, text, ("A", "P")).tolist() == [1, 0, 1, 0, 0, 1]
    assert RULE.apply_to(codes, text, ("A", "B")).tolist() == codes.tolist()


def test_a_label_that_the_text_lacks_is_imposed_all_the_same() -> None:
    text = corpus_of([["."]]).with_column("label", Column(Vocabulary("A"), [0]))
    imposed = RULE.impose(text).column("label")
    assert imposed.strings() == ["P"]
    assert text.column("label").vocabulary.strings == ["A"]


def test_the_treebanks_rule_is_of_the_tokens_outside_the_papers_graph() -> None:
    words = [*WORDS, "?!", "a.b", "-", "(", ".-"]
    assert PUNCTUATION.applies(corpus_of([words])).tolist() == list(map(hgt13_excludes, words))
    assert PUNCTUATION.label == "."


# -- in the engine ---------------------------------------------------------------------------------


def random_crf(order: int, rng: np.random.Generator) -> tuple[ChainCRF, Corpus]:
    """A CRF with the rule, random weights, and text with tokens that it tells."""
    text = labeled([["a", ",", "b"], ["."], ["b", "a", ".", ",", "c"], ["c", "a"]], "ABCPCABCABC")
    text = RULE.impose(text)
    names, model = ("A", "B", "C", "P")[-3:], f"crf{order}"
    crf = registry().model(model).load()()
    built = crf.prepare(
        TemplateFeaturizer(["word[0]", "word[-1]", "edge: word[0]"]),
        text,
        np.zeros(text.n_tokens, np.int32),
        names,
        label_constraint=RULE,
    )
    built.weights[:] = rng.normal(size=built.layout.size)
    return built, text


def path_scores(crf: ChainCRF, sentence: Corpus) -> tuple[list[tuple[int, ...]], np.ndarray]:
    """All label sequences of a sentence and their log-probabilities without the rule."""
    free = replace(crf, label_constraint=None)
    data = free.encode(sentence)
    paths = list(product(range(len(crf.labels)), repeat=sentence.n_tokens))
    found = []
    for path in paths:
        objective = Objective(crf.layout, [(data, HardLabels(np.array(path, np.int32)))], np.inf)
        found.append(objective.value_and_gradient(crf.weights, np.empty(crf.layout.size)))
    return paths, np.array(found)


@pytest.mark.parametrize("order", [1, 2])
def test_the_model_is_the_one_without_rule_given_that_it_is_obeyed(order: int) -> None:
    rng = np.random.default_rng(order)
    crf, text = random_crf(order, rng)
    for number in range(text.n_sentences):
        sentence = text.select(np.array([number]))
        only = RULE.forced_labels(sentence, crf.labels)
        paths, scores = path_scores(crf, sentence)
        obeys = [all(o in (-1, y) for o, y in zip(only, path, strict=True)) for path in paths]
        assert (only >= 0).any() == (not all(obeys))
        scores = np.where(obeys, scores, -np.inf)
        p = np.exp(scores - log_sum(scores))
        data = crf.encode(sentence)
        wanted = np.zeros((sentence.n_tokens, len(crf.labels)))
        for path, probability in zip(paths, p, strict=True):
            wanted[np.arange(len(path)), path] += probability
        np.testing.assert_allclose(crf.marginals(data), wanted, atol=1e-12)
        np.testing.assert_allclose(crf.marginals(crf.reencode(data)), wanted, atol=1e-12)
        best = paths[int(np.argmax(scores))]
        assert crf.decode(data).tolist() == list(best)
        term = HardLabels(np.array(best, np.int32))
        value = Objective(crf.layout, [(data, term)], np.inf).value_and_gradient(
            crf.weights, np.empty(crf.layout.size)
        )
        assert value == pytest.approx(np.log(p.max()), abs=1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_gradients_by_differences(order: int) -> None:
    rng = np.random.default_rng(10 + order)
    crf, text = random_crf(order, rng)
    data = crf.encode(text)
    gold = HardLabels(crf.decode(data))
    parts = [(data, gold), (data, Entropy(0.3)), (data, LogPartition(0.7))]
    objective = Objective(crf.layout, parts, 2.0)

    def value(weights: np.ndarray) -> float:
        return objective.value_and_gradient(weights, np.empty_like(weights))

    def gradient(weights: np.ndarray) -> np.ndarray:
        out = np.empty_like(weights)
        objective.value_and_gradient(weights, out)
        return out

    slope = gradient(crf.weights)
    assert np.isfinite(slope).all()
    assert check_grad(value, gradient, crf.weights) < 1e-5 * max(1, np.abs(slope).max())


def test_a_mixture_without_transitions_still_obeys() -> None:
    crf, text = random_crf(1, np.random.default_rng(5))
    data, L = crf.encode(text), len(crf.labels)
    mixed = np.full((text.n_tokens, L), 1 / L)
    mixed[:, 0] += 0.1
    only = RULE.forced_labels(text, crf.labels)
    for omega in (0.0, 1.0):
        path = decode(crf, data, mixed, omega)
        assert (path == only)[only >= 0].all()
    assert (decode(crf, data, mixed, 0.0) == 0)[only < 0].all()


# -- in the methods --------------------------------------------------------------------------------


def told(problem: Problem) -> Problem:
    """The problem under the rule, as the harness hands it out."""
    labeled = relabeled(RULE.impose(problem.labeled))
    assert tuple(labeled.column("label").vocabulary.strings) == problem.labels
    return replace(problem, labeled=labeled, label_constraint=RULE)


def fitted(name: str, problem: Problem, **options: Any) -> Any:
    method = registry().method(name).load()
    own = {k: v for k, v in {**FAST, **options}.items() if k in method.Params.__struct_fields__}
    return method().fit(problem, method.Params(**own), RunContext())


def restored(path: Path) -> Any:
    kind, arrays, facts = read_model(path)
    engine = kind == "chain_crf"
    restore = ChainCRF.from_arrays if engine else registry().method(kind).load().restore
    return restore(arrays, facts)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_obeys_also_after_it_was_saved(name: str, tmp_path: Path) -> None:
    # "." is labeled nowhere: no method has learned what it is
    problem = told(random_problem(3, marks=(",",)))
    fit = fitted(name, problem)
    (text, *_) = problem.unlabeled
    told_ones = RULE.applies(text)
    assert told_ones.any()
    predicted = fit.predict(text)
    assert {fit.labels[code] for code in predicted[told_ones]} == {"P"}
    assert {fit.labels[code] for code in predicted[~told_ones]} != {"P"}
    fit.save(tmp_path / "model")
    assert restored(tmp_path / "model").predict(text).tolist() == predicted.tolist()


def test_labels_spread_to_vertices_do_not_overrule(tmp_path: Path) -> None:
    # the templates of Subramanya et al. have punctuation in the graph
    problem = told(random_problem(4, marks=(",",)))
    for name in ("graph_propagation", "gp_crf"):
        fit = fitted(name, problem, templates="subramanya2010")
        fit.save(tmp_path / "model")
        (text, *_) = problem.unlabeled
        for tagger in (fit, restored(tmp_path / "model")):
            assert {tagger.labels[c] for c in tagger.predict(text)[RULE.applies(text)]} == {"P"}


def test_the_harness_hands_out_a_sample_that_agrees() -> None:
    text = labeled([["a", ","], ["b", "."], ["c", "!"], ["a"]], "ACBCCAA")
    dataset = Dataset(
        "d", "tagging", "accuracy", None, {"train": text, "test": text}, label_constraint=RULE
    )
    spec = RunSpec(
        method="supervised",
        dataset="d",
        featurizer="basic",
        model="crf1",
        params={},
        protocol=ProtocolSpec(labeled=4, seed=0),
    )
    setup = RunSetup(
        Task(spec, "accuracy"), registry(), dataset, draw(dataset, spec.protocol), RunContext(0)
    )
    problem = setup.problem(setup.drawn.labeled, "supervised")
    assert problem.label_constraint == RULE
    assert problem.labels == ("A", "B", "C", "P")
    assert problem.labeled.column("label").strings() == list("APBPCPA")
    # what is scored stays as it is
    assert setup.dataset.splits["test"].column("label").strings() == list("ACBCCAA")


def test_none_under_a_codec() -> None:
    with pytest.raises(ValueError, match="codec"):
        told(random_problem(3)).coded(PreviousType(("O",)))
