"""What the process of a run and that of its plugins tell each other.

The run sends pickled requests. The plugins' process is not trusted: its replies are MessagePack of
plain data, of bounded size, and decoded by type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from sslbench.engine.compilation.compile_time import Seconds
from sslbench.engine.corpus import Corpus
from sslbench.experiment.planning.description import MethodDescription
from sslbench.experiment.run.fitting import Training
from sslbench.isolation.restrict import Isolation

MAX_REPLY = 2**29  # bytes
MAX_LARGE = 2**36  # bytes of a pass, a unit: the memory limit of the run ends it before
MAX_TRACE = 2**22  # bytes, as JSON
MAX_LABELS = 100_000  # of a tagger and its variants together


@dataclass(frozen=True)
class Describe:
    """Ask for a `MethodDescription`."""


@dataclass(frozen=True)
class Fit:
    """Train. The plugins' process loads the featurizer and the model, which the problem lacks.

    seed: seed of the `RunContext`.
    """

    training: Training
    seed: int


@dataclass(frozen=True)
class Predict:
    """Tag a corpus with the last tagger, or a variant of it.

    number: number of the training, from 1.
    """

    number: int
    variant: str
    corpus: Corpus


Request = Describe | Fit | Predict


@dataclass(frozen=True)
class Give:
    """Ask for a unit of the pass in progress."""

    number: int


@dataclass(frozen=True)
class Take:
    """The next result of the pass in progress; None: there are no more."""

    data: bytes | None


class Reply(msgspec.Struct, tag=True, kw_only=True):
    """What each message of the plugins' process has; the server fills it in.

    Attributes
    ----------
    isolation: what restricts the process.
    violations: what it has tried to read or import since the last reply.
    compiled: the time that it has taken to compile kernels until now.
    """

    isolation: Isolation = "audit hook"
    violations: list[str] = []
    compiled: Seconds = Seconds()


class Described(Reply):
    """Answer to `Describe`."""

    description: MethodDescription


class Fitted(Reply):
    """Answer to `Fit`.

    labels: labels of the tagger (name "") and of each variant.
    params: all parameters, with their defaults.
    timing, trace: those of the `RunContext`, the trace as JSON.
    used_dev: whether development labels were read.
    earlier: what killed parts of all trainings took, see `RunMethod`.
    """

    labels: dict[str, list[str]]
    params: dict[str, Any]
    timing: dict[str, float]
    trace: bytes
    used_dev: bool
    earlier: Seconds


class Predicted(Reply):
    """Answer to `Predict`. codes: int32, little-endian."""

    codes: bytes


class Failed(Reply):
    """An exception. message: one line; lines: the end of the traceback; kind: see `RunRecord`."""

    kind: Literal["input", "method", "memory"]
    message: str
    lines: list[str]


class Share(Reply):
    """Asks the run to have a pass done by workers, see `Broker`; `work` follows as a message."""

    target: str
    key: str
    begin: int


class Given(Reply):
    """Answer to `Give`; the unit follows as a message, if there is one."""

    present: bool


Answer = Described | Fitted | Predicted | Share | Given | Failed
