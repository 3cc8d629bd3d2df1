"""The changelog: every fragment has a kind that towncrier writes, every release has its page."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

TOP = Path(__file__).parents[2]
PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))
TOWNCRIER = PROJECT["tool"]["towncrier"]
VERSION = PROJECT["project"]["version"]


def wrong_fragments(folder: Path) -> list[str]:
    """Names of files that are neither ignored nor `TOPIC.KIND.md` with text and an allowed kind."""
    kinds = "|".join(kind["directory"] for kind in TOWNCRIER["type"])
    return [
        path.name
        for path in sorted(folder.iterdir())
        if path.name not in TOWNCRIER["ignore"]
        and not (re.fullmatch(rf"[\w-]+\.({kinds})\.md", path.name) and path.read_text().strip())
    ]


def test_every_fragment_has_an_allowed_kind() -> None:
    assert wrong_fragments(TOP / TOWNCRIER["directory"]) == []


def test_a_wrong_fragment_is_noticed(tmp_path: Path) -> None:
    for name in ("a.added.md", "b.feature.md", "c.md", "d.fixed.txt", "README.md"):
        (tmp_path / name).write_text("Some text.\n")
    (tmp_path / "e.fixed.md").write_text("\n")
    assert wrong_fragments(tmp_path) == ["b.feature.md", "c.md", "d.fixed.txt", "e.fixed.md"]


def test_the_version_is_everywhere_the_same_and_has_release_notes() -> None:
    citation = (TOP / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {VERSION}\n" in citation
    notes = TOP / "docs" / "releases" / f"{VERSION.rpartition('.')[0]}.md"
    assert notes.read_text(encoding="utf-8").startswith("# sslbench ")
