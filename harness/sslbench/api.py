"""The functions of ``import sslbench``: run, train, load_tagger, results, compare.

They do what the commands of the same names do, with the same defaults.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, get_type_hints

from sslbench.engine.plain import plain
from sslbench.experiment.execute.grid import GridOptions, run_grid
from sslbench.experiment.execute.startup import use_threads
from sslbench.experiment.planning.plan import plan
from sslbench.experiment.records.record import RunRecord
from sslbench.experiment.records.store import Store
from sslbench.experiment.request.parameters import parameters
from sslbench.experiment.request.request import PathLike, RunRequest, TrainRequest
from sslbench.experiment.run.saved import SavedTagger, TrainedTagger, train_tagger
from sslbench.experiment.run.saved import load_tagger as load
from sslbench.isolation.start import isolated
from sslbench.plugins import registry
from sslbench.plugins.hooks import suggestion
from sslbench.report.flat import flat_rows
from sslbench.report.two_runs import RunComparison, compare_runs

if TYPE_CHECKING:
    import pandas as pd

P = ParamSpec("P")
Q = TypeVar("Q")
R = TypeVar("R")


def _keywords_of(kind: Callable[P, Q]) -> Callable[[Callable[[Q], R]], Callable[P, R]]:
    """Give a function of a request the parameters of the request, with their documentation."""

    def decorate(function: Callable[[Q], R]) -> Callable[P, R]:
        hints, params = get_type_hints(kind), inspect.signature(kind).parameters

        @wraps(function)
        def call(*args: P.args, **given: P.kwargs) -> R:
            for name in given:
                if name not in params:
                    hint = suggestion(name, params)
                    raise TypeError(f"{function.__name__}() has no parameter {name!r}; {hint}")
            return function(kind(*plain(args), **plain(given)))

        shown = [each.replace(annotation=hints[each.name]) for each in params.values()]
        result = get_type_hints(function)["return"]
        vars(call)["__signature__"] = inspect.Signature(shown, return_annotation=result)
        call.__doc__ = inspect.cleandoc(function.__doc__ or "").replace(
            "\nReturns\n", f"\nParameters\n----------\n{_documented(kind)}\n\nReturns\n"
        )
        return call

    return decorate


def _documented(kind: Any) -> str:
    """A paragraph for each parameter of a request."""
    return "\n".join(f"{each.name}: {each.doc}" for each in parameters(kind).values())


@_keywords_of(RunRequest)
def run(request: RunRequest) -> list[RunRecord]:
    """Run every combination of methods, datasets and seeds, each in its own process.

    Finished runs are in the store and are not run again. A run that fails is a record with another
    `status` than "ok". `params` is a mapping from "key" or "owner.key" to the value.

    Returns
    -------
    The records, in the order of datasets, seeds and methods.

    Raises
    ------
    UserError: an unknown name, a parameter that does not fit, or data that cannot be read.
    TypeError: an unknown keyword.
    """
    show = _show if request.verbose else _ignore
    store = Store(request.store)
    options = GridOptions(**request.execution(), on_end=lambda record: show(_line(record)))
    return run_grid(plan(request, store=store, notice=show), store, isolated, options).records


@_keywords_of(TrainRequest)
def train(request: TrainRequest) -> TrainedTagger:
    """Train a method in this process.

    No sentences of `data` are held out for a test.

    Returns
    -------
    A tagger with ``predict(sentences)``, ``predict_proba(sentences)``, ``scores`` and
    ``save(path)``.

    Raises
    ------
    UserError: an unknown name, a parameter that does not fit, or data that cannot be read.
    TypeError: an unknown keyword.
    """
    use_threads(request.threads)
    return train_tagger(request, _show if request.verbose else _ignore)


def load_tagger(path: PathLike) -> SavedTagger:
    """Read a saved tagger; UserError if the file is damaged or its method is not installed."""
    return load(path, registry())


def results(store: PathLike = "runs") -> pd.DataFrame:
    """The records of a store as a table with a row per run.

    Metrics are columns such as ``test_f1``, in [0, 1].
    """
    import pandas as pd

    names, rows = flat_rows(Store(store).each())
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


def _line(record: RunRecord) -> str:
    result = record.error if record.score is None else f"{100 * record.score:.2f}"
    where = f"{record.method} on {record.dataset}, seed {record.spec.protocol.seed}"
    return f"{record.status}: {where}: {record.primary_metric} {result}"


def _show(text: str) -> None:
    print(f"sslbench: {text}", file=sys.stderr, flush=True)


def _ignore(text: str) -> None:
    pass
