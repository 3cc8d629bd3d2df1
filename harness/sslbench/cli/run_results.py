"""Run records on standard output as a table, JSON or CSV."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence

import click

from sslbench.cli.text import echo, table
from sslbench.engine.errors import shortened
from sslbench.experiment.records.record import RunRecord, encode
from sslbench.report.escape import csv_cell
from sslbench.report.flat import flat_rows


def print_results(records: Sequence[RunRecord], form: str) -> None:
    """Print records; form: "table", "json" (one array) or "csv" (a line per record)."""
    if form == "json":
        texts = [encode(record).decode().rstrip() for record in records]
        click.echo(_visible("[" + ",\n".join(texts) + "]"))
    elif form == "csv":
        click.echo(_csv(records), nl=False)
    elif records:
        echo(table(_rows(records), indent=""))


def _visible(text: str) -> str:
    """JSON with control characters and other invisible ones as escapes of JSON."""

    def escape(match: re.Match[str]) -> str:
        return match[0] if match[0].isprintable() else json.dumps(match[0])[1:-1]

    return re.sub(r"[^\n -~]+", escape, text)


def _rows(records: Sequence[RunRecord]) -> list[list[str]]:
    head = ["run", "method", "dataset", "labeled", "seed", "metric", "score %", "wall s", "MB", ""]
    return [head, *(_row(record) for record in records)]


def _row(record: RunRecord) -> list[str]:
    protocol = record.spec.protocol
    return [
        record.run_id,
        record.spec.title,
        record.dataset,
        protocol.sample,
        str(protocol.seed),
        record.primary_metric,
        "-" if record.score is None else f"{100 * record.score:.2f}",
        f"{record.wall_s:.1f}",
        "-" if record.peak_rss_mb is None else f"{record.peak_rss_mb:.0f}",
        "" if record.status == "ok" else f"{record.status}: {shortened(record.error or '')}",
    ]


def _csv(records: Sequence[RunRecord]) -> str:
    names, rows = flat_rows(records)
    out = io.StringIO()
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: csv_cell(value) for key, value in row.items()} for row in rows)
    return out.getvalue()
