"""One run in this process, the grid around it, and the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest

from sslbench.engine.errors import UserError
from sslbench.experiment.execute.grid import GridOptions, run_grid
from sslbench.experiment.planning.plan import plan
from sslbench.experiment.records.reading import decode
from sslbench.experiment.records.store import Store
from sslbench.experiment.request.request import RunRequest
from sslbench.experiment.run.runner import execute
from sslbench.isolation.start import isolated
from sslbench.report.leaderboard import leaderboard
from sslbench.report.significance import count_table
from support import run_fakes
from support.command import sslbench
from support.run_fakes import MajorityFit, task

pytestmark = pytest.mark.usefixtures("fake_plugin")


def planned(store: Path, **request: object) -> list[object]:
    base = {"method": ["majority"], "dataset": ["toy"], "model": "nothing"}
    asked = RunRequest(**{**base, **request})
    return plan(asked, store=Store(store), notice=lambda text: None)


def test_a_record_tells_the_whole_run() -> None:
    record = execute(task(labeled=20, params={"weight": 0.5}))
    assert (record.status, record.error) == ("ok", None)
    assert record.params == {"weight": 0.5, "sleep": 0.0}
    assert record.protocol == {
        "labeled": 20,
        "unlabeled": None,
        "text": "rest",
        "seed": 0,
        "folds": 0,
        "tune": 0,
        "tune_cpu": None,
        "dev": "none",
    }
    counts = record.counts["test"]
    accuracy = sum(counts["correct_tokens"]) / sum(counts["n_tokens"])
    assert record.metrics["test"]["accuracy"] == pytest.approx(accuracy)
    assert len(counts["n_tokens"]) == 30
    assert {"load", "fit", "predict", "score", "count"} <= set(record.timing)
    assert record.trace["unlabeled"] == 40
    assert record.data["sentences"] == {"labeled": 20, "unlabeled": 40, "test": 30}
    assert record.data["facts"] == {"fact": 1}
    assert record.environment["libraries"]["numpy"] == np.__version__
    assert record.environment["plugins"] == {"run-fakes": "1.0"}


def test_variants_of_a_fit_are_scored_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def variants(fit: MajorityFit) -> dict[str, MajorityFit]:
        flat = MajorityFit(fit.labels, np.zeros_like(fit.table))
        return {} if not fit.table.any() else {"flat": flat}

    monkeypatch.setattr(MajorityFit, "variants", property(variants), raising=False)
    record = execute(task(labeled=20))
    assert record.status == "ok"
    metrics = record.metrics["test"]
    assert 0 < metrics["accuracy_flat"] < metrics["accuracy"]
    assert "f1_flat" not in metrics


def test_same_seed_same_record() -> None:
    first, second = execute(task(labeled=20, seed=3)), execute(task(labeled=20, seed=3))
    assert first.predictions_sha256 == second.predictions_sha256
    assert first.metrics == second.metrics
    assert first.trace == second.trace
    assert execute(task(labeled=20, seed=4)).trace["draw"] != first.trace["draw"]


def test_the_seed_of_a_run_is_the_number_of_the_draw() -> None:
    """The counts of each run are those of the sentences outside of its own draw."""
    pool = run_fakes.toy_splits()["train"]
    for seed in (0, 1):
        record = execute(task(dataset="drawn", text="external", seed=seed))
        test = [n for i, n in enumerate(pool.lengths.tolist()) if i // 20 != seed]
        assert record.counts["test"]["n_tokens"] == test
        assert record.audit["duplicates"]["test_in_unlabeled"] == 40
    beyond = execute(task(dataset="drawn", seed=2))
    assert (beyond.status, beyond.error_kind) == ("failed", "input")


def test_the_plan_says_where_the_text_comes_from(tmp_path: Path) -> None:
    for request, text, size in (
        ({"labeled": 20}, "rest", 40),
        ({}, "external", 30),
        ({"labeled": 20, "text": "external"}, "external", 30),
        ({"labeled": 20, "text": "all", "unlabeled": 50}, "all", 50),
    ):
        (run,) = planned(tmp_path, **request)
        record = execute(run)
        assert run.spec.protocol.text == record.protocol["text"] == text
        assert record.trace["unlabeled"] == record.data["sentences"]["unlabeled"] == size
    own = tmp_path / "own.conll"
    own.write_text("a A\n\nb B\n\n" * 5)
    request = {"dataset": [], "data": own, "columns": ("word", "label")}
    with pytest.raises(UserError, match="own has no external text"):
        planned(tmp_path, **request, text="external")


def test_draws_are_rows_of_one_table(tmp_path: Path) -> None:
    store = Store(tmp_path)
    methods = ["majority", "peeking"]
    runs = planned(tmp_path, method=methods, dataset=["drawn"], seeds=[0, 1])
    for run in runs:
        store.save(execute(run))
    records = store.records()
    (table,) = leaderboard(records)
    assert [row.seeds for row in table.rows] == [(0, 1), (0, 1)]
    # The sentences of both seeds, paired by their numbers in the corpus of 60.
    own = sorted((r for r in records if r.method == "majority"), key=lambda r: r.protocol["seed"])
    counts = count_table(own)
    assert counts.rows.shape[:2] == (2, 60)
    for seed, record in enumerate(own):
        outside = [i for i in range(60) if i // 20 != seed]
        at = counts.fields.index("correct_tokens")
        assert counts.rows[seed, outside, at].tolist() == record.counts["test"]["correct_tokens"]
        assert not counts.rows[seed, 20 * seed : 20 * seed + 20].any()


def test_bad_parameters_and_missing_data_are_input_errors() -> None:
    record = execute(task(params={"weight": "x"}))
    assert (record.status, record.error_kind) == ("failed", "input")
    assert "weight is 'x', but must be a number" in str(record.error)
    record = execute(task(dataset="missing"))
    assert record.error == "/nowhere: no such corpus; buy it"


def test_plan_makes_the_grid_with_defaults(tmp_path: Path) -> None:
    tasks = planned(tmp_path, method=["majority", "hostile"], seeds=[1, 2], labeled=20)
    specs = [each.spec for each in tasks]
    assert [(s.protocol.seed, s.method) for s in specs] == [
        (1, "majority"),
        (1, "hostile"),
        (2, "majority"),
        (2, "hostile"),
    ]
    assert {s.featurizer for s in specs} == {"none"}
    assert len({s.run_id for s in specs}) == 4
    assert {s.protocol.tune for s in specs} == {0}
    # The data set's own budget holds for the full data only, and only when none is asked.
    assert planned(tmp_path)[0].spec.protocol.tune == 5
    assert planned(tmp_path, tune=0)[0].spec.protocol.tune == 0


def test_settings_are_typed_and_go_to_whom_they_belong(tmp_path: Path) -> None:
    both = planned(
        tmp_path,
        method=["majority", "hostile"],
        params=["weight=3", "hostile.how=exit", "toy.train=12"],
    )
    assert [next(iter(each.spec.params.values())) for each in both] == [3.0, "exit"]
    assert both[0].spec.data.options["train"] == 12
    for bad, message in [
        ("wieght=1", "did you mean weight"),
        ("weight", "key=value"),
        ("weight=x", "weight is 'x', but must be a number"),
        ("weight=-1", ">= 0"),
        ("other.weight=1", "is not part of this run"),
        ("toy.train=x", "option of toy"),
    ]:
        with pytest.raises(UserError, match=message):
            planned(tmp_path, params=[bad])


def test_finished_runs_are_not_run_again_and_failures_only_on_retry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    def in_process(tasks: list[object], **_: object) -> Iterator[object]:
        for each in tasks:
            ran.append(each.spec.method)
            yield execute(each)

    monkeypatch.setattr("sslbench.experiment.execute.grid.run_all", in_process)
    store = Store(tmp_path)
    tasks = planned(tmp_path, method=["majority", "hostile"], labeled=20)
    tasks += planned(tmp_path, dataset=["missing"])
    first = run_grid(tasks, store, isolated)
    assert ran == ["majority", "hostile"]  # the data of the third could not be loaded
    assert [r.error_kind for r in first.records] == [None, "method", "input"]
    assert first.exit_status == 1
    assert len(store.records()) == 2  # bad input is to be mended, not remembered
    again = run_grid(tasks[:2], store, isolated)
    assert (again.stored, again.stored_failed, len(ran)) == (2, 1, 2)
    assert again.exit_status == 1
    retried = run_grid(tasks[:2], store, isolated, GridOptions(retry=True))
    assert (retried.stored, ran[2:]) == (1, ["hostile"])
    assert run_grid(tasks[2:], store, isolated).exit_status == 2
    with pytest.raises(UserError, match="executor"):
        run_grid(planned(tmp_path, seeds=[9]), store, isolated, GridOptions(executor="cloud"))


def test_command_line_end_to_end(tmp_path: Path) -> None:
    store = str(tmp_path / "runs")
    grid = (
        *("run", "--method", "majority", "--method", "hostile", "--dataset", "toy"),
        *("--labeled", "20", "--store"),
        store,
        "--model",
        "nothing",
    )
    result = sslbench(*grid, "--format", "json")
    assert result.exit_code == 1, result.output
    tree = json.loads(result.stdout)
    assert [record["status"] for record in tree] == ["ok", "failed"]
    assert decode(json.dumps(tree[0]).encode()).method == "majority"
    assert "2 runs, 1 failed" in result.stderr
    rows = sslbench(*grid, "--format", "csv").stdout.splitlines()
    assert rows[0].startswith("run_id,status,method")
    assert len(rows) == 3
    table = sslbench(*grid)
    assert "2 of them found in the store" in table.stderr
    assert tree[0]["run_id"] in table.stdout
    out = str(tmp_path / "boards")
    assert sslbench("leaderboard", "--store", store, "--out", out, "--check").exit_code == 1
    assert not Path(out).exists()
    assert sslbench("leaderboard", "--store", store, "--out", out).exit_code == 0
    assert sslbench("leaderboard", "--store", store, "--out", out, "--check").exit_code == 0
    assert "majority" in (Path(out) / "leaderboard.md").read_text()


def test_budgets_and_warnings_of_tuning_on_the_command_line(tmp_path: Path) -> None:
    words = ("--dataset", "toy", "--model", "nothing", "--store", str(tmp_path), "--format", "json")
    grid = ("run", "--method", "majority", "--method", "peeking", "--seed", "0", "--seed", "1")
    result = sslbench(*grid, *words, "--tune-cpu", "0.001", "--tune", "3")
    assert result.exit_code == 0, result.output
    warned = [line for line in result.stderr.splitlines() if "untuned" in line]
    assert warned == [
        "sslbench: warning: peeking on toy: untuned: the method has nothing to search"
    ]
    records = json.loads(result.stdout)
    assert {r["spec"]["protocol"]["tune_cpu"] for r in records} == {0.001}
    assert {r["tuned"]["status"] for r in records} == {"tuned", "untuned"}
    specs = [each.spec.protocol for each in planned(tmp_path, tune_cpu=2.0)]
    assert [(each.tune, each.tune_cpu) for each in specs] == [(0, 2.0)]
    assert specs[0].tuning() == "2 CPU seconds of tuning"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--method", "majorty", "--dataset", "toy"), "did you mean majority"),
        (("--method", "majority", "--dataset", "toi"), "did you mean toy"),
        (("--method", "majority"), "give --dataset NAME or --data PATH"),
        (("--method", "majority", "--dataset", "toy", "--labeled", "x"), "--labeled"),
        (("--method", "majority", "--data", "/no/file"), "no such file"),
        (("--method", "majority", "--dataset", "toy", "--set", "x=1"), "no parameter 'x'"),
        (("--method", "majority", "--dataset", "missing", "--labeled", "1"), "buy it"),
    ],
)
def test_bad_input_ends_in_one_line_and_status_two(
    tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    result = sslbench("run", *words, "--store", str(tmp_path / "runs"), "--model", "nothing")
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_compare(tmp_path: Path) -> None:
    store = Store(tmp_path)
    runs = [execute(task(labeled=n, params={"weight": w})) for n, w in ((5, 100.0), (40, 0.1))]
    other = execute(task(labeled=20, data=msgspec.structs.replace(runs[0].spec.data)))
    other.data["test_sha256"] = "another"
    other.spec = msgspec.structs.replace(other.spec, search="x")
    other.run_id = other.spec.run_id
    bad = execute(task("hostile"))
    for record in (*runs, other, bad):
        store.save(record)
    ids = [record.run_id for record in runs]
    result = sslbench("compare", *ids, "--store", str(tmp_path), "--format", "json")
    assert result.exit_code == 0, result.output
    tree = json.loads(result.stdout)
    assert tree["difference"] == pytest.approx(runs[0].score - runs[1].score)
    assert tree["low"] <= tree["difference"] <= tree["high"] < 0
    assert tree["p_value"] < 0.01
    assert "the protocols differ" in result.stderr
    text = sslbench("compare", ids[0][:8], str(store.path(ids[1])), "--store", str(tmp_path))
    assert "A - B: -" in text.stdout
    for second, message in [(other, "different test sets"), (bad, "nothing to compare")]:
        refused = sslbench("compare", ids[0], second.run_id, "--store", str(tmp_path))
        assert refused.exit_code == 2
        assert message in refused.stderr
