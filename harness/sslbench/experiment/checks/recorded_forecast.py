"""The forecast in a record as one number.

The agreement of `sslbench.experiment.checks.forecast` describes a small step: a method whose labels
are wrong in many places may still move the model in the right direction. So where the labels of the
method are less often right than those of the model, the forecast is the relative growth of the
errors, if that is the lower number.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class RecordedForecast(NamedTuple):
    """value: in [-1, 1]; above zero a gain is expected.  error: standard error of the agreement.

    taught_right, model_right: share of held-out tokens that the method, and the model, label right.
    """

    value: float
    error: float
    taught_right: float
    model_right: float


def recorded_forecast(trace: Mapping[str, Any]) -> RecordedForecast | None:
    """Return the forecast in the trace of a run; None without one."""
    entry = trace.get("forecast")
    names = ("agreement", "error", "taught_right", "model_right")
    if not isinstance(entry, dict) or not all(isinstance(entry.get(n), float) for n in names):
        return None
    agreement, error, method, model = (entry[name] for name in names)
    growth = (model - method) / max(1 - model, 1e-9) if method < model else 0.0
    value = max(-1.0, min(agreement, -growth)) if growth else agreement
    return RecordedForecast(value, error, method, model)
