"""JESS-CM: what must change nothing, and that it helps on real text.

Source: docs/specs/jess_cm.md, oracles 16 and 19.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from sslbench.engine.corpus import Column, Corpus, CorpusShards, Vocabulary
from sslbench.engine.crf import STRICT, ChainModel
from sslbench.engine.crf.dual import ascent as dual
from sslbench.engine.features import TemplateFeaturizer
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.data import DataHome
from sslbench.experiment.inputs.problem import Problem
from sslbench.experiment.planning.task import RunTask
from sslbench.experiment.records.record import ProtocolSpec, RunSpec
from sslbench.experiment.run.runner import execute
from sslbench.plugins import registry
from sslbench_datasets.conll00.info import CONLL2000
from sslbench_methods.jess_cm import method as module
from sslbench_methods.jess_cm.method import JessCM

LABELS, WORDS = ("a", "b", "c"), tuple(f"w{i}" for i in range(9))


def text(labels: tuple[str, ...], words: tuple[str, ...], known: bool) -> Corpus:
    """The same sentences of words that lean to a label, whatever numbers the strings have."""
    rng = np.random.default_rng(3 if known else 4)
    lengths = rng.integers(1, 7, 6 if known else 25)
    gold = rng.integers(0, 3, lengths.sum())
    forms = [WORDS[3 * g + w] for g, w in zip(gold, rng.integers(0, 5, len(gold)) % 3, strict=True)]
    noise = rng.random(len(gold)) < 0.3
    forms = [
        WORDS[i] if n else f
        for f, n, i in zip(forms, noise, rng.integers(0, 9, len(gold)), strict=True)
    ]
    word, label = Vocabulary(words), Vocabulary(labels)
    columns = {"word": Column(word, word.encode(forms))}
    if known:
        columns["label"] = Column(label, label.encode([LABELS[g] for g in gold]))
    return Corpus(columns, np.cumsum([0, *lengths]).astype(np.int64))


def problem(labels: tuple[str, ...], words: tuple[str, ...]) -> Problem:
    raw = text(labels, words, known=False)
    return Problem(
        "tagging",
        None,
        labels,
        text(labels, words, known=True),
        CorpusShards(raw),
        None,
        TemplateFeaturizer(["word[0]", "word[-1]", "edge: word[0]"]),
        ChainModel(),
    )


def fitted(labels: tuple[str, ...], words: tuple[str, ...]) -> tuple[list[float], list[str]]:
    """L1 of each round, and the labels of the unlabeled text."""
    run = RunContext()
    params = JessCM.Params(eta=0.1, rounds=3, sigma2=1.0)
    fit = JessCM().fit(problem(labels, words), params, run)
    values = [entry["L1"] for entry in run.trace["rounds"]]
    raw = text(labels, words, known=False)
    return values, [labels[code] for code in fit.predict(raw)]


def test_numbering_labels_and_symbols_otherwise_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(JessCM.Params, "options", lambda self: STRICT)
    values, predicted = fitted(LABELS, WORDS)
    assert len(set(values)) == len(values) == 3
    for labels, words in ((LABELS[::-1], WORDS), (LABELS, WORDS[::-1]), (("c", "a", "b"), WORDS)):
        others, again = fitted(labels, words)
        assert others == pytest.approx(values, rel=1e-6)
        assert again == predicted


@pytest.mark.parametrize("sign", ["nonneg", "free"])
def test_rounds_of_much_labeled_text_are_shorter_and_end_as_well(
    sign: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first step is on the dual, those in between stop early, the last one goes to the end."""
    monkeypatch.setattr(dual, "FEWEST_TOKENS", 1)
    first, ends, between = [], [], []
    for large in (10**9, 1):
        monkeypatch.setattr(module, "LARGE", large)
        monkeypatch.setattr(dual, "FEWEST_WITH_FACTORS", large)
        run = RunContext()
        params = JessCM.Params(eta=0.1, rounds=8, epsilon=1e-9, ftol=1e-9, sign=sign)
        fit = JessCM().fit(problem(LABELS, WORDS), params, run)
        rounds, last = run.trace["rounds"], run.trace["training"]
        assert last["converged"]
        first.append(rounds[0]["L1"])
        between.append(sum(entry["iterations"] for entry in rounds[1:]))
        ends.append((last["objective"], fit.predict(text(LABELS, WORDS, known=False))))
    assert first[0] == pytest.approx(first[1], rel=1e-6)
    assert between[1] < 0.7 * between[0]
    (plain, labels), (shorter, again) = ends
    assert shorter == pytest.approx(plain, rel=0.1)
    assert (labels != again).mean() < 0.03


def test_the_last_step_on_very_much_labeled_text_stops_before_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trainings, labels = [], []
    for huge in (10**9, 1):
        monkeypatch.setattr(module, "HUGE", huge)
        run = RunContext()
        params = JessCM.Params(eta=0.1, rounds=3, epsilon=1e-9, ftol=1e-9, sign="free")
        fit = JessCM().fit(problem(LABELS, WORDS), params, run)
        trainings.append((run.trace["training"], run.trace["rounds"][-1]["L1"]))
        labels.append(fit.predict(text(LABELS, WORDS, known=False)))
    (whole, start), (cut, again) = trainings
    assert start == again  # the steps between rounds are the same
    assert cut["iterations"] < whole["iterations"]
    assert cut["objective"] == pytest.approx(whole["objective"], rel=1e-3)
    assert (labels[0] != labels[1]).mean() < 0.03


@pytest.mark.corpus
@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("SSLBENCH_SLOW"), reason="minutes; SSLBENCH_SLOW=1 runs it")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_jess_cm_beats_its_baseline_on_conll2000(seed: int) -> None:
    if DataHome(offline=True).state(CONLL2000) != "ok":
        pytest.skip(f"no {CONLL2000.path} in the data home")
    f1 = {}
    for method in ("supervised", "jess_cm"):
        protocol = ProtocolSpec(labeled=100, unlabeled=2_000, seed=seed)
        spec = RunSpec(method, "conll00", "chunk39", "crf1", {}, protocol)
        record = execute(RunTask(spec, "f1"), registry())
        f1[method] = record.metrics["test"]["f1"]
    assert f1["jess_cm"] > f1["supervised"]
