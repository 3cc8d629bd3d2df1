"""A process for the plugins of a run, started before the run reads its data."""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
import psutil

from sslbench.engine.corpus import (
    ChainedShards,
    Column,
    Corpus,
    CorpusShards,
    Shards,
    StoredShards,
    Vocabulary,
    write_shards,
)
from sslbench.engine.errors import UserError, printable
from sslbench.engine.lazy import lazy
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
    RunMethod,
    Training,
)
from sslbench.isolation import messages
from sslbench.isolation.restrict import Restrictions
from sslbench.isolation.server import serve
from sslbench.plugins import registry
from sslbench.processes.child import FORKS, kill, my_descendants, start

MAX_OUTPUT = 2**18  # bytes that the plugins may print
_END_SECONDS = 0.2
A = TypeVar("A", bound=messages.Answer)


def portable(shards: Shards, folder: Path) -> Shards:
    """The same shards, of types that hold nothing but text and paths of stored text.

    Others, such as text that a dataset's code generates, are stored in the folder first.
    """
    if type(shards) in (CorpusShards, StoredShards):
        return shards
    if type(shards) is ChainedShards:
        parts = [portable(part, folder / str(at)) for at, part in enumerate(shards.parts)]
        return ChainedShards(parts)
    first = next(iter(shards), None)
    columns = {} if first is None else first.columns
    write_shards(folder / "text", shards)
    return StoredShards(
        folder / "text", {name: column.vocabulary for name, column in columns.items()}
    )


def without_later_words(corpus: Corpus) -> Corpus:
    """The same text and codes; its vocabularies end with the last string that occurs.

    Reading unlabeled text adds words to the vocabularies that the splits share with it.
    """
    columns = {}
    for name, column in corpus.columns.items():
        end = int(column.codes.max(initial=-1)) + 1
        columns[name] = Column(Vocabulary(column.vocabulary.strings[:end]), column.codes)
    return Corpus(columns, corpus.offsets)


class Output:
    """A pipe for what another process prints; a process that is no fork has the streams of this.

    writing: end of the pipe for the other process; None without a pipe.
    """

    def __init__(self) -> None:
        self._left = MAX_OUTPUT
        self.sources: list[int] = []  # to read from
        self.writing: int | None = None
        if FORKS:
            reading, self.writing = os.pipe()
            os.set_blocking(reading, False)
            self.sources = [reading]

    def started(self) -> None:
        """Close the end that the other process has now."""
        if self.writing is not None:
            os.close(self.writing)

    def forward(self) -> None:
        """Print what has come, as text without control characters."""
        while self.sources:
            try:
                data = os.read(self.sources[0], 2**16)
            except BlockingIOError:
                return
            if not data:  # the other process has closed its end
                self.close()
            elif self._left:
                self._print(data[: self._left])

    def close(self) -> None:
        """Stop reading."""
        while self.sources:
            os.close(self.sources.pop())

    def _print(self, data: bytes) -> None:
        self._left -= len(data)
        text = data.decode(errors="replace").replace("\r", "\n")
        print("\n".join(map(printable, text.split("\n"))), end="", file=sys.stderr, flush=True)
        if not self._left:
            print(f"[output beyond {MAX_OUTPUT} bytes is not shown]", file=sys.stderr, flush=True)


class _BrokenOffError(Exception):
    """The method's process sends this reply instead of a unit."""

    def __init__(self, reply: messages.Answer) -> None:
        super().__init__()
        self.reply = reply


@dataclass(frozen=True)
class Absent:
    """In place of the featurizer and the model, which only the plugins' process loads."""


class MethodProcess(RunMethod):
    """The method of a run in a process of its own.

    On Linux it is a fork, so that it must be made before data are read and threads are started;
    elsewhere it is a new interpreter. What it prints goes to standard error, up to a limit.

    workers: address of a dask scheduler, whose workers do passes for it; only this side connects.
    """

    featurizer = model = Absent()

    def __init__(
        self,
        method: LocalMethod,
        context: Callable[[int], RunContext],
        restrictions: Restrictions,
        workers: str | None = None,
    ) -> None:
        super().__init__()
        self._others = my_descendants()
        self._output = Output()
        given = restrictions, method, context, workers is not None
        self._child = start(serve, *given, fork=FORKS, output=self._output.writing)
        self._connection = self._child.connection
        self._output.started()
        self._stored_texts = restrictions.texts
        self._texts: list[tuple[Shards, Shards]] = []
        self._fits = 0
        self._compile_cpu = 0.0
        self._workers = workers
        self._broker: DaskBroker | None = None

    @lazy
    def description(self) -> MethodDescription:
        return self._ask(messages.Describe(), messages.Described).description

    @property
    def cpu_s(self) -> float:
        """User and system time of the process while it runs, and of the workers' passes."""
        passes = 0.0 if self._broker is None else self._broker.cpu
        with contextlib.suppress(psutil.Error):
            spent = sum(psutil.Process(self._child.pid).cpu_times()[:4])
            return max(0.0, spent - self._compile_cpu) + passes
        return passes

    def fit(self, training: Training, run: RunContext) -> Fitted:
        """Train; the tagger is a `RemoteTagger`, usable until the next training."""
        text = self._portable(training.problem.unlabeled)
        training = replace(training, problem=replace(training.problem, unlabeled=text))
        fitted = self._ask(messages.Fit(training, run.seed), messages.Fitted)
        self._fits += 1
        self.earlier = fitted.earlier
        run.timing.update(fitted.timing)
        run.trace.update(_trace(fitted.trace))
        taggers = {
            name: RemoteTagger(self, self._fits, name, tuple(labels))
            for name, labels in fitted.labels.items()
        }
        tagger = taggers.pop("")
        tagger.variants.update(taggers)
        return Fitted(tagger, fitted.params, fitted.used_dev)

    def _portable(self, text: Shards) -> Shards:
        """See `portable`; the problems of all trials have the same text, which is stored once."""
        for before, stored in self._texts:
            if before is text:
                return stored
        stored = portable(text, self._stored_texts / str(len(self._texts)))
        self._texts.append((text, stored))
        return stored

    def predict(self, number: int, variant: str, corpus: Corpus) -> I32:
        """int32[N]: what the tagger of a training predicts for a corpus without labels."""
        request = messages.Predict(number, variant, without_later_words(corpus))
        codes = self._ask(request, messages.Predicted).codes
        return np.frombuffer(codes, dtype="<i4").astype(np.int32)

    def close(self) -> None:
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
            while isinstance(reply, messages.Share):
                reply = self._share(reply)
        except (EOFError, OSError) as error:
            raise MethodEndedError(self._child.why(error, messages.MAX_REPLY)) from None
        match reply:
            case messages.Failed("input", message):
                raise UserError(message)
            case messages.Failed("memory", message):
                raise MemoryError(message)
            case messages.Failed(_, message, lines):
                raise MethodError(message, lines)
            case answer():
                return reply
        raise MethodError("unexpected reply from the method's process")

    def _send(self, message: messages.Request | messages.Give | messages.Take) -> None:
        self._output.forward()
        self._connection.send_bytes(pickle.dumps(message, protocol=5))

    def _reply(self) -> messages.Answer:
        """The next one; MethodError if it is none."""
        others = [self._connection, self._child.ended]
        while self._connection not in (ready := wait([*others, *self._output.sources])):
            self._output.forward()
            if self._child.ended in ready and not self._connection.poll():
                raise EOFError
        data = self._connection.recv_bytes(messages.MAX_REPLY)
        self._output.forward()
        try:
            reply: messages.Answer = msgspec.msgpack.decode(data, type=messages.Answer)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise MethodError(f"the answer of the method's process is damaged: {error}") from None
        self.violations += reply.violations
        self.compile_s, self._compile_cpu = reply.compiled
        self.isolation = reply.isolation
        return reply

    def _share(self, share: messages.Share) -> messages.Answer:
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
        if not isinstance(reply, messages.Given):
            raise _BrokenOffError(reply)
        return self._connection.recv_bytes(messages.MAX_LARGE) if reply.present else None


@dataclass(frozen=True)
class RemoteTagger:
    """A tagger of the plugins' process.

    number: number of its training.
    variants: other taggers of the same training, by name.
    """

    process: MethodProcess
    number: int
    name: str
    labels: tuple[str, ...]
    variants: dict[str, RemoteTagger] = field(default_factory=dict)

    def predict(self, corpus: Corpus) -> I32:
        """int32[N]: label codes of a corpus without labels."""
        return self.process.predict(self.number, self.name, corpus)


def _trace(data: bytes) -> dict[str, Any]:
    if len(data) > messages.MAX_TRACE:
        return {"dropped": f"a trace of {len(data)} bytes"}
    trace = msgspec.json.decode(data)
    return trace if isinstance(trace, dict) else {}
