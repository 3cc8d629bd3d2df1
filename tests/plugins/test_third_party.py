"""A method from another distribution, that of the tutorial: it runs, is saved, and ranks."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from support.plugin_site import MYPY, Site

TOP = Path(__file__).parents[2]
TUTORIAL = TOP / "docs" / "tutorials" / "method.md"
TEXT = ("--dataset", "synth", "--labeled", "20")


def blocks_of(page: Path, language: str) -> list[str]:
    """The code blocks of a page in this language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.M | re.S)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The method of the tutorial, and a distribution beside it that cannot be imported."""
    folder = tmp_path_factory.mktemp("site")
    site = Site(folder)
    for block in blocks_of(TUTORIAL, "python"):
        name = block.splitlines()[0].removeprefix("# ")
        (folder / name).write_text(block)
    (entry_points,) = blocks_of(TUTORIAL, "toml")
    site.metadata("my-method", entry_points.replace("project.entry-points.", "").replace('"', ""))
    site.install("broken-plugin", "broken", "raise RuntimeError('two\\nlines')")
    return site


def test_the_method_of_the_tutorial_runs_and_ranks(site: Site, tmp_path: Path) -> None:
    store, out = str(tmp_path / "runs"), tmp_path / "boards"
    words = ["run", "--method", "supervised", "--method", "soft_self_training", *TEXT]
    words += ["--unlabeled", "40", "--set", "synth.test=60", "--seed", "0", "--seed", "1"]
    done = site.python("-m", "sslbench", *words, "--store", store, "--format", "json")
    assert done.returncode == 0, done.stderr
    records = json.loads(done.stdout)
    assert [record["status"] for record in records] == ["ok"] * 4
    assert records[1]["trace"]["training"]["status"] in ("gradient", "decrease")
    # The broken one beside it costs one line.
    assert done.stderr.splitlines()[0] == (
        "sslbench: warning: plugin 'broken' of broken-plugin: cannot be loaded:"
        " RuntimeError: two lines; mend or uninstall it, or set SSLBENCH_BLOCK=broken-plugin"
    )
    board = site.python("-m", "sslbench", "leaderboard", "--store", store, "--out", str(out))
    assert board.returncode == 0, board.stderr
    with (out / "leaderboard.csv").open() as file:
        rows = {row["method"]: row for row in csv.DictReader(file)}
    assert {row["rank"] for row in rows.values()} <= {"1", "2"}  # so small a test may end in a tie
    assert float(rows["soft_self_training"]["p"]) <= 1
    assert "soft_self_training" in board.stdout


def test_its_tagger_is_kept_and_used(site: Site, tmp_path: Path) -> None:
    model = str(tmp_path / "my.model")
    words = ["train", "--method", "soft_self_training", *TEXT, "--unlabeled", "20"]
    done = site.python("-m", "sslbench", *words, "--set", "synth.test=10", "--save", model)
    assert done.returncode == 0, done.stderr
    (tmp_path / "text").write_text("il\nnusobo\n")
    tagged = site.python("-m", "sslbench", "tag", model, str(tmp_path / "text"))
    assert tagged.returncode == 0, tagged.stderr
    assert re.fullmatch(r"il [A-Z]+\nnusobo [A-Z]+\n", tagged.stdout)


def test_show_tells_its_parameters_and_origin(site: Site) -> None:
    done = site.python("-m", "sslbench", "show", "soft_self_training")
    assert re.search(r"sigma2 +number +10 +>= 1e-10\S* .*variance of the Gaussian", done.stdout)
    assert "plugin 'my_method' of my-method 1.2" in done.stdout


def code_lines() -> list[str]:
    """Lines of the example that are not comments or closing brackets."""
    lines = "".join(blocks_of(TUTORIAL, "python")).splitlines()
    return [line for line in lines if line.strip(" )]") and not line.startswith("#")]


def test_the_example_stays_short() -> None:
    assert len(code_lines()) <= 20


def test_the_readme_has_the_same_method() -> None:
    (shown,) = blocks_of(TOP / "README.md", "python")
    assert blocks_of(TUTORIAL, "python")[0] == f"# my_method.py\n{shown}"


@pytest.mark.slow
def test_the_example_type_checks_strictly(site: Site) -> None:
    """All errors are in a copy with one."""
    pytest.importorskip("mypy", reason="mypy is not installed")
    text = (site.folder / "my_method.py").read_text()
    (site.folder / "wrong.py").write_text(text.replace("crf.marginals(data)", "crf.marginals(1)"))
    files = ("my_method.py", "my_plugin.py", "wrong.py")
    done = site.python(*MYPY, "--strict", *files, cwd=site.folder)
    *lines, _ = done.stdout.splitlines()
    assert 'expected "EncodedText"' in done.stdout, done.stdout
    assert all(line.startswith("wrong.py:") for line in lines), done.stdout
