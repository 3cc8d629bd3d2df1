"""``import sslbench``: the functions do what the commands do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import sslbench
from sslbench.cli import cli

SMALL = {"labeled": 20, "unlabeled": 20, "featurizer": "basic"}


def test_a_grid_its_table_and_a_comparison(tmp_path: Path) -> None:
    methods = ["supervised", "self_training"]
    options = {"params": {"self_training.rounds": 1, "sigma2": 1}, "seeds": range(2)}
    runs = sslbench.run(methods, "synth", store=tmp_path, **SMALL, **options)
    assert [(r.method, r.spec.protocol.seed, r.status) for r in runs] == [
        (method, seed, "ok") for seed in range(2) for method in methods
    ]
    assert {run.params["sigma2"] for run in runs} == {1.0}
    again = sslbench.run(methods, "synth", store=tmp_path, **SMALL, **options)
    assert [run.created for run in again] == [run.created for run in runs]
    table = sslbench.results(tmp_path).set_index("run_id")
    assert table.loc[runs[0].run_id, "test_accuracy"] == runs[0].score
    assert len(table) == 4
    found = sslbench.compare(runs[1], runs[0].run_id, store=tmp_path)
    assert found.difference == pytest.approx(runs[1].score - runs[0].score)
    assert found.low <= found.difference <= found.high


def test_the_same_run_as_that_of_the_command(tmp_path: Path) -> None:
    (run,) = sslbench.run("supervised", "synth", store=tmp_path, **SMALL)
    words = ["--labeled", "20", "--unlabeled", "20", "--featurizer", "basic", "--format", "json"]
    store = ["--store", str(tmp_path)]
    result = CliRunner().invoke(
        cli, ["run", "--method", "supervised", "--dataset", "synth", *words, *store]
    )
    assert f'"run_id":"{run.run_id}"' in result.stdout.replace(": ", ":")
    assert "1 of them found in the store" in result.stderr


def test_a_script_without_a_guard_starts_its_runs_once(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sslbench\nprint('started')\n"
        "runs = sslbench.run('supervised', 'synth', labeled=20, unlabeled=20, store='runs')\n"
        "print(runs[0].status)\n"
    )
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout == "started\nok\n", done.stderr


def test_a_tagger_is_trained_saved_and_read(tmp_path: Path) -> None:
    tagger = sslbench.train("supervised", "synth", **SMALL)
    assert set(tagger.scores) == {"dev", "test"}
    tagger.save(tmp_path / "model")
    saved = sslbench.load_tagger(tmp_path / "model")
    text = sslbench.registry().dataset("synth").load()(sslbench.DataHome(dataset="synth"))
    words = text.splits["test"].sentences("word")[:5]
    sentences = [words[0], [], *words[1:]]
    labels = saved.predict(sentences)
    assert labels == tagger.predict(sentences)
    assert list(map(len, labels)) == list(map(len, sentences))
    found = saved.predict_proba(sentences)
    assert [rows.shape for rows in found] == [(len(s), len(saved.labels)) for s in sentences]
    np.testing.assert_allclose(np.concatenate(found).sum(axis=1), 1.0)
    assert saved.predict([]) == []
    with pytest.raises(sslbench.UserError, match="sentence 1 is one text"):
        saved.predict(["the words"])
    with pytest.raises(sslbench.UserError, match=r"token 2: .* is not a text"):
        saved.predict([["a", ("b", "c")]])


@pytest.mark.parametrize("method", ["graph_propagation", "jess_cm", "graph_pr"])
def test_probabilities_of_taggers_of_methods(method: str) -> None:
    tagger = sslbench.train(method, "synth", **SMALL, guard=False)
    sentences = [["a", "b"], ["c"]]
    if method == "graph_propagation":
        with pytest.raises(sslbench.UserError, match="without probabilities"):
            tagger.predict_proba(sentences)
        return
    for rows in tagger.predict_proba(sentences):
        np.testing.assert_allclose(rows.sum(axis=1), 1.0)


def test_errors_are_those_of_the_command(tmp_path: Path) -> None:
    with pytest.raises(sslbench.UserError, match="supervised"):
        sslbench.train("supervized", "synth")
    with pytest.raises(sslbench.UserError, match="no parameter 'sigma'"):
        sslbench.run("supervised", "synth", params={"sigma": 1}, store=tmp_path)
    with pytest.raises(sslbench.UserError, match="no such file"):
        sslbench.train("supervised", data=tmp_path / "nothing")


def test_numpy_values_are_taken(tmp_path: Path) -> None:
    plain = sslbench.run("supervised", "synth", store=tmp_path, seeds=(1,), **SMALL)
    sizes = {"labeled": np.int64(20), "unlabeled": np.int32(20), "featurizer": np.str_("basic")}
    seeds, params = np.arange(1, 2), {"sigma2": np.float64(100)}
    other = sslbench.run(
        np.array(["supervised"]), "synth", store=tmp_path, seeds=seeds, params=params, **sizes
    )
    assert [run.created for run in other] == [run.created for run in plain]
