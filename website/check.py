"""Check a built site: every link and picture resolves, nothing is loaded over the network."""

from __future__ import annotations

import re
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src"}
_MARKS = re.compile(r"FormulaNumber\d+Ends|\$\$|\\frac|\\sum")


class _Page(HTMLParser):
    """What a page refers to, and what it can be referred to by."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[tuple[str, bool]] = []  # and whether it is loaded
        self.anchors: set[str] = set()
        self.text: list[str] = []
        self._code = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.anchors |= {str(given[name]) for name in ("id", "name") if given.get(name)}
        self._code += tag in ("code", "script", "style", "annotation")
        loaded = LOADED.get(tag)
        is_hint = tag == "link" and given.get("rel") in ("canonical", "prev", "next", "alternate")
        if tag == "a" and given.get("href") is not None:
            self.targets.append((str(given["href"]), False))
        elif loaded and given.get(loaded) and not is_hint:
            self.targets.append((str(given[loaded]), True))

    def handle_endtag(self, tag: str) -> None:
        self._code -= tag in ("code", "script", "style", "annotation")

    def handle_data(self, data: str) -> None:
        if not self._code:
            self.text.append(data)


@cache
def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text("utf-8"))
    return page


def problems(site: Path) -> list[str]:
    """What is wrong, one line each."""
    lines: list[str] = []
    for path in sorted(site.rglob("*.html")):
        if path.name == "404.html":  # its links are absolute
            continue
        page, name = _read(path), path.relative_to(site)
        lines += [
            f"{name}: {why}" for t, loaded in page.targets if (why := _wrong(path, t, loaded))
        ]
        lines += [f"{name}: formula {m}" for m in _MARKS.findall("".join(page.text))]
    return lines


def _wrong(path: Path, target: str, loaded: bool) -> str:
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return f"loads {target}" if loaded and parts.scheme != "data" else ""
    file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not file.exists():
        return f"no file {target}"
    anchor = unquote(parts.fragment)
    if anchor and file.suffix == ".html" and anchor not in _read(file).anchors:
        return f"no anchor {target}"
    return ""


if __name__ == "__main__":
    wrong = problems(Path(sys.argv[1]).resolve())
    print("\n".join(wrong) or "all links resolve, nothing is loaded over the network")
    sys.exit(bool(wrong))
