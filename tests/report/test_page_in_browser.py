"""The page in a browser, and its script."""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from sslbench.report.board import Board
from sslbench.report.page.build import Sources, page


def test_the_script_is_a_script() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node to parse the script")
    path = resources.files("sslbench.report.page") / "page.js"
    subprocess.run([node, "--check", str(path)], check=True)


def test_in_a_browser(shown: Board, tmp_path: Path) -> None:
    """Sorting, filtering and the details, in a wide and in a narrow window."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = (
        os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    )
    file = tmp_path / "page.html"
    file.write_text(page(shown, Sources()))
    with playwright.sync_playwright() as driver:
        try:
            browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        except playwright.Error as error:
            pytest.skip(f"no Chromium: {str(error).splitlines()[0]}")
        errors: list[str] = []
        for width in (1440, 360):
            view = browser.new_page(viewport={"width": width, "height": 800})
            view.on("pageerror", lambda error: errors.append(str(error)))
            view.on("request", lambda request: errors.append(request.url))
            view.set_content(file.read_text())
            first = view.locator("#board tbody tr:visible th")
            assert first.all_inner_texts() == ["better", "supervised", "worse"]
            view.click("#board thead th button >> visible=true >> nth=0")
            view.click("#board thead th button >> visible=true >> nth=0")
            assert first.all_inner_texts() == ["worse", "supervised", "better"]
            view.fill("input[name=line]", "wor")
            assert first.all_inner_texts() == ["worse"]
            view.fill("input[name=line]", "")
            view.focus("#board tbody td button >> visible=true >> nth=0")
            view.keyboard.press("ArrowRight")
            view.keyboard.press("Enter")
            assert view.is_visible("dialog dl")
            view.keyboard.press("Escape")
            wide = view.evaluate("document.documentElement.scrollWidth")
            assert wide <= width
        _assert_wide_tables_fit_on_paper(browser.new_page(), file.read_text())
        assert errors == []
        browser.close()


def _assert_wide_tables_fit_on_paper(view: Any, text: str) -> None:
    view.set_content(text)
    # A name that is wider than the page.
    view.evaluate("document.querySelector('#board thead th').style.minWidth = '3000px'")
    view.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    view.emulate_media(media="print")
    width = "document.getElementById('board').getBoundingClientRect().width"
    assert view.evaluate(width) <= 1000
