"""A model of a plugin: methods that fit it run, others are skipped; parameters; saved taggers."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from support import lexicon_model
from support.plugin_site import Site
from support.toy_model import sslbench_toy

ON = ("--model", "toy", "--dataset", "synth", "--labeled", "50", "--unlabeled", "100")
RUN = (*ON, "--tune", "0", "--format", "json")
NEEDS = {
    "jess_cm": "log_linear, factors, features",
    "hybrid": "log_linear, factors, features",
    "generalized_expectation": "log_linear, features",
    "adaptive_pretraining": "masked_words",
    "structural_correspondence": "features",
    **dict.fromkeys(
        ("co_training", "brown_clusters", "word_vectors", "encoder", "aso_semi"), "features"
    ),
}
RUNS = {
    "supervised",
    "self_training",
    "selective_self_training",
    "type_self_training",
    "graph_self_training",
    "graph_lift",
    "virtual_evidence",
    "graph_propagation",
    "gp_crf",
    "pr1",
    "graph_pr",
    "entropy_regularization",
    "tri_training",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A process that sees the toy model as an installed plugin."""
    site = Site(tmp_path_factory.mktemp("site"))
    shutil.copy(sslbench_toy.__file__, site.folder)
    shutil.copy(lexicon_model.__file__, site.folder)
    names = "sslbench_toy = sslbench_toy\nlexicon = lexicon_model\n"
    site.metadata("sslbench-toy", f"[sslbench]\n{names}")
    return site


def sslbench(site: Site, *words: str) -> str:
    done = site.python("-m", "sslbench", *words, cwd=site.folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_methods_run_on_it_or_say_why_not(site: Site) -> None:
    records = json.loads(sslbench(site, "run", "--method", "all", *RUN, "--store", "all"))
    status = {record["method"]: record["status"] for record in records}
    assert {name for name, each in status.items() if each == "ok"} == RUNS
    assert set(status.values()) == {"ok", "skipped"}
    reasons = {record["method"]: record["error"] for record in records}
    for name, needs in NEEDS.items():
        assert reasons[name] == f"for models that provide {needs}, not toy"
    scores = {r["method"]: r["metrics"]["test"]["accuracy"] for r in records if r["metrics"]}
    assert min(scores[name] for name in RUNS - {"graph_propagation"}) > 0.6


def test_its_parameters_are_part_of_the_identity_and_reach_it(site: Site) -> None:
    one = ("run", "--method", "supervised", *RUN, "--store", "params")
    (plain,), (same,), (short,) = (
        json.loads(sslbench(site, *one, *more))
        for more in ((), ("--set", "toy.steps=40"), ("--set", "toy.steps=1"))
    )
    assert plain["run_id"] == same["run_id"] != short["run_id"]
    assert short["spec"]["model_params"] == {"steps": 1}
    assert short["trace"]["training"]["iterations"] == 1
    shown = sslbench(site, "show", "toy")
    assert "steps" in shown
    assert "first_order" in shown
    wrong = site.python("-m", "sslbench", *one, "--set", "toy.step=1", cwd=site.folder)
    assert wrong.returncode == 2
    assert "no parameter 'step'" in wrong.stderr


def test_features_learned_from_text_do_not_fit_a_model_that_does_not_read_them(site: Site) -> None:
    done = sslbench(site, "run", "--method", "supervised", *RUN, "--with", "brown_clusters")
    (record,) = json.loads(done)
    assert record["status"] == "skipped"
    assert "features learned from text" in record["error"]


@pytest.mark.parametrize("method", ["supervised", "gp_crf", "tri_training"])
def test_a_saved_tagger_is_restored(site: Site, method: str) -> None:
    path = os.path.join(site.folder, f"{method}.model")
    sslbench(site, "train", "--method", method, *ON, "--save", path)
    text = Path(site.folder, "text.txt")
    text.write_text("the\ndog\n\nthe\n", encoding="utf-8")
    tagged = sslbench(site, "tag", path, str(text)).split("\n")
    assert [len(line.split()) for line in tagged[:4]] == [2, 2, 0, 2]


def test_a_model_of_labels_alone_runs_with_methods_that_need_no_more(site: Site) -> None:
    words = [word.replace("toy", "lexicon") for word in RUN]
    found = json.loads(sslbench(site, "run", "--method", "all", *words, "--store", "labels"))
    ran = {record["method"] for record in found if record["status"] == "ok"}
    assert ran == {"supervised", "self_training", "tri_training"}
    assert {record["status"] for record in found} == {"ok", "skipped"}
    reasons = {record["method"]: record["error"] for record in found}
    assert reasons["graph_lift"] == "for models that give scores of labels, not lexicon"
    scores = {r["method"]: r["metrics"]["test"]["accuracy"] for r in found if r["metrics"]}
    assert min(scores.values()) > 0.5
    path = os.path.join(site.folder, "lexicon.model")
    on = [word.replace("toy", "lexicon") for word in ON]
    sslbench(site, "train", "--method", "self_training", *on, "--save", path)
    text = Path(site.folder, "words.txt")
    text.write_text("the\ndog\n\nthe\n", encoding="utf-8")
    tagged = sslbench(site, "tag", path, str(text)).split("\n")
    assert [len(line.split()) for line in tagged[:4]] == [2, 2, 0, 2]
