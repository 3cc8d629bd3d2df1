"""What both sides report about a training. Imports nothing but the standard library."""

from __future__ import annotations

import resource
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Trace:
    """A training: (seconds since its start, objective to minimize) after each iteration.

    per_evaluation: seconds; n_weights, evaluations: counts.
    """

    points: list[tuple[float, float]]
    per_evaluation: float
    n_weights: int
    evaluations: int

    @property
    def final(self) -> float:
        """The last objective."""
        return self.points[-1][1]

    def time_to(self, target: float) -> float:
        """Seconds until the objective was at most `target`; infinite if it never was."""
        return next((seconds for seconds, value in self.points if value <= target), float("inf"))


def children_cpu() -> float:
    """CPU seconds of all processes that this one has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def peak_mb() -> float:
    """Highest resident memory of this process in MiB."""
    with suppress(OSError, StopIteration):
        # ru_maxrss may start at the memory of the parent; VmHWM is the process's own.
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
