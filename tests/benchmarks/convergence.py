"""How fast JESS-CM converges, by eta (figure 2 of its paper).

    PYTHONPATH=tests python -m benchmarks.convergence FILE.svg

Reads the records of ``replications/suzuki2008/suite.toml`` with 500 labeled sentences and at most
100,000 tokens of text. Prints and draws the distance between the models of two rounds, the mean of
its logarithm over draws with a 95 % interval; a draw that has ended counts with its last distance.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
from scipy import stats

from benchmarks.learned_features import done_cells
from benchmarks.text_amounts import LABELED, SUITE
from sslbench.engine.types import F64
from sslbench.report.svg import Plot

CORPUS, TEXT = "conll00", "100000t"

#: round, mean of log10 of the distance, half of its interval
Points = list[tuple[float, float, float]]


def distances() -> dict[float, list[list[float]]]:
    """By eta, for each draw the distances of its rounds."""
    result: dict[float, list[list[float]]] = defaultdict(list)
    for cell, record in done_cells(SUITE):
        spec = cell.spec
        place = (spec.dataset, spec.method, spec.protocol.labeled, str(spec.protocol.unlabeled))
        if place == (CORPUS, "jess_cm", LABELED, TEXT) and spec.params["sign"] == "nonneg":
            rounds = record.trace["rounds"]
            result[float(spec.params["eta"])].append([each["distance"] for each in rounds])
    return dict(sorted(result.items()))


def points(draws: list[list[float]]) -> Points:
    """A point for each round of the longest draw."""
    last = max(map(len, draws))
    logs: F64 = np.log10([[*each, *[each[-1]] * (last - len(each))] for each in draws])
    halves = stats.t.ppf(0.975, len(logs) - 1) * stats.sem(logs)
    return [
        (number, float(mean), float(half))
        for number, (mean, half) in enumerate(zip(logs.mean(axis=0), halves, strict=True), 1)
    ]


def main() -> None:
    """Print the table, draw the figure."""
    by_eta = distances()
    lines = {f"eta = {eta:g}": points(draws) for eta, draws in by_eta.items()}
    print("| eta | rounds | distance after rounds 1, 2, ... |\n|---|---:|---|")
    for (eta, draws), each in zip(by_eta.items(), lines.values(), strict=True):
        shown = ", ".join(f"{10**mean:.2g}" for _, mean, _ in each)
        print(f"| {eta:g} | {np.mean([len(draw) for draw in draws]):.1f} | {shown} |")
    Path(sys.argv[1]).write_text(drawn(lines), encoding="utf-8")


def drawn(lines: dict[str, Points]) -> str:
    """A line for each eta."""
    every = [point for each in lines.values() for point in each]
    ys = [y + sign * half for _, y, half in every for sign in (-1, 1)]
    plot = Plot([x for x, _, _ in every], ys, "round", "log10 of the distance", [1, 2, 3, 5, 10])
    for number, each in enumerate(lines.values()):
        plot.series(number, each)
    plot.legend(list(lines), range(len(lines)))
    return plot.render("Distance between the models of two rounds of JESS-CM, by eta")


if __name__ == "__main__":
    main()
