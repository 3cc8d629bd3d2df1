"""The long steps of a training, whose results a killed run finds again.

A method is deterministic: started again, it comes to the same steps with the same input.  So a step
that was done is read from its file, one that was in progress goes on, and only what lies between
steps is computed again.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from sslbench.engine.checked import Saved, table
from sslbench.experiment.context.checkpoints import Checkpoints, State

if TYPE_CHECKING:
    from sslbench.engine.crf import ChainCRF, Parts, TrainingParams, TrainingResult

Clocks = Callable[[], dict[str, Any]]


class Step:
    """One step.  clocks: for its files."""

    def __init__(self, file: Checkpoints, clocks: Clocks) -> None:
        self.file = file
        self.clocks = clocks
        self.found = file.load()
        self._began = time.monotonic()

    @property
    def earlier(self) -> State | None:
        """The clocks at the time of the file that was found."""
        return None if self.found is None else self.found.get("run")

    def once(self, compute: Callable[[], Saved]) -> Saved:
        """The result of `compute`, or what it was before the run was killed."""
        if self.found is not None:
            own = {name: x for name, x in self.found.items() if name not in ("facts", "run")}
            return own, self.found["facts"]
        arrays, facts = compute()
        self._keep({**arrays, "facts": facts})
        return arrays, facts

    def train(
        self,
        crf: ChainCRF,
        parts: Parts,
        params: TrainingParams,
        notes: dict[str, Any],
        options: dict[str, Any],
    ) -> TrainingResult:
        """See `RunContext.train`."""
        from sslbench.engine.crf import Progress, TrainingResult

        def keep(state: Callable[[], dict[str, Any]]) -> None:
            if self.file.due():
                self.file.save({**state(), "notes": notes, "run": self.clocks()})

        before = copy.deepcopy(notes)
        try:
            if self.found is not None:
                notes |= self.found["notes"]
                if "result" in self.found:
                    weights = table(self.found, "weights", np.float64, crf.weights.shape)
                    result = TrainingResult(**self.found["result"])
                    crf.weights = weights
                    return result
            result = crf.train(parts, params, progress=Progress(self.found, keep), **options)
        except (KeyError, ValueError) as error:
            if self.found is None:
                raise
            self.file.reject(f"it does not fit ({error})")
            notes |= before
            result = crf.train(parts, params, progress=Progress(None, keep), **options)
        self._keep({"weights": crf.weights, "result": vars(result), "notes": notes})
        return result

    def _keep(self, state: dict[str, Any]) -> None:
        if self.file.is_long(time.monotonic() - self._began) or self.found is not None:
            self.file.save({**state, "run": self.clocks()})
