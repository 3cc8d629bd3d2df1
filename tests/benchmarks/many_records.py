"""An index with many made-up records, to time commands on a store that has grown.

    python tests/benchmarks/many_records.py STORE 100000
    time sslbench suite show FILE

STORE: a copy of a store, the index of which is up to date. Each record of the index is copied, with
another run id and other keys of cells, until there are as many as asked for: `suite show` then has
the same cells to find among them. The copies are said to be in a segment that has none: a command
that asks for their counts fails. To make the index of real records takes about 3 ms a record, once.
"""

from __future__ import annotations

import hashlib
import sqlite3
import sys
from pathlib import Path

from sslbench.experiment.records.index import NAME
from sslbench.experiment.records.reading import stamp_of
from sslbench.experiment.records.segment import MAGIC, SUFFIX

COPY = (
    "INSERT INTO runs (file, best, packed, run_id, created, digest, key, text_key, dataset,"
    " has_dev, cost0, cost1, cost2, cpu_s) SELECT :file, 1, 1, other(run_id, :number), created,"
    " digest, other(key, :number), other(text_key, :number), dataset, has_dev, cost0, cost1,"
    " cost2, cpu_s FROM runs WHERE best AND file != :file ORDER BY id LIMIT :most"
)


def other(text: str, number: int) -> str:
    return hashlib.sha256(f"{text} {number}".encode()).hexdigest()[:16]


def grow(folder: Path, total: int) -> None:
    """Copies of the records of the index until there are `total`."""
    segment = folder / "segments" / f"{'0' * 32}{SUFFIX}"
    segment.parent.mkdir(exist_ok=True)
    segment.write_bytes(MAGIC)
    name, stamp = f"segments/{segment.name}", stamp_of(segment.stat())
    with sqlite3.connect(folder / NAME) as base:
        base.create_function("other", 2, other, deterministic=True)
        if base.execute("SELECT 1 FROM files WHERE name = ?", (name,)).fetchone():
            sys.exit(f"{folder} has made-up records: begin with a new copy")
        row = (name, stamp, "[]", 1)
        file = base.execute(
            "INSERT INTO files (name, stamp, problems, packed) VALUES (?, ?, ?, ?)", row
        ).lastrowid
        (had,) = base.execute("SELECT count(*) FROM runs WHERE best").fetchone()
        data = [each for (each,) in base.execute("SELECT data FROM summaries ORDER BY id")]
        for number, first in enumerate(range(had, total, had)):
            base.execute(COPY, {"number": number, "file": file, "most": min(had, total - first)})
        added = base.execute("SELECT id, run_id FROM runs WHERE file = ?", (file,)).fetchall()
        base.executemany(
            "INSERT INTO summaries (id, sha256, data) VALUES (?, ?, ?)",
            (
                (number, hashlib.sha256(f"{run_id} ".encode() + text).hexdigest(), text)
                for number, run_id in added
                for text in (data[number % len(data)],)
            ),
        )


if __name__ == "__main__":
    grow(Path(sys.argv[1]), int(sys.argv[2]))
