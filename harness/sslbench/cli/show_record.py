"""``sslbench show RUN``: what a record says of a run, with its scores by coverage of the words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sslbench.cli.text import echo, labeled, table
from sslbench.experiment.checks.guard import METRICS
from sslbench.experiment.records.record import RunRecord

_GROUPS = {"": "all", "_app": "L.app", "_notapp": "not L.app"}
_COLUMNS = ("sentence_accuracy", "f1", "u_app")
_HEAD = {"sentence_accuracy": "sentence accuracy", "f1": "f1", "u_app": "U.app"}


def show_record(record: RunRecord) -> None:
    """Write method, data, parameters and scores of a run, in percent.

    A table has the scores of the sentences whose words all occur in the labeled text (L.app) and of
    the others, and the share of each group whose words all occur in the unlabeled text (U.app), as
    in table 5 of Suzuki & Isozaki (2008).
    """
    echo(f"run {record.run_id}: {record.method} on {record.dataset}, {record.status}")
    echo(labeled("features", f"{record.featurizer}, model {record.model}"))
    protocol = (f"{name}={value}" for name, value in record.protocol.items() if value is not None)
    echo(labeled("protocol", " ".join(protocol)))
    echo(labeled("parameters", " ".join(f"{k}={v}" for k, v in sorted(record.params.items()))))
    if record.error:
        echo(labeled("error", record.error))
    for split, metrics in record.metrics.items():
        values = {name: value for name, value in metrics.items() if value is not None}
        shown = (f"{k} {100 * v:.2f}" for k, v in values.items() if not k.endswith("app"))
        echo(labeled(split, ", ".join(shown)))
        rows = coverage_rows(values)
        if rows:
            echo(table(rows, indent="    "))
    for name, figures in record.audit.get("weak", {}).items():
        echo(labeled(f"weak {name}", weak_line(figures)))


def weak_line(figures: Mapping[str, Any]) -> str:
    """What a weak source says, in words. figures: see `audit_weak`."""
    line = f"labels {100 * figures['coverage']:.1f} % of the tokens of"
    line += f" {figures['sentences']:,} sentences"
    if figures["conflicts"]:
        line += f", {100 * figures['conflicts']:.1f} % of them against another source"
    for metric in METRICS.values():
        if figures.get(metric) is not None:
            line += f"; {metric} {100 * figures[metric]:.2f} on the labeled sentences"
    if unseen := figures["unseen_labels"]:
        line += f"; labels of no labeled sentence: {', '.join(unseen)}"
    return line


def coverage_rows(metrics: Mapping[str, float]) -> list[tuple[str, ...]]:
    """A head, and a row for each group of sentences; [] for a split without L.app."""
    share = metrics.get("share_app")
    if share is None:
        return []
    names = [name for name in _COLUMNS if any(name + group in metrics for group in _GROUPS)]
    rows = [("sentences", "share", *(_HEAD[name] for name in names))]
    for (group, title), part in zip(_GROUPS.items(), (1.0, share, 1 - share), strict=True):
        values = (metrics.get(name + group) for name in names)
        cells = ("" if value is None else f"{100 * value:.2f}" for value in values)
        rows.append((title, f"{100 * part:.1f}", *cells))
    return rows
