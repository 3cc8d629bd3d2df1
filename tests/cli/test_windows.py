"""Modules that only Unix has are not imported before they are needed: Windows lacks them."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import sslbench.cli
import sslbench_datasets
import sslbench_methods
from support.waiting import HANG

UNIX = ("fcntl", "grp", "pwd", "resource", "syslog", "termios")
FILES = [
    file
    for package in (sslbench, sslbench_methods, sslbench_datasets)
    for file in sorted(Path(str(package.__file__)).parent.rglob("*.py"))
]
#: None in place of a module: its import fails. psutil needs one of them where it is not on Windows.
#: There are no numbers of users, either: a folder that a group can write to is not looked at
WITHOUT = f"import os, psutil, sys; sys.modules.update(dict.fromkeys({UNIX!r})); del os.getuid"


def at_import(body: list[ast.stmt]) -> Iterator[str]:
    """The modules that the statements of a module import, but not those of its functions."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.stmt)]
            yield from at_import(inner)


def test_no_module_imports_them() -> None:
    assert len(FILES) > 400
    wrong = [
        (file.name, name)
        for file in FILES
        for name in at_import(ast.parse(file.read_bytes()).body)
        if name in UNIX
    ]
    assert wrong == []


def without(code: str) -> subprocess.CompletedProcess[str]:
    """Run a program that cannot import them."""
    return subprocess.run(
        [sys.executable, "-c", f"{WITHOUT}; {code}"],
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )


def test_python_and_the_command_line_start_without_them() -> None:
    modules = [
        f"sslbench.cli.{file.stem}"
        for file in Path(str(sslbench.cli.__file__)).parent.glob("[a-z]*.py")
    ]
    assert len(modules) > 30
    done = without(f"import sslbench.api, {', '.join(modules)}")
    assert done.returncode == 0, done.stderr


def test_help_is_shown_without_them() -> None:
    done = without("sys.argv[1:] = ['--help']; from sslbench.cli import main; main()")
    assert done.returncode == 0, done.stderr
    assert "suite" in done.stdout
