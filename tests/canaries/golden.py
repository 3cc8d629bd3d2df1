"""The golden predictions: `golden.json`, an entry for each canary.

The history of an entry has a line for each code that it was recorded with. Lines are added, never
changed: a digest that changes beside the same versions is a version that was not raised.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from sslbench.engine.errors import UserError
from sslbench.experiment.records.predictions import Predictions, predictions_sha256
from sslbench.experiment.records.record import RunRecord

FILE = Path(__file__).with_name("golden.json")
COMMAND = "python tests/canaries/record.py"
_WHERE = {
    "engine": "VERSION in harness/sslbench/engine/version.py",
    "bench": "BENCH_VERSION in harness/sslbench/experiment/identity.py",
}


class Recorded(msgspec.Struct, frozen=True):
    """A line of a history. digest: of the predictions and scores of `run_id` by this code."""

    code: str
    run_id: str
    digest: str


class Golden(msgspec.Struct, frozen=True):
    """An entry. score, predictions: those of the last line of its history."""

    score: float
    predictions: dict[str, Predictions]
    history: list[Recorded]

    @property
    def last(self) -> Recorded:
        """What today's code must give, unless a version was raised."""
        return self.history[-1]


def read() -> dict[str, Golden]:
    """All entries by the name of their canary."""
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, Golden])


def write(entries: dict[str, Golden]) -> None:
    """Write the file: a line for each part of an entry, so that a diff shows what changed."""
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(entries), indent=1) + b"\n")


def recorded(record: RunRecord) -> Recorded:
    """The line of a run of today."""
    code = ", ".join(f"{name} {version}" for name, version in record.code.items())
    digest = hashlib.sha256()
    for split, packed in record.predictions.items():
        codes = packed.codes(_size(record, split))
        score = record.metrics[split][record.primary_metric]
        digest.update(f"{split} {predictions_sha256(packed.labels, codes)} {score:.6f}\n".encode())
    return Recorded(code, record.run_id, digest.hexdigest())


def entry(record: RunRecord, history: list[Recorded]) -> Golden:
    """The entry of a run of today, after an earlier history."""
    assert record.score is not None
    return Golden(round(record.score, 6), record.predictions, [*history, recorded(record)])


def verdict(golden: Golden | None, record: RunRecord) -> str:
    """What is wrong with a run of today, and what to do about it; "" if nothing is."""
    today = recorded(record)
    if golden is None:
        return f"it has no golden predictions yet: run {COMMAND}"
    if today.digest == golden.last.digest and today.code == golden.last.code:
        return ""
    if today.code != golden.last.code:
        return (
            f"the versions are raised ({golden.last.code} -> {today.code}) or another plugin"
            f" takes part: run {COMMAND}, and commit {FILE.name}"
        )
    lines = [*difference(golden, record)]
    if today.run_id != golden.last.run_id:
        lines.append(f"today's run is another one (data, parameters, templates): run {COMMAND}")
        return "\n".join(lines)
    lines += ["If this is an error, correct it. If it is meant, raise the version of what changed:"]
    for name, version in record.code.items():
        default = f"`version` of the registration of this {name.partition(' ')[0]}"
        lines.append(f"  {name}, now {version}: {_WHERE.get(name, default)}")
    lines.append(f"then run {COMMAND}, and commit {FILE.name}. Stored runs become stale.")
    return "\n".join(lines)


def difference(golden: Golden, record: RunRecord) -> Iterator[str]:
    """How many labels of which split differ, which one first, and the scores."""
    for split in {**golden.predictions, **record.predictions}:
        then, now = (labels(each.predictions, split, record) for each in (golden, record))
        if then is None or now is None:
            yield f"{split}: predictions of other text"
            continue
        places = np.flatnonzero(then != now)
        if len(places):
            at = int(places[0])
            yield (
                f"{split}: {len(places)} of {len(now)} labels differ,"
                f" token {at} first: {then[at]} was golden, {now[at]} now"
            )
    yield f"{record.primary_metric}: {golden.score:.4f} was golden, {record.score:.4f} now"


def labels(predictions: dict[str, Predictions], split: str, record: RunRecord) -> np.ndarray | None:
    """object[N]: the labels; None if they are not of as many tokens as those of the record."""
    if split not in predictions or split not in record.counts:
        return None
    packed, size = predictions[split], _size(record, split)
    try:
        return np.array(packed.labels, dtype=object)[packed.codes(size)]
    except UserError:
        return None


def _size(record: RunRecord, split: str) -> int:
    return sum(record.counts[split]["n_tokens"])
