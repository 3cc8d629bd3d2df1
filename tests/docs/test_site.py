"""The site: pages made from the repository, and the check of a built one.

`bash .ci/run` builds it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sslbench.cli.parameters import describe
from sslbench.experiment.request.parameters import parameters
from sslbench.experiment.request.request import RunRequest, TrainRequest
from sslbench.plugins import registry

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "website"))

import api  # noqa: E402
import check  # noqa: E402
import gallery  # noqa: E402
import notebooks  # noqa: E402
import places  # noqa: E402


def test_every_method_has_a_page_with_its_reference_and_parameters() -> None:
    pages = gallery.pages()
    for name in gallery.names():
        page = pages[f"methods/{name}.md"]
        assert registry().methods[name].reference in page
        assert f"[{name}]({name}.md)" in pages["methods/index.md"]
        params = getattr(registry().methods[name].load(), "Params", None)
        assert all(f"| `{p.name}` |" in page for p in (describe(params) if params else ()))


def test_the_python_page_has_the_parameters_of_a_request() -> None:
    page = api.pages()["api/python.md"]
    run, train = page.split("## train ")
    assert all(f"| `{name}` |" in run for name in parameters(RunRequest))
    assert all(f"| `{name}` |" in train for name in parameters(TrainRequest))
    assert "| `tune` | `int \\| None` | `None` | Tuning trials per method." in run
    assert "| `guard` | `bool` | `True` |" in train


def test_equations_are_the_sections_that_the_docstring_cites() -> None:
    page = gallery.pages()["methods/virtual_evidence.md"]
    assert "### Equations" in page
    assert "p(y,v|x;Λ) = (1/Z'(x;Λ))" in page
    assert "### Algorithm" in page
    assert "Errata" not in page
    assert "\n\n    L(θ) = " in gallery.pages()["methods/graph_pr.md"]  # still code


def test_results_are_the_rows_of_the_leaderboard(monkeypatch: pytest.MonkeyPatch) -> None:
    row = dict.fromkeys(("rank", "sd", "low", "high", "difference", "cpu_s", "notes"), "")
    row |= {"dataset": "a_b", "protocol": "labeled 9", "metric": "f1", "mean": "0.5"}
    better = {**row, "method": "pr1", "difference": "0.02", "low": "0.01", "high": "0.03"}
    worse = {**better, "low": "-0.03", "high": "-0.01", "notes": "stale"}
    rows = [{**row, "method": "supervised"}, better, worse, worse]
    monkeypatch.setattr(gallery, "_leaderboard", lambda: rows)
    text = gallery.pages()["methods/pr1.md"]
    assert "1 better, 2 worse, 0 open" in text
    assert "| a\\_b | labeled 9 | f1 | 50.00 | +2.00 | +1.00 to +3.00 |  |  |" in text
    assert text.count("**stale**") == 2
    assert "of an earlier version of the code" in text
    assert "No records" in gallery.pages()["methods/jess_cm.md"]


def test_the_site_has_every_file_that_its_pages_link(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not places.broken_links()
    without = dict(places.places())
    del without["replications/suzuki2008/text_amounts.svg"]
    monkeypatch.setattr(places, "places", lambda: without)
    assert places.broken_links() == ["replications/suzuki2008/report.md: text_amounts.svg"]


def test_a_broken_site_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        "<a id='here' href='b.html#there'></a><a href='https://example.com'></a><img src='c.png'>"
        "<script src='https://example.com/x.js'></script><code>$$ not a formula $$</code>",
        "utf-8",
    )
    (tmp_path / "b.html").write_text("<p id='x'>$$a$$</p><a href='a.html#here'></a>", "utf-8")
    assert check.problems(tmp_path) == [
        "a.html: no anchor b.html#there",
        "a.html: no file c.png",
        "a.html: loads https://example.com/x.js",
        "b.html: formula $$",
        "b.html: formula $$",
    ]


def test_a_notebook_becomes_a_page(tmp_path: Path) -> None:
    cells = (
        '{"cell_type": "markdown", "source": ["# Title"]},'
        ' {"cell_type": "code", "source": ["1 + 1"], "outputs": [{"data": {"text/plain": ["2"]}}]},'
        ' {"cell_type": "code", "source": ["x = 1"], "outputs": []}'
    )
    (tmp_path / "n.ipynb").write_text(f'{{"cells": [{cells}]}}', "utf-8")
    expected = "# Title\n\n```python\n1 + 1\n```\n\n```text\n2\n```\n\n```python\nx = 1\n```"
    assert notebooks.markdown(tmp_path / "n.ipynb") == expected


def test_formulas_become_mathml() -> None:
    pytest.importorskip("latex2mathml", reason="needs latex2mathml (extra docs)")
    import formulas

    text = formulas.take_out(r"so $x_1$ and $$\frac{a}{b}$$, not $HOME or `$5`", "page")
    html = formulas.put_back(text, "page")
    assert html.count("<math") == 2
    assert "<mfrac>" in html
    assert "not $HOME" in html


def test_docstrings_become_markdown() -> None:
    pytest.importorskip("griffe", reason="needs mkdocstrings (extra docs)")
    import docstrings

    text = "What.\n\nParameters\n----------\na, b: one.\nc: two,\n    more.  d: three."
    expected = "What.\n\n**Parameters**\n\n- `a, b`: one.\n- `c`: two,\n    more.  d: three."
    assert docstrings.rewritten(text) == expected
