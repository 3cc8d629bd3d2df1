"""Replays of records: whether today's code still gives the same predictions, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np

from sslbench.engine.errors import UserError
from sslbench.experiment.identity.identity import code_digests
from sslbench.experiment.identity.staleness import (
    Group,
    State,
    Verification,
    canary_group,
    load_verification,
    same_codes,
)
from sslbench.experiment.inputs.protocol import resolve_text
from sslbench.experiment.metrics import SCORER
from sslbench.experiment.planning.description import featurizer_digest, method_description
from sslbench.experiment.planning.template_file import with_templates
from sslbench.experiment.records.record import SCHEMA, RunRecord, RunSpec
from sslbench.experiment.records.store import Store
from sslbench.experiment.run.training import RunTask, data_fingerprint, load_dataset
from sslbench.plugins import Registry

#: parameters of records of schema 1
_NAMES = {
    "neighbours": "neighbors",
    "normalise": "normalize",
    "pairs": "feature_pruning",
    "templates": "similarity",
}
_VALUES = {
    ("pairs", "all"): "none",
    ("pairs", "plausible"): "posterior",
    ("templates", "hgt13"): "he2013",
    ("templates", "spp10"): "subramanya2010",
    ("templates", "zwct13"): "zeng2013",
    ("transitions", "centred"): "centered",
}


def replay_task(record: RunRecord, plugins: Registry, threads: int) -> RunTask:
    """The task that makes a record again. Tuning trials are made again, too.

    A record of schema 1 is replayed with its final parameters, without the tuning that led to them.

    Raises
    ------
    UserError: it cannot be replayed: the run failed, a plugin is not installed, or the data, the
        templates or the scorer are no longer those of the record.
    """
    if record.status != "ok":
        raise UserError(f"the run is {record.status}: there are no predictions to compare")
    templates = tuple(record.data.get("templates", ()))
    plugins = with_templates(plugins, record.spec.featurizer, templates)
    spec = _spec_today(record, plugins)
    files = record.data.get("files", {})
    task = RunTask(
        spec,
        record.primary_metric,
        record.data.get("path"),
        threads=threads,
        files=files,
        templates=templates,
    )
    dataset = load_dataset(task, plugins)
    if record.schema != SCHEMA:  # it does not say where the unlabeled text came from
        text = resolve_text(dataset, spec.protocol.labeled, spec.protocol.unlabeled, None)
        protocol = msgspec.structs.replace(spec.protocol, text=text)
        spec = msgspec.structs.replace(spec, protocol=protocol)
        task = msgspec.structs.replace(task, spec=spec)
    found = data_fingerprint(dataset, task, plugins)
    if record.schema == SCHEMA and found != spec.data.fingerprint:
        raise UserError("the data are no longer those of the record")
    data = msgspec.structs.replace(spec.data, fingerprint=found)
    spec = msgspec.structs.replace(spec, data=data)
    return msgspec.structs.replace(task, spec=spec, code=code_digests(spec, plugins))


def _spec_today(record: RunRecord, plugins: Registry) -> RunSpec:
    spec = record.spec
    templates = featurizer_digest(plugins, spec.featurizer)
    if record.schema == SCHEMA:
        if (spec.featurizer_digest, spec.scorer) != (templates, SCORER):
            what = "scorer" if spec.scorer != SCORER else f"templates of {spec.featurizer}"
            raise UserError(f"the {what} changed: the run of today is another one")
        return spec
    known = dict(_renamed(*each) for each in record.params.items())
    params = method_description(plugins, spec.method, known).params
    return msgspec.structs.replace(
        spec,
        params=params,
        protocol=spec.protocol.without_tuning(),
        featurizer_digest=templates,
        scorer=SCORER,
    )


def _renamed(name: str, value: Any) -> tuple[str, Any]:
    """A parameter of a record of schema 1 by its name and value of today."""
    return _NAMES.get(name, name), _VALUES.get((name, value), value) if _plain(value) else value


def _plain(value: Any) -> bool:
    return isinstance(value, str | int | float | None)


def verification(record: RunRecord, again: RunRecord) -> Verification:
    """The result of a replay. again: its record, also of a replay that failed."""
    difference = _difference(record, again)
    if difference and again.status == "ok":
        difference += _processors(record, again)
    return Verification(
        run_id=record.run_id,
        digest=record.digest,
        code=again.code,
        same=not difference,
        difference=difference,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def compared(
    store: Store, record: RunRecord, again: RunRecord, reference: RunRecord
) -> Verification:
    """The result of a replay that differs from its record as a replay of earlier code does.

    The difference is then one of the processor, and today's code counts as the same.

    reference: the record of the replay of earlier code, made on the machine of `again`.
    UserError if the record is not of that code, or the predictions of the two replays differ.
    """
    known = [record.code, *same_codes(store, record)]
    if reference.code not in known:
        raise UserError(f"the record of {record.created} is of other code than the reference")
    if _difference(reference, again):
        raise UserError("the reference has other predictions than today's code")
    return _of_processor(record, again)


def as_before(store: Store, record: RunRecord, again: RunRecord) -> Verification | None:
    """The result of a replay that differs from its record, but not from the last replay of it.

    If that one counted as the same on the same kind of processor, so does this one. Else None.
    """
    before, result = load_verification(store, record), _of_processor(record, again)
    if before is None or not before.same or not before.predictions:
        return None
    known = before.processor, before.predictions
    return result if known == (result.processor, result.predictions) else None


def _of_processor(record: RunRecord, again: RunRecord) -> Verification:
    """The difference of a replay is one of the processor."""
    return msgspec.structs.replace(
        verification(record, again),
        same=True,
        difference="",
        processor=str(again.environment["processor"]),
        predictions=again.predictions_sha256 or "",
    )


def on_another_processor(record: RunRecord, again: RunRecord) -> bool:
    """Whether the replay had another kind of processor: a difference may be of the last bits.

    False where the record is older and does not name it.
    """
    here = again.environment["processor"]
    return bool(record.environment.get("processor", here) != here)


def _processors(record: RunRecord, again: RunRecord) -> str:
    """What a difference may come from besides the code; "" on processors of one kind."""
    here = again.environment["processor"]
    ran = record.environment.get("processor", "a processor that the record does not name")
    if ran == here:
        return ""
    return f"; run on {ran}, replayed on {here}: on another kind last bits may differ"


def _difference(record: RunRecord, again: RunRecord) -> str:
    """What differs, in one line; "" if all predictions are the same."""
    if again.status != "ok":
        return f"the replay is {again.status}: {again.error}"
    if not record.predictions:
        same = record.predictions_sha256 == again.predictions_sha256
        return "" if same else "the predictions of test differ"
    for split in record.predictions:
        if split not in again.predictions:
            return f"the replay has no predictions of {split}"
        changed, total = _changed_tokens(record, again, split)
        if changed:
            name = record.primary_metric
            scores = [_percent(r.metrics[split].get(name)) for r in (record, again)]
            return (
                f"{changed} of {total} labels of {split} differ;"
                f" {name} {scores[0]} in the record, {scores[1]} now"
            )
    return ""


def _changed_tokens(record: RunRecord, again: RunRecord, split: str) -> tuple[int, int]:
    sizes = [sum(r.counts[split]["n_tokens"]) for r in (record, again)]
    if sizes[0] != sizes[1]:
        return max(sizes), max(sizes)
    names = [
        np.array(r.predictions[split].labels, dtype=object)[r.predictions[split].codes(sizes[0])]
        for r in (record, again)
    ]
    return int((names[0] != names[1]).sum()), sizes[0]


def _percent(value: Any) -> str:
    return "none" if value is None else f"{100 * value:.2f}"


def canaries(
    records: Sequence[RunRecord], found: dict[str, State], store: Store, plugins: Registry
) -> list[RunRecord]:
    """Of each group of records that are stale, the cheapest one; see `canary_group`.

    A group is left out if one of these has been replayed on its code with the same predictions.
    """
    groups: set[Group] = set()
    chosen = []
    stale = [r for r in records if found[r.run_id] in ("stale", "schema 1") and r.status == "ok"]
    for record in sorted(stale, key=_cost):
        group = canary_group(record, plugins, record.code)
        if group not in groups:
            chosen.append(record)
            codes = [record.code, *same_codes(store, record)]
            groups |= {canary_group(record, plugins, code) for code in codes}
    return chosen


def _cost(record: RunRecord) -> tuple[float, str]:
    return record.cpu_s if record.cpu_s is not None else record.wall_s, record.run_id
