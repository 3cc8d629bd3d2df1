"""Blocks in other files, such as a README: what stands there is made from records.

A block begins with a line ``<!-- suite NAME SIZE means -->`` or ``<!-- suite NAME SIZE scores
-->``, or, for a table of a paper in the ledger, ``<!-- ledger PAPER | TABLE -->``. It ends with
``<!-- end -->``; the lines between are replaced.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from sslbench.errors import UserError
from sslbench.report.board import Board
from sslbench.report.ledger import Line
from sslbench.report.render import markdown_table, means, scores

_BLOCK = re.compile(
    r"(?P<begin><!-- suite (?P<name>\S+) (?P<size>\S+) (?P<kind>means|scores) -->\n)"
    r".*?(?P<end><!-- end -->)",
    re.S,
)
_PRINTED = re.compile(
    r"(?P<begin><!-- ledger (?P<paper>[^|\n]+?) \| (?P<table>[^\n]+?) -->\n)"
    r".*?(?P<end><!-- end -->)",
    re.S,
)


def with_blocks(
    board: Board, name: str, ledger: Sequence[Line], paths: Sequence[Path], folder: Path
) -> dict[str, bytes]:
    """The files with their blocks of this board and of the ledger, by path relative to `folder`.

    UserError for a file without a block of this suite or of the ledger, a size that the board does
    not have, or a table that the ledger does not have.
    """
    found = {}
    for path in paths:
        text = path.read_text(encoding="utf-8")
        begins = [block for block in _BLOCK.finditer(text) if block["name"] == name]
        printed = list(_PRINTED.finditer(text))
        if not begins and not printed:
            hint = "or of the ledger: <!-- ledger PAPER | TABLE -->"
            raise UserError(f"no block <!-- suite {name} SIZE means -->", file=path, hint=hint)
        for block in begins:
            if block["size"] not in board.sizes:
                raise UserError(
                    f"no size {block['size']}",
                    file=path,
                    line=_line_of(block, text),
                    hint=", ".join(board.sizes),
                )
        for block in printed:
            if not _lines_of(block, ledger):
                message = f"the ledger has no {block['paper']} | {block['table']}"
                raise UserError(message, file=path, line=_line_of(block, text))
        changed = _BLOCK.sub(lambda block: _filled(block, board, name), text)
        changed = _PRINTED.sub(lambda block: _printed(block, ledger), changed)
        found[os.path.relpath(path, folder)] = changed.encode()
    return found


def _line_of(block: re.Match[str], text: str) -> int:
    return text[: block.start()].count("\n") + 1


def _lines_of(block: re.Match[str], ledger: Sequence[Line]) -> list[Line]:
    return [each for each in ledger if (each.paper, each.table) == (block["paper"], block["table"])]


def _printed(block: re.Match[str], ledger: Sequence[Line]) -> str:
    """Rows and columns of the paper; in each place our value, its interval and what is printed."""
    lines = _lines_of(block, ledger)
    rows, columns = (
        list(dict.fromkeys(getattr(line, name) for line in lines)) for name in ("row", "column")
    )
    cells = {(line.row, line.column): _cell(line) for line in lines}
    texts = [[row, *(cells.get((row, column), "") for column in columns)] for row in rows]
    table = markdown_table([block["table"], *columns], texts)
    return "\n".join([block["begin"].rstrip("\n"), *table, block["end"]])


def _cell(line: Line) -> str:
    interval = f" ({line.low} to {line.high})" if line.low else ""
    return f"{line.ours}{interval}; paper {line.printed}" if line.ours else f"paper {line.printed}"


def _filled(block: re.Match[str], board: Board, name: str) -> str:
    if block["name"] != name:
        return block[0]
    lines = (means if block["kind"] == "means" else scores)(board, block["size"])
    return "\n".join([block["begin"].rstrip("\n"), *lines, block["end"]])
