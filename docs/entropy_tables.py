"""Tables and figure of docs/entropy_regularization.md, from run records.

    python docs/entropy_tables.py [RUNS]

RUNS, a folder of records, refreshes entropy_runs.csv beside this file, which has one line a run;
the tables are made from that. They go to standard output, the figure to entropy_figure2.svg.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from run_tables import read_runs, row
from scipy import stats

from sslbench.experiment.metrics.scoring import TypeScore
from sslbench.experiment.record import RunRecord

HERE = Path(__file__).parent
TABLE, FIGURE = HERE / "entropy_runs.csv", HERE / "entropy_figure2.svg"
SPLITS = ("transductive", "test")
DATASETS, SETS = ("genetag_jiao", "bc2gm_jiao"), ("B", "C", "D")
GRID = (0.0, 0.1, 0.5, 1.0, 5.0, 10.0)
#: the paper's table 1 (precision, recall, F) and table 2 (predicted, correct of 7,472), by set
PAPER_1 = {
    0.0: ((0.80, 0.36, 0.50), (0.77, 0.29, 0.43), (0.74, 0.30, 0.43)),
    0.1: ((0.82, 0.40, 0.54), (0.79, 0.32, 0.46), (0.74, 0.31, 0.44)),
    0.5: ((0.82, 0.40, 0.54), (0.79, 0.33, 0.46), (0.74, 0.31, 0.44)),
    1.0: ((0.82, 0.40, 0.54), (0.77, 0.34, 0.47), (0.73, 0.33, 0.45)),
    5.0: ((0.84, 0.45, 0.59), (0.78, 0.38, 0.51), (0.72, 0.36, 0.48)),
    10.0: ((0.78, 0.46, 0.58), (0.66, 0.38, 0.48), (0.66, 0.38, 0.47)),
}
PAPER_2 = {
    0.0: ((3334, 2435), (3334, 2435), (3334, 2435)),
    0.1: ((3345, 2446), (3376, 2470), (3366, 2466)),
    0.5: ((3413, 2489), (3450, 2510), (3376, 2469)),
    1.0: ((3446, 2503), (3588, 2580), (3607, 2590)),
    5.0: ((4089, 2878), (4206, 2947), (4165, 2888)),
    10.0: ((4450, 2799), (4762, 2827), (4778, 2845)),
}
#: parameters that the tables leave as they are
USUAL = {"gamma_scale=sum", "joint_iterations=200", "max_iterations=500", "anneal=none",
         "features_from=labeled", "entropy_of=sentence", "min_count=1", "ftol=0.0001",
         "restarts=1", "state_support=all", "rounds=20", "tolerance=0.0", "weight=1.0"}  # fmt: skip
CONTROL = 1e-6  # weights below are controls: the same ascent without the entropy


@dataclass(frozen=True)
class Run:
    """One record. counts: gold, predicted, correct mentions of test and of the external text.

    setting: what is shared by runs that differ in gamma and seed alone; entropy: nats a token of
    the text, before and after; inside: share of the text's tokens that the model expects to be of
    another label than the most frequent one, before and after.
    """

    run: str
    method: str
    dataset: str
    unlabeled: str
    seed: int
    gamma: float
    setting: str
    metric: float
    test_gold: int
    test_predicted: int
    test_correct: int
    transductive_gold: int
    transductive_predicted: int
    transductive_correct: int
    entropy_before: float
    entropy_after: float
    inside_before: float
    inside_after: float
    iterations: int

    @property
    def group(self) -> tuple[str, str, str, str]:
        return self.method, self.dataset, self.unlabeled, self.setting

    def score(self, split: str) -> TypeScore:
        return TypeScore(*(getattr(self, f"{split}_{kind}") for kind in KINDS))


KINDS = ("gold", "predicted", "correct")


def run_of(record: RunRecord) -> Run:
    """The line of a record."""
    options, protocol = record.spec.data.options, record.spec.protocol
    params = dict(record.params)
    gamma = float(params.pop("gamma", 0.0))
    shown = {f"{key}={value}" for key, value in params.items()} - USUAL
    if record.model != "crf1":
        shown.add(f"model={record.model}")
    if protocol.labeled != "all":
        shown |= {f"labeled={protocol.labeled}", f"unlabeled={protocol.unlabeled}"}
    trace = record.trace.get("entropy_regularization", {})
    ends = [trace.get(end, {}) for end in ("before", "after")]
    counts: dict[str, int] = {}
    for split in SPLITS:
        found = record.counts.get(split, {})
        counts |= {f"{split}_{k}": int(sum(found.get(f"{k}_chunks", [0]))) for k in KINDS}
    return Run(
        run=record.run_id, method=record.method, dataset=record.dataset,
        unlabeled=str(options.get("unlabeled", "")), seed=int(options.get("seed", protocol.seed)),
        gamma=gamma, setting=" ".join(sorted(shown)), metric=float(record.score or 0.0), **counts,
        entropy_before=ends[0].get("entropy", np.nan), entropy_after=ends[1].get("entropy", np.nan),
        inside_before=1 - max(ends[0].get("labels", [np.nan])),
        inside_after=1 - max(ends[1].get("labels", [np.nan])),
        iterations=sum(stage["iterations"] for stage in trace.get("stages", [])),
    )  # fmt: skip


def read(folder: str | None) -> list[Run]:
    """The runs of a folder, which replace those of the file; else those of the file."""
    return read_runs(Run, run_of, lambda run: (*run.group, run.gamma, run.seed), TABLE, folder)


def mean_sd(values: Sequence[float], form: str = ".3f") -> str:
    sd = f" ({np.std(values, ddof=1):{form}})" if len(values) > 1 else ""
    return f"{np.mean(values):{form}}{sd}"


def tables(runs: Sequence[Run]) -> None:
    """All tables of the page."""
    papers(runs)
    differences(runs)


def papers(runs: Sequence[Run]) -> None:
    """The paper's two tables: means over the draws and standard deviations."""
    for split, number in zip(SPLITS, (1, 2), strict=True):
        for dataset in DATASETS:
            mine = [r for r in runs if r.dataset == dataset and r.setting == "sigma2=1.0"]
            print(f"\n### Table {number}, {dataset}\n")
            heads = [f"A+{name}" for name in SETS]
            print(row("gamma", *heads, *(f"paper, {head}" for head in heads)))
            print(row(*["---"] * 7))
            for gamma in GRID:
                er = [r for r in mine if r.method == "entropy_regularization" and r.gamma == gamma]
                paper = [_paper(number, gamma, at) for at in range(len(SETS))]
                print(row(f"{gamma:g}", *_cells(er, split), *paper))
            st = [r for r in mine if r.method == "self_training"]
            print(row("self-training", *_cells(st, split), *["no gain"] * 3))


def _paper(number: int, gamma: float, at: int) -> str:
    if number == 1:
        return " ".join(f"{value:.2f}" for value in PAPER_1[gamma][at])
    predicted, correct = PAPER_2[gamma][at]
    score = TypeScore(7472, predicted, correct)
    values = (score.precision, score.recall, score.f1)
    return " ".join(f"{value:.3f}" for value in values) + f"<br>{predicted} / {correct}"


def _cells(runs: Sequence[Run], split: str) -> list[str]:
    """For each set precision, recall and F, and below them mentions predicted / correct."""
    cells = []
    for name in SETS:
        scores = [run.score(split) for run in runs if run.unlabeled == name]
        if not scores:
            cells.append("")
            continue
        values = [
            mean_sd([getattr(s, key) for s in scores]) for key in ("precision", "recall", "f1")
        ]
        counts = [mean_sd([getattr(s, key) for s in scores], ".0f") for key in KINDS[1:]]
        cells.append(f"{' '.join(values)}<br>{' / '.join(counts)}")
    return cells


def differences(runs: Sequence[Run]) -> None:
    """Every setting's gain over its start, the same seeds at gamma = 0, with 95 % intervals of
    Student's t; and over its control, where there is one.
    """
    groups: dict[tuple[str, str, str], dict[float, dict[int, Run]]] = defaultdict(dict)
    starts: dict[tuple[str, str, str], dict[int, Run]] = defaultdict(dict)
    for run in runs:
        if run.method == "supervised":
            starts[run.dataset, run.unlabeled, run.setting][run.seed] = run
        if run.method == "entropy_regularization":
            group = run.dataset, run.unlabeled, run.setting
            groups[group].setdefault(run.gamma, {})[run.seed] = run
            if run.gamma == 0:
                starts[run.dataset, run.unlabeled, _start(run.setting)][run.seed] = run
    print("\n### Gains\n")
    print(row("data", "set", "setting", "gamma", "from", "gain (95 % interval)", "seeds",
              "precision", "recall", "expected share of names", "nats a token"))  # fmt: skip
    print(row(*["---"] * 11))
    for (dataset, name, setting), by_gamma in sorted(groups.items()):
        first = starts[dataset, name, _start(setting)]
        controls = [by_gamma[gamma] for gamma in sorted(by_gamma) if 0 < gamma < CONTROL]
        for gamma in sorted(set(by_gamma) - {0.0}):
            if setting == "sigma2=1.0" and name and gamma > GRID[1]:
                continue  # in the tables
            for base in [first, *(controls if gamma > CONTROL else [])]:
                _gain(dataset, name, setting, gamma, base, by_gamma[gamma])
    for dataset, name in product(DATASETS, SETS):
        trained = {run.seed: run for run in runs if run.method == "self_training"
                   and (run.dataset, run.unlabeled) == (dataset, name)}  # fmt: skip
        _gain(dataset, name, "self-training", np.nan, starts[dataset, name, "sigma2=1.0"], trained)


def _start(setting: str) -> str:
    """The setting of the supervised model that an ascent begins at."""
    later = ("joint_iterations=", "entropy_of=", "anneal=", "gamma_scale=")
    return " ".join(part for part in setting.split() if not part.startswith(later))


def _gain(
    dataset: str, name: str, setting: str, gamma: float, base: dict[int, Run], own: dict[int, Run]
) -> None:
    pairs = [(base[seed], own[seed]) for seed in sorted(base.keys() & own.keys())]
    if len(pairs) < 2:
        return
    gains = 100 * np.array([b.metric - a.metric for a, b in pairs])
    half = stats.t.ppf(0.975, len(gains) - 1) * gains.std(ddof=1) / np.sqrt(len(gains))
    first = pairs[0][0].gamma
    control = f" (control: {first:g})" if first else ""
    shown = [""] * 3
    if pairs[0][0].test_gold:
        scores = [[run.score("test") for run in side] for side in zip(*pairs, strict=True)]
        shown = [
            _change([[s.precision for s in side] for side in scores]),
            _change([[s.recall for s in side] for side in scores]),
            _change([[run.inside_after for run in side] for side in zip(*pairs, strict=True)]),
        ]
    entropy = _change([[a.entropy_after for a, _ in pairs], [b.entropy_after for _, b in pairs]])
    print(row(
        dataset, name, setting, "" if np.isnan(gamma) else f"{gamma:g}{control}",
        f"{100 * np.mean([a.metric for a, _ in pairs]):.2f}",
        f"{gains.mean():+.2f} ({gains.mean() - half:+.2f} to {gains.mean() + half:+.2f})",
        str(len(pairs)), *shown, entropy,
    ))  # fmt: skip


def _change(ends: Sequence[Sequence[float]]) -> str:
    before, after = (float(np.mean(values)) for values in ends)
    return "" if np.isnan(before + after) else f"{before:.3f} to {after:.3f}"


def figure(runs: Sequence[Run]) -> None:
    """The paper's figure 2: correct mentions of E over gamma, for the three sets."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"svg.hashsalt": "sslbench", "svg.fonttype": "none"}):
        drawn = Figure(figsize=(9, 3.6), layout="constrained")
        for axes, dataset in zip(drawn.subplots(1, 2, sharey=True), DATASETS, strict=True):
            for colour, name in enumerate(SETS):
                points = _points(runs, dataset, name)
                if points:
                    x, means, sds = zip(*points, strict=True)
                    axes.errorbar(x, means, yerr=sds, marker="o", capsize=3, color=f"C{colour}",
                                  label=f"A+{name}")  # fmt: skip
                paper = [(g, cells[colour][1] / 7472) for g, cells in PAPER_2.items()]
                axes.plot(*zip(*paper, strict=True), "--", color=f"C{colour}", alpha=0.6,
                          label=f"paper, A+{name}")  # fmt: skip
            axes.set_title(dataset, fontsize=10)
            axes.set_xlabel("gamma")
            axes.set_xscale("symlog", linthresh=0.1)
            axes.set_xticks([0, 0.1, 0.5, 1, 5, 10, 20], ["0", ".1", ".5", "1", "5", "10", "20"])
            axes.set_xticks([], minor=True)
            axes.grid(alpha=0.3)
        drawn.axes[0].set_ylabel("correct mentions of E / all (recall)")
        drawn.axes[0].legend(fontsize=7, ncols=2)
        FigureCanvasSVG(drawn)
        drawn.savefig(FIGURE, format="svg", metadata={"Date": None, "Creator": None})


def _points(runs: Iterable[Run], dataset: str, name: str) -> list[tuple[float, float, float]]:
    found: dict[float, list[float]] = defaultdict(list)
    for run in runs:
        if (*run.group,) == ("entropy_regularization", dataset, name, "sigma2=1.0"):
            found[run.gamma].append(run.score("test").recall)
    kept = sorted(g for g in found if (g == 0 or g >= GRID[1]) and len(found[g]) > 1)
    return [(g, float(np.mean(found[g])), float(np.std(found[g], ddof=1))) for g in kept]


def main() -> None:
    runs = read(sys.argv[1] if len(sys.argv) > 1 else None)
    tables(runs)
    figure(runs)


if __name__ == "__main__":
    main()
