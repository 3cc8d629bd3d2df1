"""The gain of JESS-CM over `supervised` by the words of unlabeled text (figure 3 of its paper).

    PYTHONPATH=tests python -m benchmarks.text_amounts FILE.svg

Reads the records of ``replications/suzuki2008/suite.toml`` with 500 labeled sentences; those of
conll03_months are of conll03 with more text. Prints a table of gains in points, with 95 % intervals
over draws and sentences, and draws it. The last line of a corpus extrapolates to 10^9 words: the
straight line through the gains against the logarithm of the words, with its interval over the same
draws and sentences. Where there are more than three amounts, the line through all but the last is
compared with the last.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

from benchmarks.learned_features import done_cells
from sslbench.engine.types import F64
from sslbench.experiment.records.record import RunRecord
from sslbench.report.draws import crossed, values
from sslbench.report.significance import count_table
from sslbench.report.svg import Plot

SUITE = Path(__file__).resolve().parents[2] / "replications/suzuki2008/suite.toml"
LABELED = 500
MANY = 1e9  # words

#: by corpus, method and cap of the text
Runs = dict[tuple[str, str, str], list[RunRecord]]


def runs() -> Runs:
    """The records of figure 3, draws in order."""
    result: Runs = defaultdict(list)
    for cell, record in sorted(done_cells(SUITE), key=lambda pair: pair[0].seed):
        protocol, data = cell.spec.protocol, cell.spec.data
        plain = cell.line == cell.spec.method and not protocol.tune
        plain = plain and data.options.get("month", "all") == "all"
        if protocol.labeled == LABELED and plain:
            result[cell.spec.dataset, cell.spec.method, str(protocol.unlabeled)].append(record)
    return result


def differences(runs: Runs) -> dict[str, list[tuple[int, F64]]]:
    """By corpus, for each amount its words and float64[draws, sentences] with the gain as mean."""
    gains: dict[str, list[tuple[int, F64]]] = defaultdict(list)
    for (corpus, method, cap), records in runs.items():
        if method == "jess_cm":
            words = int(np.mean([record.data["tokens"]["unlabeled"] for record in records]))
            own, theirs = (
                100 * values(count_table(each, "test"), records[0].primary_metric)
                for each in (records, runs[corpus, "supervised", cap])
            )
            gains[corpus.removesuffix("_months")].append((words, own - theirs))
    return {corpus: sorted(each, key=lambda pair: pair[0]) for corpus, each in gains.items()}


def extrapolated(each: list[tuple[int, F64]], many: float) -> F64:
    """The gain at so many words by least squares, float64[draws, sentences]."""
    x = np.log10([words for words, _ in each])
    centered = x - x.mean()
    weights = 1 / len(x) + (np.log10(many) - x.mean()) * centered / (centered @ centered)
    total: F64 = np.tensordot(weights, np.stack([gain for _, gain in each]), 1)
    return total


def main() -> None:
    """Print the table, draw the figure."""
    lines: dict[str, list[tuple[float, float, float]]] = {}
    print("| corpus | words | gain |\n|---|---:|---:|")
    for number, (corpus, each) in enumerate(sorted(differences(runs()).items())):
        points = []
        for words, gain in [*each, (int(MANY), extrapolated(each, MANY))]:
            mean, half = float(gain.mean()), float(crossed(gain).half_width())
            name = f"`{corpus}`" + (", extrapolated" if words == MANY else "")
            interval = f"({mean - half:+.2f} to {mean + half:+.2f})"
            print(f"| {name} | {words:,} | {mean:+.2f} {interval} |")
            if len(each) > 3 and words == each[-1][0]:
                line = float(extrapolated(each[:-1], words).mean())
                print(f"| {name}, the line through smaller amounts | {words:,} | {line:+.2f} |")
            points.append((words * 1.04 ** (number - 1), mean, half))
        lines[corpus] = points[:-1]
    Path(sys.argv[1]).write_text(drawn(lines), encoding="utf-8")


def drawn(lines: dict[str, list[tuple[float, float, float]]]) -> str:
    """A line for each corpus."""
    points = [point for each in lines.values() for point in each]
    ys = [0.0, *(y + sign * half for _, y, half in points for sign in (-1, 1))]
    plot = Plot(
        [x for x, _, _ in points], ys, "unlabeled words", "gain over supervised", [1e4, 1e5, 1e6]
    )
    for number, each in enumerate(lines.values()):
        plot.series(number, each)
    plot.legend(list(lines), range(len(lines)))
    return plot.render("Gain of JESS-CM by the words of unlabeled text")


if __name__ == "__main__":
    main()
