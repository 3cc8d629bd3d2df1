"""Digests of source code: what changes them, and which components."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import sslbench
from sslbench.experiment.identity import sources
from sslbench.experiment.identity.sources import (
    CORE_COMPONENTS,
    Source,
    core_digest,
    parse_source,
    plugin_digest,
    uses_graph,
)

PLUGIN = {
    "__init__.py": "raise RuntimeError('must not be imported')",
    "method.py": "import numpy\nfrom . import near\n\ndef f():\n    from .deep.far import x\n",
    "near.py": "import someplugin.deep.other as o, json\n",
    "deep/__init__.py": "",
    "deep/far.py": "from ..up import y as z\nx = 1\n",
    "deep/other.py": "",
    "up.py": "y = 1\n",
    "beside.py": "from . import method\nb = 1\n",
    "words.txt": "a lexicon",
}


@pytest.fixture(autouse=True)
def _nothing_found_before() -> None:
    """Packages of one name are in another folder in each test."""
    sources._spec.cache_clear()


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / "someplugin" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def digest() -> str:
    return plugin_digest("someplugin.method:A")


def same(first: str, second: str) -> bool:
    sources_of = (parse_source(text.encode(), "p") for text in (first, second))
    return len(set(sources_of)) == 1


def test_a_plugin_is_what_its_target_can_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, PLUGIN)
    monkeypatch.syspath_prepend(str(tmp_path))
    before = digest()
    assert plugin_digest("someplugin.near:A") != before
    for name, text in PLUGIN.items():
        write(tmp_path, {name: f"{text}\n# edited\n"})
        assert (digest() == before) == (name != "words.txt"), name
        write(tmp_path, {name: f"{text}\nedited = 1\n"})
        assert (digest() == before) == (name == "beside.py"), name
        write(tmp_path, {name: text})
    assert digest() == before
    assert not uses_graph("someplugin.method:A")
    write(tmp_path, {"up.py": "def f():\n    from sslbench.engine.graph import build\n"})
    assert uses_graph("someplugin.method:A")


def test_a_renamed_module_is_the_same_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, PLUGIN)
    monkeypatch.syspath_prepend(str(tmp_path))
    before = digest()
    (tmp_path / "someplugin/up.py").rename(tmp_path / "someplugin/higher.py")
    write(tmp_path, {"deep/far.py": "from someplugin.higher import y as z\nx = 1\n"})
    assert digest() == before
    # Another module of the same component under the same name is other code.
    write(tmp_path, {"other.py": "y = 2\n", "deep/far.py": "from ..other import y as z\nx = 1\n"})
    assert digest() != before


def test_a_single_file_and_a_target_of_the_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "lonelyplugin.py"
    module.write_text("A = 1")
    (tmp_path / "beside.txt").write_text("of somebody else")
    monkeypatch.syspath_prepend(str(tmp_path))
    before = plugin_digest("lonelyplugin:A")
    module.write_text("A = 2")
    assert plugin_digest("lonelyplugin:A") != before
    assert plugin_digest("sslbench.engine.crf.chain_model:ChainModel") == ""


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("x = 1", "x   =   1  # a comment\n\n"),
        ("def f(a):\n    return a", 'def f(\n    a,\n):\n    """Doc."""\n    return a'),
        ('"""Doc."""\nx = "s"', "x = 's'"),
        ("from a import b, c\nx = 1", "from a import (\n    c,\n    b,\n)\nx = 1"),
        (
            "import typing as t\nx = 1",
            "import typing as t\nif t.TYPE_CHECKING:\n    import q\nx = 1",
        ),
        ("x = (1 + 2)", "x = 1 + 2"),
    ],
)
def test_comments_docstrings_and_formatting_do_not_count(first: str, second: str) -> None:
    one, two = (parse_source(text.encode(), "p") for text in (first, second))
    assert one.body == two.body

    def names(source: Source) -> set[tuple[str, str]]:
        return {(module, name) for module, names in source.imports for name in names}

    assert names(one) == names(two)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("x = 1", "x = 2"),
        ("x = 1", "x = 1.0"),
        ("x = 1", "x = True"),
        ("x = 'a'", "x = b'a'"),
        ("x = a + b", "x = b + a"),
        ("x = 1\ny = 2", "y = 2\nx = 1"),
        ("def f(a, b=1): pass", "def f(a=1, b=1): pass"),
        ("x = [a, [b]]", "x = [[a], b]"),
        ("from a import b", "from c import b"),
        ("from a import b", "from a import b as c"),
        ("if x:\n    a()\nb()", "if x:\n    a()\n    b()"),
        ("not python (", "not python ["),
        ("async def f(): pass", "def f(): pass"),
    ],
)
def test_what_python_executes_counts(first: str, second: str) -> None:
    assert not same(first, second)


@pytest.mark.parametrize(
    ("file", "component"),
    [
        ("crf/second_order/scaled.py", "engine"),
        ("features/templates.py", "features"),
        ("graph/neighbors.py", "graph"),
        ("experiment/protocol.py", "protocol"),
        ("experiment/metrics/counts.py", "scorer"),
        ("report/render.py", None),
        ("experiment/record.py", None),
    ],
)
def test_a_constant_of_the_core_changes_its_component_alone(
    file: str, component: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = Path(sslbench.__file__).parent
    copy = tmp_path / "sslbench"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    found = sources._file

    def in_copy(module: str) -> Path | None:
        path = found(module)
        return None if path is None else copy / path.relative_to(package)

    monkeypatch.setattr(sources, "_file", in_copy)
    before = {name: core_digest(name) for name in CORE_COMPONENTS}
    with (copy / file).open("a") as text:
        text.write("\n_ADDED = 1\n")
    changed = {name for name in CORE_COMPONENTS if core_digest(name) != before[name]}
    assert changed == ({component} if component else set())
