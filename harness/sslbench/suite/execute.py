"""Runs the cells of a suite that are not done, through the machinery of any grid."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sslbench.experiment.planning.plan import plan
from sslbench.experiment.planning.price import Prices
from sslbench.experiment.planning.settings import parse_settings
from sslbench.experiment.planning.task import RunTask
from sslbench.experiment.records.record import spec_key
from sslbench.experiment.records.store import Store
from sslbench.experiment.request.request import RunRequest
from sslbench.plugins import Registry
from sslbench.suite.cells import Cell, in_order


def planned(
    cells: Sequence[Cell],
    prices: Prices,
    store: Store,
    plugins: Registry,
    *,
    jobs: int,
    notice: Callable[[str], None],
) -> list[RunTask]:
    """The runs of these cells, in the order of `in_order`. Data are loaded once per size."""
    found: dict[tuple[bool, str], RunTask] = {}
    for request in _requests(cells):
        asked = replace(request, jobs=jobs)
        for task in plan(asked, store=store, plugins=plugins, notice=notice):
            by_text = request.text is not None
            found[by_text, spec_key(task.spec, by_text)] = task
    ordered = [(cell.request.text is not None, cell.key) for cell in in_order(cells, prices)]
    return [found[key] for key in ordered if key in found]


def _requests(cells: Iterable[Cell]) -> list[RunRequest]:
    """For each request and dataset, the seeds that are wanted.

    The methods are those of the request, since its settings are of some of them.
    """
    groups: dict[tuple[int, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((id(cell.request), cell.spec.dataset), []).append(cell)
    return [
        replace(
            group[0].request,
            dataset=dataset,
            params=_settings_for(group[0].request, dataset),
            seeds=tuple(sorted({cell.seed for cell in group})),
        )
        for (_, dataset), group in groups.items()
    ]


def _settings_for(request: RunRequest, dataset: str) -> tuple[str, ...]:
    """Settings without the options of other data sets of the request."""
    parsed = zip(request.settings, parse_settings(request.settings), strict=True)
    return tuple(
        text for text, each in parsed if each.owner == dataset or each.owner not in request.datasets
    )


@dataclass
class Budget:
    """Wall seconds for a grid: no run starts that is not expected to end within them.

    prices: by run id, CPU seconds, which are about the wall seconds of a run with one thread.
    left: the first run that did not fit; nothing starts after it.
    """

    seconds: float
    prices: Mapping[str, float]
    clock: Callable[[], float] = time.monotonic
    left: RunTask | None = None

    def __post_init__(self) -> None:
        self._began = self.clock()

    def admits(self, task: RunTask) -> bool:
        """Whether the run may start now."""
        used = self.clock() - self._began
        fits = used < self.seconds and used + self.prices.get(task.spec.run_id, 0.0) <= self.seconds
        if not fits and self.left is None:
            self.left = task
        return self.left is None


def wall_seconds(prices: Sequence[float], jobs: int) -> float:
    """About how long runs take side by side: at least their mean share, and the longest one."""
    return max([sum(prices) / jobs, *prices], default=0.0)
