"""The identity of a run (`RunSpec`) and its result (`RunRecord`)."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from sslbench.errors import UserError
from sslbench.experiment.predictions import Predictions

SCHEMA = 1
ID_LENGTH = 16
Status = Literal["ok", "failed", "timeout", "skipped"]
TextSource = Literal["rest", "external", "all"]


class ProtocolSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much of the data a method sees.

    Attributes
    ----------
    labeled: number of labeled sentences, ``"all"`` or a share such as ``"10%"``.
    unlabeled: at most so much unlabeled text: a number of sentences, or of tokens such as
        ``"100000t"``; None = all.
    text: where it comes from: the "rest" of train, the "external" text of the dataset, or "all":
        the rest, then the external text.
    seed: of the draw of the labeled sample and of the method's random generator.
    folds: of cross-validation over the labeled sample; 0 = test on the test split.
    tune: tuning trials on development data; 0 = no tuning.
    """

    labeled: int | str = "all"
    unlabeled: int | str | None = None
    text: TextSource = "rest"
    seed: int = 0
    folds: int = 0
    tune: int = 0

    def describe(self) -> str:
        """One line without the seed: the protocol of a leaderboard table."""
        tuned = f"{self.tune} tuning trials" if self.tune else "no tuning"
        return f"{self.describe_labeled()}, unlabeled {self.describe_text()}, {tuned}"

    def describe_labeled(self) -> str:
        """The labeled sample in words, and whether it is cut into folds."""
        folds = f", {self.folds} folds" if self.folds else ""
        return f"labeled {self.labeled}{folds}"

    def describe_text(self) -> str:
        """Origin and amount of the unlabeled text in words."""
        sources = {
            "rest": "rest of train",
            "external": "external text",
            "all": "rest of train and external text",
        }
        source = sources[self.text]
        if self.unlabeled is None:
            return source
        if isinstance(self.unlabeled, str):
            return f"{source}, at most {self.unlabeled.removesuffix('t')} tokens"
        return f"{source}, at most {self.unlabeled} sentences"


class DataSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The identity of the data of a run.

    Attributes
    ----------
    files: sha256 by path relative to the data home or the user's folder.
    columns: names of the columns of a user's own file; None for a registered dataset.
    options: of a registered dataset, as set by the user.
    """

    files: dict[str, str] = {}
    columns: tuple[str, ...] | None = None
    options: dict[str, Any] = {}


class RunSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The identity of a run. Threads, timeout and folders are not part of it.

    `params` holds the parameters that the user set; the defaults of the others depend on `code`:
    the version of sslbench and a hash of the sources that can change the result.
    """

    method: str
    dataset: str
    featurizer: str
    model: str
    params: dict[str, Any] = {}
    protocol: ProtocolSpec = ProtocolSpec()
    data: DataSpec = DataSpec()
    code: str = ""

    @property
    def run_id(self) -> str:
        """First 16 hexadecimal digits of the sha256 of the canonical JSON."""
        return content_id(self)


class RunRecord(msgspec.Struct, kw_only=True):
    """The result of a run, stored as one JSON file.

    Attributes
    ----------
    spec: identity of the run; `run_id` is its hash.
    params: all parameters of the final training (set by the user, tuned, defaults).
    protocol: that of `spec`, with the source of development data (key "dev").
    metrics: numbers in [0, 1] by split and metric name; None = undefined (no such sentence).
    counts: by split, the fields of `metrics.SentenceCounts` that apply, a number per sentence.
    predictions: by split, the predicted labels (see `Predictions`).
    predictions_sha256: hash of the predicted test labels.
    sentence_ids: by split whose sentences depend on the seed (draws, folds), the number of each
        sentence in the corpus that is drawn from, packed (see `pack_numbers`).
    data: origin and sizes of the data, and a hash of the test split with its labels.
    timing: wall seconds by phase.  wall_s, cpu_s: seconds of the whole run.
    peak_rss_mb: highest resident memory of the run's process in MiB; None = not measured.
    error: one line, of a skipped run the reason; traceback: its last lines; error_kind "input" =
        the user can correct it.
    tuning: the trials, in order.  trace: notes of the method.
    audit: sentences that occur in two parts of the data (key "duplicates", see `audit`).
    """

    run_id: str
    status: Status
    method: str
    dataset: str
    featurizer: str
    model: str
    params: dict[str, Any]
    protocol: dict[str, Any]
    primary_metric: str
    spec: RunSpec
    schema: int = SCHEMA
    metrics: dict[str, dict[str, float | None]] = {}
    counts: dict[str, dict[str, list[int]]] = {}
    predictions: dict[str, Predictions] = {}
    predictions_sha256: str | None = None
    sentence_ids: dict[str, str] = {}
    data: dict[str, Any] = {}
    timing: dict[str, float] = {}
    wall_s: float = 0.0
    cpu_s: float | None = None
    peak_rss_mb: float | None = None
    environment: dict[str, Any] = {}
    created: str = ""
    error: str | None = None
    error_kind: Literal["input", "method", "process", "timeout"] | None = None
    traceback: list[str] = []
    tuning: list[dict[str, Any]] = []
    trace: dict[str, Any] = {}
    audit: dict[str, Any] = {}

    @property
    def score(self) -> float | None:
        """The primary metric on the test split, in [0, 1]; None without one."""
        return self.metrics.get("test", {}).get(self.primary_metric)


def content_id(value: object) -> str:
    """First 16 hexadecimal digits of the sha256 of a JSON-able value; keys are sorted."""
    text = json.dumps(
        msgspec.to_builtins(value), sort_keys=True, separators=(",", ":"), allow_nan=False
    )
    return hashlib.sha256(text.encode()).hexdigest()[:ID_LENGTH]


def encode(record: RunRecord) -> bytes:
    """JSON with a line per top-level key: readable in a diff, and lists of counts stay compact."""
    tree = jsonable(msgspec.to_builtins(record, enc_hook=_builtin))
    lines = [f"{json.dumps(key)}: ".encode() + msgspec.json.encode(tree[key]) for key in tree]
    return b"{\n" + b",\n".join(lines) + b"\n}\n"


def decode(data: bytes) -> RunRecord:
    """Read a record from JSON.

    Raises
    ------
    UserError: not JSON, another schema, a wrong type (the message has its path), or a `run_id` that
        is not the hash of `spec`.
    """
    try:
        record = msgspec.json.decode(data, type=RunRecord)
    except msgspec.MsgspecError as error:
        raise UserError(f"not a run record: {error}") from error
    if record.schema != SCHEMA:
        raise UserError(f"schema {record.schema}, but this version reads schema {SCHEMA}")
    if record.run_id != record.spec.run_id:
        raise UserError(f"run_id {record.run_id} is not that of its spec, {record.spec.run_id}")
    return record


def jsonable(value: Any) -> Any:
    """Convert numpy scalars, arrays and tuples to JSON values; NaN and infinity become None."""
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if hasattr(value, "tolist"):
        return jsonable(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _builtin(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)
