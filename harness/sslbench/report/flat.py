"""Run records as the rows of one table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from sslbench.experiment.records.record import RunRecord
from sslbench.report.rows import as_text, row_key, settings_text

_PROTOCOL = ("labeled", "unlabeled", "seed", "tune", "tune_cpu")
_FIXED = (
    *("run_id", "status", "method", "dataset", "data", "protocol", "featurizer", "model"),
    *("params", "chosen", *_PROTOCOL),
    *("guard", "primary_metric", "created", "wall_s", "cpu_s", "peak_rss_mb", "error"),
)


def flat_rows(records: Iterable[RunRecord]) -> tuple[list[str], list[dict[str, Any]]]:
    """Names of columns, and a row per record; a metric is a column called ``SPLIT_METRIC``.

    ``dataset``, ``data``, ``protocol``, ``featurizer``, ``model`` and ``params`` are written as in
    the CSV file of a board; ``chosen`` are the parameters that tuning chose.
    """
    rows = [_row(record) for record in records]
    return list(dict.fromkeys([*_FIXED, *sorted({key for row in rows for key in row})])), rows


def _row(record: RunRecord) -> dict[str, Any]:
    row = {name: getattr(record, name, None) for name in _FIXED}
    row |= {name: getattr(record.spec.protocol, name) for name in _PROTOCOL}
    guard = record.spec.guard
    row["guard"] = None if guard is msgspec.UNSET else guard.method
    row["text_features"] = ",".join(record.spec.learned)
    row["data"] = record.spec.data.table
    row["protocol"] = record.spec.protocol.describe()
    row["params"] = settings_text(row_key(record).params)
    chosen = record.params.keys() - record.spec.params.keys()
    row["chosen"] = settings_text((name, as_text(record.params[name])) for name in sorted(chosen))
    for split, metrics in record.metrics.items():
        row |= {f"{split}_{name}": value for name, value in metrics.items()}
    return row
