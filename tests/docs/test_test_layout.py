"""Each package has a folder of tests; tests share code through `support` and `canaries` only."""

from __future__ import annotations

import ast
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
