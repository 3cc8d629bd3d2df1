"""Archives that can be fetched: segments by address and sha256, named in a registry file."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tomllib
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Meta

from sslbench.engine.errors import UserError
from sslbench.engine.files.atomic import replacing, write_atomically
from sslbench.experiment.data.fetch import download
from sslbench.experiment.records.catalog import SEGMENTS
from sslbench.experiment.request.words import in_words
from sslbench.plugins.registrations import RemoteFile


class SegmentFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A segment of an archive.

    Attributes
    ----------
    name: name of the file in the folder of segments.
    urls: tried in this order; a path is relative to the registry file.
    sha256, bytes: hash and size of the file.
    """

    name: Annotated[str, Meta(pattern=r"^[0-9a-f]{32}\.segment$")]
    urls: Annotated[list[str], Meta(min_length=1)]
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    bytes: Annotated[int, Meta(ge=1, le=2**40)]


class Archive(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Records that are published together. about: one line.  runs: number of records."""

    name: str
    about: str
    runs: Annotated[int, Meta(ge=1)]
    files: Annotated[list[SegmentFile], Meta(min_length=1)]

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(file.bytes for file in self.files)


class _Registry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    archive: list[Archive] = []


def read_registry(path: Path) -> dict[str, Archive]:
    """The archives of a registry file by name; UserError if it cannot be read."""
    tree: dict[str, Any] = {}
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
        registry = msgspec.convert(tree, _Registry)
    except OSError as error:
        raise UserError(error.strerror or str(error), file=path) from None
    except (tomllib.TOMLDecodeError, UnicodeError, RecursionError) as error:
        raise UserError(f"not TOML: {error}", file=path) from None
    except msgspec.ValidationError as error:
        raise UserError(in_words(error, tree, _Registry), file=path) from None
    return {archive.name: archive for archive in registry.archive}


_HEAD = """\
# Published records, which `sslbench results fetch NAME` puts into a store, by file of records.
# `sslbench results register NAME` writes this file: add addresses to `urls` where the files are.
"""


def register(name: str, about: str, runs: int, store: Path, registry: Path) -> Archive:
    """Write the segments of a store into a registry file, as the archive of this name.

    Paths are relative to the registry. Addresses of files that it had of this name are kept.
    """
    archives = read_registry(registry) if registry.exists() else {}
    known = archives.get(name)
    before = {file.name: file.urls for file in known.files} if known else {}
    files = []
    for path in sorted((store / SEGMENTS).glob("*.segment")):
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        beside = Path(os.path.relpath(path, registry.parent)).as_posix()
        urls = list(dict.fromkeys([beside, *before.get(path.name, ())]))
        files.append(SegmentFile(path.name, urls, sha256, path.stat().st_size))
    if not files:
        raise UserError("no segments", file=store, hint="sslbench results pack writes them")
    archives[name] = Archive(name, about, runs, files)
    write_atomically(registry, (_HEAD + "".join(map(_as_toml, archives.values()))).encode())
    return archives[name]


def _as_toml(archive: Archive) -> str:
    """A table in TOML; strings and lists of strings are spelled as in JSON."""
    tables = [("archive", {"name": archive.name, "about": archive.about, "runs": archive.runs})]
    tables += [("archive.files", msgspec.structs.asdict(file)) for file in archive.files]
    lines = []
    for head, values in tables:
        lines += ["", f"[[{head}]]"]
        lines += [
            f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()
        ]
    return "\n".join([*lines, ""])


def fetch(archive: Archive, registry: Path, store: Path) -> list[Path]:
    """Put the segments of an archive into a store; those that are there are left as they are.

    registry: the file that names the archive.  UserError if a segment cannot be had or has another
    sha256: it is not put in place then. An interrupted download resumes.
    """
    return [_fetch(file, registry.parent, store / SEGMENTS / file.name) for file in archive.files]


def _fetch(file: SegmentFile, beside: Path, target: Path) -> Path:
    if target.is_file():
        return target
    local = [path for url in file.urls if (path := _local(url, beside)) is not None]
    for path in local:
        if path.is_file():
            _copy(path, target, file.sha256)
            return target
    urls = tuple(url for url in file.urls if _local(url, beside) is None)
    if not urls:
        raise UserError(
            f"no file {', '.join(map(str, local))}",
            hint=f"needed for {file.name}; a checkout has those of its leaderboards/archive.toml",
        )
    download(
        RemoteFile(path=file.name, urls=urls, sha256=file.sha256, licence="MIT", bytes=file.bytes),
        target,
    )
    return target


def _local(url: str, beside: Path) -> Path | None:
    """The path that an address means; None for one of another machine."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return None if parts.scheme in ("http", "https") else beside / url


def _copy(source: Path, target: Path, sha256: str) -> None:
    """Copy a file; UserError, and no target, if it has another sha256."""
    try:
        with source.open("rb") as given, replacing(target) as file:
            shutil.copyfileobj(given, file)
            given.seek(0)
            digest = hashlib.file_digest(given, "sha256").hexdigest()
            if digest != sha256:
                raise UserError(f"sha256 is {digest}, but should be {sha256}", file=source)
    except OSError as error:
        raise UserError(error.strerror or str(error), file=error.filename or source) from error
