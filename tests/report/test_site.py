"""A folder to host: every link of its index leads to a file."""

from __future__ import annotations

import re
from pathlib import Path

from sslbench.report.board import Board
from sslbench.report.page.build import Sources
from sslbench.report.render import board_files, changed_files, write_files
from sslbench.report.site import with_index


def test_the_index_names_all_pages_of_the_folder(shown: Board, tmp_path: Path) -> None:
    for name in ("one", "two"):
        files = with_index(tmp_path, board_files(shown, name, Sources(summary=f"<{name}> runs")))
        assert write_files(tmp_path, files)
    text = (tmp_path / "index.html").read_text()
    links = re.findall(r'href="([^"]+)"', text)
    assert {"one.html", "two.html", "one.csv", "two.tex", "one.md"} <= set(links)
    assert all((tmp_path / link).is_file() for link in links)
    assert "&lt;one&gt; runs" in text
    assert "<one>" not in text
    again = with_index(tmp_path, board_files(shown, "two", Sources(summary="<two> runs")))
    assert changed_files(tmp_path, again) == []
