"""JESS-CM over ever more unlabeled text: memory stays where it is, time grows with the text."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from problem import Figure, Text

HERE = Path(__file__).parent


def run(file: Path, repeats: int) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, str(HERE / "stream.py"), str(file), str(repeats)],
        capture_output=True,
        text=True,
        check=True,
    )
    result: dict[str, float] = json.loads(done.stdout)
    return result


def test_memory_does_not_grow_with_the_unlabeled_text(text: Text, figure: Figure) -> None:
    once, tenfold = run(text.train_file, 1), run(text.train_file, 10)
    assert tenfold["tokens"] == 10 * once["tokens"]
    assert tenfold["peak_mb"] == pytest.approx(once["peak_mb"], rel=0.25)
    name = "JESS-CM: one pass, 1x and 10x the text"
    figure(f"{name}, peak memory", "MB", ours=once["peak_mb"], tenfold=tenfold["peak_mb"])
    pace = [1e6 * result["seconds"] / result["tokens"] for result in (once, tenfold)]
    figure(f"{name}, wall time", "us/token", ours=pace[0], tenfold=pace[1])
