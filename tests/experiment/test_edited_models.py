"""Edited saved models are refused in one line or predict the same; see `attacks.models`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from attacks.models import DAMAGES, DENSE, Target, closed, opened, outcome, use
from sslbench.engine.errors import UserError


@pytest.mark.parametrize("kind", ["first order", "second order", "symbol tables", DENSE])
def test_damaged_models(kind: str, tmp_path: Path) -> None:
    target = Target.trained(kind, tmp_path / "model")
    outcomes = [outcome(target, damage, seed) for damage in DAMAGES for seed in range(8)]
    assert set(outcomes) <= {"refused", "same"}
    assert outcomes.count("refused") > len(outcomes) / 3


def test_a_model_with_another_number_of_dense_columns(tmp_path: Path) -> None:
    """Compiled code read the numbers of the next rows, or those beyond the last one."""
    target = Target.trained(DENSE, tmp_path / "model")
    arrays, header = opened(target.model)
    layout = header["metadata"]
    assert layout["n_columns"] == 2
    labels = len(layout["labels"])
    for columns in (1, 3):
        layout["n_columns"] = columns
        size = arrays["weights"].size + (columns - 2) * labels
        longer = np.zeros(size, arrays["weights"].dtype)
        longer[: arrays["weights"].size] = arrays["weights"][:size]
        weights = {**arrays, "weights": longer}
        target.path.write_bytes(closed(weights, header))
        with pytest.raises((UserError, ValueError), match="dense columns"):
            use(target.path)
