"""A similarity from another distribution, that of docs/plugins.md: listed, shown, used."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from support.plugin_site import Site

PAGE = Path(__file__).parents[2] / "docs" / "plugins.md"
HOOK = """
from sslbench import SimilarityInfo, hookimpl


@hookimpl
def sslbench_similarities():
    text = dict(summary="words beside the center", reference="", target="mine:neighbors_only")
    return [SimilarityInfo(name="neighbors_only", **text)]
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    site = Site(tmp_path_factory.mktemp("site"))
    section = PAGE.read_text().split("\n## A similarity\n")[1]
    (code,) = re.findall(r"^```python\n(.*?)^```$", section, re.M | re.S)
    site.install("my-similarity", "mine", code + HOOK)
    return site


def test_it_is_listed_and_shown(site: Site) -> None:
    listed = site.python("-m", "sslbench", "list", "similarities")
    assert "neighbors_only" in listed.stdout
    shown = site.python("-m", "sslbench", "show", "neighbors_only")
    assert "2 templates" in shown.stdout
    assert "left: form[-1]" in shown.stdout


def test_a_graph_is_built_with_it(site: Site, tmp_path: Path) -> None:
    words = "graph stats --dataset synth --labeled 20 --unlabeled 20 --threads 1 --format json"
    arguments = ["-m", "sslbench", *words.split(), "--similarity", "neighbors_only"]
    done = site.python(*arguments, SSLBENCH_CACHE=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["edges"] > 0
