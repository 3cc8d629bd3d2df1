"""Brokers without a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sslbench.engine.spread import pack, pass_named, unpack


class BytesBroker:
    """Does passes from bytes alone, as a worker would; leaves the rest after `most` units."""

    def __init__(self, most: int = 10**9) -> None:
        self.most = most
        self.done: list[tuple[str, int]] = []

    def over(
        self, name: str, work: bytes, key: str, give: Callable[[int], bytes | None], begin: int
    ) -> Iterator[bytes]:
        one = pass_named(name).unpacked(*unpack(work))
        for number in range(begin, begin + self.most):
            unit = give(number)
            if unit is None:
                return
            self.done.append((name, number))
            yield pack((one.pack_result(one.run(one.unpack_unit(*unpack(unit)))), {}))
