"""Which features and which method for a user's data: cross-validation within a time budget.

Features first, with the supervised CRF; then the methods that read unlabeled text, with the best
features. A method is chosen over the supervised CRF only if a paired test of their taggers speaks
for it (docs/statistics.md). The test is that of one method: if it is wrong because many were tried,
the method is as good as the supervised CRF, and little is lost. The answer says whether it stands
with Bonferroni's correction, too.

Sentences of a document are no independent witnesses: tests swap whole documents, or blocks of
adjacent sentences where folds are blocks. The range of a score is an interval over the folds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from sslbench.engine.errors import UserError
from sslbench.experiment.data import Dataset
from sslbench.experiment.data.userdata import fitting_featurizers
from sslbench.experiment.data.weak import source_names
from sslbench.experiment.execute.grid import GridOptions, run_grid
from sslbench.experiment.planning.plan import plan
from sslbench.experiment.planning.published import mean_gains
from sslbench.experiment.planning.task import load_dataset
from sslbench.experiment.records.record import RunRecord
from sslbench.experiment.records.store import Store
from sslbench.experiment.request.request import RunRequest
from sslbench.isolation.start import isolated
from sslbench.plugins import Registry, registry
from sslbench.plugins.registrations import MethodInfo
from sslbench.report.held_out import Range, score_range, witnesses
from sslbench.report.two_runs import RunComparison, compare_runs

LEVEL = 0.05
#: of the time that is left, what one candidate may take
SHARE = 0.5
HALF = "50%"


@dataclass(frozen=True)
class Candidate:
    """A method with features."""

    method: str
    featurizer: str

    def __str__(self) -> str:
        return f"{self.method} with {self.featurizer}"


@dataclass
class Choice:
    """What was tried, and what it says.

    Attributes
    ----------
    tried: records by candidate, in the order of their scores, best first.
    left_out: candidates without a record, and why.
    against_baseline: the difference of each method to the baseline.
    close: methods, and the baseline, that cannot be told apart from the chosen one.
    ranges: of the score on new text, by candidate.
    half: that of the baseline with half of the labeled sentences; None = not tried.
    """

    tried: dict[Candidate, RunRecord] = field(default_factory=dict)
    left_out: dict[Candidate, str] = field(default_factory=dict)
    against_baseline: dict[Candidate, RunComparison] = field(default_factory=dict)
    close: list[Candidate] = field(default_factory=list)
    ranges: dict[Candidate, Range] = field(default_factory=dict)
    half: Range | None = None

    @property
    def baseline(self) -> Candidate:
        """The supervised CRF with the best features."""
        return next(each for each in self.tried if each not in self.against_baseline)

    @property
    def chosen(self) -> Candidate:
        """The best method that is clearly better than the baseline, or the baseline."""
        better = (
            each
            for each in self.tried
            if (paired := self.against_baseline.get(each)) is not None
            and paired.difference > 0
            and paired.p_value <= LEVEL
        )
        return next(better, self.baseline)

    @property
    def corrected_p(self) -> float:
        """Bonferroni's p value of the chosen method against the baseline; 1 for the baseline."""
        paired = self.against_baseline.get(self.chosen)
        return 1.0 if paired is None else min(1.0, paired.p_value * len(self.against_baseline))


@dataclass
class _Search:
    request: RunRequest
    store: Store
    plugins: Registry
    dataset: Dataset
    ends: float  # by time.monotonic()
    notice: Callable[[str], None]
    keeps: bool = False  # the chosen one is trained on everything, within the same time
    least: float = 0.0  # seconds: what takes longer than the baseline is not begun without them
    choice: Choice = field(default_factory=Choice)

    @property
    def left(self) -> float:
        """Seconds for further candidates."""
        fits = [record.wall_s / self.request.folds for record in self.choice.tried.values()]
        return self.ends - time.monotonic() - (2 * max(fits, default=0.0) if self.keeps else 0.0)

    def try_all(self, candidates: Sequence[Candidate]) -> None:
        """Cross-validate candidates while there is time."""
        for number, candidate in enumerate(candidates, 1):
            left = self.left
            if left * SHARE <= self.least:
                self.choice.left_out[candidate] = "no time was left"
                continue
            self.notice(f"{number} of {len(candidates)}: {candidate}, {left:.0f} s left")
            record = self._record(candidate, self.request, left)
            if record.status == "ok" and record.score is not None:
                self.choice.tried[candidate] = record
                self.choice.ranges[candidate] = score_range(record, self.dataset)
                self.notice(f"{candidate}: {record.primary_metric} {100 * record.score:.2f}")
            else:
                why = str(record.error)
                if record.status == "timeout":
                    why = f"stopped after {_share(left):.0f} s, half of the time that was left"
                self.choice.left_out[candidate] = why
                self.notice(f"{candidate}: {why}")
        ranked = sorted(self.choice.tried.items(), key=lambda item: -(item[1].score or 0.0))
        self.choice.tried = dict(ranked)

    def try_half(self, candidate: Candidate) -> None:
        """Cross-validate with half of the labeled sentences, if there is time."""
        left = self.left
        if left * SHARE > self.least:
            self.notice(f"{candidate}, with half of the labels, {left:.0f} s left")
            record = self._record(candidate, replace(self.request, labeled=HALF), left)
            if record.status == "ok" and record.score is not None:
                self.choice.half = score_range(record, self.dataset)

    def _record(self, candidate: Candidate, request: RunRequest, left: float) -> RunRecord:
        request = replace(request, method=(candidate.method,), featurizer=candidate.featurizer)
        tasks = plan(request, store=self.store, plugins=self.plugins, notice=lambda text: None)
        options = GridOptions(timeout=round(_share(left), 1), retry=True)
        return run_grid(tasks, self.store, isolated, options, self.plugins).records[0]


def choose(
    request: RunRequest,
    *,
    budget: float,
    store: Store,
    keeps: bool = False,
    notice: Callable[[str], None] = lambda text: None,
) -> Choice:
    """Compare features and methods on a user's own data, by cross-validation.

    Parameters
    ----------
    request: data, columns, folds and threads; its methods are those to compare, () and "all" =
        all that fit; its featurizer, if it has one, is the only one.
    budget: seconds; a run that has begun may take half of what is left. The methods with the
        largest published gain per CPU second come first.
    keeps: the caller trains the choice on everything afterwards; time for that is held back.
    notice: called with a line per step.

    Raises
    ------
    UserError: the data cannot be read, or no features could be trained on.
    """
    plugins = registry()
    named = [plugins.method(name).name for name in request.methods if name != "all"]
    baseline = next(name for name, info in plugins.methods.items() if info.baseline)
    first = replace(request, method=(baseline,))
    (task,) = plan(first, store=None, plugins=plugins, notice=notice)
    dataset = load_dataset(task, plugins)
    search = _Search(request, store, plugins, dataset, time.monotonic() + budget, notice, keeps)
    columns = tuple(dataset.splits["train"].columns)
    features = (
        [request.featurizer]
        if request.featurizer
        else fitting_featurizers(plugins.featurizers, dataset.task, columns)
    )
    search.try_all([Candidate(baseline, name) for name in features])
    choice = search.choice
    if not choice.tried:
        raise UserError(f"nothing could be trained: {'; '.join(choice.left_out.values())}")
    best, baseline_record = next(iter(choice.tried.items()))
    search.least = baseline_record.wall_s
    search.try_half(best)
    every = not named or "all" in request.methods
    methods = _fitting(plugins, dataset, task.spec.model) if every else named
    if dataset.external is None:
        notice("no file of unlabeled text: only features are compared")
        methods = []
    search.try_all([Candidate(name, best.featurizer) for name in methods if name != baseline])
    _compare(choice, best, dataset)
    return choice


def _compare(choice: Choice, baseline: Candidate, dataset: Dataset) -> None:
    """Compare the methods with the baseline, which decides what is chosen; then all with that."""
    record = choice.tried[baseline]
    groups = witnesses(record, dataset)
    for candidate, other in choice.tried.items():
        if candidate.method != baseline.method:
            choice.against_baseline[candidate] = compare_runs(other, record, groups=groups)
    chosen = choice.tried[choice.chosen]
    choice.close = [
        each
        for each in (baseline, *choice.against_baseline)
        if each != choice.chosen
        and compare_runs(choice.tried[each], chosen, groups=groups).p_value > LEVEL
    ]


def _share(left: float) -> float:
    """Seconds that one candidate may take."""
    return max(1.0, left * SHARE)


def _fitting(plugins: Registry, dataset: Dataset, model: str) -> list[str]:
    """Names of methods, those of the largest published gain per CPU second first.

    Methods whose published gain is not above zero come last, and before them those without one.
    """
    about = plugins.model(model)
    baseline = next(name for name, info in plugins.methods.items() if info.baseline)
    gains = mean_gains(baseline, dataset.metric)

    def last(info: MethodInfo) -> tuple[int, float]:
        gain = gains.get(info.name)
        if gain is None:
            return 1, info.cost
        return (0, -gain / info.cost) if gain > 0 else (2, -gain)

    weak = any(source_names(corpus.columns) for corpus in dataset.splits.values())
    return [
        info.name
        for info in sorted(plugins.methods.values(), key=last)
        if info.misfit(dataset.task, about) is None and not info.needs and (weak or not info.weak)
    ]
