"""The first screen of a page: which method, by how much, at what cost, how sure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sslbench.report.board import Board
from sslbench.report.families import LEAST_FAMILIES
from sslbench.report.overview import Means, Overview, front

_SHOWN = 5  # lines of the table
_NAMED = 4  # methods that a sentence names


@dataclass(frozen=True)
class Glance:
    """The answer of a board in a few lines.

    Attributes
    ----------
    answer: the first line and its gain, cost and certainty, in a sentence.
    more: further sentences.
    head, rows: a table of the best lines and the baseline.
    """

    answer: str
    more: tuple[str, ...]
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def glance(board: Board, views: Sequence[Overview]) -> Glance | None:
    """Return the answer at the first size that compares lines; None if there is none."""
    view = next((view for view in views if len(view.lines) > 1), None)
    if view is None:
        return None
    first = view.lines[0]
    base = next((line for line in view.lines if line.name in board.baselines), None)
    shown = list(view.lines[:_SHOWN])
    if base is not None and base not in shown:
        shown.append(base)
    sure = len(set(view.families)) >= LEAST_FAMILIES
    sentences = [_certainty(view) if sure else _few(view), _by_task(view, base), _cheap(view, base)]
    gains = ("gain", "95 % of gain") if sure else ("gain",)
    return Glance(
        answer=_answer(view, first, base, sure),
        more=tuple(filter(None, sentences)),
        head=("method", *(gains if base else ()), "CPU s"),
        rows=tuple(_row(line, base, sure) for line in shown),
    )


def _answer(view: Overview, first: Means, base: Means | None, sure: bool) -> str:
    n = len(view.columns)
    over = f"over {n} datasets" if n > 1 else "on the dataset"
    text = f"{view.size} labeled: {first.name} has the best mean rank of {len(view.lines)} methods"
    text += f" {over}"
    if base is not None and first is not base and first.gain is not None:
        text += f", {first.gain:+.2f} points over {base.name}"
        text += f" (95 %: {_interval(first)})" if sure else ""
    if first.cpu_s is not None:
        text += f", for {first.cpu_s:.1f} CPU seconds of a training"
        if base is not None and base is not first and base.cpu_s is not None:
            text += f" ({base.name}: {base.cpu_s:.1f})"
    return f"{text}."


def _certainty(view: Overview) -> str:
    """Which lines the tests leave beside the first one, and its probability of being first."""
    beside = [
        line.name for place, line in enumerate(view.lines) if place and (0, place) not in view.apart
    ]
    names = ", ".join(beside[:_NAMED])
    names += f" and {len(beside) - _NAMED} more" if len(beside) > _NAMED else ""
    tests = f"tests over families of datasets do not set {names} apart from it"
    if not beside:
        tests = "tests over families of datasets set all others apart from it"
    return (
        f"How sure: {tests}; with other datasets of the kind it would have the best mean score with"
        f" probability {view.lines[0].first:.2f}."
    )


def _few(view: Overview) -> str:
    n = len(set(view.families))
    return (
        f"How sure: {n} of the {LEAST_FAMILIES} families that a test needs: nothing is set apart."
    )


def _by_task(view: Overview, base: Means | None) -> str:
    """The largest mean gain for each task."""
    if base is None or len(view.tasks) < 2:
        return ""
    best = [
        (task, max(view.lines, key=lambda line: line.by_task[i]))
        for i, task in enumerate(view.tasks)
    ]
    parts = [f"{task} {line.name} {line.by_task[i]:+.2f}" for i, (task, line) in enumerate(best)]
    return f"Largest mean gain by task: {', '.join(parts)}."


def _cheap(view: Overview, base: Means | None) -> str:
    """The lines that none beats in both gain and cost, cheapest first."""
    lines = [line for name in front(view) if (line := view.line(name)) is not None]
    if base is None or len(lines) < 2:
        return ""
    parts = [f"{line.name} {line.gain:+.2f} for {line.cpu_s:.1f} s" for line in lines]
    return f"None gains more for less: {', '.join(parts)}."


def _row(line: Means, base: Means | None, sure: bool) -> tuple[str, ...]:
    texts = [line.name]
    if base is not None:
        texts.append(f"{line.gain:+.2f}")
        texts += ["" if line is base else _interval(line)] * sure
    return (*texts, "" if line.cpu_s is None else f"{line.cpu_s:.1f}")


def _interval(line: Means) -> str:
    return "{:+.2f} to {:+.2f}".format(*line.gains)
