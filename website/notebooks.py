"""Notebooks as pages: text, code, and the text that the code printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def markdown(path: Path) -> str:
    """The Markdown of a notebook."""
    return "\n\n".join(_cell(cell) for cell in json.loads(path.read_text("utf-8"))["cells"])


def _cell(cell: dict[str, Any]) -> str:
    text = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return text
    printed = "".join("".join(_printed(output)) for output in cell.get("outputs", []))
    return f"```python\n{text}\n```" + (f"\n\n```text\n{printed.rstrip()}\n```" if printed else "")


def _printed(output: dict[str, Any]) -> list[str]:
    lines: list[str] = output.get("text") or output.get("data", {}).get("text/plain", [])
    return lines
