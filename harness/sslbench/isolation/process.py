"""A process for the plugins of a run, started before the run reads its data."""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from multiprocessing.connection import wait
from typing import Any, TypeVar

import msgspec
import psutil

from sslbench.engine.compilation.compile_time import Seconds
from sslbench.engine.corpus import Corpus, Shards
from sslbench.engine.errors import UserError
from sslbench.engine.spread import is_pass_of
from sslbench.engine.types import I32
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.execute.workers import DaskBroker
from sslbench.experiment.planning.description import MethodDescription
from sslbench.experiment.run.fitting import (
    Fitted,
    LocalMethod,
    MethodEndedError,
    MethodError,
    Training,
)
from sslbench.isolation import messages
from sslbench.isolation.output import Output
from sslbench.isolation.server import as_codes, serve
from sslbench.isolation.text import portable, without_later_words
from sslbench.plugins import registry
from sslbench.processes.child import FORKS, start
from sslbench.processes.tree import kill, my_descendants

_END_SECONDS = 0.2
A = TypeVar("A", bound=messages.Answer)


class _BrokenOffError(Exception):
    """The method's process sends this reply instead of a unit."""

    def __init__(self, reply: messages.Reply) -> None:
        super().__init__()
        self.reply = reply


@dataclass(frozen=True)
class Absent:
    """In place of the featurizer and the model, which only the plugins' process loads."""


class MethodProcess:
    """The method of a run in a process of its own; see `RunMethod`.

    On Linux it is a fork, so that it must be made before data are read and threads are started;
    elsewhere it is a new interpreter. What it prints goes to standard error, up to a limit.
    workers: address of a dask scheduler, whose workers do passes for it; only this side connects.

    Attributes
    ----------
    isolation: "landlock" or "audit hook"; "none" before the first answer.
    violations: what the plugins have tried to read or import.
    earlier: see `RunMethod`.
    """

    featurizer = model = Absent()

    def __init__(
        self,
        method: LocalMethod,
        context: Callable[[int], RunContext],
        restrictions: messages.Restrictions,
        workers: str | None = None,
    ) -> None:
        self._others = my_descendants()
        self._output = Output()
        given = restrictions, method, context, workers is not None
        self._child = start(serve, *given, fork=FORKS, output=self._output.writing)
        self._connection = self._child.connection
        self._output.started()
        self._temporary = restrictions.temporary
        self._texts: list[tuple[Shards, Shards]] = []
        self._fits = 0
        self._compiled = Seconds()
        self._workers = workers
        self._broker: DaskBroker | None = None
        self.earlier = Seconds()
        self.isolation = "none"
        self.violations: list[str] = []

    @cached_property
    def description(self) -> MethodDescription:
        """See `RunMethod`."""
        return self._ask(messages.Describe(), messages.Described).description

    @property
    def cpu_s(self) -> float:
        """User and system time of the process while it runs, and of the workers' passes, without
        compilation.
        """
        passes = 0.0 if self._broker is None else self._broker.cpu
        with contextlib.suppress(psutil.Error):
            spent = sum(psutil.Process(self._child.pid).cpu_times()[:4])
            return max(0.0, spent - self._compiled.cpu) + passes
        return passes

    @property
    def compile_s(self) -> float:
        """See `RunMethod`."""
        return self._compiled.wall

    def fit(self, training: Training, run: RunContext) -> Fitted:
        """Train; the tagger is a `RemoteTagger`, usable until the next training."""
        text = self._portable(training.problem.unlabeled)
        training = replace(training, problem=replace(training.problem, unlabeled=text))
        request = messages.Fit(training, run.seed)
        found = self._ask(request, messages.Fitted)
        self._fits += 1
        self.earlier = found.earlier
        run.timing.update(found.timing)
        run.trace.update(_trace(found.trace))
        taggers = {
            name: RemoteTagger(self, self._fits, name, tuple(labels))
            for name, labels in found.labels.items()
        }
        tagger = taggers.pop("")
        tagger.variants.update(taggers)
        return Fitted(tagger, found.params, found.used_dev)

    def _portable(self, text: Shards) -> Shards:
        """See `portable`; the problem of all trials has the same text, which is stored once."""
        known = [ours for theirs, ours in self._texts if theirs is text]
        if not known:
            folder = self._temporary / f"unlabeled-{len(self._texts)}"
            self._texts.append((text, portable(text, folder)))
            known = [self._texts[-1][1]]
        return known[0]

    def predict(self, number: int, variant: str, corpus: Corpus) -> I32:
        """int32[N]: what the tagger of a training predicts for a corpus without labels."""
        request = messages.Predict(number, variant, without_later_words(corpus))
        return as_codes(self._ask(request, messages.Predicted).codes)

    def close(self) -> None:
        """End the process and all that it has started."""
        if self._broker is not None:
            self._broker.close()
        self._child.end(_END_SECONDS)
        kill(my_descendants() - self._others)  # orphans of the process
        self._output.close()

    def _ask(self, request: messages.Request, answer: type[A]) -> A:
        """Send a request, wait for the answer.

        Until it comes, what is printed is passed on, and passes are shared out.
        """
        try:
            self._send(request)
            reply = self._reply()
            while isinstance(reply.answer, messages.Share):
                reply = self._share(reply.answer)
        except (EOFError, OSError) as error:
            raise MethodEndedError(self._child.why(error, messages.MAX_REPLY)) from None
        return self._checked(reply.answer, answer)

    def _send(self, message: messages.Request | messages.Give | messages.Take) -> None:
        self._output.forward()
        self._connection.send_bytes(pickle.dumps(message, protocol=5))

    def _reply(self) -> messages.Reply:
        """The next one; MethodError if it is none."""
        while self._connection not in (ready := wait(self._sources)):
            self._output.forward()
            if self._child.ended in ready and not self._connection.poll():
                raise EOFError
        data = self._connection.recv_bytes(messages.MAX_REPLY)
        self._output.forward()
        try:
            reply = msgspec.msgpack.decode(data, type=messages.Reply)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise MethodError(f"the answer of the method's process is damaged: {error}") from None
        self.violations += reply.violations
        self._compiled, self.isolation = reply.compiled, reply.isolation
        return reply

    def _share(self, share: messages.Share) -> messages.Reply:
        """Have a pass done; the reply that follows it."""
        work = self._connection.recv_bytes(messages.MAX_LARGE)
        if self._workers is None or not is_pass_of(share.target, registry().packages):
            raise MethodError(f"the method's process asks for a pass {share.target!r}")
        self._broker = self._broker or DaskBroker(self._workers)
        passed = self._broker.over(share.target, work, share.key, self._unit, share.begin)
        try:
            for data in passed:
                if self._connection.poll():  # the method has broken it off
                    break
                self._send(messages.Take(data))
            self._send(messages.Take(None))
        except _BrokenOffError as other:
            return other.reply
        finally:
            passed.close()
        return self._reply()

    def _unit(self, number: int) -> bytes | None:
        self._send(messages.Give(number))
        reply = self._reply()
        if not isinstance(reply.answer, messages.Given):
            raise _BrokenOffError(reply)
        present = reply.answer.present
        return self._connection.recv_bytes(messages.MAX_LARGE) if present else None

    @property
    def _sources(self) -> list[Any]:
        return [self._connection, self._child.ended, *self._output.sources]

    def _checked(self, found: messages.Answer, answer: type[A]) -> A:
        if isinstance(found, messages.Failed):
            if found.kind == "input":
                raise UserError(found.message)
            if found.kind == "memory":
                raise MemoryError(found.message)
            raise MethodError(found.message, found.lines)
        if not isinstance(found, answer):
            raise MethodError("unexpected reply from the method's process")
        return found


@dataclass(frozen=True)
class RemoteTagger:
    """A tagger of the plugins' process. number: of its training."""

    process: MethodProcess
    number: int
    name: str
    labels: tuple[str, ...]

    @cached_property
    def variants(self) -> dict[str, RemoteTagger]:
        """Other taggers of the same training, by name."""
        return {}

    def predict(self, corpus: Corpus) -> I32:
        """int32[N]: label codes of a corpus without labels."""
        return self.process.predict(self.number, self.name, corpus)


def _trace(data: bytes) -> dict[str, Any]:
    if len(data) > messages.MAX_TRACE:
        return {"dropped": f"a trace of {len(data)} bytes"}
    found = msgspec.json.decode(data)
    return found if isinstance(found, dict) else {}
