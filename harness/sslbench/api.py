"""The functions of ``import sslbench``: run, train, load_tagger, results, compare.

They do what the commands of the same names do, with the same defaults.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from sslbench.experiment.execute.grid import GridOptions, Reuse, run_grid
from sslbench.experiment.execute.threads import use_threads
from sslbench.experiment.inputs.protocol import parse_labeled, parse_unlabeled
from sslbench.experiment.planning.plan import Request, plan
from sslbench.experiment.records.record import RunRecord, TextSource
from sslbench.experiment.records.store import Store
from sslbench.experiment.run.saved import SavedTagger
from sslbench.experiment.run.saved import load_tagger as load
from sslbench.experiment.run.train_one import TrainedTagger, train_tagger
from sslbench.isolation.start import isolated
from sslbench.plugins import registry
from sslbench.report.flat import flat_rows
from sslbench.report.two_runs import RunComparison, compare_runs

if TYPE_CHECKING:
    import pandas as pd

Names = str | Sequence[str]
PathLike = str | os.PathLike[str]
COLUMNS = ("word", "pos", "label")


def run(
    method: Names,
    dataset: Names = (),
    *,
    data: PathLike | None = None,
    columns: Sequence[str] = COLUMNS,
    labeled: int | str = "all",
    unlabeled: int | str | None = None,
    text: TextSource | None = None,
    seeds: Iterable[int] = (0,),
    folds: int = 0,
    params: Mapping[str, Any] | None = None,
    preset: str | None = None,
    featurizer: str | None = None,
    text_features: Names = (),
    model: str | None = None,
    tune: int | None = None,
    tune_cpu: float | None = None,
    guard: bool = False,
    tune_seed: int | None = None,
    store: PathLike = "runs",
    jobs: int = 1,
    threads: int | None = None,
    timeout: float | None = None,
    memory: int | None = None,
    retry: bool = False,
    reuse: Reuse = "current",
    executor: str = "local",
    verbose: bool = False,
) -> list[RunRecord]:
    """Run every combination of methods, datasets and seeds, each in its own process.

    Finished runs are in the store and are not run again. A run that fails is a record with another
    `status` than "ok".

    Parameters
    ----------
    method, dataset: one name or several.
    data: your own CoNLL file or folder in place of a dataset; columns: of its files.
    labeled: number of labeled sentences, "all", or a share such as "10%".
    unlabeled: at most so many sentences, or tokens such as "100000t".
    text: where unlabeled text comes from: "rest" of train, "external", or "all".
    folds: of cross-validation; 0 = test on the test split.
    params: parameters of methods and options of datasets, by "key" or "owner.key".
    preset: named parameters, such as "paper"; `params` go before it.
    text_features: features learned from the unlabeled text, on top of the featurizer's.
    tune: tuning trials per method; tune_cpu: CPU seconds of tuning per method.
    guard: keep the baseline where held-out labeled sentences do not speak for the method.
    tune: tuning trials per method; tune_cpu: CPU seconds of tuning per method; tune_seed: the draw
        on which all seeds are tuned, None = each on its own.
    threads: per run; None = cores / jobs.  timeout: seconds per run.  memory: bytes per run.
    retry: run again what failed earlier.
    reuse: which records of the store are taken, see `GridOptions`.
    verbose: show messages and the end of each run on standard error.

    Returns
    -------
    The records, in the order of datasets, seeds and methods.

    Raises
    ------
    UserError: an unknown name, a parameter that does not fit, or data that cannot be read.
    """
    request = _request(
        method,
        dataset,
        data,
        columns,
        labeled,
        unlabeled,
        params,
        text=text,
        seeds=tuple(seeds),
        folds=folds,
        preset=preset,
        featurizer=featurizer,
        text_features=_names(text_features),
        model=model,
        tune=tune,
        tune_cpu=tune_cpu,
        guard=guard,
        tune_seed=tune_seed,
        threads=threads,
        jobs=jobs,
    )
    tell = _tell if verbose else _ignore
    kept = Store(store)
    options = GridOptions(
        jobs=jobs,
        timeout=timeout,
        memory=memory,
        retry=retry,
        reuse=reuse,
        executor=executor,
        on_end=lambda record: tell(_line(record)),
    )
    return run_grid(plan(request, store=kept, notice=tell), kept, isolated, options).records


def train(
    method: str,
    dataset: str | None = None,
    *,
    data: PathLike | None = None,
    columns: Sequence[str] = COLUMNS,
    labeled: int | str = "all",
    unlabeled: int | str | None = None,
    text: TextSource | None = None,
    seed: int = 0,
    params: Mapping[str, Any] | None = None,
    preset: str | None = None,
    featurizer: str | None = None,
    text_features: Names = (),
    model: str | None = None,
    tune: int | None = None,
    tune_cpu: float | None = None,
    guard: bool = True,
    threads: int | None = None,
    verbose: bool = False,
) -> TrainedTagger:
    """Train a method in this process; see `run` for the parameters.

    The guard trains the method on five folds more; guard=False leaves it out. No sentences of
    `data` are held out for a test.

    Returns
    -------
    A tagger with ``predict(sentences)``, ``predict_proba(sentences)``, ``scores`` and
    ``save(path)``.
    """
    request = _request(
        method,
        () if dataset is None else dataset,
        data,
        columns,
        labeled,
        unlabeled,
        params,
        text=text,
        seeds=(seed,),
        preset=preset,
        featurizer=featurizer,
        text_features=_names(text_features),
        model=model,
        tune=tune,
        tune_cpu=tune_cpu,
        guard=guard,
        threads=use_threads(threads),
        cut=False,
        quiet=not verbose,
    )
    return train_tagger(request, _tell if verbose else _ignore)


def load_tagger(path: PathLike) -> SavedTagger:
    """Read a saved tagger; UserError if the file is damaged or its method is not installed."""
    return load(path, registry())


def results(store: PathLike = "runs") -> pd.DataFrame:
    """The records of a store as a table with a row per run.

    Metrics are columns such as ``test_f1``, in [0, 1].
    """
    import pandas as pd

    names, rows = flat_rows(Store(store).records())
    return pd.DataFrame(rows, columns=names)


def compare(
    a: str | RunRecord, b: str | RunRecord, *, store: PathLike = "runs", metric: str | None = None
) -> RunComparison:
    """Test the difference between the taggers of two runs, sentence by sentence.

    a, b: records, run ids of the store, or unique beginnings of ids.
    UserError for runs that have failed or have different test sentences.
    """
    first, second = (Store(store).find(run) if isinstance(run, str) else run for run in (a, b))
    return compare_runs(first, second, metric=metric)


def _request(
    method: Names,
    dataset: Names,
    data: PathLike | None,
    columns: Sequence[str],
    labeled: int | str,
    unlabeled: int | str | None,
    params: Mapping[str, Any] | None,
    **more: Any,
) -> Request:
    settings = [f"{name}={_text(value)}" for name, value in (params or {}).items()]
    return Request(
        methods=_names(method),
        datasets=_names(dataset),
        data_path=None if data is None else Path(data),
        columns=tuple(columns),
        labeled=parse_labeled(str(labeled)),
        unlabeled=None if unlabeled is None else parse_unlabeled(str(unlabeled)),
        settings=settings,
        **more,
    )


def _names(given: Names) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(dict.fromkeys(given))


def _text(value: Any) -> str:
    """A value as the command line takes it."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _line(record: RunRecord) -> str:
    result = record.error if record.score is None else f"{100 * record.score:.2f}"
    where = f"{record.method} on {record.dataset}, seed {record.spec.protocol.seed}"
    return f"{record.status}: {where}: {record.primary_metric} {result}"


def _tell(text: str) -> None:
    print(f"sslbench: {text}", file=sys.stderr, flush=True)


def _ignore(text: str) -> None:
    pass
