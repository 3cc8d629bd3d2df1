"""The engine by itself: its imports, its door, and a copy without the rest of the package."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sslbench.engine
from support.synth_text import synth_text

ENGINE = Path(sslbench.engine.__file__).parent
#: lowest first; those of one line may import each other
FLOORS = [
    {"version", "errors", "lazy", "plain", "types"},
    {"checked", "dev_labels", "files", "compilation", "parameters", "spread", "variables"},
    {"corpus"},
    {"features"},
    {"crf"},
    {"graph"},
]
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


def imports(path: Path) -> list[str]:
    """Modules of sslbench that a module imports, anywhere in it; relative ones as "."."""
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            found += [f"{module}.{alias.name}" for alias in node.names]
    return [name for name in found if re.match(r"\.|sslbench", name)]


MODULES = sorted(ENGINE.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.relative_to(ENGINE).as_posix())
def test_no_module_imports_the_bench_or_a_higher_room(path: Path) -> None:
    own = path.relative_to(ENGINE).parts[0].removesuffix(".py")
    for name in imports(path):
        assert name.startswith("sslbench.engine."), f"{path} imports {name}"
        room = name.split(".")[2]
        if own != "__init__":
            assert FLOOR_OF[room] <= FLOOR_OF[own], f"{path} imports {name}"


def test_the_check_sees_every_kind_of_import(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text(
        "import sslbench.api\nfrom sslbench import plugins\nfrom ..x import y\nimport numpy\n"
        "def f():\n    from sslbench.plugins import registry\n"
    )
    found = ["sslbench.api", "sslbench.plugins", "..x.y", "sslbench.plugins.registry"]
    assert sorted(imports(path)) == sorted(found)


def run(code: str, folder: Path, **environment: str) -> str:
    """Standard output of Python, which sees the packages of `folder` and the installed ones."""
    paths = [str(folder), *(p for p in sys.path if "site-packages" in p)]
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **environment},
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_readme_example_runs_in_a_copy_without_the_bench(tmp_path: Path) -> None:
    package = tmp_path / "sslbench"
    shutil.copytree(ENGINE, package / "engine", ignore=shutil.ignore_patterns("__pycache__"))
    (package / "__init__.py").write_text("")
    text = synth_text(30, 0)
    sentences = zip(text.sentences("word"), text.sentences("label"), strict=True)
    lines = ["".join(f"{w}\t{t}\n" for w, t in zip(*each, strict=True)) for each in sentences]
    (tmp_path / "train.txt").write_text("\n".join(lines))
    (example,) = re.findall(
        r"^```python\n(.*?)^```$", (ENGINE / "README.md").read_text(), re.M | re.S
    )
    check = """
import sys
from pathlib import Path
import sslbench.engine.graph.build
loaded = [m.__file__ for name, m in sys.modules.items() if name.split(".")[0] == "sslbench"]
assert all(Path(file).is_relative_to(Path.cwd()) for file in loaded), loaded
print(result.converged, sum(a == b for a, b in zip(predicted, labels_of)) / len(predicted))
"""
    out = run(f"{example}\nlabels_of = [labels[y] for y in codes]\n{check}", tmp_path)
    converged, right = out.split()
    assert converged == "True"
    assert float(right) > 0.9


def test_small_modules_import_neither_numpy_nor_numba() -> None:
    code = (
        "import sys, sslbench.engine.errors\n"
        "from sslbench.engine import VERSION, UserError, errors\n"
        "print({'numpy', 'numba', 'scipy'} & set(sys.modules))"
    )
    assert run(code, ENGINE.parents[1]) == "set()\n"


def test_the_door_exports_what_its_rooms_export() -> None:
    names = set(dir(sslbench.engine))
    assert {"ChainCRF", "Corpus", "Graph", "TemplateFeaturizer", "UserError", "VERSION"} <= names
    for name in names:
        assert getattr(sslbench.engine, name) is not None
    rooms = [sys.modules[f"sslbench.engine.{room}"].__all__ for room in sslbench.engine.ROOMS]
    exported = [name for room in rooms for name in room]
    assert len(exported) == len(set(exported))
    for room in rooms:
        assert set(room) <= names
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = sslbench.engine.Nothing
