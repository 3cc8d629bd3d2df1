"""Whether records are of today's code, or of code that is known to give the same bits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from sslbench.engine.errors import UserError
from sslbench.engine.files.atomic import write_atomically
from sslbench.experiment.identity.identity import code_digests
from sslbench.experiment.records.record import SCHEMA, RunRecord, RunSpec
from sslbench.experiment.records.store import Store
from sslbench.plugins import Registry

#: current: of today's code.  verified: replayed on today's code with the same bits.  canary: a
#: cheaper run of the same code, method, model, featurizer and family of datasets has the same bits
#: on today's code: its record is verified, or a verified record was replayed on that code, too.
#: schema 1: older than digests of code.
State = Literal["current", "verified", "canary", "stale", "schema 1"]
Group = tuple[Any, ...]


class Verification(msgspec.Struct, frozen=True):
    """Result of a replay, kept beside the records in ``verified/<run_id>.json``.

    Attributes
    ----------
    digest: of the record that was replayed.
    code: digests of the code of the replay, by component.
    same: whether all predictions are the same, bit for bit.
    difference: in one line, if they are not.
    created: time, UTC.
    earlier: digests of the code of earlier replays of this record with the same predictions.
    processor: a kind of processor on which the predictions are not those of the record, but are
        those of one of the earlier codes; "" if they are those of the record.
    predictions: sha256 of the predictions on that processor; "" if they are those of the record, or
        of a verification that is older than this attribute.
    """

    run_id: str
    digest: str
    code: dict[str, str]
    same: bool
    difference: str
    created: str
    earlier: list[dict[str, str]] = []
    processor: str = ""
    predictions: str = ""


def save_verification(store: Store, record: RunRecord, verification: Verification) -> None:
    """Write the result of a replay of a record, in place of that of an earlier one."""
    kept = [code for code in same_codes(store, record) if code != verification.code]
    verification = msgspec.structs.replace(verification, earlier=kept)
    path = store.folder / "verified" / f"{verification.run_id}.json"
    write_atomically(path, msgspec.json.format(msgspec.json.encode(verification)) + b"\n")


def load_verification(store: Store, record: RunRecord) -> Verification | None:
    """The last replay of this record; None if there is none that can be read."""
    path = store.folder / "verified" / f"{record.run_id}.json"
    try:
        verification = msgspec.json.decode(path.read_bytes(), type=Verification)
    except (OSError, msgspec.MsgspecError, UnicodeError):
        return None
    same_record = (verification.run_id, verification.digest) == (record.run_id, record.digest)
    return verification if same_record else None


def same_codes(store: Store, record: RunRecord) -> list[dict[str, str]]:
    """Digests of the code of all replays of this record that had the same predictions."""
    last = load_verification(store, record)
    if last is None:
        return []
    return [*last.earlier, *([last.code] if last.same else [])]


class Today:
    """Digests of today's code for runs; equal plugins are looked up once."""

    def __init__(self, plugins: Registry) -> None:
        self._plugins = plugins
        self._known: dict[Group, dict[str, str]] = {}
        self._digests: dict[str, str] = {}

    def code(self, spec: RunSpec) -> dict[str, str]:
        """Digests by component; {} if a plugin of the run is not installed."""
        own_data = spec.data.columns is not None
        similarity = str(spec.params.get("similarity"))
        guard = None if spec.guard is msgspec.UNSET else spec.guard.method
        key = (spec.method, spec.features, spec.model, guard, own_data or spec.dataset, similarity)
        if key not in self._known:
            try:
                self._known[key] = code_digests(spec, self._plugins, self._digests)
            except UserError:
                self._known[key] = {}
        return self._known[key]


def states(records: Iterable[RunRecord], store: Store, plugins: Registry) -> dict[str, State]:
    """The state of each record, by run id."""
    records, today = list(records), Today(plugins)
    found: dict[str, State] = {}
    replayed: set[str] = set()
    canaries: dict[Group, bool] = {}
    for record in records:
        verification = load_verification(store, record)
        code = today.code(record.spec)
        if record.schema != SCHEMA:
            found[record.run_id] = "schema 1"
        elif record.code == code:
            found[record.run_id] = "current"
        else:
            found[record.run_id] = "stale"
            if verification is not None and verification.code == code:
                replayed.add(record.run_id)
                if verification.same:
                    found[record.run_id] = "verified"
                for known in [record.code, *(verification.earlier if verification.same else [])]:
                    group = canary_group(record, plugins, known)
                    canaries[group] = canaries.get(group, True) and verification.same
    for record in records:
        if found[record.run_id] != "stale" or record.run_id in replayed:
            continue
        if canaries.get(canary_group(record, plugins, record.code)):
            found[record.run_id] = "canary"
    return found


def canary_group(record: RunRecord, plugins: Registry, code: dict[str, str]) -> Group:
    """Records that share a canary: once one is verified, the others have the state "canary".

    code: digests of the code of the run.
    """
    spec = record.spec
    family = spec.dataset
    if spec.dataset in plugins.datasets and spec.data.columns is None:
        module = plugins.dataset(spec.dataset).target.partition(":")[0]
        family = module.rpartition(".")[0] or module
    known = tuple(sorted(code.items()))
    return record.schema, spec.method, spec.model, spec.featurizer, family, known
