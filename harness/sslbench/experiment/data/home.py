"""The data home: the folder of the files of datasets, and the folder of derived data."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from sslbench.engine.errors import UserError
from sslbench.engine.files import derived
from sslbench.engine.files.folders import cache_folder, data_folder
from sslbench.plugins.registrations import RemoteFile

OFFLINE_VARIABLE = "SSLBENCH_OFFLINE"

FileState = Literal["ok", "missing", "wrong sha256"]


class DataHome:
    """The folder of the files of datasets (may be read-only) and the folder of derived data.

    Parameters
    ----------
    root: default ``$SSLBENCH_DATA``, or the platform's user cache folder.
    cache: for derived data, writable; default ``$SSLBENCH_CACHE``, or ``derived`` in the user cache
        folder.
    offline: never download; default: whether ``$SSLBENCH_OFFLINE`` is set and not "0".
    dataset: name of the dataset that is loaded, for the hints of error messages.
    """

    def __init__(
        self,
        root: str | os.PathLike[str] | None = None,
        cache: str | os.PathLike[str] | None = None,
        offline: bool | None = None,
        dataset: str = "",
    ) -> None:
        self.root = data_folder(root)
        self.cache = cache_folder(cache)
        if offline is None:
            offline = os.environ.get(OFFLINE_VARIABLE, "0") not in ("", "0")
        self.offline = offline
        self.dataset = dataset

    def locate(self, file: RemoteFile) -> Path:
        """The path of the file in the data home, whether it exists or not."""
        return self.root / file.path

    def path(self, file: RemoteFile, *, agreed: bool = False) -> Path:
        """Return the path of the verified file; download the file if it is missing.

        agreed: the user accepts the licence, which some files require before the download.

        Raises
        ------
        UserError: the file has another sha256 (it is never overwritten), or it may not or cannot be
            downloaded; the message says which file to put where.
        """
        target = self.locate(file)
        if not target.is_file():
            self._download(file, target, agreed)
        digest = self.sha256(target)
        if digest != file.sha256:
            raise UserError(
                f"sha256 is {digest}, but {file.path} should have {file.sha256}",
                file=target,
                hint="move it away, then it is downloaded again",
            )
        return target

    def _download(self, file: RemoteFile, target: Path, agreed: bool) -> None:
        from sslbench.experiment.data.fetch import download, put_it_there  # requests: 100 ms

        if self.offline:
            origin = f"; it comes from {file.urls[0]}" if file.urls else ""
            raise UserError(
                f"{file.path} is not in the data home and {OFFLINE_VARIABLE} forbids downloads",
                hint=put_it_there(file, target) + origin,
            )
        if file.agreement and not agreed:
            raise UserError(
                f"{file.path} is not in the data home {self.root}, and its licence has to be"
                f" accepted before the download ({file.licence})",
                hint=f"sslbench data fetch {self.dataset or 'NAME'} asks for it",
            )
        download(file, target)

    def state(self, file: RemoteFile, *, rehash: bool = False) -> FileState:
        """The state of a file; downloads nothing. rehash: ignore stored digests."""
        target = self.locate(file)
        if not target.is_file():
            return "missing"
        return "ok" if self.sha256(target, rehash=rehash) == file.sha256 else "wrong sha256"

    def sha256(self, path: Path, *, rehash: bool = False) -> str:
        """Sha256 of a file, in hexadecimal; UserError when it cannot be read.

        Digests are stored in the cache by path, size and modification time; rehash: ignore them.
        """
        try:
            status = path.stat()
            stamp = f" {status.st_size} {status.st_mtime_ns}".encode()
            key = os.fsencode(path.resolve()) + stamp
            stored = self.cache / "sha256" / hashlib.sha256(key).hexdigest()[:32]
            before = None if rehash else derived.find(stored, key)
            if before is not None:
                return before.decode()
            with path.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as problem:
            raise UserError(f"cannot be read: {problem.strerror}", file=path) from problem
        derived.keep(stored, key, digest.encode())
        return digest

    def derived(self, kind: str, key: Mapping[str, object]) -> Path:
        """The folder for derived data of this kind and key; it may not exist yet.

        key: everything that the content depends on, JSON-able. Callers fill the folder atomically
        (temporary folder, then rename): an existing folder is complete.
        """
        text = json.dumps(key, sort_keys=True, ensure_ascii=True)
        return self.cache / kind / hashlib.sha256(text.encode()).hexdigest()[:32]
