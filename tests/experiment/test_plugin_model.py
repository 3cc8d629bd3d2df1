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


def test_tuning_searches_its_parameters_for_every_method(site: Site) -> None:
    few = ("--tune", "5", "--set", "sigma2=10", "--format", "json", "--store", "tuned")
    words = ("--method", "supervised", "--method", "self_training", *ON, *few)
    found = json.loads(sslbench(site, "run", *words))
    for record in found:
        assert record["status"] == "ok", record["error"]
        assert "toy.steps" in record["tuned"]["searched"]
        steps = [trial["params"]["toy.steps"] for trial in record["tuning"]]
        assert steps[0] == 40  # the default is the first trial
        assert set(steps) == {2, 40}
        best = max(record["tuning"], key=lambda trial: trial["score"])
        assert record["params"]["toy.steps"] == best["params"]["toy.steps"]
        assert "model_params" not in record["spec"]
    baseline = found[0]
    two, forty = sorted(baseline["tuning"], key=lambda trial: trial["params"]["toy.steps"])
    assert two["score"] != forty["score"]  # the value has reached the model
    (fixed,) = json.loads(
        sslbench(site, "run", "--method", "supervised", *ON, *few, "--set", "toy.steps=40")
    )
    assert fixed["run_id"] != baseline["run_id"]
    assert fixed["tuned"]["trials"] == 0
    (given,) = json.loads(
        sslbench(site, "run", "--method", "self_training", *ON, *few, "--set", "toy.steps=2")
    )
    assert given["spec"]["model_params"] == {"steps": 2}
    assert given["params"].get("toy.steps") is None


def test_a_tagger_with_a_tuned_model_is_saved_with_what_was_chosen(site: Site) -> None:
    path = os.path.join(site.folder, "tuned.model")
    few = ("--tune", "2", "--set", "sigma2=10")
    sslbench(site, "train", "--method", "supervised", *ON, *few, "--save", path)
    assert "toy.steps=40" in sslbench(site, "show", path)


def test_the_command_of_a_tuned_row_makes_the_same_run(site: Site) -> None:
    few = ("--tune", "2", "--set", "sigma2=10", "--set", "toy.steps=40")
    one = ("run", "--method", "self_training", *ON, *few, "--format", "json", "--store", "again")
    (record,) = json.loads(sslbench(site, *one))
    code = f"""
from sslbench.experiment.records.store import Store
from sslbench.plugins import registry
from sslbench.report.reproduce import Commands
record = Store("again").find("{record["run_id"]}")
print(Commands(registry()).command(record.spec, [0]))
"""
    done = site.python("-c", code, cwd=site.folder)
    assert done.returncode == 0, done.stderr
    words = done.stdout.split()
    assert "sigma2=10.0" in words
    assert "toy.steps=40" in words
    (again,) = json.loads(sslbench(site, *words[1:], "--format", "json", "--store", "again"))
    assert again["run_id"] == record["run_id"]


def test_its_price_is_that_of_other_models_times_its_cost(site: Site) -> None:
    # no run with it is published; a first-order CRF has many
    prices = []
    for model in ("crf1", "toy"):
        on = ("--model", model, "--dataset", "synth", "--labeled", "50", "--dry-run")
        shown = sslbench(site, "run", "--method", "supervised", *on, "--store", "none")
        assert "unknown price" not in shown
        prices.append(shown)
    assert prices[0] != prices[1]
