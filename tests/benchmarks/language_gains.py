"""Posterior regularization on ten languages: its gain, and what the gain follows.

    PYTHONPATH=tests python -m benchmarks.language_gains

Reads the records of ``replications/he2013/suite.toml`` with 100 labeled sentences. Prints the best
baseline and the mean gain of each language, the number of draws in which `graph_pr` is above every
baseline, and Spearman's correlation of the gain with the error of the CRF and with the words.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
from scipy import stats

from benchmarks.learned_features import done_cells
from sslbench.engine.types import F64

SUITE = Path(__file__).resolve().parents[2] / "replications/he2013/suite.toml"
METHOD, BASELINES = "graph_pr", ("supervised", "gp_crf", "graph_propagation")

#: by language, then by method: accuracy in % of the draws, in order
Scores = dict[str, dict[str, F64]]


def scores() -> tuple[Scores, dict[str, float]]:
    """Accuracies, and the mean number of words by language, of text and test alike."""
    result: dict[str, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    words: dict[str, list[int]] = defaultdict(list)
    for cell, record in done_cells(SUITE):
        spec = cell.spec
        options = spec.data.options
        ours = options.get("draws") and options.get("size") == 100 and not spec.protocol.folds
        if ours and cell.line == spec.method in (METHOD, *BASELINES):
            accuracy = 100 * record.metrics["test"]["accuracy"]
            result[spec.dataset][spec.method][cell.seed] = accuracy
            words[spec.dataset].append(record.data["tokens"]["test"])
    ordered = {
        language: {m: np.array([by[s] for s in sorted(by)]) for m, by in methods.items()}
        for language, methods in sorted(result.items())
    }
    return ordered, {language: float(np.mean(words[language])) for language in ordered}


def main() -> None:
    """Print the table and the correlations."""
    by_language, words = scores()
    above = draws = 0
    gains, errors = [], []
    print("| language | best baseline | gain | words |\n|---|---|---:|---:|")
    for language, methods in by_language.items():
        best = max(BASELINES, key=lambda name: methods[name].mean())
        gain = methods[METHOD] - methods[best]
        print(f"| {language} | {best} | {gain.mean():+.2f} | {words[language]:,.0f} |")
        above += int((methods[METHOD] > np.max([methods[b] for b in BASELINES], axis=0)).sum())
        draws += len(gain)
        gains.append(gain.mean())
        errors.append(100 - methods["supervised"].mean())
    print(f"above every baseline: {above} of {draws} draws")
    for name, values in (("error of the CRF", errors), ("words", list(words.values()))):
        result = stats.spearmanr(gains, values)
        print(f"gain and {name}: correlation {result.statistic:.2f}, p = {result.pvalue:.3f}")


if __name__ == "__main__":
    main()
