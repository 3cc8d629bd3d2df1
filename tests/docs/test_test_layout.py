"""Each package has a folder of tests; tests share code through `support` and `canaries` only."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import sslbench

TESTS = Path(__file__).resolve().parents[1]
PACKAGES = {path.parent.name for path in Path(sslbench.__file__).parent.glob("*/__init__.py")}
OTHERS = {
    *("attacks", "benchmarks", "canaries", "datasets", "docs", "methods", "plugins"),
    *("studies", "support"),
}


def test_folders_are_those_of_the_packages() -> None:
    folders = {path.parent.name for path in TESTS.glob("*/*.py")}
    assert folders <= PACKAGES | OTHERS


def test_no_test_module_imports_another() -> None:
    actual = [
        f"{path.relative_to(TESTS)}: {module}"
        for path in TESTS.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for module in imported(node)
        if any(part.startswith("test_") for part in module.split("."))
    ]
    assert actual == []


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [node.module or "", *(name.name for name in node.names)]
    return [name.name for name in node.names] if isinstance(node, ast.Import) else []


def test_a_worker_reads_the_corpora_that_its_parent_was_given(tmp_path: Path) -> None:
    """The parent empties the data home in its environment, which the worker inherits."""
    worker = "import conftest; print(conftest.CORPORA)"
    parent = f"import conftest, subprocess, sys; subprocess.run([sys.executable, '-c', {worker!r}])"
    variables = {**os.environ, "SSLBENCH_DATA": str(tmp_path)}
    variables.pop("SSLBENCH_TEST_CORPORA", None)
    done = subprocess.run(
        [sys.executable, "-c", parent], cwd=TESTS, env=variables, capture_output=True, text=True
    )
    assert done.stdout == f"{tmp_path}\n", done.stderr
