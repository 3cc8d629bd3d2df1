"""The data home: the folder of the files of datasets, and the folder of derived data."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from sslbench.atomic import write_atomically
from sslbench.errors import UserError
from sslbench.registrations import RemoteFile

HOME_VARIABLE = "SSLBENCH_DATA"
CACHE_VARIABLE = "SSLBENCH_CACHE"
OFFLINE_VARIABLE = "SSLBENCH_OFFLINE"

FileState = Literal["ok", "missing", "wrong sha256"]


class DataHome:
    """The folder of upstream files (may be read-only) and the writable folder of derived ones.

    Parameters
    ----------
    root: default ``$SSLBENCH_DATA``, else the platform's user cache folder.
    cache: for derived data; default ``$SSLBENCH_CACHE``, else ``derived`` in the user cache folder.
    offline: never download; default: whether ``$SSLBENCH_OFFLINE`` is set and not "0".
    dataset: on whose behalf files are asked for; for the advice in messages.
    """

    def __init__(
        self,
        root: str | os.PathLike[str] | None = None,
        cache: str | os.PathLike[str] | None = None,
        offline: bool | None = None,
        dataset: str = "",
    ) -> None:
        self.root = _folder(root, HOME_VARIABLE, "")
        self.cache = _folder(cache, CACHE_VARIABLE, "derived")
        if offline is None:
            offline = os.environ.get(OFFLINE_VARIABLE, "0") not in ("", "0")
        self.offline = offline
        self.dataset = dataset

    def locate(self, file: RemoteFile) -> Path:
        """Return where the file lies or would lie."""
        return self.root / file.path

    def path(self, file: RemoteFile, *, agreed: bool = False) -> Path:
        """Return the verified local file, downloading it when it is not there.

        ``agreed``: the user accepts the licence, where that must be done to download the file.

        Raises UserError when a file is there with another sha256 (it is never overwritten), or when
        it may not or cannot be downloaded; the message says what to put where.
        """
        target = self.locate(file)
        if not target.is_file():
            self._download(file, target, agreed)
        found = self.sha256(target)
        if found != file.sha256:
            raise UserError(
                f"sha256 is {found}, but {file.path} should have {file.sha256}",
                file=target,
                hint="move it away to have it downloaded again",
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
                f" accepted before it is downloaded ({file.licence})",
                hint=f"sslbench data fetch {self.dataset or 'NAME'} asks for that",
            )
        download(file, target)

    def state(self, file: RemoteFile, *, rehash: bool = False) -> FileState:
        """Say how a file stands, without downloading; ``rehash`` ignores remembered digests."""
        target = self.locate(file)
        if not target.is_file():
            return "missing"
        return "ok" if self.sha256(target, rehash=rehash) == file.sha256 else "wrong sha256"

    def sha256(self, path: Path, *, rehash: bool = False) -> str:
        """Return a file's digest; remembered by path, size and modification time.

        Raises UserError when the file cannot be read.
        """
        try:
            facts = path.stat()
            key, stamp = str(path.resolve()), [facts.st_size, facts.st_mtime_ns]
            known = self._remembered().get(key)
            if not rehash and known is not None and known[:2] == stamp:
                return str(known[2])
            with path.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as problem:
            raise UserError(f"cannot be read: {problem.strerror}", file=path) from problem
        self._remember(key, [*stamp, digest])
        return digest

    def derived(self, kind: str, key: Mapping[str, object]) -> Path:
        """Return the folder for derived data of this kind and content key; it may not exist yet.

        ``key`` is everything that the content depends on, JSON-able. Whoever fills the folder does
        so atomically (temporary folder and rename), so that an existing folder is a whole one.
        """
        text = json.dumps(key, sort_keys=True, ensure_ascii=True)
        return self.cache / kind / hashlib.sha256(text.encode()).hexdigest()[:32]

    @property
    def _memory(self) -> Path:
        return self.cache / "sha256.json"

    def _remembered(self) -> dict[str, list[int | str]]:
        """Return path -> [size, modification time in ns, sha256]; empty when there is nothing."""
        try:
            entries = json.loads(self._memory.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        if not isinstance(entries, dict):
            return {}
        return {k: v for k, v in entries.items() if isinstance(v, list) and len(v) == 3}

    def _remember(self, key: str, entry: list[int | str]) -> None:
        """Store a digest. Losing one to a concurrent writer costs a rehash, so there is no lock."""
        entries = {**self._remembered(), key: entry}
        try:
            write_atomically(self._memory, json.dumps(entries, indent=0, sort_keys=True).encode())
        except OSError:  # an unwritable cache must not stop a run
            return


def _folder(given: str | os.PathLike[str] | None, variable: str, below: str) -> Path:
    chosen = given or os.environ.get(variable)
    if chosen:
        return Path(chosen).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("sslbench", appauthor=False) / below
