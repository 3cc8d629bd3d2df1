"""What a race of trials loses and saves, beside training every trial on all folds.

``PYTHONPATH=tests python -m studies.races STORE --dataset ud_el`` tunes methods with all trials on
all folds, and trains on all labeled sentences with the parameters of each. Then the labeled
sentences are resampled within their folds, the race is run on the counts of these, and the test
scores of what it chooses and of what all folds choose are compared. So the luck of one sample of
labeled sentences has less of a part in it. STORE keeps trials and test scores. docs/statistics.md
has the results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import click
import msgspec
import numpy as np
import pandas as pd

import sslbench
from sslbench.engine.types import F64, I64
from sslbench.experiment.inputs.protocol import Sample
from sslbench.experiment.metrics import SentenceCounts, metrics_from_counts
from sslbench.experiment.planning.plan import plan
from sslbench.experiment.planning.task import load_dataset
from sslbench.experiment.records.record import RunRecord
from sslbench.experiment.records.store import Store
from sslbench.experiment.records.trials import PartScore
from sslbench.experiment.request.request import RunRequest
from sslbench.experiment.run.fitting import Session, Training
from sslbench.experiment.run.racing import SHARES as SHARES_NOW
from sslbench.experiment.run.racing import Race
from sslbench.experiment.run.scoring import score_split
from sslbench.experiment.run.trials import Attempt, Trials
from sslbench.experiment.run.tuning import tune
from sslbench.plugins import registry

METHODS = (
    *("supervised", "jess_cm", "entropy_regularization", "graph_self_training"),
    *("graph_pr", "virtual_evidence"),
)
#: parts of the trials that go on after each fold; at least two
SHARES: dict[str, tuple[float, ...]] = {
    "1/2, 3/8, 1/4, 1/4": SHARES_NOW,
    "1/2, 1/4, 1/4, 1/4": (1 / 2, 1 / 4),
    "5/8, 3/8, 1/4, 1/4": (5 / 8, 3 / 8, 1 / 4),
    "3/4, 1/2, 3/8, 1/4": (3 / 4, 1 / 2, 3 / 8, 1 / 4),
    "1, 3/8, 3/8, 3/8": (1.0, 3 / 8),
}
ALL = (1.0,)
STREAM = 0x72616365


class Search(msgspec.Struct, frozen=True):
    """All trials of a search: counts of their folds, what they took, and their test scores.

    counts: by trial and fold, lists as `SentenceCounts` has them.  cpu_s: by trial and fold.
    test: by trial, in points.
    """

    name: str
    metric: str
    counts: list[list[dict[str, list[int]]]]
    cpu_s: list[list[float]]
    test: list[float]

    def folds(self) -> list[list[SentenceCounts]]:
        """Return the counts by trial and fold."""
        return [[SentenceCounts.from_lists(each) for each in trial] for trial in self.counts]


@dataclass(frozen=True)
class Outcome:
    """lost: points on test, full minus race.  share: of the CPU seconds of all trainings."""

    lost: float
    share: float


def searched(method: str, dataset: str, seed: int, store: Path) -> Search:
    """Return a search of eight trials, each on all folds; stored below `store`."""
    name = f"{dataset}-{method}-{seed}"
    file = store / "races" / f"{name}.json"
    if file.exists():
        return msgspec.json.decode(file.read_bytes(), type=Search)
    request = RunRequest(
        (method,),
        dataset=(dataset,),
        labeled=100,
        unlabeled=500,
        tune=8,
        tune_by="cv-full",
        seeds=(seed,),
        store=str(store),
        threads=1,
    )
    (task,) = plan(request, store=Store(store), notice=lambda text: None)
    session = Session.open(task, registry())
    data = load_dataset(task, session.plugins)
    sample = Sample.of(task.spec, data)
    tried = tune(session, sample).trials
    trials = Trials(session, sample)
    parts = [[trials.part(k, each.params) for k in range(len(trials.parts))] for each in tried]
    problem, test = session.problem(sample, sample.drawn.labeled), []
    for each in tried:
        tagger = session.fit(Training(problem, each.params), session.context(seed)).tagger
        scores = score_split(session.clock, sample, problem, tagger, "test").scores[""]
        test.append(100 * scores.metrics[data.metric])
    counts = [[part.counts for part in trial] for trial in parts]
    search = Search(name, data.metric, counts, [[p.cpu_s for p in t] for t in parts], test)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(msgspec.json.encode(search))
    return search


class Counted:
    """Trials whose counts are known; see `sslbench.experiment.run.trials.Trials`."""

    def __init__(self, folds: Sequence[Sequence[SentenceCounts]], metric: str) -> None:
        self.folds, self.metric = folds, metric
        self.n_parts = len(folds[0])

    def attempt(self, params: Mapping[str, Any]) -> Attempt:
        return Attempt(params)

    def advance(self, attempt: Attempt, n_parts: int) -> None:
        attempt.done += [PartScore({}, 0.0, 0.0)] * (n_parts - len(attempt.done))

    def score(self, attempt: Attempt, n_parts: int) -> float:
        counts = self.folds[attempt.params["number"]][:n_parts]
        return metrics_from_counts(SentenceCounts.concatenate(counts))[self.metric]


def raced(
    folds: Sequence[Sequence[SentenceCounts]], metric: str, shares: Sequence[float]
) -> tuple[int, list[int]]:
    """Return the trial that a race chooses, and on how many folds each was trained."""
    trials = Counted(folds, metric)
    race = Race(cast(Trials, trials), shares)
    for number in range(len(folds)):
        race.enter({"number": number})
    race.run()
    used = [len(each.done) for each in race.attempts]
    ends = [each for each in race.attempts if len(each.done) == trials.n_parts]
    best = max(ends, key=lambda each: trials.score(each, trials.n_parts))
    return best.params["number"], used


def resampled(
    folds: Sequence[Sequence[SentenceCounts]], rows: Sequence[I64]
) -> list[list[SentenceCounts]]:
    """Return the counts of these sentences of each fold, for every trial."""
    return [
        [
            SentenceCounts.from_lists(
                {
                    name: np.asarray(column)[chosen].tolist()
                    for name, column in part.to_lists().items()
                }
            )
            for part, chosen in zip(trial, rows, strict=True)
        ]
        for trial in folds
    ]


def outcome(search: Search, shares: Sequence[float], samples: int) -> Outcome:
    """Return what a race loses on average over samples of the labeled sentences."""
    folds, cpu, test = search.folds(), np.array(search.cpu_s), np.array(search.test)
    rng = np.random.default_rng(STREAM)
    lost, spent = np.empty(samples), np.empty(samples)
    for i in range(samples):
        rows = [rng.integers(0, len(part.n_tokens), len(part.n_tokens)) for part in folds[0]]
        again = resampled(folds, rows)
        full, _ = raced(again, search.metric, ALL)
        chosen, used = raced(again, search.metric, shares)
        lost[i] = test[full] - test[chosen]
        spent[i] = _spent(cpu, used)
    return Outcome(float(lost.mean()), float(spent.mean()))


def _spent(cpu: F64, used: Sequence[int]) -> float:
    return float(sum(row[:n].sum() for row, n in zip(cpu, used, strict=True)) / cpu.sum())


def compared(store: Path) -> pd.DataFrame:
    """Return pairs of stored runs, one with a race and one with all trials on all folds.

    lost: points on test, full minus race.  cpu_s, full_cpu_s: of the trials.
    """
    runs, records = sslbench.results(store), Store(store)
    runs = runs[runs["status"] == "ok"]
    found: dict[tuple[object, ...], dict[str, RunRecord]] = {}
    for row in runs[runs["protocol"].str.contains("cross-validation")].itertuples():
        record = records.load(row.run_id)
        if record is not None:
            p = record.spec.protocol
            key = record.dataset, record.method, p.labeled, p.unlabeled, p.tune, p.seed
            found.setdefault(key, {})[str(p.tune_by)] = record
    rows = []
    for key, pair in found.items():
        if set(pair) == {"cv", "cv-full"}:
            race, full = pair["cv"], pair["cv-full"]
            scores = [100 * r.metrics["test"][r.primary_metric] for r in (race, full)]
            cpu = race.tuned.cpu_s, full.tuned.cpu_s
            rows.append((key[0], key[1], key[-1], scores[1] - scores[0], *cpu))
    columns = ["dataset", "method", "seed", "lost", "cpu_s", "full_cpu_s"]
    return pd.DataFrame(rows, columns=columns).sort_values(columns[:3])


def print_compared(store: Path) -> None:
    """Print what races lost and took in stored runs, by corpus and in all."""
    pairs = compared(store)
    print("| corpus | pairs | points lost | CPU |")
    print("|---|---:|---:|---:|")
    for name, part in [*pairs.groupby("dataset", sort=False), ("all", pairs)]:
        share = part["cpu_s"].sum() / part["full_cpu_s"].sum()
        print(f"| {name} | {len(part)} | {part['lost'].mean():.2f} | {share:.2f} |")


@click.command()
@click.argument("store", type=click.Path(path_type=Path))
@click.option("--dataset", "datasets", multiple=True, help="None: compare the runs of STORE.")
@click.option("--method", "methods", multiple=True, default=METHODS)
@click.option("--seeds", default=1)
@click.option("--samples", default=200, help="Of the labeled sentences of each search.")
def main(
    store: Path, datasets: Sequence[str], methods: Sequence[str], seeds: int, samples: int
) -> None:
    """Print a row per rule: points lost on test, by dataset, and the share of the CPU."""
    if not datasets:
        print_compared(store)
        return
    searches = {
        dataset: [searched(m, dataset, seed, store) for m in methods for seed in range(seeds)]
        for dataset in datasets
    }
    print("| go on after each fold | " + " | ".join(datasets) + " | mean | CPU |")
    print("|---|" + "---:|" * (len(datasets) + 2))
    for name, shares in SHARES.items():
        found = {
            dataset: [outcome(search, shares, samples) for search in each]
            for dataset, each in searches.items()
        }
        lost = [float(np.mean([each.lost for each in found[dataset]])) for dataset in datasets]
        share = np.mean([each.share for part in found.values() for each in part])
        cells = [*(f"{value:.2f}" for value in lost), f"{np.mean(lost):.2f}", f"{share:.2f}"]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
