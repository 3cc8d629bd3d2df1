"""What a reader of a result should know: scores that say little, trainings cut short."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import sqrt
from typing import Any

from sslbench.experiment.metrics import SentenceCounts

#: half the width of a 95 % interval above which a test is called small, in [0, 1]
WIDE = 0.05


def score_warnings(counts: SentenceCounts) -> list[str]:
    """Lines on a tagger that finds no chunk, and on a test that is too small to tell.

    The interval is that of a share of one half of as many independent tokens or chunks: the widest
    there is.
    """
    lines = []
    gold, predicted = counts.gold_chunks, counts.predicted_chunks
    if gold is not None and predicted is not None and gold.sum() and not predicted.sum():
        lines.append("the tagger finds nothing in the test: all of it is outside of spans")
    n, what = int(counts.n_tokens.sum()), "tokens"
    if gold is not None:
        n, what = int(gold.sum()), "gold spans"
    width = 1.96 * sqrt(0.25 / n) if n else 1.0
    if width > WIDE:
        lines.append(
            f"the test has {n} {what}: by chance, a score may be off by {100 * width:.0f} points"
            " (--folds K tests on all labeled sentences)"
        )
    return lines


#: keys of `sslbench.engine.crf.TrainingResult.record`
_KEYS = frozenset({"status", "converged", "iterations"})
#: statuses of trainings that a stopping rule ended
_RULES = ("gradient", "decrease", "gap")
#: a gap to the maximum, as a share of the objective, that gets no warning
NOTABLE_GAP = 1e-3


def convergence_warnings(trace: Mapping[str, Any]) -> list[str]:
    """Return a line for each training of a trace that stopped before it converged.

    There is none where a stopping rule ended the training close enough to the maximum. Lists are
    left out: their entries are rounds, whose trainings are cut short by design.
    """
    ended = _trainings(trace, ())
    return [_line(name, result) for name, result in ended if not _close(result)]


def _close(result: Mapping[str, Any]) -> bool:
    by_rule = result["status"] in _RULES and result.get("gap") is not None
    return result["converged"] is True or (by_rule and result["gap"] <= NOTABLE_GAP)


def _trainings(part: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not isinstance(part, Mapping):
        return
    if part.keys() >= _KEYS:
        yield ".".join(path), part
        return
    for name, value in part.items():
        yield from _trainings(value, (*path, str(name)))


def _line(name: str, result: Mapping[str, Any]) -> str:
    if result["iterations"] == 0 and result["status"] not in _RULES:
        return f"{name}: stopped at iteration 0, its weights are those of the start"
    line = f"{name}: stopped at iteration {result['iterations']} before it converged"
    if result["status"] in _RULES and result.get("gap") is not None:
        line += f": the objective may be {100 * result['gap']:.2g} % below its maximum"
    return line
