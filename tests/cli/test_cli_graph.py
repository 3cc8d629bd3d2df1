"""``sslbench graph stats``: which text becomes the graph, what is labeled, what is printed."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy.sparse import csr_array

from sslbench.engine.corpus import Corpus
from sslbench.engine.graph.similarity import ContextSimilarity
from sslbench.plugins.registrations import load_target
from sslbench_methods.graph_pr.templates import HE2013
from sslbench_methods.graph_self_training.templates import SUBRAMANYA2010
from support.command import sslbench


class FakeBuild:
    """In place of `sslbench.engine.graph.build`: a vertex per word.

    Edges are between codes 2 n and 2 n + 1.
    """

    def __init__(self) -> None:
        self.text: Corpus | None = None
        self.asked: dict[str, Any] = {}

    def build_graph(
        self, text: Corpus, similarity: Any, options: Any, **more: Any
    ) -> SimpleNamespace:
        self.text = text
        self.asked = {"similarity": similarity, **msgspec.to_builtins(options), **more}
        V = len(text.column("word").vocabulary)
        W = np.zeros((V, V))
        for u in range(0, V - 1, 2):
            W[u, u + 1] = W[u + 1, u] = 0.5
        vertices = SimpleNamespace(vertex_of=text.column("word").codes)
        return SimpleNamespace(vertices=vertices, W=csr_array(W))


@pytest.fixture
def build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeBuild:
    fake = FakeBuild()
    monkeypatch.setattr("sslbench.report.graph_figures.build_graph", fake.build_graph)
    monkeypatch.setenv("SSLBENCH_CACHE", str(tmp_path))
    return fake


def stats(*arguments: str) -> dict[str, Any]:
    words = ["graph", "stats", "--dataset", "synth", "--threads", "1", "--format", "json"]
    result = sslbench(*words, *arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    actual: dict[str, Any] = json.loads(result.stdout)
    return actual


def train() -> Corpus:
    actual: Corpus = load_target("sslbench_datasets.synth.load:load", "test")(None).splits["train"]
    return actual


def test_labeled_and_the_rest_of_train(build: FakeBuild) -> None:
    actual = stats("--labeled", "30", "--seed", "3", "--unlabeled", "50")
    text, all_of_it = build.text, train()
    assert text is not None
    assert text.n_sentences == 80
    order = np.random.default_rng([3, 0x6C61626C]).permutation(400)  # as the protocol draws
    chosen = all_of_it.select([*np.sort(order[:30]), *np.sort(order[30:80])])
    assert text.column("word").strings() == chosen.column("word").strings()
    assert set(text.columns) == {"word"}  # no label comes near the graph
    labeled = all_of_it.select(np.sort(order[:30])).column("word").strings()
    assert actual["labeled"] == len(set(labeled)) < len(set(text.column("word").strings()))
    assert actual["gold_edges"] > 0
    # gold labels of the unlabeled part count: words paired at random agree now and then
    table = np.zeros((actual["vertices"], 99))
    np.add.at(table, (chosen.column("word").codes, chosen.column("label").codes), 1)
    top, seen = table.argmax(axis=1), table.sum(axis=1) > 0
    pairs = [u for u in range(0, len(top) - 1, 2) if seen[u] and seen[u + 1]]
    assert actual["gold_edges"] == len(pairs)
    assert actual["edge_purity"] == pytest.approx(np.mean([top[u] == top[u + 1] for u in pairs]))
    assert 0 < actual["propagated_accuracy_new"] < actual["propagated_accuracy"] < 1


def test_text_of_its_own_has_no_gold_labels(build: FakeBuild) -> None:
    actual = stats("--unlabeled", "25")
    assert build.text is not None
    assert build.text.n_sentences == 425
    words = set(train().column("word").strings())
    assert actual["labeled"] == len(words) <= actual["vertices"]
    assert actual["gold_edges"] <= len(words) // 2
    assert actual["propagated_accuracy"] is None


def test_the_graph_that_is_built_is_the_one_described(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nothing stands in here: vertices counted by hand, kept the second time."""
    monkeypatch.setenv("SSLBENCH_CACHE", str(tmp_path))
    actual = stats("--labeled", "40", "--unlabeled", "60", "--k", "3")
    order = np.random.default_rng([0, 0x6C61626C]).permutation(400)
    parts = [train().select(np.sort(part)) for part in (order[:40], order[40:100])]
    types = []
    for part in parts:
        sentences = [part.sentence(i, "word") for i in range(part.n_sentences)]
        padded = [["<", *words, ">"] for words in sentences]
        types.append({tuple(p[i : i + 3]) for p in padded for i in range(len(p) - 2)})
    assert actual["vertices"] == len(types[0] | types[1])
    assert actual["labeled"] == len(types[0])
    assert actual["degree_mean"] == pytest.approx(2 * actual["edges"] / actual["vertices"])
    assert actual["edges"] <= 3 * actual["vertices"]
    kept = sorted(path.name for path in tmp_path.rglob("*.npz"))
    assert kept
    assert stats("--labeled", "40", "--unlabeled", "60", "--k", "3") == actual
    assert sorted(path.name for path in tmp_path.rglob("*.npz")) == kept


def test_options_arrive(build: FakeBuild, tmp_path: Path) -> None:
    stats("--labeled", "5", "--unlabeled", "5")
    expected = {
        "similarity": ContextSimilarity(SUBRAMANYA2010),
        "k": 5,
        "symmetry": "union",
        "max_df": None,
        "threads": 1,
    }
    assert {name: build.asked[name] for name in expected} == expected
    assert build.asked["cache"] == tmp_path
    stats(
        "--labeled",
        "5",
        "--unlabeled",
        "5",
        "--similarity",
        "he2013",
        "--k",
        "60",
        "--symmetry",
        "mutual",
        "--max-df",
        "100",
    )
    expected = {
        "similarity": ContextSimilarity(HE2013),
        "k": 60,
        "symmetry": "mutual",
        "max_df": 100,
    }
    assert {name: build.asked[name] for name in expected} == expected


def test_the_table(build: FakeBuild) -> None:
    words = ["graph", "stats", "--dataset", "synth", "--labeled", "400", "--unlabeled", "0"]
    result = sslbench(*words, catch_exceptions=False)
    lines = dict(line.split(maxsplit=1) for line in result.stdout.splitlines())
    assert lines["vertices"].replace(",", "").isdigit()
    assert lines["mean_weight"] == "0.5000"
    assert lines["degree_max"] == "1"
    assert "graph of 400 sentences" in result.stderr


def test_bad_input_is_told_in_one_line(build: FakeBuild) -> None:
    for arguments, expected in (
        (["--dataset", "sinth"], "did you mean synth"),
        (["--dataset", "synth", "--labeled", "-1"], "give a number"),
        (["--dataset", "synth", "--labeled", "9999"], "train has 400"),
        (["--dataset", "synth", "--similarity", "he2014"], "did you mean he2013"),
    ):
        result = sslbench("graph", "stats", *arguments)
        assert result.exit_code == 2
        assert expected in result.stderr
        assert result.stdout == ""


def test_neighbors_of_a_vertex(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SSLBENCH_CACHE", str(tmp_path))
    words = train().sentence(0, "word")
    command = ["graph", "neighbors", "--dataset", "synth", "--threads", "1", "--k", "3"]
    ngram = " ".join(["<s>", *words[:2]])
    result = sslbench(*command, ngram, catch_exceptions=False)
    head, own, *near = result.stdout.splitlines()
    assert head.split() == ["weight", "n-gram", "tokens", "labels"]
    assert own.startswith(f"1.0000  {ngram}")
    assert near
    label = train().sentence(0, "label")[0]
    assert f"{label} " in own
    actual = json.loads(sslbench(*command, ngram, "--format", "json").stdout)
    assert [f"{each['weight']:.4f}" for each in actual] == [line[:6] for line in (own, *near)]
    assert actual[0]["labels"][label] >= 1
    failed = sslbench(*command, "no such words")
    assert failed.exit_code == 2
    assert "no vertex" in failed.stderr


def test_settings_of_the_graph(build: FakeBuild, tmp_path: Path) -> None:
    file = tmp_path / "list.txt"
    file.write_text("ing\ns\n", encoding="utf-8")
    he = ["--similarity", "he2013"]
    stats(*he, "--set", f"suffixes=@{file}", "--set", "synth.test=300")
    assert build.asked["similarity"] == ContextSimilarity(HE2013, frozenset(["ing", "s"]))
    for setting in ("k=3", "other.size=3", "synth.nothing=1"):
        command = ["graph", "stats", "--dataset", "synth", "--set", setting]
        assert sslbench(*command).exit_code == 2
