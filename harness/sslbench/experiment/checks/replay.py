"""Replays of records: whether today's code gives the same predictions, bit for bit.

A model that is trained in single precision may declare a tolerance for other kinds of processors.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

from sslbench.engine.errors import UserError
from sslbench.experiment.data.template_file import with_templates
from sslbench.experiment.identity import code_versions, is_current
from sslbench.experiment.metrics import SCORER
from sslbench.experiment.planning.description import featurizer_digest
from sslbench.experiment.planning.task import RunTask, data_fingerprint, load_dataset
from sslbench.experiment.records.record import RunRecord
from sslbench.plugins import Registry

Outcome = Literal["same", "close", "different"]


def replay_task(record: RunRecord, plugins: Registry, threads: int) -> RunTask:
    """Return the task that makes a record again. Tuning trials are made again, too.

    Raises
    ------
    UserError: it cannot be replayed: the run failed, a plugin is not installed, or the data, the
        templates or the scorer are no longer those of the record.
    """
    if record.status != "ok":
        raise UserError(f"the run is {record.status}: there are no predictions to compare")
    spec, templates = record.spec, tuple(record.data.get("templates", ()))
    plugins = with_templates(plugins, spec.featurizer, templates)
    if spec.featurizer_digest != featurizer_digest(plugins, spec.featurizer):
        raise UserError(f"the templates of {spec.featurizer} changed: today's run is another one")
    if spec.scorer != SCORER:
        raise UserError("the scorer changed: today's run is another one")
    task = RunTask(
        spec,
        record.primary_metric,
        record.data.get("path"),
        threads=threads,
        files=record.data.get("files", {}),
        templates=templates,
        code=code_versions(spec, plugins),
    )
    dataset = load_dataset(task, plugins)
    if data_fingerprint(dataset, task, plugins) != spec.data.fingerprint:
        raise UserError("the data are no longer those of the record")
    return task


def outcome(record: RunRecord, again: RunRecord, plugins: Registry) -> tuple[Outcome, str]:
    """Return what a replay came to, and what differs, in one line.

    again: the record of the replay, also of one that failed.

    "close": on another kind of processor, no more labels differ than the `tolerance` of the model.
    """
    if again.status != "ok":
        return "different", f"the replay is {again.status}: {again.error}"
    lines = [_of_split(record, again, split) for split in record.predictions]
    text = "; ".join(line for line in lines if line)
    if not text and record.predictions_sha256 != again.predictions_sha256:  # it has no predictions
        text = "the predictions of test differ"
    if not text:
        return "same", ""
    other = _processors(record, again)
    most = plugins.model(record.spec.model).tolerance
    close = bool(other and most and record.predictions) and all(
        _share(record, again, split) <= most for split in record.predictions
    )
    return "close" if close else "different", text + other


def _share(record: RunRecord, again: RunRecord, split: str) -> float:
    """Return the share of the labels of a split that differ."""
    if split not in again.predictions:
        return 1.0
    changed, total = _changed_tokens(record, again, split)
    return changed / max(1, total)


def _of_split(record: RunRecord, again: RunRecord, split: str) -> str:
    if split not in again.predictions:
        return f"the replay has no predictions of {split}"
    changed, total = _changed_tokens(record, again, split)
    if not changed:
        return ""
    name = record.primary_metric
    then, now = (_percent(each.metrics[split].get(name)) for each in (record, again))
    return f"{changed} of {total} labels of {split} differ; {name} {then} in the record, {now} now"


def _changed_tokens(record: RunRecord, again: RunRecord, split: str) -> tuple[int, int]:
    sizes = [sum(each.counts[split]["n_tokens"]) for each in (record, again)]
    if sizes[0] != sizes[1]:
        return max(sizes), max(sizes)
    names = [
        np.array(each.predictions[split].labels, dtype=object)[
            each.predictions[split].codes(sizes[0])
        ]
        for each in (record, again)
    ]
    return int((names[0] != names[1]).sum()), sizes[0]


def _percent(value: Any) -> str:
    return "none" if value is None else f"{100 * value:.2f}"


def _processors(record: RunRecord, again: RunRecord) -> str:
    """Return a warning that last bits may differ; "" on processors of one kind."""
    here = again.environment["processor"]
    ran = record.environment.get("processor", "a processor that the record does not name")
    if ran == here:
        return ""
    return f"; run on {ran}, replayed on {here}: on another kind last bits may differ"


def canaries(records: Iterable[RunRecord], plugins: Registry) -> list[RunRecord]:
    """Return the cheapest good record of each method, model, featurizer and dataset family.

    A stale record goes before a current one.
    """
    chosen: dict[tuple[str, ...], RunRecord] = {}
    good = [record for record in records if record.status == "ok"]
    for record in sorted(good, key=lambda each: _place(each, plugins)):
        spec = record.spec
        family = _family(record, plugins)
        chosen.setdefault((spec.method, spec.model, spec.features, family), record)
    return list(chosen.values())


def _place(record: RunRecord, plugins: Registry) -> tuple[bool, float, str]:
    cost = record.wall_s if record.cpu_s is None else record.cpu_s
    return is_current(record.spec, record.code, plugins), cost, record.run_id


def _family(record: RunRecord, plugins: Registry) -> str:
    spec = record.spec
    if spec.dataset not in plugins.datasets or spec.data.columns is not None:
        return spec.dataset
    return plugins.dataset(spec.dataset).family or spec.dataset
