"""Graph propagation and the CRF trained on its labels, against strings, dense solves and trees."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sslbench.engine.corpus import Column, Corpus, CorpusShards, Vocabulary
from sslbench.engine.corpus.codecs import PreviousType
from sslbench.engine.crf import (
    ChainCRF,
    ChainModel,
    HardLabels,
    InfeasibleSentenceError,
    Options,
    TrainingParams,
    read_model,
)
from sslbench.engine.errors import UserError
from sslbench.engine.features import TemplateFeaturizer
from sslbench.engine.graph.build import build_graph
from sslbench.engine.graph.options import GraphOptions
from sslbench.engine.graph.tokens import empirical
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.inputs.problem import Problem, relabeled
from sslbench.experiment.inputs.problem_graph import registered_similarity
from sslbench.taggers import PosteriorTagger
from sslbench_methods.graph_pr.gp_crf import GraphPropagationCRF, hard_labels
from sslbench_methods.graph_pr.propagation import (
    GraphPropagation,
    GraphTagger,
    likeliest,
    undecided,
)
from support.chunk_text import chunks
from support.command import sslbench
from support.graph_oracle import WORDS, he2013_excludes, number, trigram_names, windows
from support.graph_problems import OPTIONS, problem_of, random_problem, sentences
from support.propagation_oracle import harmonic_optimum
from support.texts import corpus_of

pytestmark = pytest.mark.usefixtures("own_cache")


METHODS = {"graph_propagation": GraphPropagation, "gp_crf": GraphPropagationCRF}


def common(labels: list[str]) -> str:
    """The most frequent one, of equal ones the first."""
    counts = Counter(labels)
    return max(sorted(counts), key=counts.__getitem__)


def expected(problem: Problem, text: list[list[str]]) -> list[str]:
    """Labels of new sentences by strings and a dense solve."""
    whole = problem.text("word")
    options = GraphOptions(k=4, symmetry="mutual")
    graph = build_graph(whole, registered_similarity("he2013"), options)
    names, gold = trigram_names(whole, graph.vertices), problem.labeled
    of = graph.vertices.vertex_of[: gold.n_tokens]
    r, labeled = empirical(of, problem.label_codes(gold), len(names), len(problem.labels))
    q = harmonic_optimum(graph.W, r, labeled).round(7)
    answers = gold.column("label").strings()
    majority, by_form = common(answers), {}
    for word, label in zip(gold.column("word").strings(), answers, strict=True):
        if he2013_excludes(word):
            by_form.setdefault(word, []).append(label)
    marks = [label for labels in by_form.values() for label in labels]
    of_trigram = {
        name: majority if np.ptp(row) == 0 else problem.labels[row.argmax()]
        for name, row in zip(names, q, strict=True)
    }
    found = []
    for x in windows(text):
        if he2013_excludes(x[2]):
            found.append(common(by_form.get(x[2], marks) or answers))
        else:
            found.append(of_trigram.get(tuple(map(number, x[1:4])), majority))
    return found


def fitted(name: str, problem: Problem, **options: Any) -> tuple[Any, dict[str, Any]]:
    method, run = METHODS[name](), RunContext()
    fit = method.fit(problem, method.Params(**{**OPTIONS, **options}), run)
    return fit, run.trace


def text_of(corpus: Corpus) -> list[list[str]]:
    return [corpus.sentence(i, "word") for i in range(corpus.n_sentences)]


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
@pytest.mark.parametrize("marks", [(",", "."), (",",), ()])
def test_predictions_by_strings(seed: int, marks: tuple[str, ...]) -> None:
    problem = random_problem(seed, marks)
    fit, _ = fitted("graph_propagation", problem)
    unlabeled = [s for shard in problem.unlabeled for s in text_of(shard)]
    for known in (text_of(problem.labeled), unlabeled, sentences(seed + 9, 40, [*WORDS, "new"])):
        corpus = corpus_of(known, Vocabulary(["?", "new", "of"]))
        predicted = [problem.labels[code] for code in fit.predict(corpus)]
        wanted = expected(problem, known)
        assert predicted == wanted
        assert len(set(wanted)) > 2


def test_what_a_token_gets() -> None:
    """y stands where x does; no label reaches v; of the punctuation, only the full stop has one."""
    problem = problem_of(
        [["the", "x", "is"], ["of", "ring", "."], ["of", "x", "ring"]],
        ["A", "B", "A", "C", "B", "P", "C", "B", "B"],
        [["the", "y", "is"], ["u", "v", "w"], ["?", "!"]],
    )
    fit, trace = fitted("graph_propagation", problem)
    text = [["the", "y", "is"], ["u", "v", "w"], ["never", "seen"], ["?", "!", ".", ","]]
    labels = [problem.labels[code] for code in fit.predict(corpus_of(text))]
    assert labels[:3] == ["A", "B", "A"]
    assert labels[4] == "B"  # the majority label
    assert labels[6:] == ["B", "B", "P", "P", "P", "P"]
    facts = trace["graph_propagation"]
    assert facts["majority"] == "B"
    assert facts["decided_tokens"] == pytest.approx(5 / 8)
    assert facts["outside_tokens"] == pytest.approx(2 / 8)
    assert facts["decided_vertices"] == pytest.approx(5 / 6)
    assert trace["graph"]["frac_unreachable"] == pytest.approx(1 / 6)


def test_without_gold_punctuation_it_gets_the_majority_label() -> None:
    problem = problem_of([["x", "y"]], ["B", "B"], [["x", ",", "y"]])
    fit, _ = fitted("graph_propagation", problem)
    assert fit.predict(corpus_of([["x", ",", ".", "y"]])).tolist() == [0] * 4


def test_equal_probabilities() -> None:
    rows = np.array(
        [[0.2, 0.4, 0.4], [0.25, 0.25 + 1e-9, 0.5], [0.4 - 1e-9, 0.4, 0.2], [1 / 3] * 3]
    )
    assert likeliest(rows).tolist() == [1, 2, 0, 0]
    assert undecided(rows).tolist() == [False, False, False, True]


def test_both_modes() -> None:
    problem = random_problem(5)
    (one, solve), (other, steps) = (
        fitted("graph_propagation", problem, mode=mode) for mode in ("solve", "gd")
    )
    rough = [trace["graph_propagation"]["roughness"] for trace in (solve, steps)]
    assert rough[0] < rough[1] < 2 * rough[0]  # harmonic: the least there is
    text = Corpus.concatenate(list(problem.unlabeled))
    assert 0.8 < (one.predict(text) == other.predict(text)).mean() < 1


def test_order_and_vocabulary_do_not_matter() -> None:
    problem = random_problem(6)
    text = corpus_of(sentences(20, 40))
    shards = [shard.select(np.arange(shard.n_sentences)[::-1]) for shard in problem.unlabeled]
    turned = replace(problem, unlabeled=CorpusShards(Corpus.concatenate(shards[::-1])))
    for name in METHODS:
        one, other = (fitted(name, each)[0].predict(text) for each in (problem, turned))
        np.testing.assert_array_equal(one, other)


# -- the CRF -----------------------------------------------------------------------------------


def trained(problem: Problem, weight: float = 1.0) -> ChainCRF:
    """Gold labels, and the other tagger's predictions, in one concatenated corpus."""
    tagger, y = fitted("graph_propagation", problem)[0], problem.label_codes(problem.labeled)
    raw = Corpus.concatenate(list(problem.unlabeled))
    crf = ChainModel().prepare(
        problem.featurizer, problem.labeled, y, problem.labels, text=problem.unlabeled
    )
    whole = Corpus.concatenate([problem.labeled.drop("label"), raw])
    weights = np.where(np.arange(whole.n_sentences) < problem.labeled.n_sentences, 1.0, weight)
    targets = HardLabels(np.concatenate([y, tagger.predict(raw)]), weights)
    crf.train([(crf.encode(whole), targets)], TrainingParams(sigma2=10.0), options=Options())
    return crf


@pytest.mark.parametrize("eta", [1.0, 0.25, 0.0])
def test_gp_crf_trains_on_what_graph_propagation_predicts(eta: float) -> None:
    problem, text = random_problem(7), corpus_of(sentences(30, 60))
    wanted = trained(problem, eta)
    fit, trace = fitted("gp_crf", problem, eta=eta, ftol=1e-9)
    assert isinstance(fit, PosteriorTagger)
    marginals = wanted.marginals(wanted.encode(text))
    np.testing.assert_allclose(fit.crf.marginals(fit.crf.encode(text)), marginals, atol=2e-3)
    np.testing.assert_array_equal(
        fit.predict(text), fit.crf.marginals(fit.crf.encode(text)).argmax(axis=1)
    )
    tagger = fitted("graph_propagation", problem)[0]
    counts = sum(np.bincount(tagger.predict(s), minlength=4) for s in problem.unlabeled)
    assert trace["propagated_labels"] == counts.tolist()


def test_both_decodings() -> None:
    problem, text = random_problem(8), corpus_of(sentences(30, 200))
    posterior, viterbi = (
        fitted("gp_crf", problem, decoding=way)[0] for way in ("posterior", "viterbi")
    )
    np.testing.assert_array_equal(viterbi.weights, posterior.crf.weights)
    np.testing.assert_array_equal(viterbi.predict(text), posterior.crf.predict(text))
    assert (viterbi.predict(text) != posterior.predict(text)).any()


@pytest.mark.parametrize("seed", range(5))
def test_legal_labels_by_enumeration(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sslbench.engine.crf.model.SHARED_BATCH", 4)  # the last sentence is alone
    codec, rng = PreviousType(["B-X", "B-Y", "I-X", "I-Y", "O"]), np.random.default_rng(seed)
    L, offsets = len(codec.labels), np.array([0, 3, 4, 6])
    rows = rng.dirichlet(np.ones(L), 9)[rng.integers(0, 9, 6)]
    found = hard_labels(rows, offsets, codec.transition_mask)
    for a, b in itertools.pairwise(offsets):
        p = rows[a:b]
        best = max(
            (
                y
                for y in itertools.product(range(L), repeat=b - a)
                if codec.transition_mask[L, y[0]]
                and all(codec.transition_mask[s, t] for s, t in itertools.pairwise(y))
            ),
            key=lambda y: sum(p[t, label] for t, label in enumerate(y)),
        )
        assert found[a:b].tolist() == list(best)
    free = hard_labels(rows, offsets, None)
    np.testing.assert_array_equal(free, rows.argmax(axis=1))


def test_a_label_codec() -> None:
    """Propagated labels break its constraints: as they are, no CRF can be trained on them."""
    text = [["U", "N", "of", "x"], ["x", "of", "U", "N"], ["N", "is", "U"]]
    tags = [["B-X", "I-X", "O", "O"], ["B-Y", "O", "B-X", "I-X"], ["B-X", "O", "B-Y"]]
    raw = [["of", "N", "N", "U"], ["U", "x", "of", "N"], ["is", "N", "U", "of"], ["N", "of"]]
    corpus = corpus_of([*text, *raw])
    labels = Vocabulary(["O", "B-X", "I-X", "B-Y"])
    labeled = relabeled(
        corpus.select(np.arange(3)).with_column(
            "label", Column(labels, labels.encode(t for row in tags for t in row))
        )
    )
    names = tuple(labeled.column("label").vocabulary.strings)
    shards = CorpusShards(corpus.select(np.arange(3, 7)))
    featurizer = TemplateFeaturizer(["word[0]"])
    problem = Problem("spans", "IOB2", names, labeled, shards, None, featurizer, ChainModel())
    coded = problem.coded(PreviousType(names))
    fit, _ = fitted("gp_crf", coded, symmetry="union", neighbors=3, decoding="viterbi")
    for shard in shards:
        y, arcs = fit.predict(shard), coded.transition_mask
        assert all(
            arcs[a, b]
            for s in range(4)
            for a, b in itertools.pairwise(y[slice(*shard.offsets[s : s + 2])])
        )
    tagger, _ = fitted("graph_propagation", coded, symmetry="union", neighbors=3)
    free = tagger.predict(next(iter(shards)))
    with pytest.raises(InfeasibleSentenceError):
        fit.train(
            [(fit.encode(next(iter(shards))), HardLabels(free))],
            TrainingParams(sigma2=1.0),
            options=Options(),
        )


# -- kept taggers ------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "options"), [("graph_propagation", {}), ("gp_crf", {})])
def test_saved_and_restored(name: str, options: dict[str, Any], tmp_path: Path) -> None:
    problem, text = random_problem(9), corpus_of(sentences(30, 60, [*WORDS, "new"]))
    fit, _ = fitted(name, problem, **options)
    fit.save(tmp_path / "model")
    kind, arrays, facts = read_model(tmp_path / "model")
    assert kind == name
    other = METHODS[name].restore(arrays, facts)
    assert other.labels == fit.labels
    np.testing.assert_array_equal(other.predict(text), fit.predict(text))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"label": np.array([9, 9], np.int32)}, r"not int32 \[\d+\]"),
        ({"similarity": "spp99"}, "no similarity 'spp99'"),
        ({"outside": ["."]}, r"not int32"),
        ({"labels": ["A"]}, "outside of 0 to 0"),
    ],
)
def test_damaged_taggers_are_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    fitted("graph_propagation", random_problem(9))[0].save(tmp_path / "model")
    _, arrays, facts = read_model(tmp_path / "model")
    arrays = {name: changes.pop(name, array) for name, array in arrays.items()}
    with pytest.raises((ValueError, UserError), match=message):
        GraphTagger.from_arrays(arrays, {**facts, **changes})


@pytest.mark.parametrize("name", METHODS)
def test_chunk_tags_through_the_command_line(name: str, tmp_path: Path) -> None:
    """Labels chosen token by token are ill-formed chunks now and then: that is scored, not said."""
    (tmp_path / "train.txt").write_text(chunks(40, "IOBES"))
    (tmp_path / "new.txt").write_text(chunks(20, "IOBES", seed=3))
    words = (
        "train",
        "--method",
        name,
        "--data",
        tmp_path / "train.txt",
        *("--columns", "word,label", "--set", "neighbors=5", "--save"),
        tmp_path / "my.model",
    )
    result = sslbench(*words)
    assert result.exit_code == 0, result.output
    result = sslbench("tag", tmp_path / "my.model", tmp_path / "new.txt")
    assert result.exit_code == 0, result.output
    assert "f1 " in result.stderr
