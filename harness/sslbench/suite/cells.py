"""The cells of a suite, one run each: which are done, and the runs of those that are not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import msgspec

from sslbench.engine.errors import UserError
from sslbench.engine.lazy import lazy
from sslbench.experiment.identity import is_current
from sslbench.experiment.planning.plan import plan
from sslbench.experiment.planning.settings import parse_settings
from sslbench.experiment.planning.task import RunTask
from sslbench.experiment.records.cost import Prices
from sslbench.experiment.records.record import RunRecord, RunSpec, content_id, spec_key
from sslbench.experiment.records.store import Store
from sslbench.experiment.request.request import RunRequest
from sslbench.plugins import Registry
from sslbench.suite.file import Block, Suite

#: done: of today's versions of the code.  other data: of a data set that has changed since, by the
#: newest run on it.
CellState = Literal["done", "stale", "other data", "failed", "missing"]

#: of a suite: combinations of sizes and settings, and runs; planning them takes some seconds
MOST_REQUESTS, MOST_RUNS = 2000, 100_000


@dataclass(frozen=True)
class Cell:
    """A run that belongs to a suite.

    Attributes
    ----------
    line: name of the row: the method, and the variant of its block.
    column: hash of what the runs of one table share: dataset, options, protocol without the seed.
    request: the request that it is part of.
    task: its run, without the fingerprint of the data.
    record: its newest record, None = missing; state: that of the record.
    """

    line: str
    column: str
    request: RunRequest
    task: RunTask
    record: RunRecord | None = None
    state: CellState = "missing"

    @property
    def spec(self) -> RunSpec:
        """The identity of the run, without the fingerprint of the data."""
        return self.task.spec

    @property
    def seed(self) -> int:
        """The seed of the draw."""
        return self.spec.protocol.seed

    @property
    def by_text(self) -> bool:
        """Whether the file names the source of the unlabeled text; else the data decide on it."""
        return self.request.text is not None

    @lazy
    def key(self) -> str:
        """See `spec_key`."""
        return spec_key(self.spec, self.by_text)

    def describe(self) -> str:
        """The run in one phrase."""
        protocol = self.spec.protocol
        return f"{self.line} on {self.spec.dataset}, {protocol.describe()}, seed {protocol.seed}"


def suite_cells(suite: Suite, plugins: Registry) -> list[Cell]:
    """All cells of a suite in the order of the file, each run once; misfits are left out.

    UserError, with file and line of the table, for what does not fit together or is too much.
    """
    cells: dict[str, Cell] = {}
    requests = runs = 0
    for block, line in zip(suite.blocks, suite.lines, strict=True):
        try:
            more_requests, more_runs = block.size(plugins)
            requests, runs = requests + more_requests, runs + more_runs
            if requests > MOST_REQUESTS or runs > MOST_RUNS:
                raise _too_much(requests, runs)
            for request in block.requests(plugins):
                for cell in _cells(request, block, plugins):
                    cells.setdefault(cell.key, cell)
        except UserError as error:
            message, hint = error.message, error.hint
            raise UserError(message, file=suite.path, line=line, hint=hint) from None
    return list(cells.values())


def _too_much(requests: int, runs: int) -> UserError:
    what = f"the tables until here ask for {requests:,} sizes and settings with {runs:,} runs"
    hint = f"at most {MOST_REQUESTS:,} with {MOST_RUNS:,} fit into a file: make several"
    return UserError(what, hint=hint)


def _cells(request: RunRequest, block: Block, plugins: Registry) -> Iterable[Cell]:
    tasks = plan(request, store=None, plugins=plugins, notice=lambda text: None, load=False)
    varied = [*parse_settings([text for text in request.settings if text not in block.params])]
    for task in tasks:
        if task.skip_reason is None:
            spec = task.spec  # options of datasets are in the column
            ours = [s for s in varied if s.owner in ("", spec.method) and s.key in spec.params]
            values = [f"{s.key}={s.value}" for s in ours]
            line = ", ".join(filter(None, (spec.title, block.variant, *values)))
            yield Cell(line, _column(spec), request, task)


def _column(spec: RunSpec) -> str:
    protocol = msgspec.structs.replace(spec.protocol, seed=0)
    return content_id([spec.dataset, spec.data.options, protocol])


def with_records(cells: Sequence[Cell], store: Store, plugins: Registry) -> list[Cell]:
    """The cells with their newest records and states."""
    newest = {
        by_text: store.newest({cell.key for cell in cells if cell.by_text == by_text}, by_text)
        for by_text in {cell.by_text for cell in cells}
    }
    filled = []
    for cell in cells:
        record = newest[cell.by_text].get(cell.key)
        state = "missing" if record is None else _state(record, plugins)
        filled.append(replace(cell, record=record, state=state))
    data: dict[str, RunRecord] = {}  # the newest run by column
    for cell in filled:
        if cell.record is not None and cell.record.status == "ok":
            data[cell.column] = max(data.get(cell.column, cell.record), cell.record, key=_age)
    return [_checked(cell, data.get(cell.column)) for cell in filled]


def _age(record: RunRecord) -> tuple[str, str]:
    return record.created, record.run_id


def _state(record: RunRecord, plugins: Registry) -> CellState:
    if record.status != "ok":
        return "failed"
    return "done" if is_current(record.spec, record.code, plugins) else "stale"


def _checked(cell: Cell, newest: RunRecord | None) -> Cell:
    """The cell, marked if its data are not those of the newest run of its column."""
    if cell.record is None or newest is None:
        return cell
    ours, theirs = cell.record.spec.data, newest.spec.data
    same = ours == theirs or ours.table == theirs.table  # which takes a hash
    same = same and _agree(cell.record.spec, newest.spec) and _agree(cell.record.spec, cell.spec)
    return cell if same else replace(cell, state="other data")


def _agree(one: RunSpec, other: RunSpec) -> bool:
    """Whether the files of users that both runs have read had the same content."""
    ours, theirs = ({} if spec.inputs is msgspec.UNSET else spec.inputs for spec in (one, other))
    return all(ours[path] == theirs[path] for path in ours.keys() & theirs.keys())


def in_order(cells: Sequence[Cell], prices: Prices) -> list[Cell]:
    """The most informative cells first: one draw of all cells before the next draw.

    Within a draw the cheap ones come first; those without a price come last, as in the file.
    """

    def place(numbered: tuple[int, Cell]) -> tuple[int, float, int]:
        number, cell = numbered
        price = prices.of(cell.spec)
        return cell.seed, float("inf") if price is None else price.cpu_s, number

    return [cell for _, cell in sorted(enumerate(cells), key=place)]


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
    tasks: dict[tuple[bool, str], RunTask] = {}
    for request in _requests(cells):
        by_text = request.text is not None
        asked = replace(request, jobs=jobs)
        for task in plan(asked, store=store, plugins=plugins, notice=notice):
            tasks[by_text, spec_key(task.spec, by_text)] = task
    ordered = [(cell.by_text, cell.key) for cell in in_order(cells, prices)]
    return [tasks[key] for key in ordered if key in tasks]


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

    prices: CPU seconds by run id: about the wall seconds of a run with one thread.
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
