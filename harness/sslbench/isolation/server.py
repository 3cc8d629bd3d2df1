"""The process that runs a run's plugins: it trains and predicts, and sees no hidden label."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from typing import Any

import msgspec

from sslbench.engine.compilation.compile_time import compile_seconds
from sslbench.engine.errors import UserError, described, printable
from sslbench.engine.spread import using_broker
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.inputs.problem import Tagger, predicted
from sslbench.experiment.records.record import TRACEBACK_LINES, jsonable
from sslbench.experiment.run.fitting import LocalMethod
from sslbench.isolation import messages
from sslbench.isolation.restrict import Isolation, Restrictions, Watch, restrict

_LINE = 500  # characters of a line of a traceback


def serve(
    connection: Connection,
    restrictions: Restrictions,
    method: LocalMethod,
    context: Callable[[int], RunContext],
    workers: bool,
) -> None:
    """Answer requests until the other side closes the connection.

    workers: the other side has passes done by workers.
    """
    watch = Watch()
    server = _Server(connection, method, context, watch, restrict(restrictions, watch))
    with suppress(EOFError, OSError), using_broker(server if workers else None):
        while True:
            request = _next(connection)
            if isinstance(request, messages.Give | messages.Take):
                continue  # of a pass that a method has broken off
            server.reply(server.answer(request))


def _next(connection: Connection) -> Any:
    return pickle.loads(connection.recv_bytes())  # noqa: S301  # of the process of the run


@dataclass
class _Server:
    connection: Connection
    method: LocalMethod
    context: Callable[[int], RunContext]
    watch: Watch
    isolation: Isolation
    number: int = 0
    taggers: dict[str, Tagger] = field(default_factory=dict)

    def reply(self, answer: messages.Answer) -> None:
        """Send an answer."""
        answer.isolation, answer.violations = self.isolation, self.watch.take()
        answer.compiled = compile_seconds()
        self.connection.send_bytes(msgspec.msgpack.encode(answer))

    def over(
        self, target: str, work: bytes, key: str, give: Callable[[int], bytes | None], begin: int
    ) -> Iterator[bytes]:
        """See `Broker`: the other side asks for units and sends results."""
        self.reply(messages.Share(target, key, begin))
        self.connection.send_bytes(work)
        while True:
            match _next(self.connection):
                case messages.Give(number):
                    unit = give(number)
                    self.reply(messages.Given(unit is not None))
                    if unit is not None:
                        self.connection.send_bytes(unit)
                case messages.Take(None):
                    return
                case messages.Take(bytes() as data):
                    yield data

    def answer(self, request: messages.Request) -> messages.Answer:
        """Any exception of a plugin, also one that would end the process, is an answer."""
        try:
            match request:
                case messages.Describe():
                    return messages.Described(self.method.description)
                case messages.Fit():
                    return self.fit(request)
                case messages.Predict():
                    return self.predict(request)
        except UserError as error:
            return _failed("input", error, str(error))
        except MemoryError as error:
            return _failed("memory", error, f"out of memory (--memory); {described(error)}")
        except BaseException as error:
            return _failed("method", error, described(error))

    def fit(self, request: messages.Fit) -> messages.Answer:
        self.taggers = {}  # free the memory of the last training first
        method = self.method
        training, run = request.training, self.context(request.seed)
        problem = replace(training.problem, featurizer=method.featurizer, model=method.model)
        trained = method.fit(replace(training, problem=problem), run)
        self.number += 1
        taggers = {"": trained.tagger, **getattr(trained.tagger, "variants", {})}
        if sum(len(tagger.labels) for tagger in taggers.values()) > messages.MAX_LABELS:
            raise ValueError(
                f"the tagger and its variants have more than {messages.MAX_LABELS} labels"
            )
        self.taggers = taggers
        return messages.Fitted(
            labels={name: list(tagger.labels) for name, tagger in taggers.items()},
            params=trained.params,
            timing=run.timing,
            trace=msgspec.json.encode(jsonable(run.trace)),
            used_dev=trained.used_dev,
            earlier=method.earlier,
        )

    def predict(self, request: messages.Predict) -> messages.Answer:
        if request.number != self.number:
            raise RuntimeError("the tagger of an earlier training is gone")
        codes = predicted(self.taggers[request.variant], request.corpus)
        return messages.Predicted(codes.astype("<i4").tobytes())


def _failed(kind: Any, error: BaseException, text: str) -> messages.Failed:
    try:
        lines = traceback.format_exception(error)
        tail = "".join(lines).splitlines()[-TRACEBACK_LINES:]
    except Exception:  # an exception that cannot be printed
        tail = []
    return messages.Failed(kind, text, [printable(line[:_LINE]) for line in tail])
