"""Suite files over the toy dataset, and made-up records of their cells."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from sslbench.experiment.identity import code_versions
from sslbench.experiment.metrics import SentenceCounts, metrics_from_counts
from sslbench.experiment.records.cost import cost_keys, has_dev, training_cpu_s
from sslbench.experiment.records.record import RunRecord
from sslbench.experiment.records.store import Store
from sslbench.experiment.records.trials import TuningSpent
from sslbench.experiment.run.recording import failed
from sslbench.plugins import registry
from sslbench.suite.cells import Cell, suite_cells, with_records
from sslbench.suite.file import Suite, read_suite

TOY = """
title = "Toy"
store = "runs"
out = "out"

[[cells]]
datasets = ["toy"]
methods = ["majority", "peeking"]
model = "nothing"
labeled = [10, 20]
seeds = 3
"""


def suite_file(folder: Path, text: str = TOY) -> Path:
    path = folder / "toy.toml"
    path.write_text(text)
    return path


def opened(path: Path) -> tuple[Suite, list[Cell]]:
    suite = read_suite(str(path))
    store = Store(suite.store)
    found = suite_cells(suite, registry())
    return suite, with_records(found, store, registry())


def made(cell: Cell, skill: float = 0.8, cpu_s: float = 5.0, data: str = "f") -> RunRecord:
    """A good record of a cell, of today's code."""
    spec = cell.spec
    spec = msgspec.structs.replace(
        spec, data=msgspec.structs.replace(spec.data, fingerprint=data), params={**spec.params}
    )
    record = failed(msgspec.structs.replace(cell.task, spec=spec), "method", "")
    rng = np.random.default_rng([cell.seed, *map(ord, spec.method), *map(ord, data)])
    size = spec.protocol.labeled
    lift = 0.0 if not isinstance(size, int) else 0.05 * (size > 10)
    counts = SentenceCounts(np.full(60, 10), rng.binomial(10, skill + lift, size=60))
    right, n = int(counts.correct_tokens.sum()), 600
    record.counts, record.metrics = {"test": counts.to_lists()}, {}
    record.metrics["test"] = dict(metrics_from_counts(counts))
    record.anatomy = {"words": {"labeled text": [n, right]}, "length": {"6 to 10": [n, right]}}
    record.status, record.error, record.error_kind = "ok", None, None
    record.created = f"2026-01-0{1 + cell.seed}"
    record.cpu_s = record.wall_s = cpu_s
    record.tuned = TuningSpent()
    record.params = dict(spec.params)
    record.data = {"task": "tagging", "test_sha256": "t", "sentences": {"labeled": size}}
    record.code = code_versions(spec, registry())
    return record


class Made:
    """What made-up runs took, see `Costs`."""

    def __init__(self, records: Sequence[RunRecord]) -> None:
        self._records = records

    def training_cpu_s(self, key: str) -> list[float]:
        seconds = [training_cpu_s(r) for r in self._records if key in cost_keys(r.spec)]
        return [each for each in seconds if each is not None]

    def has_dev(self, dataset: str) -> bool | None:
        return next((has_dev(r) for r in self._records if r.dataset == dataset), None)


def fill(path: Path, skills: dict[str, float], leave: Sequence[tuple[str, int]] = ()) -> list[Cell]:
    """Records of all cells but those of `leave` (method, seed)."""
    suite, cells = opened(path)
    for cell in cells:
        if (cell.spec.method, cell.seed) not in leave:
            Store(suite.store).save(made(cell, skills[cell.spec.method]))
    return opened(path)[1]
