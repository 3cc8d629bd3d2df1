"""Blocks of a board in other files, such as a README: what stands there is made from records.

A block begins with a line ``<!-- suite NAME SIZE means -->`` or ``<!-- suite NAME SIZE scores -->``
and ends with ``<!-- end -->``; the lines between are replaced.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from sslbench.errors import UserError
from sslbench.report.board import Board
from sslbench.report.render import means, scores

_BLOCK = re.compile(
    r"(?P<begin><!-- suite (?P<name>\S+) (?P<size>\S+) (?P<kind>means|scores) -->\n)"
    r".*?(?P<end><!-- end -->)",
    re.S,
)


def with_blocks(board: Board, name: str, paths: Sequence[Path], folder: Path) -> dict[str, bytes]:
    """The files with their blocks of this board, by path relative to `folder`.

    UserError for a file without a block of this suite, or a size that it does not have.
    """
    found = {}
    for path in paths:
        text = path.read_text(encoding="utf-8")
        begins = [block for block in _BLOCK.finditer(text) if block["name"] == name]
        if not begins:
            raise UserError(f"no block <!-- suite {name} SIZE means -->", file=path)
        for block in begins:
            if block["size"] not in board.sizes:
                line = text[: block.start()].count("\n") + 1
                sizes = ", ".join(board.sizes)
                raise UserError(f"no size {block['size']}", file=path, line=line, hint=sizes)
        changed = _BLOCK.sub(lambda block: _filled(block, board, name), text)
        found[os.path.relpath(path, folder)] = changed.encode()
    return found


def _filled(block: re.Match[str], board: Board, name: str) -> str:
    if block["name"] != name:
        return block[0]
    lines = (means if block["kind"] == "means" else scores)(board, block["size"])
    return "\n".join([block["begin"].rstrip("\n"), *lines, block["end"]])
