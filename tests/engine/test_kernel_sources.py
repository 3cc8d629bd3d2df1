"""The files whose content the name of a folder of machine code depends on; checks of bounds."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import sslbench.engine
import sslbench_datasets
import sslbench_methods
from sslbench.engine.compilation import compiled

BOUNDS = """
    import numpy as np
    from sslbench.engine.compilation import compiled
    from sslbench.engine.compilation.compiled import kernel, parallel_kernel
    from sslbench.engine.crf.simd import lanes

    @kernel
    def item(x, i):
        return x[i]

    @parallel_kernel(lambda x, n: n)
    def items(begin, end, x, n):
        for i in range(begin, end):
            x[i] = 0.0

    @kernel
    def load(x, i):
        return lanes.total(lanes.load(x, i))

    @kernel
    def spread(x, i):
        return lanes.total(lanes.spread(x, i))

    @kernel
    def load_first(x, i, n):
        return lanes.total(lanes.load_first(x, i, lanes.first(n), 0.0))

    @kernel
    def store_first(x, i, n):
        lanes.store_first(x, i, lanes.first(n), lanes.splat(0.0))

    def refused(function, *arguments):
        try:
            function(np.ones(12), *arguments)
        except IndexError:
            return True
        return False

    assert compiled.BOUNDS
    print([refused(item, 11), refused(items, 12), refused(load, 4), refused(load_first, 9, 3),
           refused(load_first, 12, 0), refused(store_first, 9, 3), refused(spread, 11)])
    print([refused(item, 12), refused(items, 13), refused(load, 5), refused(load_first, 9, 4),
           refused(load, -1), refused(store_first, 9, 4), refused(spread, 12)])
"""


def test_kernels_with_bounds_checks(tmp_path: Path) -> None:
    """Also in other threads and in operations on eight lanes."""
    file = tmp_path / "bounds.py"
    file.write_text("\n".join(line[4:] for line in BOUNDS.splitlines()[1:]))
    done = subprocess.run(
        [sys.executable, str(file)],
        env={**os.environ, "SSLBENCH_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == [str([False] * 7), str([True] * 7)], done.stderr


DECORATORS = {"njit", "kernel", "inline_kernel", "parallel_kernel"}
PACKAGES = (sslbench.engine, sslbench_methods, sslbench_datasets)
SOURCES = [(p.__name__, file) for p in PACKAGES for file, _ in compiled._kernel_sources(p.__name__)]


@pytest.mark.parametrize(("package", "file"), SOURCES, ids=lambda value: value)
def test_kernels_use_names_of_kernel_sources_alone(package: str, file: str) -> None:
    """Else a change of such a name would leave the key, and so the old machine code, as it is."""
    tree = ast.parse((Path(sys.modules[package].__file__ or "").parent / file).read_text())
    origin = {
        (name.asname or name.name): {f"{node.module}", f"{node.module}.{name.name}"}
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sslbench")
        for name in node.names
    }
    known = {f"{p}/{f}".removesuffix(".py").replace("/", ".") for p, f in SOURCES}
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and DECORATORS & {
            _name(decorator) for decorator in function.decorator_list
        }:
            body = ast.Module(function.body, [])
            names = {node.id for node in ast.walk(body) if isinstance(node, ast.Name)}
            for name in names & origin.keys():
                assert origin[name] & known, f"{function.name}: {name}"


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: str(package.__name__))
def test_every_file_with_kernels_is_a_kernel_source(package: ModuleType) -> None:
    root = Path(package.__file__ or "").parent
    files = {file for name, file in SOURCES if name == package.__name__}
    assert files
    for path in root.rglob("*.py"):
        with_kernels = re.search(r"^@(njit|(\w+_)?kernel)\b", path.read_text(), re.MULTILINE)
        assert not with_kernels or path.relative_to(root).as_posix() in files, path


def test_the_bench_has_no_kernels() -> None:
    """The key of the package sslbench is of the kernels of its engine."""
    engine = Path(sslbench.engine.__file__).parent
    for path in engine.parent.rglob("*.py"):
        if not path.is_relative_to(engine):
            assert not re.search(r"^@(njit|(\w+_)?kernel)\b", path.read_text(), re.MULTILINE), path


def _name(decorator: ast.expr) -> str:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return called.id if isinstance(called, ast.Name) else ""
