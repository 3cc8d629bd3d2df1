"""The plugins' process asks the run's process for passes by name, with plain data alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sslbench.engine.corpus.units import TextUnits
from sslbench.engine.features import Streams, Template
from sslbench.engine.spread import using_broker
from sslbench.experiment.run.fitting import MethodEndedError, MethodError, RunMethod
from sslbench.isolation import messages
from sslbench.isolation.process import MethodProcess
from sslbench.isolation.restrict import Watch
from sslbench.isolation.server import _failed, _next, _Server
from support.brokers import BytesBroker
from support.jess_cm_toys import TEMPLATES, problem

Child = Callable[[_Server], messages.Answer]
SYMBOLS = "sslbench.engine.features.streams:SymbolPass"
T = [Template.parse(each) for each in TEMPLATES]


class NoOutput:
    sources: tuple[int, ...] = ()

    def forward(self) -> None:
        """There is none."""


class Parent(MethodProcess):
    """The run's side over a pipe, without a process on the other side."""

    def __init__(self, connection: Connection, broker: BytesBroker | None) -> None:
        RunMethod.__init__(self)
        self._connection = connection
        self._output: Any = NoOutput()
        ended, self._unused = Pipe()
        self._child: Any = SimpleNamespace(ended=ended, why=lambda error, most: f"ended: {error}")
        self._workers = None if broker is None else "tcp://a:1"
        self._broker: Any = broker


@pytest.fixture
def asked() -> Iterator[Callable[[Child, BytesBroker | None], bytes]]:
    """What the run's side gets when the other side answers a request by a function."""
    threads: list[threading.Thread] = []

    def ask(child: Child, broker: BytesBroker | None) -> bytes:
        ours, theirs = Pipe()
        server: Any = _Server(theirs, None, None, Watch(), "audit hook")  # type: ignore[arg-type]

        def serve() -> None:
            _next(theirs)
            try:
                with using_broker(server):
                    answer = child(server)
            except Exception as error:
                answer = _failed("method", error, str(error))
            with suppress(OSError):  # the other side may have given up
                server.reply(answer)

        threads.append(threading.Thread(target=serve, daemon=True))
        threads[-1].start()
        request = messages.Describe()
        return Parent(ours, broker)._ask(request, messages.Predicted).codes

    yield ask
    for thread in threads:
        thread.join(10)


Asked = Callable[[Child, BytesBroker | None], bytes]


def fitted(server: _Server) -> messages.Answer:
    streams = Streams.fit(T, TextUnits(problem().unlabeled, 100))
    return messages.Predicted(np.array(streams.n_symbols).tobytes())


@pytest.mark.parametrize("most", [0, 2, 10**9])
def test_a_pass_is_done_on_the_other_side(asked: Asked, most: int) -> None:
    broker = BytesBroker(most)
    expected = np.array(Streams.fit(T, problem().unlabeled).n_symbols).tobytes()
    assert asked(fitted, broker) == expected
    assert len(broker.done) == (most if most < 10**9 else len(broker.done))
    assert (most > 0) == bool(broker.done)


def test_a_method_that_breaks_off(asked: Asked) -> None:
    def child(server: _Server) -> messages.Answer:
        units = TextUnits(problem().unlabeled, 50)
        for number, _ in enumerate(server.over(SYMBOLS, work(), units.key, give(units), 0)):
            if number == 1:
                raise ValueError("enough")
        return messages.Predicted(b"")

    with pytest.raises(MethodError, match="enough"):
        asked(child, BytesBroker())


def test_a_unit_that_cannot_be_made(asked: Asked) -> None:
    def child(server: _Server) -> messages.Answer:
        def lost(number: int) -> bytes | None:
            raise OSError("no text")

        list(server.over(SYMBOLS, work(), "key", lost, 0))
        return messages.Predicted(b"")

    with pytest.raises(MethodError, match="no text"):
        asked(child, BytesBroker())


@pytest.mark.parametrize("target", ["os:system", "sslbench", "sslbench.a b:C", ""])
def test_other_targets_are_refused(asked: Asked, target: str) -> None:
    def child(server: _Server) -> messages.Answer:
        list(server.over(target, work(), "key", lambda number: None, 0))
        return messages.Predicted(b"")

    with pytest.raises(MethodError, match="asks for a pass"):
        asked(child, BytesBroker())
    with pytest.raises(MethodError, match="asks for a pass"):
        asked(child, None)


def test_no_more_bytes_than_the_limit(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "MAX_LARGE", 10)
    with pytest.raises(MethodEndedError, match="ended: bad message length"):
        asked(fitted, BytesBroker())


def work() -> bytes:
    from sslbench.engine.features.streams import SymbolPass
    from sslbench.engine.spread import pack

    return pack(SymbolPass(tuple(T)).packed())


def give(units: TextUnits) -> Callable[[int], bytes | None]:
    from sslbench.engine.corpus.units import pack_corpus
    from sslbench.engine.spread import pack

    def found(number: int) -> bytes | None:
        unit = units.get(number)
        return None if unit is None else pack(pack_corpus(unit))

    return found
