"""What the scripts beside this file share: runs as lines of a csv file, rows of Markdown tables."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeVar

from sslbench.experiment.record import RunRecord
from sslbench.experiment.store import Store

Run = TypeVar("Run", bound=Any)  # a dataclass of str, int and float


def read_runs(
    kind: type[Run], of: Callable[[RunRecord], Run], order: Callable[[Run], Any], table: Path,
    folder: str | None,
) -> list[Run]:  # fmt: skip
    """The runs of a folder of records, which replace those of the table; else the table's."""
    if folder is not None:
        found = [of(record) for record in Store(folder).records() if record.status == "ok"]
        found.sort(key=order)
        with table.open("w", newline="", encoding="ascii") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([field.name for field in fields(kind)])
            writer.writerows(
                [f"{v:.6g}" if isinstance(v, float) else v for v in asdict(run).values()]
                for run in found
            )
    kinds = {"int": int, "float": float, "str": str}
    with table.open(newline="", encoding="ascii") as file:
        rows = list(csv.DictReader(file))
    return [kind(**{f.name: kinds[str(f.type)](row[f.name]) for f in fields(kind)}) for row in rows]


def row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"
