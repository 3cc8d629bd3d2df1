"""What a method may use during training besides the problem: random numbers, clocks, notes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sslbench.engine.checked import Saved
from sslbench.engine.compilation.compile_time import Seconds, compile_seconds
from sslbench.experiment.context.checkpoints import (
    Checkpointed,
    Checkpoints,
    State,
    Step,
    carried,
    carry_on,
)
from sslbench.experiment.context.effort import Effort

if TYPE_CHECKING:
    from sslbench.engine.crf import Parts, SequenceModel, TrainingParams, TrainingResult
    from sslbench.engine.types import F64

METHOD_STREAM = 0x6D657468  # separates the method's random numbers from the sample's

MAX_WARNINGS = 20  # of one training

#: Why an iterative method stopped: the labels or the objective settled; the labels are those of an
#: earlier round; the steps no longer shrink; the limit; nothing to learn from the text.
StopReason = Literal["converged", "cycle", "oscillating", "max_rounds", "nothing_to_do"]


def cpu_seconds() -> float:
    """User and system time of this process and its finished children, without compilation."""
    return sum(os.times()[:4]) - compile_seconds().cpu


class RunContext:
    """Random numbers, clocks and notes of one training.

    Attributes
    ----------
    seed: seed of the random numbers.
    rng: the only random generator of the run; it depends on the seed alone.
    threads: threads that the method may use; results must not depend on their number.
    cache: folder for derived data that a method computes from the problem (see
        `sslbench.engine.graph.cache`); None = none. Files of datasets are elsewhere.
    timing: wall seconds by phase.
    trace: JSON-able notes for the run record (likelihoods, convergence status, sizes).
    checkpoints: where rounds keep the state of a method; None = nowhere.
    earlier: what the killed parts of this training took, until their last checkpoints.
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        threads: int = 1,
        quiet: bool = True,
        cache: Path | None = None,
        checkpoints: Checkpoints | None = None,
    ) -> None:
        self.seed = seed
        self.rng = np.random.default_rng([seed, METHOD_STREAM])
        self.threads = threads
        self.cache = cache
        self.checkpoints = checkpoints
        self.earlier = Seconds()
        self._began = Seconds(time.perf_counter() - compile_seconds().wall, cpu_seconds())
        self.timing: dict[str, float] = {}
        self._open: dict[str, float] = {}
        self._killed: dict[str, float] = {}  # seconds by phase of killed parts
        self.at("0")
        self.trace: dict[str, Any] = {}
        self._quiet = quiet
        self._effort = Effort()

    def apart(self, seed: int | None = None) -> RunContext:
        """A context for another training: it leaves no notes here.

        seed: seed of its random numbers; None = those that come next here.
        """
        other = RunContext(
            self.seed if seed is None else seed, threads=self.threads, cache=self.cache
        )
        if seed is None:
            other.rng.bit_generator.state = self.rng.bit_generator.state
        return other

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the wall time of the block to ``timing[name]``, also when it raises."""
        self._open[name] = begin = time.perf_counter()
        try:
            yield
        finally:
            self._open.pop(name, None)
            self.timing[name] = self.timing.get(name, 0.0) + time.perf_counter() - begin

    def progress(self, text: str) -> None:
        """Write a line to standard error, unless several runs share the terminal."""
        if not self._quiet:
            print(text, file=sys.stderr, flush=True)

    def warn(self, text: str) -> None:
        """A line for the user: it is in the warnings of the record and printed after the run."""
        self.trace.setdefault("warnings", []).append(text)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The lines of `warn`; a method may have put anything into the trace."""
        lines = self.trace.get("warnings")
        if not isinstance(lines, list):
            return ()
        return tuple(line for line in lines[:MAX_WARNINGS] if isinstance(line, str))

    def record(self, result: TrainingResult, name: str = "training") -> None:
        """Put the outcome of a training into the trace and on standard error."""
        self.trace[name] = result.record()
        self.progress(f"{name}: {result.iterations} iterations, {result.status}")

    def train(
        self,
        crf: SequenceModel,
        parts: Parts,
        params: TrainingParams,
        notes: dict[str, Any] | None = None,
        **options: Any,
    ) -> TrainingResult:
        """`crf.train` with checkpoints; a resumed run gives identical results.

        A model that is trained by steps gets those that are due, see `effort`.

        options: other arguments of `crf.train`.
        notes: JSON-able; a callback fills them, and checkpoints have them, too.
        """

        def train(**given: Any) -> TrainingResult:
            step = self._step()
            if step is None:
                return crf.train(parts, params, **given)
            return step.train(crf, parts, params, {} if notes is None else notes, given)

        if crf.steps is None:
            return train(**options)
        limits = options.get("options") or params.options()
        return self._effort.train(crf, limits, lambda due: train(**{**options, "options": due}))

    def finish(self) -> None:
        """Spend the steps that a method has left of its models', and note what was taken."""
        if self._effort.state():
            with self.phase("train"):
                self.trace["effort"] = self._effort.finish()

    def once(self, compute: Callable[[], Saved]) -> Saved:
        """The result of a long step other than a training, which a killed run reads from a file.

        compute: gives arrays, and values that JSON can hold, by name.
        """
        step = self._step()
        return compute() if step is None else step.once(compute)

    def at(self, place: str) -> None:
        """Steps are numbered from here: by round, and before and after all rounds."""
        self._place, self._steps = place, 0

    def _step(self) -> Step | None:
        """The next step; None without checkpoints."""
        if self.checkpoints is None:
            return None
        file = self.checkpoints.step(self._place, self._steps)
        self._steps += 1
        step = Step(file, self.clocks)
        if step.earlier is not None:
            self._add_earlier(step.earlier)
        return step

    def rounds(self, limit: int, method: Checkpointed | None = None) -> Rounds:
        """The rounds of an iterative method, numbered 1, 2, ... up to `limit`.

        method: whose state checkpoints have; None = a killed training goes through all rounds
            again, and reads the results of their long steps from files.
        """
        return Rounds(self, limit, method)

    def spent(self) -> Seconds:
        """What this training has taken, with its earlier parts; compilation is left out."""
        wall = time.perf_counter() - compile_seconds().wall - self._began.wall
        cpu = cpu_seconds() - self._began.cpu
        return Seconds(self.earlier.wall + wall, self.earlier.cpu + cpu)

    def clocks(self) -> dict[str, Any]:
        """The times that a checkpoint has."""
        timing = dict(self.timing)
        for name, begin in self._open.items():
            timing[name] = timing.get(name, 0.0) + time.perf_counter() - begin
        return {"timing": timing, "spent": list(self.spent())}

    def state(self) -> dict[str, Any]:
        """The state that a checkpoint has."""
        own = {"rng": self.rng.bit_generator.state, "trace": self.trace}
        return {**own, "effort": self._effort.state(), **self.clocks()}

    def resume(self, state: State) -> None:
        """Go on from a state: seconds of phases and of parts are added up."""
        self.rng.bit_generator.state = state["rng"]
        self.trace = state["trace"]
        self._effort.resume(state.get("effort", []))
        self._add_earlier(state)

    def _add_earlier(self, clocks: State) -> None:
        """Seconds of a killed part; a later checkpoint of it replaces an earlier one."""
        spent = Seconds(*clocks["spent"])
        if spent.wall <= self.earlier.wall:
            return
        for name, seconds in clocks["timing"].items():
            more = seconds - self._killed.get(name, 0.0)
            self.timing[name] = self.timing.get(name, 0.0) + more
        self.earlier, self._killed = spent, clocks["timing"]


class Rounds:
    """Numbers of rounds to iterate over; notes what each round did and why the last one was last.

    The trace gets ``rounds``, a list with an entry per round, and ``stopped``, a `StopReason`.
    A training that has been killed goes on with the round after its last checkpoint, or with the
    same one if the checkpoint was made within it: the method's state says how far it has come.
    Without a method it goes through all rounds again, with the results of their steps (`train`,
    `once`) from files.
    """

    def __init__(self, run: RunContext, limit: int, method: Checkpointed | None = None) -> None:
        self.entries: list[dict[str, Any]] = []
        self.number = 0
        self._run = run
        self._limit = limit
        self._best: tuple[float, int, F64] | None = None
        run.trace["rounds"] = self.entries
        run.trace["stopped"] = "max_rounds"
        self._stopped = False
        self._within = False
        self._method = method

    def __iter__(self) -> Iterator[int]:
        self._resume()
        while self._within or (self.number < self._limit and not self._stopped):
            self.number += not self._within
            self._within = True
            self._run.at(str(self.number))
            yield self.number
            self._within = False
            self.keep()
        self._run.at("end")

    def keep(self) -> None:
        """Write a checkpoint if the last one, or the beginning, is a minute ago.

        It is called after each round; a method with long rounds may call it within one, too.
        """
        checkpoints, method = self._run.checkpoints, self._method
        if checkpoints is None or method is None or not checkpoints.due():
            return
        score, number, weights = self._best or (None, 0, np.empty(0))
        place = {"number": self.number, "within": self._within, "stopped": self._stopped}
        best = {"best_score": score, "best_number": number, "best_weights": weights}
        run = self._run.state()
        checkpoints.save({**carried(method), "rounds": place, "run": run, **best})
        checkpoints.forget_steps(self.number)

    def _resume(self) -> None:
        checkpoints, method = self._run.checkpoints, self._method
        state = None if checkpoints is None or method is None else checkpoints.load()
        if state is None or checkpoints is None or method is None:
            return
        try:
            carry_on(method, state)
        except (KeyError, ValueError) as error:
            checkpoints.reject(f"it does not fit ({error})")
            return
        self._run.resume(state["run"])
        self.entries = self._run.trace["rounds"]
        self.number, self._within, self._stopped = state["rounds"].values()
        if state["best_score"] is not None:
            self._best = state["best_score"], state["best_number"], state["best_weights"]
        self._run.progress(f"resumed {'in' if self._within else 'after'} round {self.number}")

    def record(self, message: str, **entry: Any) -> None:
        """Keep the entry of this round and show the message."""
        self.entries.append(entry)
        self._run.progress(f"round {self.number}: {message}")

    def stop(self, reason: StopReason) -> None:
        """End the rounds; the statements after this one in the loop's body still run."""
        self._run.trace["stopped"] = reason
        self._stopped = True

    def candidate(self, score: float | None, crf: SequenceModel) -> None:
        """Remember the parameters if no earlier round had such a score; None: skip."""
        if score is not None and (self._best is None or score > self._best[0]):
            self._best = score, self.number, crf.parameters.copy()

    def restore_best(self, crf: SequenceModel) -> None:
        """Give the model the parameters of the best candidate, if any, and note its round."""
        if self._best is not None:
            _, self._run.trace["kept_round"], crf.parameters = self._best
