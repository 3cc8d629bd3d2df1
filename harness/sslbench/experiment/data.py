"""Datasets in memory, and the folder where their files are kept.

Does not import numpy: ``sslbench data path`` stays quick.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sslbench.atomic import write_atomically
from sslbench.errors import UserError
from sslbench.folders import cache_folder, data_folder
from sslbench.registrations import RemoteFile

if TYPE_CHECKING:
    from sslbench.corpus import Corpus, LabelCodec, LabelConstraint, Shards
    from sslbench.experiment.metrics import Alternatives

OFFLINE_VARIABLE = "SSLBENCH_OFFLINE"

FileState = Literal["ok", "missing", "wrong sha256"]
Metadata = Mapping[str, float | int | str]


@dataclass(frozen=True)
class Dataset:
    """A corpus with its splits, as a dataset plugin's ``load`` returns it.

    Attributes
    ----------
    name: of the registration.
    task: "tagging", "spans", "segmentation" or "joint".
    metric: the primary one.
    encoding: of the label column ("IOB2", "BMES", ...), None for plain tags.
    splits: "train", "test" and, where there is one, "dev"; each Corpus has a "label" column, and
        all share one Vocabulary per column name. Others are scored like test, and methods get none
        of them: "transductive" is the external text with its labels.
    external: makes the unlabeled text from outside; only called when a protocol needs it.
    metadata: repeated in the run record (key "facts"); values are JSON-able.
    adaptation: train is of another domain than dev and test, and `external` of theirs: it is the
        unlabeled text however many sentences are labeled. Else it is only when all are.
    joined: the unlabeled text is what is left of train, and then `external`.
    transductive: what is tested is unlabeled text; so in tuning, held-out labeled sentences are
        unlabeled text too.
    codec: makes, from the tags of the labeled sample, the labels that models are trained on in
        their place; what is predicted is scored as tags. None: on the tags as they are.
    label_constraint: tells the label of some tokens; for all methods, in training and in
    tagging. What it says
        of the labeled sample replaces the labels there, never those that are scored.
    alternatives: by split, spans that the task accepts besides those of the labels; adds
        alt_precision, alt_recall and alt_f1. With such a metric as the primary one, every split
        has them.
    """

    name: str
    task: str
    metric: str
    encoding: str | None
    splits: Mapping[str, Corpus]
    external: Callable[[], Shards] | None = None
    metadata: Metadata = field(default_factory=dict)
    adaptation: bool = False
    joined: bool = False
    transductive: bool = False
    codec: Callable[[Sequence[str]], LabelCodec] | None = None
    label_constraint: LabelConstraint | None = None
    alternatives: Mapping[str, Alternatives] = field(default_factory=dict)


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
        self.root = data_folder(root)
        self.cache = cache_folder(cache)
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
        from sslbench.experiment.fetch import download, put_it_there  # requests: 100 ms

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
