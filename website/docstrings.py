"""Docstrings of the project as Markdown, for mkdocstrings.

They have titles underlined with hyphens ("Parameters") and lines "name: meaning".
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_TITLE = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
_NAME = r"[A-Za-z_]\w*(?:\([^)]*\))?"
_ITEM = re.compile(rf"^({_NAME}(?:, {_NAME})*): (?=\S)", re.MULTILINE)


class Markdown(griffe.Extension):
    """Rewrites every docstring."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for each module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = rewritten(obj.docstring.value)


def rewritten(text: str) -> str:
    """The Markdown of a docstring."""
    text = _TITLE.sub(lambda match: f"**{match[1]}**\n", text)
    blocks = re.split(r"(\n\s*\n)", text)
    return "".join(_block(block) for block in blocks)


def _block(block: str) -> str:
    if not _ITEM.match(block):
        return block
    lines = []
    for line in block.split("\n"):
        # several items on a line are separated by two spaces
        parts = [line] if line.startswith(" ") else re.split(r"(?<=[.;])  (?=\w+: )", line)
        lines += [_ITEM.sub(r"- `\1`: ", part) for part in parts]
    return "\n".join(lines)
