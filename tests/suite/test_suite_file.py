"""Suite files: what they say, and one clear line for what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from sslbench.engine.errors import UserError
from sslbench.plugins import registry
from sslbench.report.reproduce import Commands
from sslbench.suite.cells import suite_cells
from sslbench.suite.file import read_suite
from support.real_files import real_home
from support.suite_fakes import TOY, suite_file

ROOT = Path(__file__).resolve().parents[2]
fakes = pytest.mark.usefixtures("fake_plugin")


def cells_of(folder: Path, text: str) -> list[str]:
    suite = read_suite(str(suite_file(folder, text)))
    return [cell.describe() for cell in suite_cells(suite, registry())]


@fakes
def test_every_combination_once(tmp_path: Path) -> None:
    found = cells_of(tmp_path, TOY)
    assert len(found) == len(set(found)) == 2 * 2 * 3
    again = TOY + '[[cells]]\ndatasets = ["to*"]\nmethods = ["majority"]\nmodel = "nothing"\n'
    assert cells_of(tmp_path, again + "labeled = [10]\nseeds = 3\n") == found
    assert len(cells_of(tmp_path, again + "labeled = [10]\nseeds = 4\n")) == 13


@fakes
def test_defaults_variants_and_settings(tmp_path: Path) -> None:
    text = """
title = "t"
[defaults]
model = "nothing"
labeled = [10]
tune = 4
tune_seed = 0
[[cells]]
datasets = ["toy"]
methods = ["majority"]
variant = "tried"
set = ["weight=1,2", "sleep=0"]
seeds = 2
"""
    suite = read_suite(str(suite_file(tmp_path, text)))
    cells = suite_cells(suite, registry())
    assert {cell.line for cell in cells} == {
        "majority, tried, weight=1",
        "majority, tried, weight=2",
    }
    assert {cell.spec.params["weight"] for cell in cells} == {1.0, 2.0}
    assert cells[0].spec.protocol.tuning() == "4 tuning trials on draw 0"
    assert suite.store == tmp_path / "../runs"


@fakes
def test_a_suite_says_what_scores_trials(tmp_path: Path) -> None:
    text = TOY + 'tune = 4\ntune_by = "cv"\n'
    spec = suite_cells(read_suite(str(suite_file(tmp_path, text))), registry())[0].spec
    assert spec.protocol.tuning() == "4 tuning trials by raced cross-validation"
    words = Commands(registry()).command(spec, [0], text=False).split()
    assert words[words.index("--tune-by") + 1] == "cv"
    for wrong, said in (
        ('tune_by = "cv"\n', "--tune-by cv without trials"),
        ('tune = 4\ntune_by = "test"\n', "tune_by is test, but must be"),
    ):
        with pytest.raises(UserError, match=said) as caught:
            suite_cells(read_suite(str(suite_file(tmp_path, TOY + wrong))), registry())
        assert caught.value.line is not None


@fakes
def test_a_template_file_beside_the_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its path is relative to the suite, as other paths are, and not to where the command runs."""
    (tmp_path / "features").mkdir()
    (tmp_path / "features" / "few.toml").write_text('templates = ["bias", "word[0]"]\n')
    text = TOY + 'featurizer = "features/few.toml"\n'
    path = suite_file(tmp_path, text)
    monkeypatch.chdir(tmp_path.parent)
    specs = [cell.spec for cell in suite_cells(read_suite(str(path)), registry())]
    assert {spec.featurizer for spec in specs} == {"file-few.toml"}
    registered = suite_cells(read_suite(str(suite_file(tmp_path, TOY))), registry())
    assert "file-few.toml" not in {cell.spec.featurizer for cell in registered}


@fakes
def test_methods_that_do_not_fit_are_no_cells(tmp_path: Path) -> None:
    text = TOY.replace('["majority", "peeking"]', '["all"]\nwithout = ["hostile"]')
    methods = {line.split(" on ")[0] for line in cells_of(tmp_path, text)}
    assert {"majority", "peeking"} <= methods
    assert not {"segmenter", "crf1_only", "hostile"} & methods


WRONG = [
    ('title = "t"\nlabeled = [', 2, "not TOML"),
    ('title = "t"\n', 1, "cells"),
    ('title = "t"\n[[cells]]\nmethods = ["majority"]\n', 2, "datasets"),
    (TOY + "sedes = 3\n", 12, "unknown key `sedes`"),
    (TOY.replace("seeds = 3", 'seeds = "3"'), 11, "seeds is '3', but must be an integer"),
    (TOY.replace("labeled = [10, 20]", "labeled = [0]"), 10, "labeled [0]"),
    (TOY.replace('store = "runs"', "store = 3"), 3, "store is 3, but must be a text"),
    ('title = "t"\n[defaults]\ntune = -1\n[[cells]]\ndatasets = ["toy"]\n', 3, "tune -1"),
    (TOY.replace('"majority"', '"majorty"'), 6, "majorty"),
    (TOY.replace('["toy"]', '["toys"]'), 6, "toys"),
    (TOY.replace("[10, 20]", '["many"]'), 6, "--labeled 'many'"),
    (TOY + 'set = ["nothing=3"]\n', 6, "no parameter 'nothing'"),
    (TOY + "folds = 3\ntune_seed = 0\n", 6, "--folds with --tune-seed"),
    (TOY + "tune_cpu = inf\n", 12, "tune_cpu inf"),
    (TOY + "folds = 1000000000\n", 12, "folds 1000000000"),
    (TOY + f"tune = {'9' * 5000}\n", 12, "a number of more than 1000 digits"),
    (f"{'a.' * 20_000}a = 1\n{TOY}", 1, "a key of more than 100 parts"),
    (TOY.replace("\nstore", "\ntimeout = inf\nstore"), 3, "timeout is inf, but must be a number"),
    (TOY.replace("[10, 20]", str([*range(1, 2000)])), 10, "labeled has more than 1000 entries"),
    (TOY.replace('["toy"]', str(["toy"] * 2000)), 7, "datasets has more than 1000 entries"),
    (TOY + "[[cells]]\ndatasets = ['toy']\nmethods = ['all']\n" * 1000, 1, "length <= 1000"),
    (TOY + "set = ['a=" + ",2" * 999 + "', 'b=" + ",2" * 999 + "']\n", 6, "2,000,000 sizes and"),
    (TOY.replace("seeds = 3", "seeds = 10_000") + "unlabeled = [1, 2, 3]\n", 6, "120,000 runs"),
]


@fakes
@pytest.mark.parametrize(("text", "line", "message"), WRONG)
def test_what_is_wrong_is_told_with_file_and_line(
    text: str, line: int, message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as caught:
        cells_of(tmp_path, text)
    assert f"toy.toml:{line}: " in str(caught.value)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"a = {'[' * 5000}", "not TOML: hundreds of brackets in each other"),
        (f"a = {'{a=' * 3000}", "not TOML: hundreds of brackets in each other"),
        (TOY.replace('"runs"', '"\\u0000"'), "a path with a NUL character"),
        (f'{TOY}variant = "{"x" * 2**20}"', "bytes"),
    ],
)
def test_what_is_wrong_in_no_line(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        read_suite(str(suite_file(tmp_path, text)))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_where_a_strangers_file_may_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "suites").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    suite = read_suite(str(suite_file(tmp_path / "suites")))
    usual = [*("runs", "x/y"), *("../runs", ".."), *("../here/z", "../suites")]
    assert not suite.elsewhere(suite.path.parent / name for name in usual)
    others = [suite.path.parent / name for name in ("/proc", "../../x", "../other", "../runs/x")]
    assert suite.elsewhere(others) == others


def test_no_such_file() -> None:
    with pytest.raises(UserError, match=r"suites/nowhere\.toml: no such suite"):
        read_suite("nowhere")


NEED_CORPORA = [ROOT / "replications/suzuki2008/suite.toml"]


@pytest.mark.parametrize(
    "path", [*ROOT.glob("leaderboards/suites/*.toml"), *ROOT.glob("replications/*/suite.toml")]
)
def test_the_suites_of_the_project_can_be_read(path: Path) -> None:
    suite = read_suite(str(path))
    assert suite.store.resolve() in (ROOT / "leaderboards/runs", ROOT / "runs")
    assert suite.ledger is None or suite.ledger.is_file()
    if path not in NEED_CORPORA:
        assert suite_cells(suite, registry())


@pytest.mark.corpus
@pytest.mark.parametrize("path", NEED_CORPORA)
def test_the_suites_with_templates_of_their_own_fit_their_corpora(path: Path) -> None:
    """The columns that the templates name are those of the data."""
    real_home(registry().dataset("conll03").files)
    assert suite_cells(read_suite(str(path)), registry())


def test_the_standard_suite_has_the_papers_methods_everywhere() -> None:
    cells = suite_cells(read_suite(str(ROOT / "leaderboards/suites/standard.toml")), registry())
    papers = {"supervised", "jess_cm", "graph_self_training", "graph_pr", "virtual_evidence"}
    papers |= {"entropy_regularization"}
    for dataset in {cell.spec.dataset for cell in cells}:
        found = {c.spec.method for c in cells if c.spec.dataset == dataset}
        assert papers <= found, dataset
    assert len({cell.spec.dataset for cell in cells}) == 27


def test_features_from_text_and_the_guard_name_the_line_and_the_command(tmp_path: Path) -> None:
    text = """
title = "t"
[[cells]]
datasets = ["synth"]
methods = ["supervised", "self_training"]
with = ["brown_clusters"]
guard = true
"""
    suite = read_suite(str(suite_file(tmp_path, text)))
    cells = suite_cells(suite, registry())
    lines = ["supervised + brown_clusters", "self_training + brown_clusters (guarded)"]
    assert [cell.line for cell in cells] == lines
    words = Commands(registry()).command(cells[1].spec, [0, 1, 3], text=False).split()
    assert words[:6] == ["sslbench", "run", "--method", "self_training", "--dataset", "synth"]
    assert words[words.index("--with") + 1] == "brown_clusters"
    assert words[words.index("--seeds") + 1] == "0-1,3"
    assert "--guard" in words
    assert "--set" not in words
