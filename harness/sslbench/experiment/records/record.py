"""The identity of a run (`RunSpec`) and its result (`RunRecord`)."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from sslbench.experiment.records.predictions import Predictions
from sslbench.experiment.records.trials import TuningSpent
from sslbench.experiment.request.request import LabeledBy, TextSource

SCHEMA = 2
ID_LENGTH = 16
Status = Literal["ok", "failed", "timeout", "memory", "skipped"]
#: what failed; "input": what the user gave
ErrorKind = Literal["input", "method", "process", "timeout", "memory"]
TRACEBACK_LINES = 12
#: what folds keep together: the documents of a corpus, or adjacent sentences
FoldBy = Literal["documents", "blocks"]
#: ways of tuning on the labeled sample alone, in words
TUNE_BY = {"cv": "raced cross-validation", "cv-full": "cross-validation"}


class ProtocolSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much of the data a method sees: parameters of a `RunRequest`, with defaults filled in.

    Attributes
    ----------
    text: "all" = the rest of train, then the external text.
    seed: also of the method's random generator.
    tune: 0 = no limit under `tune_cpu`, else no tuning.
    tune_seed: unset (and left out of the identity) = `seed`.
    tune_by: unset (and left out of the identity) = development data, see `experiment.run.trials`.
    fold_by: what folds of the labeled sample keep together, see `experiment.inputs.folding`; unset
        (and left out of the identity) = nothing: folds are of random sentences.
    labeled_by: how the second half of the labeled sample is chosen, see
        `experiment.inputs.labeled_by`; unset (and left out of the identity) = at random.
    """

    labeled: int | str = "all"
    unlabeled: int | str | None = None
    text: TextSource = "rest"
    seed: int = 0
    folds: int = 0
    tune: int = 0
    tune_cpu: float | None = None
    tune_seed: int | msgspec.UnsetType = msgspec.UNSET
    tune_by: Literal["cv", "cv-full"] | msgspec.UnsetType = msgspec.UNSET
    fold_by: FoldBy | msgspec.UnsetType = msgspec.UNSET
    labeled_by: LabeledBy | msgspec.UnsetType = msgspec.UNSET

    @property
    def tuned(self) -> bool:
        """Whether there is a budget for tuning."""
        return self.tune > 0 or self.tune_cpu is not None

    @property
    def cross_validated(self) -> bool:
        """Whether tuning reads the labeled sample alone, whatever other labels there are."""
        return self.tune_by is not msgspec.UNSET

    def tuning(self) -> str:
        """The budget of tuning in words, and what it is spent on."""
        parts = [f"{self.tune} tuning trials"] if self.tune else []
        if self.tune_cpu is not None:
            parts.append(f"{self.tune_cpu:g} CPU seconds of tuning")
        draw = "" if self.tune_seed is msgspec.UNSET else f" on draw {self.tune_seed}"
        by = f" by {TUNE_BY[self.tune_by]}" if self.tune_by is not msgspec.UNSET else ""
        return " or ".join(parts) + by + draw if parts else "no tuning"

    def without_tuning(self) -> ProtocolSpec:
        """The protocol of one training: without all that says how it is tuned."""
        unset = msgspec.UNSET
        return msgspec.structs.replace(self, tune=0, tune_cpu=None, tune_seed=unset, tune_by=unset)

    def describe(self) -> str:
        """One line without the seed: the protocol of a leaderboard table."""
        return f"{self.describe_labeled()}, unlabeled {self.describe_text()}, {self.tuning()}"

    def describe_labeled(self) -> str:
        """The labeled sample in words, and whether it is cut into folds."""
        by = "" if self.fold_by is msgspec.UNSET else f" by {self.fold_by}"
        folds = f", {self.folds} folds{by}" if self.folds else ""
        return f"labeled {self.sample}{folds}"

    @property
    def sample(self) -> str:
        """Size of the labeled sample, and what chose its sentences if that was not chance."""
        chosen = "" if self.labeled_by is msgspec.UNSET else f" by {self.labeled_by}"
        return f"{self.labeled}{chosen}"

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
    fingerprint: hash of the loaded splits, see `sslbench.experiment.identity.fingerprint`.
    first_draw: the fingerprint for seed 0 if the data depend on the seed: all draws have the same
        one, and are rows of one table; "" for other datasets.
    options: all options of a registered dataset, with their defaults.
    columns: names of the columns of a user's own file; None for a registered dataset.
    """

    fingerprint: str = ""
    first_draw: str = ""
    options: dict[str, Any] = {}
    columns: tuple[str, ...] | None = None

    @property
    def table(self) -> str:
        """Hash of what all runs of one table share: all draws of a dataset with draws."""
        same = msgspec.structs.replace(self, fingerprint=self.first_draw or self.fingerprint)
        return content_id(same)[:8]


class GuardSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What decides whether the method's tagger is the result, see `experiment.checks.guard`.

    Attributes
    ----------
    method: the method whose tagger is the result otherwise; params: all of its parameters.
    folds: number of folds of the labeled sample.
    fold_by: what they keep together: that of the protocol, filled in for a run.
    """

    method: str
    params: dict[str, Any] = {}
    folds: int = 5
    fold_by: FoldBy | msgspec.UnsetType = msgspec.UNSET


class RunSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The identity of a run: what is computed, written out.

    Code, files, threads, timeout and folders are not part of it. Nor is the way in which a value
    was given: a parameter that is set to its default is the default.

    Attributes
    ----------
    params: all parameters of the method, those that are tuned left out.
    featurizer_digest: hash of the templates.
    search: hash of the search space of the parameters that are tuned; "" without tuning.
    first: values of the first trial that the task gives (`Params.task_defaults`); unset (and left
        out of the identity) = the method's own.
    scorer: version of the definitions of the metrics.
    guard: unset = the method's tagger is the result, whatever it does.
    model_params: all parameters of the model, those that are tuned left out; unset without any.
    text_features: all parameters of features that are learned from text, by name; unset without.
    inputs: sha256 of the files that parameters name, by path; unset without.
    weak: all parameters of programs that give weak labels, by name, for a method that learns from
        them; unset without.
    """

    method: str
    dataset: str
    featurizer: str
    model: str
    params: dict[str, Any] = {}
    protocol: ProtocolSpec = ProtocolSpec()
    data: DataSpec = DataSpec()
    featurizer_digest: str = ""
    search: str = ""
    scorer: int = 1
    guard: GuardSpec | msgspec.UnsetType = msgspec.UNSET
    model_params: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    text_features: dict[str, dict[str, Any]] | msgspec.UnsetType = msgspec.UNSET
    inputs: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    weak: dict[str, dict[str, Any]] | msgspec.UnsetType = msgspec.UNSET
    first: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET

    @property
    def title(self) -> str:
        """The method, learned features, weak sources, and whether it is guarded, for people."""
        name = " + ".join([self.method, *self.learned, *self.weak_sources])
        return name if self.guard is msgspec.UNSET else f"{name} (guarded)"

    @property
    def of_model(self) -> dict[str, Any]:
        """`model_params`, {} without."""
        return {} if self.model_params is msgspec.UNSET else self.model_params

    @property
    def learned(self) -> dict[str, dict[str, Any]]:
        """`text_features`, {} without."""
        return {} if self.text_features is msgspec.UNSET else self.text_features

    @property
    def weak_sources(self) -> dict[str, dict[str, Any]]:
        """`weak`, {} without."""
        return {} if self.weak is msgspec.UNSET else self.weak

    @property
    def first_trial(self) -> dict[str, Any]:
        """`first`, {} without."""
        return {} if self.first is msgspec.UNSET else self.first

    @property
    def tuning(self) -> str:
        """Hash of the search space and the first trial; "" without tuning."""
        return content_id([self.search, self.first]) if self.first_trial else self.search

    @property
    def features(self) -> str:
        """The featurizer and the features learned from text, as tables name them."""
        return "+".join([self.featurizer, *self.learned])

    @property
    def run_id(self) -> str:
        """First 16 hexadecimal digits of the sha256 of the canonical JSON; unset is left out."""
        return content_id(self)


class RunRecord(msgspec.Struct, kw_only=True):
    """The result of a run, stored as one JSON file.

    Attributes
    ----------
    spec: identity of the run; `run_id` is its hash.
    digest: sha256 of all other fields.
    code: versions of the code by component, see `sslbench.experiment.identity`.
    params: all parameters of the final training (set by the user, tuned, defaults); of the model's,
        those that were tuned, as MODEL.NAME.
    protocol: the protocol of `spec`, with the source of development data (key "dev").
    metrics: numbers in [0, 1] by split and metric name; None = undefined (no such sentence).
    counts: by split, the fields of `metrics.SentenceCounts` that apply, a number per sentence.
    predictions: by split, the predicted labels (see `Predictions`).
    predictions_sha256: hash of the predicted test labels.
    sentence_ids: numbers of the sentences in the corpus that they are drawn from, packed (see
        `pack_numbers`), by split whose sentences depend on the seed (draws, folds).
    anatomy: by question and part, the number of test tokens and of correct ones, see
        `sslbench.experiment.metrics.anatomy`.
    data: origin and sizes of the data, and a hash of the test split with its labels.
    timing: wall seconds by phase.  wall_s, cpu_s: seconds of the whole run, without those in which
        kernels were compiled, as they are once on a machine.
    fit_cpu_s: CPU seconds of the final training with its guard; those of tuning are in
        `tuned`. None = not measured.
    peak_rss_mb: highest resident memory of the run's process in MiB; None = not measured.
    error: one line, of a skipped run the reason; traceback: its last lines; error_kind "input" =
        the user can correct it.
    tuning: the trials, in order.  tuned: what tuning was and took.  trace: notes of the method.
    audit: sentences that occur in two parts of the data (key "duplicates", see `audit`),
        "violations" of the rules; "dev_labels": "used by the method" when it looked at development
        labels; "weak": figures of the weak sources, see
        `sslbench.experiment.checks.weak_audit.audit_weak`.
    warnings: what a reader of the result should know, a sentence each.
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
    digest: str = ""
    code: dict[str, str] = {}
    metrics: dict[str, dict[str, float | None]] = {}
    counts: dict[str, dict[str, list[int]]] = {}
    predictions: dict[str, Predictions] = {}
    predictions_sha256: str | None = None
    sentence_ids: dict[str, str] = {}
    anatomy: dict[str, dict[str, list[int]]] = {}
    data: dict[str, Any] = {}
    timing: dict[str, float] = {}
    wall_s: float = 0.0
    cpu_s: float | None = None
    fit_cpu_s: float | None = None
    peak_rss_mb: float | None = None
    environment: dict[str, Any] = {}
    created: str = ""
    error: str | None = None
    error_kind: ErrorKind | None = None
    warnings: list[str] = []
    traceback: list[str] = []
    tuning: list[dict[str, Any]] = []
    tuned: TuningSpent = TuningSpent()
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


def spec_key(spec: RunSpec, by_text: bool) -> str:
    """Equal for a run and its cell: the identity without the content of data and of users' files.

    by_text: the source of the unlabeled text counts; else the data decide on it.
    """
    data = msgspec.structs.replace(spec.data, fingerprint="", first_draw="")
    text = spec.protocol.text if by_text else "rest"
    protocol = msgspec.structs.replace(spec.protocol, text=text)
    parts = {"data": data, "protocol": protocol, "inputs": msgspec.UNSET}
    return content_id(msgspec.structs.replace(spec, **parts))


def encode(record: RunRecord) -> bytes:
    """JSON with a line per top-level key: readable in a diff, and lists of counts stay compact.

    The digest of the record is set here.
    """
    tree = jsonable(msgspec.to_builtins(record, enc_hook=_builtin))
    tree["digest"] = record.digest = tree_digest(tree)
    lines = [f"{json.dumps(key)}: ".encode() + msgspec.json.encode(tree[key]) for key in tree]
    return b"{\n" + b",\n".join(lines) + b"\n}\n"


def tree_digest(tree: Mapping[str, Any]) -> str:
    """Sha256 of a record as plain values, without the key "digest"; the order of keys is free."""
    content = {key: value for key, value in tree.items() if key != "digest"}
    return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()


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
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)
