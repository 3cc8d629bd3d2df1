"""The notebooks run."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.waiting import HANG

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


def test_there_is_one() -> None:
    assert NOTEBOOKS


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    """In an empty folder, without an error in any cell."""
    for name in ("nbformat", "ipykernel"):
        pytest.importorskip(name, reason=f"needs {name} (extra dev)")
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient (extra dev)")
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    where = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(
        notebook, timeout=HANG, kernel_name="python3", resources=where
    ).execute()
    outputs = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    assert any("jess_cm" in str(each) for each in outputs)
    assert (tmp_path / "my.model").is_file()
