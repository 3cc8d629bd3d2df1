"""What comes with the package beside code: suites, and a table of the published results.

An installed package has them in its folder ``published``, a checkout in ``leaderboards``.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

import msgspec

from sslbench.engine.errors import UserError
from sslbench.engine.lazy import lazy
from sslbench.experiment.records.cost import Prices, has_dev, keys_of, training_cpu_s
from sslbench.experiment.records.record import RunRecord, RunSpec, content_id
from sslbench.experiment.records.store import Store
from sslbench.experiment.request.request import parse_labeled, parse_unlabeled
from sslbench.plugins import Registry

RESULTS = "results.csv"


def published_folder() -> Path:
    """The folder of what comes with the package."""
    package = Path(__file__).parents[2]
    inside = package / "published"
    return inside if inside.is_dir() else package.parents[1] / "leaderboards"


class Line(msgspec.Struct, frozen=True, order=True):
    """Runs that differ in the seed alone.

    Attributes
    ----------
    options: options of the dataset as text.
    labeled, unlabeled, text, folds: see `ProtocolSpec`; unlabeled "" = no cap.
    tuning: the budget of tuning in words.
    guard: the method whose tagger may take its place; "" = none.
    learned: names of features that are learned from text, apart by "+".
    params: hash of all parameters, templates, features and the search space, and of how labeled
        sentences are chosen.
    scores: the primary metric of each successful run, in [0, 1], as SEED=SCORE.
    dev: whether the dataset has a development split.
    cpu_s: median CPU seconds of one training; "" = not measured.
    """

    dataset: str
    options: str
    labeled: str
    unlabeled: str
    text: str
    folds: str
    tuning: str
    method: str
    guard: str
    featurizer: str
    learned: str
    model: str
    params: str
    metric: str
    scores: str
    dev: str
    cpu_s: str

    @property
    def by_run(self) -> list[tuple[int, float]]:
        """Seed and score of each run, by seed."""
        pairs = (pair.partition("=") for pair in self.scores.split())
        return [(int(seed), float(score)) for seed, _, score in pairs]


class _Run(NamedTuple):
    """What a line needs of a run. cpu_s: of one training; None = not measured."""

    seed: int
    score: float
    cpu_s: float | None
    dev: bool


def results_text(records: Iterable[RunRecord]) -> str:
    """The table of published results; equal records give equal bytes."""
    groups: dict[tuple[str, ...], list[_Run]] = defaultdict(list)
    for record in records:
        if record.status == "ok" and record.score is not None:
            seed = record.spec.protocol.seed
            run = _Run(seed, record.score, training_cpu_s(record), has_dev(record))
            groups[_group(record.spec, record.primary_metric)].append(run)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(Line.__struct_fields__)
    writer.writerows(sorted(_line(key, group) for key, group in groups.items()))
    return out.getvalue()


def _group(spec: RunSpec, metric: str) -> tuple[str, ...]:
    """What the runs of a line share: its fields up to the metric."""
    protocol = spec.protocol
    guard = "" if spec.guard is msgspec.UNSET else spec.guard.method
    params = [spec.params, spec.featurizer_digest, spec.tuning, spec.learned]
    params += [spec.of_model] if spec.of_model else []
    params += [] if protocol.labeled_by is msgspec.UNSET else [{"labeled_by": protocol.labeled_by}]
    return (
        spec.dataset,
        " ".join(f"{name}={value}" for name, value in sorted(spec.data.options.items())),
        str(protocol.labeled),
        "" if protocol.unlabeled is None else str(protocol.unlabeled),
        protocol.text,
        str(protocol.folds),
        protocol.tuning(),
        spec.method,
        guard,
        spec.featurizer,
        "+".join(spec.learned),
        spec.model,
        content_id(params)[:8],
        metric,
    )


#: field of a line that the data decide on, if the request leaves it to them
_TEXT = Line.__struct_fields__.index("text")


class PublishedLines:
    """The lines of the table of published results by identity."""

    def __init__(self, path: Path | None = None) -> None:
        self._lines: dict[tuple[str, ...], Line] = {}
        for line in read_results(path or published_folder() / RESULTS):
            key = msgspec.structs.astuple(line)[: Line.__struct_fields__.index("scores")]
            self._lines[key] = line
            self._lines.setdefault(_without_text(key), line)

    def of(self, spec: RunSpec, metric: str, by_text: bool) -> Line | None:
        """Return the line of a run; None if it is not published.

        spec: its fingerprint of the data and its seed do not count.
        by_text: the source of the unlabeled text counts; else the data decide on it.
        """
        key = _group(spec, metric)
        return self._lines.get(key if by_text else _without_text(key))


def _without_text(key: tuple[str, ...]) -> tuple[str, ...]:
    return (*key[:_TEXT], "", *key[_TEXT + 1 :])


def _line(key: tuple[str, ...], runs: Sequence[_Run]) -> tuple[str, ...]:
    scores = sorted((run.seed, run.score) for run in runs)
    seconds = sorted(run.cpu_s for run in runs if run.cpu_s is not None)
    return (
        *key,
        " ".join(f"{seed}={score:.6f}" for seed, score in scores),
        "yes" if any(run.dev for run in runs) else "no",
        f"{median(seconds):.2f}" if seconds else "",
    )


class PublishedCosts:
    """What the published runs took (see `sslbench.experiment.records.cost.Costs`)."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or published_folder() / RESULTS

    @lazy
    def _lines(self) -> list[Line]:
        return read_results(self._path)

    @lazy
    def _costs(self) -> dict[str, list[float]]:
        costs: dict[str, list[float]] = defaultdict(list)
        for line in self._lines:
            if line.cpu_s:
                for key in (*_keys(line), *_keys(msgspec.structs.replace(line, method=""))):
                    costs[key] += [float(line.cpu_s)] * len(line.by_run)
        return costs

    def training_cpu_s(self, key: str) -> Sequence[float]:
        """CPU seconds of a training: for each run, the median of the runs with other seeds."""
        return self._costs.get(key, ())

    def has_dev(self, dataset: str) -> bool | None:
        """Whether the dataset has a development split; None if no run tells."""
        return next((line.dev == "yes" for line in self._lines if line.dataset == dataset), None)


def prices_of(store: Store, plugins: Registry) -> Prices:
    """Prices by the runs of a store, then by the published ones."""
    models = {name: info.cost for name, info in plugins.models.items()}
    return Prices(store, PublishedCosts(), models=models)


def read_results(path: Path) -> list[Line]:
    """The lines of a table of results; [] if there is none. UserError if it is damaged."""
    try:
        rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
        return [msgspec.convert(row, Line) for row in rows]
    except FileNotFoundError:
        return []
    except (OSError, UnicodeError, msgspec.MsgspecError) as error:
        raise UserError(f"not a table of results: {error}", file=path) from None


def mean_gains(baseline: str, metric: str, path: Path | None = None) -> dict[str, float]:
    """By method, its mean gain over the baseline in published runs that neither tune nor guard.

    The gains of a dataset are averaged first, so that each dataset counts once.
    path: of a table of results; None = that of the package.
    """
    scores: dict[tuple[str, ...], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for line in read_results(path or published_folder() / RESULTS):
        if (line.metric, line.tuning, line.guard) == (metric, "no tuning", ""):
            fields = line.options, line.labeled, line.unlabeled, line.text, line.folds
            cell = line.dataset, *fields, line.featurizer, line.learned, line.model
            scores[cell][line.method].append(fmean(score for _, score in line.by_run))
    gains: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for (dataset, *_), of_methods in scores.items():
        for method, means in of_methods.items():
            if method != baseline and baseline in of_methods:
                gain = fmean(means) - fmean(of_methods[baseline])
                gains[method][dataset].append(gain)
    return {method: fmean(map(fmean, by_dataset.values())) for method, by_dataset in gains.items()}


def _keys(line: Line) -> tuple[str, ...]:
    """See `cost_keys`."""
    learned = tuple(filter(None, line.learned.split("+")))
    cap = None if line.unlabeled == "" else parse_unlabeled(line.unlabeled)
    system = line.method, line.dataset, line.featurizer, line.model, learned
    return keys_of(system, (parse_labeled(line.labeled), cap, line.text))
