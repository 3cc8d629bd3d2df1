"""What plugins print: passed on to standard error, as text without control characters, bounded."""

from __future__ import annotations

import os
import sys

from sslbench.engine.errors import printable
from sslbench.processes.child import FORKS

MAX_OUTPUT = 2**18  # bytes


class Output:
    """A pipe for the standard output and error of another process.

    writing: its end for the other process; None where that is no fork and has the streams of this.
    """

    def __init__(self) -> None:
        self._left = MAX_OUTPUT
        self.writing: int | None
        self._reading, self.writing = -1, None
        if FORKS:
            self._reading, self.writing = os.pipe()
            os.set_blocking(self._reading, False)

    @property
    def sources(self) -> list[int]:
        """To wait for."""
        return [self._reading] if self._reading >= 0 else []

    def started(self) -> None:
        """The other process has its end."""
        if self.writing is not None:
            os.close(self.writing)

    def forward(self) -> None:
        """Pass on what there is."""
        while self._reading >= 0:
            try:
                data = os.read(self._reading, 2**16)
            except BlockingIOError:
                return
            if not data:  # the other process has closed its end
                self.close()
                return
            self._write(data)

    def close(self) -> None:
        """Stop reading."""
        if self._reading >= 0:
            os.close(self._reading)
            self._reading = -1

    def _write(self, data: bytes) -> None:
        if not self._left:
            return
        kept = data[: self._left]
        self._left -= len(kept)
        text = kept.decode(errors="replace").replace("\r", "\n")
        print("\n".join(map(printable, text.split("\n"))), end="", file=sys.stderr, flush=True)
        if not self._left:
            print(f"[output beyond {MAX_OUTPUT} bytes is not shown]", file=sys.stderr, flush=True)
