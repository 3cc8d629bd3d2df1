"""Fixtures of the benchmarks: the text, and where figures go."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from problem import OUT, Figure, Text, find_text


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> Text:
    """The sentences that both sides get."""
    return find_text(tmp_path_factory.mktemp("text"))


@pytest.fixture(scope="session")
def figures(text: Text) -> Iterator[dict[str, Any]]:
    """name -> {unit, ours, peer, ...}; written to SSLBENCH_BENCH_OUT at the end."""
    result: dict[str, Any] = {}
    yield result
    if OUT:
        Path(OUT).write_text(json.dumps({"text": text.source, "figures": result}))


@pytest.fixture
def figure(figures: dict[str, Any]) -> Figure:
    """Note a figure: figure(name, unit, ours=seconds) or figure(name, unit, peer=seconds)."""

    def note(name: str, unit: str, **values: float) -> None:
        figures.setdefault(name, {"unit": unit}).update(values)

    return note
