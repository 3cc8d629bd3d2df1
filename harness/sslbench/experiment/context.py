"""What a method may use while it trains besides the problem itself."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

METHOD_STREAM = 0x6D657468  # keeps the method's random numbers apart from the sample's


class RunContext:
    """Random numbers, clocks and a notebook for one training.

    Attributes
    ----------
    rng: the one generator of the run; it depends on the run's seed only.
    threads: threads that the method may use; results must not depend on it.
    timing: wall seconds by phase.
    trace: anything JSON-able that the method wants in the run record (likelihoods per
        iteration, convergence status, sizes).
    """

    def __init__(self, seed: int = 0, *, threads: int = 1, quiet: bool = True) -> None:
        self.rng = np.random.default_rng([seed, METHOD_STREAM])
        self.threads = threads
        self.timing: dict[str, float] = {}
        self.trace: dict[str, Any] = {}
        self._quiet = quiet

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the wall time of the block to ``timing[name]``, also when it raises."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.timing[name] = self.timing.get(name, 0.0) + time.perf_counter() - begin

    def progress(self, text: str) -> None:
        """Tell the user something on standard error (dropped when runs share the terminal)."""
        if not self._quiet:
            print(text, file=sys.stderr, flush=True)
