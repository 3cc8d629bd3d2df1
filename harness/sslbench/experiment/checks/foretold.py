"""What the forecast in a record says: one number, and what it is made of.

The agreement of `sslbench.experiment.checks.forecast` is of a small step: a method whose labels are
wrong in many places may still lean to the right side. So where the labels that are taught are less
often right than the model's own, the relative growth of the errors counts, if it is the worse
number.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Foretold(NamedTuple):
    """value: in [-1, 1], above zero a gain is expected; error: of the agreement, standard."""

    value: float
    error: float
    taught_right: float
    model_right: float


def foretold(trace: Mapping[str, Any]) -> Foretold | None:
    """The forecast in the trace of a run; None without one."""
    found = trace.get("forecast")
    names = ("agreement", "error", "taught_right", "model_right")
    if not isinstance(found, dict) or not all(isinstance(found.get(n), float) for n in names):
        return None
    agreement, error, taught, model = (found[name] for name in names)
    lost = (model - taught) / max(1 - model, 1e-9) if taught < model else 0.0
    value = max(-1.0, min(agreement, -lost)) if lost else agreement
    return Foretold(value, error, taught, model)
