"""The Python blocks of docs/python.md run, one after the other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.synth_text import synth_text

PAGE = Path(__file__).parents[2] / "docs" / "python.md"


def test_the_blocks_run_as_a_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "my_folder"
    folder.mkdir()
    for name, seed in (("train", 0), ("unlabeled", 1)):
        text = synth_text(30, seed)
        sentences = zip(text.sentences("word"), text.sentences("label"), strict=True)
        lines = ["".join(f"{w}\t{t}\n" for w, t in zip(*each, strict=True)) for each in sentences]
        (folder / f"{name}.txt").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    assert len(blocks) == 3
    exec(compile("\n".join(blocks), str(PAGE), "exec"), {"__name__": "__main__"})
    assert "RunComparison(" in capsys.readouterr().out
