"""Brokers without a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sslbench.engine.spread import pack, pass_at, unpack

PACKAGES = {"sslbench", "sslbench_methods"}


class BytesBroker:
    """Does passes from bytes alone, as a worker would; leaves the rest after `most` units."""

    def __init__(self, most: int = 10**9) -> None:
        self.most = most
        self.done: list[tuple[str, int]] = []

    def over(
        self, target: str, work: bytes, key: str, give: Callable[[int], bytes | None], begin: int
    ) -> Iterator[bytes]:
        one = pass_at(target, PACKAGES).unpacked(*unpack(work))
        for number in range(begin, begin + self.most):
            unit = give(number)
            if unit is None:
                return
            self.done.append((target.rpartition(":")[2], number))
            yield pack((one.pack_result(one.run(one.unpack_unit(*unpack(unit)))), {}))
