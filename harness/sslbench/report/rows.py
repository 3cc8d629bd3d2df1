"""Rows of leaderboard tables: the runs of one method with its featurizer, model and parameters."""

from __future__ import annotations

import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from sslbench.experiment.checks.warnings import convergence_warnings
from sslbench.experiment.records.record import RunRecord, content_id
from sslbench.report.draws import MethodsTest
from sslbench.report.significance import Paired

Cells = Mapping[int, RunRecord]  # by seed
_HASHED = (("featurizer_digest", "templates"), ("search", "search space"), ("guard", "guard"))


class RowKey(NamedTuple):
    """Runs with equal keys are one row.

    params: names and values as JSON, ascending by name.
    featurizer_digest: see `RunSpec`.  search: its `tuning`.  guard: hash of the guard; "" = none.
    """

    method: str
    featurizer: str
    model: str
    params: tuple[tuple[str, str], ...]
    featurizer_digest: str
    search: str
    guard: str = ""


@dataclass(frozen=True)
class Row:
    """One method (with its featurizer, model and parameters) in a table.

    Attributes
    ----------
    name: the method, with what distinguishes it from other rows of the table.
    params: the parameters as text, ascending by name.
    mean, sd: mean and standard deviation of the primary metric over `counted`, in
        [0, 1]; None without enough runs.
    seeds: the seeds with a successful run.  scores: the primary metric of each.
    counted: the seeds that mean, sd, rank and comparison rest on.
    repeats: number of runs that are the same as another one and not counted.
    missing: seeds that the ranked rows share and this one lacks.  failed: number of failed runs.
    wall_s, cpu_s, peak_rss_mb: medians over successful runs, in seconds and MiB.
    labeled_sentences: size of the labeled sample.  codes: hashes of the code of its runs.
    trials, tune_cpu_s: tuning trials of all runs (shared ones once), their CPU seconds.
    notes: remarks for the reader.
    stale: whether a run is of an earlier version of the code.
    rank: 1 = best of the rows with all shared seeds; None = not one of these.
    rank_low, rank_high: lowest and highest rank that pairwise tests allow; None without them.
    group: rows with a letter in common do not differ significantly; "" without pairwise tests.
    paired: test of the methods against the baseline on common seeds.
    p_holm: its p, corrected for the table.
    taggers, taggers_holm: the same for these taggers.
    draws: number of draws in the comparison.
    """

    name: str
    key: RowKey
    mean: float | None
    sd: float | None
    seeds: tuple[int, ...]
    scores: tuple[float, ...]
    counted: tuple[int, ...]
    repeats: int
    missing: tuple[int, ...]
    failed: int
    wall_s: float | None
    cpu_s: float | None
    peak_rss_mb: float | None
    labeled_sentences: int | None
    codes: tuple[str, ...]
    trials: int
    tune_cpu_s: float
    notes: tuple[str, ...] = ()
    stale: bool = False
    rank: int | None = None
    rank_low: int | None = None
    rank_high: int | None = None
    group: str = ""
    paired: MethodsTest | None = None
    p_holm: float | None = None
    taggers: Paired | None = None
    taggers_holm: float | None = None
    draws: int = 0
    cells: Cells = field(default_factory=dict, repr=False, compare=False)

    @property
    def method(self) -> str:
        """Name of the method."""
        return self.key.method

    @property
    def featurizer(self) -> str:
        """Name of the featurizer."""
        return self.key.featurizer

    @property
    def model(self) -> str:
        """Name of the model."""
        return self.key.model

    @property
    def params(self) -> str:
        """The parameters as text."""
        return settings_text(self.key.params)

    @property
    def mixed(self) -> bool:
        """Whether its runs are of more than one version of the code."""
        return len(self.codes) > 1

    @property
    def complete(self) -> bool:
        """Whether every seed of the table has a successful run."""
        return bool(self.seeds) and not self.missing


def row_key(record: RunRecord) -> RowKey:
    """The row of a run."""
    spec = record.spec
    params = tuple((name, as_text(spec.params[name])) for name in sorted(spec.params))
    own = spec.of_model
    params += tuple((f"{spec.model}.{name}", as_text(own[name])) for name in sorted(own))
    digest = spec.featurizer_digest
    if spec.learned:
        digest = content_id([digest, spec.learned])
    parts = (spec.features, spec.model, params, digest, spec.tuning)
    return RowKey(
        spec.method, *parts, "" if spec.guard is msgspec.UNSET else content_id(spec.guard)
    )


def settings_text(params: Iterable[tuple[str, str]]) -> str:
    """Parameters as in the CSV file of a board: "name=value, name=value"."""
    return ", ".join(f"{name}={value}" for name, value in params)


def as_text(value: object) -> str:
    """The value of a parameter: a string as it is, others as JSON."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def row_names(keys: Collection[RowKey]) -> dict[RowKey, str]:
    """Short names of rows.

    The method, "guarded" if it is; featurizer and model if they differ among `keys`; the parameters
    that differ among the keys of the method; hashes if nothing else distinguishes two rows.
    """
    varied = [part for part in ("featurizer", "model") if len({getattr(k, part) for k in keys}) > 1]
    methods: dict[str, list[RowKey]] = defaultdict(list)
    for key in keys:
        methods[key.method].append(key)
    names = {}
    for key in keys:
        others = [dict(other.params) for other in methods[key.method]]
        params = [
            f"{name}={value}"
            for name, value in key.params
            if any(other.get(name) != value for other in others)
        ]
        guard = "guarded" if key.guard else ""
        extra = [guard, *(getattr(key, part) for part in varied), ", ".join(params)]
        texts = [text for text in extra if text]
        names[key] = f"{key.method} ({'; '.join(texts)})" if texts else key.method
    return _unique(names)


def _unique(names: Mapping[RowKey, str]) -> dict[RowKey, str]:
    """Names with a hash added where rows differ in templates or search space alone."""
    often = Counter(names.values())
    unique = {}
    for key, name in names.items():
        twins = [other for other, same in names.items() if same == name]
        hashes = [
            f"{what} {content_id(getattr(key, part))[:6]}"
            for part, what in _HASHED
            if len({getattr(twin, part) for twin in twins}) > 1
        ]
        if often[name] > 1 and not hashes:  # a parameter that one lacks
            hashes = ["parameters " + content_id(key.params)[:6]]
        unique[key] = f"{name} [{', '.join(hashes)}]" if often[name] > 1 else name
    return unique


def make_row(name: str, key: RowKey, cells: Cells, shared: Sequence[int]) -> Row:
    """A row without rank and comparison; shared: the seeds of the ranked rows."""
    good = {seed: cells[seed] for seed in sorted(cells) if successful(cells[seed])}
    missing = tuple(seed for seed in shared if seed not in good)
    usable = [seed for seed in good if seed in shared] if not missing else list(good)
    counted = distinct([(seed, fingerprint(good[seed])) for seed in usable])
    scores = {seed: record.score or 0.0 for seed, record in good.items()}
    values = [scores[seed] for seed in counted]
    sizes = [record.data.get("sentences", {}).get("labeled") for record in good.values()]
    tuned = list(good.values())
    if tuned and tuned[0].spec.protocol.tune_seed is not UNSET:
        tuned = tuned[:1]  # the trials of one draw serve all
    return Row(
        name=name,
        key=key,
        mean=statistics.fmean(values) if values else None,
        sd=statistics.stdev(values) if len(values) > 1 else None,
        seeds=tuple(good),
        scores=tuple(scores.values()),
        counted=counted,
        repeats=len(usable) - len(counted),
        missing=missing,
        failed=sum(record.status != "ok" for record in cells.values()),
        wall_s=_median(record.wall_s for record in good.values()),
        cpu_s=_median(record.cpu_s for record in good.values()),
        peak_rss_mb=_median(record.peak_rss_mb for record in good.values()),
        labeled_sentences=sizes[0] if sizes else None,
        codes=tuple(sorted({content_id(record.code) for record in cells.values()})),
        trials=sum(record.tuned.trials for record in tuned),
        tune_cpu_s=sum(record.tuned.cpu_s for record in tuned),
        notes=_notes(cells, good, counted, missing),
        cells=cells,
    )


def successful(record: RunRecord) -> bool:
    """Whether the run has a score."""
    return record.status == "ok" and record.score is not None


def fingerprint(record: RunRecord) -> str | None:
    """A hash of what an identical repeat has the same; None if the run drew something.

    Where all of train is labeled there is nothing to draw but by the method itself. Of predictions
    the record's hash counts: they themselves take long to read from an archive.
    """
    if record.spec.protocol.labeled != "all":
        return None
    return content_id([record.spec.data, dict(record.counts), record.predictions_sha256])


def distinct(runs: Sequence[tuple[int, str | None]]) -> tuple[int, ...]:
    """The seeds that count: the first one alone if all runs are the same; runs: `fingerprint`s."""
    prints = {mark for _, mark in runs}
    if len(prints) == 1 and None not in prints:
        return (runs[0][0],)
    return tuple(seed for seed, _ in runs)


def _notes(
    cells: Cells, good: Cells, counted: Sequence[int], missing: Sequence[int]
) -> tuple[str, ...]:
    notes = []
    failures = {seed: cells[seed].status for seed in cells if seed not in good}
    if failures:
        notes.append(", ".join(f"seed {s}: {failures[s]}" for s in sorted(failures)))
    never = [seed for seed in missing if seed not in cells]
    if never:
        notes.append("no run for seed " + ", ".join(map(str, never)))
    if len(counted) == 1 and len(good) > 1 and not missing:
        same = [seed for seed in good if fingerprint(good[seed]) is not None]
        if len(same) > 1:
            notes.append(f"{len(same)} identical runs counted once")
    baseline = [s for s, record in good.items() if _guard_chose(record) == "baseline"]
    if baseline:
        seeds = ", ".join(map(str, baseline))
        notes.append(f"the guard kept the baseline: seeds {seeds}")
    if any(record.tuned.status == "untuned" for record in good.values()):
        notes.append("untuned")
    if any(record.audit.get("dev_labels") for record in good.values()):
        notes.append("used development labels itself")
    if any(convergence_warnings(record.trace) for record in good.values()):
        notes.append("not converged")
    return tuple(notes)


def _guard_chose(record: RunRecord) -> str | None:
    """The choice of the guard; None without one, or with one for each fold."""
    choice: str | None = record.trace.get("guard", {}).get("kept")
    return choice


def marked(row: Row, stale: Collection[str]) -> Row:
    """The row with a note on its stale runs. stale: run ids."""
    seeds = [seed for seed in row.seeds if row.cells[seed].run_id in stale]
    if not seeds:
        return row
    some = "" if len(seeds) == len(row.seeds) else f": seeds {', '.join(map(str, seeds))}"
    return replace(row, notes=(f"stale{some}", *row.notes), stale=True)


def _median(values: Iterable[float | None]) -> float | None:
    measured = [value for value in values if value is not None]
    return statistics.median(measured) if measured else None
