"""A folder of static files to host: pages with their tables, and an index of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape, unescape
from pathlib import Path

INDEX = "index.html"
_TITLE = re.compile(r"<title>([^<]*)</title>")
_SUMMARY = re.compile(r'<p class="soft" id="summary">([^<]*)</p>')
_KINDS = {".csv": "CSV", ".tex": "LaTeX", ".md": "Markdown"}
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Boards</title>
<style>:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 50em; padding: 0 1em; }
h2 { font-size: 1.1em; margin: 1.5em 0 0; } p { margin: .2em 0; }</style>
</head>
<body>
<h1>Boards</h1>
"""


def with_index(folder: Path, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files with an index of their pages and of those that the folder has already."""
    pages = {path.name: path.read_bytes() for path in folder.glob("*.html") if path.is_file()}
    pages |= {name: data for name, data in files.items() if name.endswith(".html")}
    pages.pop(INDEX, None)
    there = {*files, *(path.name for path in folder.glob("*"))}
    entries = [_entry(name, pages[name].decode(), there) for name in sorted(pages)]
    text = _PAGE + "\n".join(entries) + "\n</body>\n</html>\n"
    return {**files, INDEX: text.encode()}


def _entry(name: str, text: str, there: set[str]) -> str:
    """A page with its summary and its tables."""
    title, summary = (
        escape(unescape(match[1])) if (match := pattern.search(text)) else ""
        for pattern in (_TITLE, _SUMMARY)
    )
    stem = name.removesuffix(".html")
    links = [
        f'<a href="{escape(stem + suffix)}" download>{kind}</a>'
        for suffix, kind in _KINDS.items()
        if stem + suffix in there
    ]
    return (
        f'<h2><a href="{escape(name)}">{title or escape(stem)}</a></h2>\n<p>{summary}</p>\n'
        f"<p>{' '.join(links)}</p>"
    )
