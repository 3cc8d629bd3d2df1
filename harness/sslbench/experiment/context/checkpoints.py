"""Checkpoints of a training: a killed run goes on from the last one, with the same bits at the end.

The process that trains writes and reads them, below the folder ``<store>/checkpoints/<run id>``,
which is removed when the run ends. ``<training>.npz`` has the state of a method,
``<training>.<place>.<number>.npz`` that of one of its long steps: arrays, and JSON in the array
``facts``; nothing is pickled.

A method is deterministic: started again, it comes to the same steps with the same input. So a step
that was done is read from its file, one that was in progress goes on, and only what lies between
steps is computed again.
"""

from __future__ import annotations

import copy
import hashlib
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from sslbench.engine.checked import Saved, table
from sslbench.engine.errors import printable
from sslbench.engine.files.atomic import replacing
from sslbench.engine.files.derived import drop
from sslbench.engine.files.folders import tell_once
from sslbench.engine.types import Arrays
from sslbench.engine.variables import checkpoint_seconds
from sslbench.experiment.identity import processor

if TYPE_CHECKING:
    from sslbench.engine.crf import Parts, SequenceModel, TrainingParams, TrainingResult

#: a step that took this share of the seconds between two checkpoints has a file, so that it is not
#: done again
STEP = 1 / 30
#: writing takes at most this share of the time
SHARE = 0.1
_FACTS = "facts"

State = Mapping[str, Any]
"""Arrays, and values that JSON can hold, by name."""


@dataclass
class Checkpoints:
    """The files of one training, or of one of its steps.

    Attributes
    ----------
    folder: folder of the run.
    code: versions of the code by component.
    training: name of the file, see `of` and `step`.
    """

    folder: Path
    code: dict[str, str]
    training: str = ""
    _last: float = field(default_factory=time.monotonic)
    _pause: float = -1.0

    def of(self, *identity: object) -> Checkpoints:
        """The files of one training of the run. identity: of its problem and parameters."""
        digest = hashlib.sha256(json.dumps(identity, sort_keys=True, default=str).encode())
        return Checkpoints(self.folder, self.code, digest.hexdigest()[:16])

    def step(self, place: str, number: int) -> Checkpoints:
        """The file of one step. place: number of the round that it is in, or another name."""
        return Checkpoints(self.folder, self.code, f"{self.training}.{place}.{number}")

    def is_long(self, seconds: float) -> bool:
        """Whether a step that took so long is worth a file."""
        return seconds >= STEP * checkpoint_seconds()

    def forget_steps(self, number: int) -> None:
        """Remove the files of steps of rounds before this one."""
        for path in self._steps():
            place = path.name.split(".")[1]
            if place.isdecimal() and 0 < int(place) < number:
                drop(path)

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / f"{self.training}.npz"

    def due(self) -> bool:
        """Whether it is time for the next one."""
        if self._pause < 0:
            self._pause = checkpoint_seconds()
        return time.monotonic() - self._last >= self._pause

    def save(self, state: State) -> None:
        """Write a state; where that is not possible, the training goes on without."""
        began = time.monotonic()
        arrays = {name: value for name, value in state.items() if isinstance(value, np.ndarray)}
        values = {name: value for name, value in state.items() if name not in arrays}
        origin = {"code": self.code, "processor": processor()}
        text = json.dumps({**origin, "state": values}, default=_plain)
        arrays[_FACTS] = np.frombuffer(text.encode(), np.uint8)
        try:
            with replacing(self.path) as file:
                np.savez(file, **arrays)  # type: ignore[arg-type]
        except OSError as error:
            reason = error.strerror or error
            tell_once(f"{self.folder}: checkpoints cannot be written: {reason}", "checkpoints")
        self._last = time.monotonic()
        every = checkpoint_seconds()
        self._pause = max(every, (self._last - began) / SHARE) if every else 0.0

    def load(self) -> State | None:
        """The last state; None if there is none, or it is damaged or of other code, with a line.

        Its arrays are read from the file each time that they are asked for: all together may take
        as much memory as what they are put into.
        """
        # It needs no kernels, its package does.
        from sslbench.engine.crf.persist import refuse_packed

        try:
            refuse_packed(self.path)
            with np.load(self.path, allow_pickle=False) as file:
                if file.zip.testzip() is not None:
                    raise ValueError("a sum that differs")
                names = set(file.files) - {_FACTS}
                content = json.loads(file[_FACTS].tobytes())
            if content["code"] == self.code:
                self._compare(str(content.get("processor", processor())))
                return _Stored(self.path, names, content["state"])
            reason = "it was made by other code"
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            reason = f"it cannot be read ({error.strerror or error})"
        except Exception as error:  # whatever a damaged archive raises
            reason = f"it is damaged ({type(error).__name__})"
        self.reject(reason)
        return None

    def _compare(self, made_on: str) -> None:
        """Warn of another processor: bits may not be those of an uninterrupted training."""
        if made_on != processor():
            _tell(
                f"{self.path}: begun on another kind of processor ({printable(made_on)};"
                f" this is a {processor()}): last bits may not be those of an uninterrupted run"
            )

    def reject(self, reason: str) -> None:
        """Say that the training starts anew."""
        _tell(f"{self.path}: ignored, {reason}; the training starts anew")

    def remove(self) -> None:
        """Remove all files of a training that has ended."""
        for path in (self.path, *self._steps()):
            drop(path)

    def _steps(self) -> list[Path]:
        """The files of steps; none where the folder cannot be read: the store may have gone."""
        with suppress(OSError):
            return list(self.folder.glob(f"{self.training}.*.*.npz"))
        return []


@dataclass(frozen=True)
class _Stored(Mapping[str, Any]):
    """A state in a file: the names of its arrays, and its other values.

    ValueError if an array cannot be read.
    """

    path: Path
    arrays: set[str]
    others: dict[str, Any]

    def __getitem__(self, name: str) -> Any:
        if name not in self.arrays:
            return self.others[name]
        try:
            with np.load(self.path, allow_pickle=False) as file:
                return file[name]
        except Exception as error:  # as in `load`
            raise ValueError(f"{name}: {type(error).__name__}") from None

    def __iter__(self) -> Iterator[str]:
        return iter([*self.arrays, *self.others])

    def __len__(self) -> int:
        return len(self.arrays) + len(self.others)


class Checkpointed(Protocol):
    """A method whose training can go on from a checkpoint.

    checkpointed: all that changes from round to round, as paths of attributes such as
    ``"models.uniform"``. A value is an array or a mapping of arrays, which are filled in place, or
    something that JSON can hold, which is replaced. Values are put back in this order, so that
    which arrays there are may depend on values before them.
    """

    @property
    def checkpointed(self) -> tuple[str, ...]: ...


def carried(method: Checkpointed) -> dict[str, Any]:
    """Return what a checkpoint has of a method: its arrays, and other values in "values"."""
    arrays: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for path in method.checkpointed:
        value = attrgetter(path)(method)
        named = _named_arrays(path, value)
        arrays |= named or {}
        if named is None:
            values[path] = value
    return {**arrays, "values": values}


def carry_on(method: Checkpointed, state: State) -> None:
    """Put back what `carried` gave; ValueError or KeyError, and nothing changed, if it differs."""
    before = carried(method)["values"]
    try:
        arrays: Arrays = {}
        for path in method.checkpointed:
            named = _named_arrays(path, attrgetter(path)(method))
            arrays |= named or {}
            if named is None:
                _assign(method, path, state["values"][path])
        for name, array in arrays.items():
            table(state, name, array.dtype, array.shape)  # all fit before any is changed
    except (KeyError, ValueError):
        for path, value in before.items():
            _assign(method, path, value)
        raise
    for name, array in arrays.items():  # in memory one at a time
        array[...] = state[name]


def _named_arrays(path: str, value: Any) -> Arrays | None:
    """Arrays by the names that they have in a checkpoint; None for a value of JSON."""
    if isinstance(value, np.ndarray):
        return {path: value}
    arrays = value if isinstance(value, Mapping) else {}
    if not arrays or not all(isinstance(array, np.ndarray) for array in arrays.values()):
        return None
    return {f"{path}.{name}": array for name, array in arrays.items()}


def _assign(method: object, path: str, value: Any) -> None:
    owner, _, name = path.rpartition(".")
    setattr(attrgetter(owner)(method) if owner else method, name, value)


def checkpoint_folder(store: str | None, run_id: str) -> Path | None:
    """The folder of the checkpoints of a run; None without a store."""
    return None if store is None else Path(store) / "checkpoints" / run_id


def remove_checkpoints(store: str | None, run_id: str) -> None:
    """Remove the checkpoints of a run that has ended."""
    folder = checkpoint_folder(store, run_id)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):
            folder.parent.rmdir()  # after the last run


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _tell(text: str) -> None:
    print(f"sslbench: {text}", file=sys.stderr, flush=True)


Clocks = Callable[[], dict[str, Any]]


class Step:
    """One long step of a training. clocks: gives the times that its files have."""

    def __init__(self, file: Checkpoints, clocks: Clocks) -> None:
        self.file = file
        self.clocks = clocks
        self.before = file.load()
        self._began = time.monotonic()

    @property
    def earlier(self) -> State | None:
        """The clocks when the file of a killed run was written; None without one."""
        return None if self.before is None else self.before.get("run")

    def once(self, compute: Callable[[], Saved]) -> Saved:
        """The result of `compute`, or what it was before the run was killed."""
        if self.before is not None:
            arrays = {name: x for name, x in self.before.items() if name not in ("facts", "run")}
            return arrays, self.before["facts"]
        arrays, facts = compute()
        self._keep({**arrays, "facts": facts})
        return arrays, facts

    def train(
        self,
        crf: SequenceModel,
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

        notes_before = copy.deepcopy(notes)
        try:
            if self.before is not None:
                notes |= self.before["notes"]
                if "result" in self.before:
                    weights = table(self.before, "weights", np.float64, crf.parameters.shape)
                    result = TrainingResult(**self.before["result"])
                    crf.parameters = weights
                    return result
            result = crf.train(parts, params, progress=Progress(self.before, keep), **options)
        except (KeyError, ValueError) as error:
            if self.before is None:
                raise
            self.file.reject(f"it does not fit ({error})")
            notes |= notes_before
            result = crf.train(parts, params, progress=Progress(None, keep), **options)
        self._keep({"weights": crf.parameters, "result": vars(result), "notes": notes})
        return result

    def _keep(self, state: dict[str, Any]) -> None:
        if self.file.is_long(time.monotonic() - self._began) or self.before is not None:
            self.file.save({**state, "run": self.clocks()})
