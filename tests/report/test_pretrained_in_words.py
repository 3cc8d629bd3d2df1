"""The figures of the sentences in docs/transformer.md are those of the board `pretrained`."""

from __future__ import annotations

import csv
import re
from itertools import product
from pathlib import Path
from statistics import fmean

import pytest
from scipy.stats import ttest_rel

from sslbench.experiment.planning.published import read_results
from support.markdown import numbers

ROOT = Path(__file__).parents[2]
GAIN = r"`(\w+)` on (?:the )?([a-z ]+) of ([\w, ]+)"
CORPORA = ("conll03", "ud_en", "conll00")
MODELS = ("templates", "frozen vectors", "transformer")
METHODS = ("self_training", "graph_lift", "entropy_regularization")
TWICE = "twice the steps"

Row = dict[str, str]
Rows = dict[tuple[str, str, str], Row]


@pytest.fixture(scope="module")
def rows() -> Rows:
    """Lines of the board by corpus, model and method."""
    found: Rows = {}
    with open(ROOT / "leaderboards/pretrained.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            model = MODELS[2] if row["model"] == "transformer" else MODELS[0]
            model = MODELS[1] if row["featurizer"].endswith("+encoder") else model
            model = TWICE if "transformer.steps=480" in row["params"] else model
            found[row["dataset"], model, row["method"]] = row
    return found


@pytest.fixture(scope="module")
def sentences() -> list[str]:
    text = (ROOT / "docs/transformer.md").read_text(encoding="utf-8")
    items = text[text.index("## What still helps") :].split("<!-- end -->")[1].split("\n- ")[1:]
    return [" ".join(each.split("\n\n")[0].split()) for each in items]


def mean(rows: Rows, corpus: str, model: str, method: str = "supervised") -> float:
    return 100 * float(rows[corpus, model, method]["mean"])


def gains(rows: Rows, model: str, method: str) -> list[float]:
    """By corpus, over the baseline with the same model."""
    return [mean(rows, c, model, method) - mean(rows, c, model) for c in CORPORA]


def scores(row: Row) -> list[float]:
    """Of a row of the baseline on the transformer, by seed."""
    seeds = [int(seed) for seed in row["seeds"].split()]
    found = []
    for line in read_results(ROOT / "leaderboards/results.csv"):
        own = (line.dataset, line.method, line.model)
        if own == (row["dataset"], "supervised", "transformer"):
            by_seed = dict(line.by_run)
            if set(seeds) <= set(by_seed):
                of_seeds = [by_seed[seed] for seed in seeds]
                if abs(fmean(of_seeds) - float(row["mean"])) < 1e-5:
                    found.append(of_seeds)
    (only,) = found
    return only


def test_what_the_transformer_is_worth(rows: Rows, sentences: list[str]) -> None:
    plain, frozen, trained = ([mean(rows, c, model) for c in CORPORA] for model in MODELS)
    found = numbers(sentences[0])
    pairs = [value for pair in zip(plain, trained, strict=True) for value in pair]
    assert found[:6] == pytest.approx(pairs, abs=0.051)
    worth = [a - b for a, b in zip(frozen, plain, strict=True)]
    assert found[6:] == pytest.approx(worth, abs=0.051)
    more = [a - b for a, b in zip(trained, plain, strict=True)]
    assert f"{min(more):.0f} to {max(more):.0f} points" in sentences[0]


def test_the_graph(rows: Rows, sentences: list[str]) -> None:
    expected = [gain for model in MODELS for gain in gains(rows, model, "graph_lift")]
    assert numbers(sentences[1]) == pytest.approx(expected, abs=0.051)
    best = sum(
        mean(rows, corpus, model, "graph_lift")
        >= max(mean(rows, corpus, model, method) for method in (*METHODS, "supervised"))
        for corpus, model in product(CORPORA, MODELS)
    )
    assert f"in {best} cases of 9" in sentences[1]


def test_self_training_and_entropy(rows: Rows, sentences: list[str]) -> None:
    plain, frozen, trained = (gains(rows, model, "self_training") for model in MODELS)
    expected = [max(plain), max(frozen), min(trained), max(trained)]
    assert numbers(sentences[2]) == pytest.approx(expected, abs=0.051)
    plain, frozen, trained = (gains(rows, model, "entropy_regularization") for model in MODELS)
    assert numbers(sentences[3]) == pytest.approx([max(plain + frozen), *trained], abs=0.051)


def test_masked_words_and_more_steps(rows: Rows, sentences: list[str]) -> None:
    masked = gains(rows, "transformer", "adaptive_pretraining")
    assert numbers(sentences[4]) == pytest.approx(masked, abs=0.051)
    expected: list[float] = []
    for corpus in CORPORA:
        once, twice = (scores(rows[corpus, m, "supervised"]) for m in (MODELS[2], TWICE))
        expected += [100 * (fmean(twice) - fmean(once)), float(ttest_rel(twice, once).pvalue)]
    assert numbers(sentences[5]) == pytest.approx(expected, abs=0.051)


def test_what_is_clear(rows: Rows, sentences: list[str]) -> None:
    clear = {key for key, row in rows.items() if row["p_holm"] and float(row["p_holm"]) <= 0.05}
    text = sentences[6]
    named = {
        (corpus, model, method)
        for method, model, corpora in re.findall(
            r"`(\w+)` on (?:the )?([a-z ]+) of ([\w, ]+)", text
        )
        for corpus in CORPORA
        if corpus in corpora
    }
    assert named == clear
    least = min(
        float(rows[corpus, "transformer", method]["p_holm"])
        for corpus, method in product(CORPORA, METHODS)
        if (corpus, "transformer", method) not in clear
    )
    assert f"p at least {least:.2f}" in text
    trained = [rows[corpus, "transformer", method] for corpus in CORPORA for method in METHODS]
    of_taggers = sum(float(row["p_taggers_holm"]) <= 0.05 for row in trained)
    assert "Of the nine differences between the trained taggers" in text
    assert f"{of_taggers} are" in text
    missed = [100 * float(row["seen"]) for row in trained]
    assert numbers(sentences[7]) == pytest.approx([min(missed), max(missed)], abs=0.051)
