"""Files served over HTTP on the loopback interface."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from sslbench.plugins.registrations import DatasetInfo, RemoteFile


class Served(NamedTuple):
    """Address of the server, and the paths that it was asked for so far."""

    address: str
    requested: list[str]


class _Handler(http.server.SimpleHTTPRequestHandler):
    requested: list[str]

    def do_GET(self) -> None:
        self.requested.append(self.path)
        super().do_GET()

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""


@contextmanager
def serving(folder: Path, files: Mapping[str, bytes]) -> Iterator[Served]:
    """Write the files, by name, into a new folder and serve it."""
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    requested: list[str] = []
    handler = type("Recording", (_Handler,), {"requested": requested})
    serve = functools.partial(handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield Served(f"http://127.0.0.1:{server.server_port}", requested)
        server.shutdown()


def registration(
    *files: RemoteFile, target: str = "made_up_data:load", licence: str = "free"
) -> DatasetInfo:
    """The dataset "mine" with these files."""
    texts = {"summary": "s", "reference": "r", "protocol": "p", "featurizer": "basic"}
    more = {"task": "spans", "metric": "f1", "target": target, "licence": licence}
    return DatasetInfo(name="mine", files=files, **texts, **more)
