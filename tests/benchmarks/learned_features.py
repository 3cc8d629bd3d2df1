"""What do methods add when the features already know the unlabeled text?

    PYTHONPATH=tests python -m benchmarks.learned_features FILE.svg

Reads the records of ``leaderboards/suites/features.toml``. Prints a table of differences to
`supervised` with plain features and to `supervised` with the same features, in points, with 95 %
intervals over draws of the means over corpora; draws the first. Needs all runs of the suite.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy import stats

from sslbench.engine.types import F64
from sslbench.experiment.records.record import RunRecord
from sslbench.experiment.records.store import Store
from sslbench.plugins import registry
from sslbench.report.significance import LEVEL
from sslbench.report.svg import Plot
from sslbench.suite.cells import Cell, suite_cells, with_records
from sslbench.suite.file import read_suite

SUITE = Path(__file__).resolve().parents[2] / "leaderboards/suites/features.toml"
NAMES = {"brown_clusters": "clusters", "word_vectors": "vectors"}
FEATURES = ("plain", *NAMES.values())
SUPERVISED = "supervised"

#: by method and features, the scores in percent, float64[corpora, draws]
Scores = dict[tuple[str, str], F64]


def done_cells(path: Path) -> Iterator[tuple[Cell, RunRecord]]:
    """The cells of a suite with their records; ends the program if one has none of today's code."""
    suite, plugins = read_suite(str(path)), registry()
    store = Store(suite.store)
    for cell in with_records(suite_cells(suite, plugins), store, plugins):
        if cell.record is None or cell.record.score is None or cell.state != "done":
            sys.exit(f"no current record of {cell.line} on {cell.spec.dataset}, draw {cell.seed}")
        yield cell, cell.record


def scores() -> Scores:
    """Of the records of the suite."""
    found: dict[tuple[str, str], dict[str, dict[int, float]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for cell, record in done_cells(SUITE):
        features = "".join(NAMES[name] for name in cell.spec.learned) or "plain"
        found[cell.spec.method, features][cell.spec.dataset][cell.seed] = 100 * (record.score or 0)
    return {
        key: np.array([[of[seed] for seed in sorted(of)] for _, of in sorted(by_corpus.items())])
        for key, by_corpus in found.items()
    }


def interval(difference: F64) -> tuple[float, float]:
    """Mean and half width of float64[corpora, draws], over draws of the means over corpora."""
    means = difference.mean(axis=0)
    spread = means.std(ddof=1) / np.sqrt(len(means))
    return float(means.mean()), float(stats.t.isf(LEVEL / 2, len(means) - 1) * spread)


def main() -> None:
    """Print the table, draw the figure."""
    found = scores()
    methods = list(dict.fromkeys(method for method, _ in found))
    head = [f"{name}, {beside}" for name in FEATURES for beside in ("all", "the method's part")]
    print("| method |", " | ".join(head), "|\n|---|" + "---:|" * len(head))
    lines: dict[str, list[tuple[float, float, float]]] = {}
    for method in methods:
        texts, points = [], []
        for place, features in enumerate(FEATURES):
            own = found[method, features]
            mean, half = interval(own - found[SUPERVISED, "plain"])
            points.append((2.0**place, mean, half))
            added, half_of_it = interval(own - found[SUPERVISED, features])
            texts += [f"{mean:+.2f} ± {half:.2f}", f"{added:+.2f} ± {half_of_it:.2f}"]
        print(f"| `{method}` |", " | ".join(texts), "|")
        lines[method] = points
    Path(sys.argv[1]).write_text(drawn(lines), encoding="utf-8")


def drawn(lines: dict[str, list[tuple[float, float, float]]]) -> str:
    """A line for each method."""
    ys = [y + sign * half for points in lines.values() for _, y, half in points for sign in (-1, 1)]
    ticks = [2.0**place for place in range(len(FEATURES))]
    plot = Plot(ticks, ys, "features", "gain over supervised, plain features", ticks, FEATURES)
    for number, points in enumerate(lines.values()):
        # side by side, so that the intervals can be told apart
        plot.series(number, [(x * 1.02 ** (number - 2), y, half) for x, y, half in points])
    plot.legend(list(lines), range(len(lines)))
    return plot.render("Gain by method and features")


if __name__ == "__main__":
    main()
