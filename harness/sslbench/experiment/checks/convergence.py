"""How the trainings of a run ended, from its trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

#: keys of `sslbench.engine.crf.TrainingResult.record`
_KEYS = frozenset({"status", "converged", "iterations"})


def convergence_warnings(trace: Mapping[str, Any]) -> list[str]:
    """A line for each training of a trace that stopped before it converged.

    Lists are left out: their entries are rounds, whose trainings are cut short by design.
    """
    return [_line(name, result) for name, result in _trainings(trace, ()) if not _done(result)]


def _trainings(part: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not isinstance(part, Mapping):
        return
    if part.keys() >= _KEYS:
        yield ".".join(path), part
        return
    for name, value in part.items():
        yield from _trainings(value, (*path, str(name)))


def _done(result: Mapping[str, Any]) -> bool:
    return result["converged"] is True


def _line(name: str, result: Mapping[str, Any]) -> str:
    if result["iterations"] == 0:
        return f"{name}: stopped at iteration 0, its weights are those of the start"
    return f"{name}: stopped at iteration {result['iterations']} before it converged"
