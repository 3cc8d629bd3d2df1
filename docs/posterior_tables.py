"""Tables and figure of docs/posterior_regularisation.md, from run records.

    python docs/posterior_tables.py [RUNS]

RUNS, a folder of records, refreshes posterior_runs.csv beside this file, which has one line a run;
the tables are made from that. They go to standard output, the figure to posterior_labelled.svg.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np
from run_tables import read_runs, row

from sslbench.experiment.record import RunRecord

HERE = Path(__file__).parent
TABLE, FIGURE = HERE / "posterior_runs.csv", HERE / "posterior_labelled.svg"
#: error % in the paper: mean, standard deviation
PAPER = {
    "GP": (17.57, 0.30), "GP, solved": None, "GP→CRF": (15.07, 0.35), "GP→CRF, solved": None,
    "CRF": (9.82, 0.48),
    "PR1": (6.03, 0.20), "PR": (4.89, 0.42),
}  # fmt: skip
NAMES = {
    "graph_propagation": "GP",
    "gp_crf": "GP→CRF",
    "supervised": "CRF",
    "graph_pr": "PR",
    "pr1": "PR1",
}
BASELINES = ("GP", "GP→CRF", "CRF")
CURVE_SIZES = (50, 100, 150, 200, 300, 400, 500)


@dataclass(frozen=True)
class Run:
    """One record. error, unseen: of test, in %; pr1: error after the first round; q: of the
    regularised posterior."""

    run: str
    method: str
    dataset: str
    draw: int
    size: int
    mode: str
    schedule: str
    rounds: int
    error: float
    unseen: float
    pr1: float
    q: float
    cpu_s: float
    mb: float

    @property
    def name(self) -> str:
        name = NAMES[self.method]
        # the letters were labelled both ways, words by the solution alone
        return f"{name}, solved" if self.mode == "solve" and self.dataset == "ocr" else name


def run_of(record: RunRecord) -> Run:
    """The line of a record."""
    options, params, test = record.spec.data.options, record.params, record.metrics["test"]

    def error(metric: str) -> float:
        return 100 * (1 - float(test[metric])) if metric in test else float("nan")

    return Run(
        run=record.run_id, method=record.method, dataset=record.dataset,
        draw=int(options["draw"]), size=int(options.get("size", 100)),
        mode=str(params.get("mode", "")), schedule=str(params.get("schedule", "")),
        rounds=int(params.get("em_iters", 0)), error=error("accuracy"),
        unseen=error("unseen_accuracy"), pr1=error("accuracy_pr1"),
        q=error("accuracy_q"),
        cpu_s=float(record.cpu_s or 0.0), mb=float(record.peak_rss_mb or 0.0),
    )  # fmt: skip


def read(folder: str | None) -> list[Run]:
    """The runs of a folder, which replace those of the file; else those of the file."""
    return read_runs(Run, run_of, lambda run: [str(v) for v in astuple(run)[1:]], TABLE, folder)


def mean_sd(values: Iterable[float]) -> str:
    values = [value for value in values if not np.isnan(value)]
    if not values:
        return ""
    sd = f" ± {np.std(values, ddof=1):.2f}" if len(values) > 1 else ""
    return f"{np.mean(values):.2f}{sd}"


def letters(runs: Sequence[Run]) -> None:
    """Error on the letters, by method and setting."""
    print("\n### Letters\n")
    print(row("", "error %", "draws", "paper", "CPU seconds a draw", "MB"))
    print(row(*["---"] * 6))
    kinds = sorted({(list(PAPER).index(r.name), r.schedule, r.rounds) for r in runs})
    for at, schedule, rounds in kinds:
        name = list(PAPER)[at]
        own = [r for r in runs if (r.name, r.schedule, r.rounds) == (name, schedule, rounds)]
        how = f", {rounds} rounds, {schedule}" if rounds else ""
        if rounds:
            print(
                row(f"PR1{how}", mean_sd(r.pr1 for r in own), str(len(own)), paper("PR1"), "", "")
            )
        cost = f"{np.mean([r.cpu_s for r in own]):.0f}", f"{max(r.mb for r in own):.0f}"
        print(row(name + how, mean_sd(r.error for r in own), str(len(own)), paper(name), *cost))


def paper(name: str) -> str:
    found = PAPER[name]
    return "" if found is None else f"{found[0]:.2f} ± {found[1]:.2f}"


def languages(runs: Sequence[Run]) -> None:
    """Error by language, and the gain of PR over the best of the three baselines."""
    print("\n### Languages\n")
    print(row("", *BASELINES, "PR1", "PR", "q", "gain", "unseen words: CRF", "PR", "gain", "draws"))
    print(row(*["---"] * 12))
    gains, unseen_gains, ahead = [], [], []
    for dataset in sorted({r.dataset for r in runs}):
        own = [r for r in runs if r.dataset == dataset and r.size == 100]
        draws = [
            {r.name: r for r in own if r.draw == draw} for draw in sorted({r.draw for r in own})
        ]
        draws = [by for by in draws if {*BASELINES, "PR"} <= set(by)]
        if not draws:
            continue
        best = min(BASELINES, key=lambda name: np.mean([by[name].error for by in draws]))
        gain = [by[best].error - by["PR"].error for by in draws]
        unseen = [by["CRF"].unseen - by["PR"].unseen for by in draws]
        ahead += [by["PR"].error < min(by[name].error for name in BASELINES) for by in draws]
        gains.append(np.mean(gain))
        unseen_gains.append(np.mean(unseen))
        print(row(
            dataset, *(mean_sd(by[name].error for by in draws) for name in BASELINES),
            mean_sd(by["PR"].pr1 for by in draws), mean_sd(by["PR"].error for by in draws),
            mean_sd(by["PR"].q for by in draws),
            f"{mean_sd(gain)} ({best})", mean_sd(by["CRF"].unseen for by in draws),
            mean_sd(by["PR"].unseen for by in draws), mean_sd(unseen), str(len(draws)),
        ))  # fmt: skip
    if gains:
        print(f"\nmean gain {np.mean(gains):.2f} points (smallest {min(gains):.2f}, largest"
              f" {max(gains):.2f}), on unseen words {np.mean(unseen_gains):.2f}; PR is better than"
              f" all three baselines on {sum(ahead)} of {len(ahead)} draws")  # fmt: skip


def curve(runs: Sequence[Run]) -> None:
    """Error by the number of labelled sentences, for data sets that have several sizes."""
    for dataset in swept(runs):
        print(f"\n### {dataset}: labelled sentences\n")
        print(row("", *map(str, CURVE_SIZES)))
        print(row(*["---"] * (1 + len(CURVE_SIZES))))
        for name in (*BASELINES, "PR"):
            print(row(name, *map(mean_sd, errors_by_size(runs, dataset, name))))


def swept(runs: Sequence[Run]) -> list[str]:
    return sorted({r.dataset for r in runs if r.size != 100})


def errors_by_size(runs: Sequence[Run], dataset: str, name: str) -> list[list[float]]:
    draws = {r.draw for r in runs if r.dataset == dataset and r.size != 100}
    return [
        [r.error for r in runs
         if (r.dataset, r.name, r.size) == (dataset, name, size) and r.draw in draws]
        for size in CURVE_SIZES
    ]  # fmt: skip


def figure(runs: Sequence[Run]) -> None:
    """The curves, drawn."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    for dataset in swept(runs):
        with matplotlib.rc_context({"svg.hashsalt": "sslbench", "svg.fonttype": "none"}):
            drawn = Figure(figsize=(5.5, 3.6), layout="constrained")
            axes = drawn.subplots()
            for name in (*BASELINES, "PR"):
                errors = errors_by_size(runs, dataset, name)
                points = [
                    (s, np.mean(e), np.std(e))
                    for s, e in zip(CURVE_SIZES, errors, strict=True)
                    if e
                ]
                if points:
                    x, y, sd = zip(*points, strict=True)
                    axes.errorbar(x, y, yerr=sd, marker="o", capsize=3, label=name)
            axes.set(xlabel="labelled sentences", ylabel="error %", title=dataset)
            axes.set_ylim(bottom=0)
            axes.legend(fontsize=8)
            FigureCanvasSVG(drawn).print_svg(FIGURE, metadata={"Date": None})


def tables(runs: Sequence[Run]) -> None:
    """All tables of the page."""
    letters([r for r in runs if r.dataset == "ocr"])
    words = words_of(runs)
    languages(words)
    curve(words)


def words_of(runs: Sequence[Run]) -> list[Run]:
    return [r for r in runs if r.dataset.startswith("ud_")]


def main() -> None:
    runs = read(sys.argv[1] if len(sys.argv) > 1 else None)
    tables(runs)
    figure(words_of(runs))


if __name__ == "__main__":
    main()
