"""``sslbench new`` and ``sslbench check``."""

from __future__ import annotations

import csv
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from sslbench.scaffold import Kind
from sslbench.testing import DATASET_CHECKS, FEATURIZER_CHECKS, METHOD_CHECKS, MODEL_CHECKS
from support.command import sslbench
from support.plugin_site import MYPY, Site

PACKAGES: dict[Kind, str] = {
    "method": "demo_method", "dataset": "demo_dataset", "featurizer": "demo_featurizer",
    "model": "demo_model",
}  # fmt: skip
TORCH = "demo_torch"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A folder with a scaffold of every kind, and their entry points as pip leaves them."""
    folder = tmp_path_factory.mktemp("site")
    site = Site(folder)
    for kind, name in [*PACKAGES.items(), ("model", TORCH)]:
        more = ["--torch"] if name == TORCH else []
        result = sslbench("new", kind, name, "--dir", folder, *more)
        assert result.exit_code == 0, result.output
        assert result.stdout == f"{folder / name}\n"
        package = f"sslbench_{name}"
        (folder / package).symlink_to(folder / name / package)
        if name != TORCH or find_spec("torch"):
            site.metadata(f"sslbench-{name}", f"[sslbench]\n{name} = {package}.plugin\n")
    return site


@pytest.mark.slow
@pytest.mark.parametrize("kind", PACKAGES)
def test_a_new_package_passes_its_own_tests(site: Site, kind: Kind) -> None:
    done = site.python(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", str(site.folder / PACKAGES[kind])
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


@pytest.mark.slow
def test_a_new_model_in_pytorch(site: Site) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    folder = site.folder / TORCH
    done = site.python("-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder))
    assert done.returncode == 0, done.stdout
    words = [*MYPY, "--config-file", str(folder / "pyproject.toml")]
    done = site.python(*words, str(folder / f"sslbench_{TORCH}"))
    assert done.returncode == 0, done.stdout


def test_pytorch_is_for_models(site: Site, tmp_path: Path) -> None:
    text = (site.folder / TORCH / "pyproject.toml").read_text(encoding="utf-8")
    assert 'dependencies = ["sslbench", "torch"]' in text
    result = sslbench("new", "method", "demo", "--torch", "--dir", tmp_path)
    assert result.exit_code == 2
    assert "--torch is for a model, not a method" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_new_plugins_run_and_rank(site: Site, tmp_path: Path) -> None:
    store, out = str(tmp_path / "runs"), tmp_path / "boards"
    done = site.python(
        "-m", "sslbench", "run", "--method", "supervised", "--method", "demo_method",
        "--dataset", "demo_dataset", "--featurizer", "demo_featurizer", "--labeled", "20",
        "--store", store,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    board = site.python("-m", "sslbench", "leaderboard", "--store", store, "--out", str(out))
    assert board.returncode == 0, board.stderr
    with (out / "leaderboard.csv").open() as file:
        ranks = {row["method"]: row["rank"] for row in csv.DictReader(file)}
    assert set(ranks) == {"supervised", "demo_method"}


def test_check_has_a_line_per_check(site: Site) -> None:
    done = site.python("-m", "sslbench", "check", "demo_featurizer")
    assert done.returncode == 0, done.stderr
    first, *lines = done.stdout.splitlines()
    assert first == "featurizer demo_featurizer"
    assert "  ok       registration" in lines
    assert "  skipped  dense: it has no dense columns" in lines
    assert done.stderr == f"sslbench: {len(lines)} checks, 0 failed, 1 skipped\n"


def test_lint_of_new_packages(site: Site) -> None:
    pytest.importorskip("ruff", reason="ruff is not installed")
    for name in (*PACKAGES.values(), TORCH):
        folder = site.folder / name
        for words in (["ruff", "check"], ["ruff", "format", "--check"]):
            done = subprocess.run(
                [sys.executable, "-m", *words, "."], cwd=folder, capture_output=True, text=True
            )
            assert done.returncode == 0, (name, done.stdout, done.stderr)


def test_the_page_on_plugins_lists_every_check() -> None:
    page = (Path(__file__).parents[2] / "docs" / "plugins.md").read_text(encoding="utf-8")
    for check in (*METHOD_CHECKS, *DATASET_CHECKS, *FEATURIZER_CHECKS, *MODEL_CHECKS):
        meaning = (check.__doc__ or "").partition("\n")[0]
        assert f"| `{check.__name__.removeprefix('check_')}` | {meaning} |" in page


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["method", "model"])
def test_types_of_a_new_package(site: Site, kind: Kind) -> None:
    """``mypy --strict`` checks its calls of the engine."""
    pytest.importorskip("mypy", reason="mypy is not installed")
    folder = site.folder / PACKAGES[kind]
    words = [*MYPY, "--config-file", str(folder / "pyproject.toml")]
    done = site.python(*words, str(folder / f"sslbench_{PACKAGES[kind]}"), str(folder / "tests"))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Two-Words", "cannot be the name of a plugin and of a Python module"),
        ("class", "cannot be the name of a plugin and of a Python module"),
        ("supervised", "method 'supervised' is already registered by plugin 'methods' of sslbench"),
    ],
)
def test_unusable_names_are_refused(name: str, message: str, tmp_path: Path) -> None:
    result = sslbench("new", "method", name, "--dir", tmp_path)
    assert result.exit_code == 2
    assert message in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    for parent, message in ((tmp_path, "already exists"), (tmp_path / "no", "is not a folder")):
        result = sslbench("new", "method", "demo", "--dir", parent)
        assert result.exit_code == 2
        assert message in result.stderr
    assert list((tmp_path / "demo").iterdir()) == []


def test_a_failed_check_gives_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(case: object) -> None:
        """Not much."""
        raise AssertionError("wrong")

    monkeypatch.setattr("sslbench.testing.featurizers.FEATURIZER_CHECKS", (fail,))
    result = sslbench("check", "basic")
    assert result.exit_code == 1
    assert "  failed   fail: AssertionError: wrong (" in result.stdout
    assert result.stderr == "sslbench: 1 check, 1 failed, 0 skipped\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["check", "basics"], "nothing is called 'basics'; did you mean basic"),
        (["check", "he2013"], "there are no checks for similaritys"),
        (["check", "basic", "--only", "colums"], "no check 'colums'; did you mean columns?"),
        (["check", "supervised", "--set", "sigma2"], "write --set key=value"),
        (["check", "supervised", "--dataset", "synt"], "no dataset 'synt'; did you mean synth?"),
        (["check", "supervised", "--dataset", "synth,ocr"], "one name at a time; an option can be"),
    ],
)
def test_wrong_usage_gives_status_2(words: list[str], message: str) -> None:
    result = sslbench(*words)
    assert result.exit_code == 2
    assert message in result.stderr


def test_check_takes_parameters_options_and_datasets() -> None:
    words = ["check", "supervised", "--set", "sigma2=2", "--dataset", "synth", "--only", "tasks"]
    result = sslbench(*words)
    assert (result.exit_code, result.stdout) == (0, "method supervised\n  ok       tasks\n")
    bad = sslbench("check", "supervised", "--set", "sigma2=-1", "--only", "seed")
    assert bad.exit_code == 1
    assert "parameter of Supervised: sigma2 is -1, but must be a number >= 1e-10" in bad.stdout
    words = ["check", "synth", "--set", "train=7", "--only", "splits", "--only", "options"]
    result = sslbench(*words)
    assert result.exit_code == 0, result.output
