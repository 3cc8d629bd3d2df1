"""The commands in the documentation are commands: none asks for what there is not."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

import pytest

from sslbench.experiment.execute import grid
from support.command import sslbench

TOP = Path(__file__).parents[2]
#: what the letters of a page stand for
LETTERS = {
    "jiao2006": {"D": "genetag_jiao", "U": "B", "S": "0", "G": "0.1"},
    "subramanya2010": {"D": "questions"},
    "he2013": {"LL": "da"},
}
SHOWN = r'sslbench() { printf "%s\t" "$@"; echo; }; '


def commands(page: Path) -> list[list[str]]:
    """Arguments of every `sslbench` command of a page, as the shell expands them."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(sslbench.*?|[A-Z]=.*?)^```$", text, re.MULTILINE | re.DOTALL)
    script = SHOWN + "\n".join(blocks)
    for letter, meaning in LETTERS.get(page.parent.name, {}).items():
        script = re.sub(rf"(?<=[=_ ]){letter}(?=[.\s\"])", meaning, script)
    with tempfile.TemporaryDirectory() as folder:  # for redirections; nothing else can be run
        shown = subprocess.run(
            ["/bin/bash", "-uc", script],
            cwd=folder,
            env={"PATH": ""},
            capture_output=True,
            text=True,
            check=False,
        )
    assert "unbound variable" not in shown.stderr, shown.stderr
    return [line.rstrip("\t").split("\t") for line in shown.stdout.splitlines()]


PAGES = [
    TOP / "README.md",
    *sorted((TOP / "docs").glob("*.md")),
    *sorted((TOP / "replications").rglob("*.md")),
]
RUNS = [
    pytest.param(args, id=f"{page.parent.name} {page.stem} {number}")
    for page in PAGES
    for number, args in enumerate(commands(page))
    if args[:1] == ["run"]
]


def test_the_pages_have_commands() -> None:
    assert len(RUNS) > 15


@pytest.mark.parametrize("args", RUNS)
def test_a_run_can_be_planned(
    args: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned: list[int] = []

    def nothing(tasks: list[object], *_: object, **__: object) -> grid.GridResult:
        planned.append(len(tasks))
        return grid.GridResult()

    monkeypatch.setattr(grid, "run_grid", nothing)
    if "--data" in args:  # the reader's own files
        pytest.skip("needs the files of the reader")
    for folder in (arg.split("=", 1)[1] for arg in args if arg.startswith("transformer.folder=")):
        if not (TOP / folder).is_dir():
            pytest.skip(f"needs {folder}")
    result = sslbench(*args, "--store", tmp_path / "runs")
    assert result.exit_code == 0, result.output
    assert bool(sum(planned)) == ("--dry-run" not in args)
