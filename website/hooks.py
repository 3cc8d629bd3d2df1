"""Hooks of MkDocs: pages from elsewhere in the repository, generated pages, formulas, links.

Formulas become MathML when the site is built, so that reading it needs no script and no
network.
"""

from __future__ import annotations

import posixpath
import re
import shutil
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import api
import formulas
import gallery
import notebooks
from places import CODE, LINK, ROOT, places, relative, target

CITED = re.compile(r"(?<![\w/\[])(?<!\]\()docs/specs/(\w+)\.md")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Write the navigation."""
    methods = [f"methods/{name}.md" for name in gallery.names()]
    specs = sorted(p.name for p in (ROOT / "docs" / "specs").glob("*.md") if p.stem != "README")
    pages = [p for p in places().values() if p.endswith(".md")]
    replications = sorted(p for p in pages if p.startswith("replications/"))
    results = ["board.md", "leaderboard/index.md", *replications, "performance.md"]
    releases = sorted((p for p in pages if p.startswith("releases/")), reverse=True)
    project = ["architecture.md", "glossary.md", "contributing.md", "changelog.md", *releases]
    placed = {"index.md", *results, *project}
    guides = [p for p in pages if "/" not in p and p not in placed]
    tutorials = sorted(p for p in pages if p.startswith(("tutorials/", "notebooks/")))
    config.nav = [
        {"Start": "index.md"},
        {"Tutorials": tutorials},
        {"Methods": ["methods/index.md", *methods]},
        {"Guides": sorted(guides)},
        {"API": list(api.pages())},
        {"Results": results},
        {"Specifications": ["specs/index.md", *(f"specs/{name}" for name in specs)]},
        {"Project": project},
    ]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from elsewhere and the generated ones."""
    for source, place in places().items():
        path = ROOT / source
        if path.suffix == ".ipynb":
            files.append(File.generated(config, place, content=notebooks.markdown(path)))
        elif source != f"docs/{place}":
            files.append(File.generated(config, place, content=path.read_bytes()))
    for name, text in {**gallery.pages(), **api.pages()}.items():
        files.append(File.generated(config, name, content=text))
    style = (ROOT / "website" / "site.css").read_text("utf-8")
    files.append(File.generated(config, "assets/site.css", content=style))
    for obsolete in [f for f in files if f.src_uri == "specs/README.md" or ".ipynb" in f.src_uri]:
        files.remove(obsolete)
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Rewrite links, link citations of specifications, and take out formulas."""
    moved_from = next((s for s, t in places().items() if t == page.file.src_uri), None)
    source = (
        moved_from or f"docs/{page.file.src_uri}"
    )  # generated pages write links as pages of docs/ do
    here = posixpath.dirname(page.file.src_uri)

    def moved(match: re.Match[str]) -> str:
        if ":" in match[2]:
            return match[0]
        place = places().get(target(source, match[2]))
        return match[0] if place is None else match[1] + relative(place, here) + match[3]

    def cited(match: re.Match[str]) -> str:
        return f"[{match[1]}]({relative(f'specs/{match[1]}.md', here)})"

    parts = CODE.split(markdown)
    # Python-Markdown shows the backslash of a bar in code
    parts[1::2] = [part.replace("\\|", "|") for part in parts[1::2]]
    for i in range(0, len(parts), 2):  # text between code
        text = CITED.sub(cited, LINK.sub(moved, parts[i]))
        text = text.replace("][", "]\\[")  # pages have no links by reference, formulas have indices
        parts[i] = formulas.take_out(text, page.file.src_uri)
    return "".join(parts)


def on_page_content(html: str, page: Page, **_: Any) -> str:
    """Put the formulas back."""
    return formulas.put_back(html, page.file.src_uri)


def on_post_build(config: MkDocsConfig) -> None:
    """Copy the tables that pages of boards offer for download."""
    for path in (ROOT / "leaderboards").iterdir():
        if path.suffix in {".csv", ".tex", ".md"}:
            shutil.copyfile(path, Path(config.site_dir, "leaderboard", path.name))
