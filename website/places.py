"""Which files of the repository the site has, and where.

A page keeps the links that it has in the repository; they are rewritten to where the site has the
file.
"""

from __future__ import annotations

import posixpath
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
CODE = re.compile(r"(^```.*?^```$|``[^`\n]+``|`[^`\n]+`)", re.MULTILINE | re.DOTALL)

#: pages that are not below docs/: path in the repository -> path on the site
ELSEWHERE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "leaderboards/standard.md": "leaderboard/index.md",
}


@cache
def places() -> dict[str, str]:
    """Path on the site of each file of the repository that the site has."""
    files = dict(ELSEWHERE)
    for path in sorted((ROOT / "replications").rglob("*")):
        if path.suffix in {".md", ".svg"} or path.name == "claims.csv":
            name = path.relative_to(ROOT).as_posix()
            files[name] = name
    boards = ROOT / "leaderboards"
    for path in sorted([*boards.glob("*.svg"), *boards.glob("*.html")]):
        files[f"leaderboards/{path.name}"] = f"leaderboard/{path.name}"
    for path in sorted((ROOT / "docs").rglob("*")):
        name = path.relative_to(ROOT / "docs").as_posix()
        if path.suffix in {".md", ".svg"}:
            files[f"docs/{name}"] = "specs/index.md" if name == "specs/README.md" else name
        elif path.suffix == ".ipynb":
            files[f"docs/{name}"] = str(Path(name).with_suffix(".md"))
    return files


def target(source: str, link: str) -> str:
    """Path in the repository of what a link of the page `source` leads to."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), link))


def relative(place: str, folder: str) -> str:
    """Link to a place on the site from a folder of it."""
    return posixpath.relpath(place, folder or ".")


def broken_links() -> list[str]:
    """Links of the pages to files of the repository that the site does not have, one line each."""
    pages = [name for name in places() if name.endswith(".md")]
    broken = []
    for page in pages:
        text = "".join(CODE.split((ROOT / page).read_text("utf-8"))[::2])  # without code
        links = [m[2] for m in LINK.finditer(text) if ":" not in m[2]]
        broken += [f"{page}: {link}" for link in links if target(page, link) not in places()]
    return broken
