"""``sslbench doctor``: what sslbench finds on this machine."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal, NamedTuple

import click

from sslbench.cli.requirements import declared, unmet
from sslbench.cli.text import table
from sslbench.engine.files.folders import CACHE_VARIABLE, HOME_VARIABLE, cache_folder, data_folder
from sslbench.engine.variables import processors
from sslbench.experiment.data import DataHome
from sslbench.plugins import registry

_LIBRARIES = ("numpy", "scipy", "numba", "msgspec", "pandas")
_LEAST_FREE = 2**30  # bytes


class Finding(NamedTuple):
    """state: "wrong" = something will not work, "note" = something is missing that few need."""

    state: Literal["ok", "note", "wrong"]
    what: str
    text: str


@click.command("doctor")
@click.pass_context
def command(ctx: click.Context, /) -> None:
    """Look at this machine: versions, folders, memory, plugins, files of datasets.

    Exit status: 0 nothing is wrong, 1 something is.
    """
    findings = [*_versions(), *_machine(), *_folders(), *_plugins(), _datasets()]
    click.echo(table(findings, indent=""))
    ctx.exit(1 if any(finding.state == "wrong" for finding in findings) else 0)


def _versions() -> Iterator[Finding]:
    version_text = f"{version('sslbench')}, Python {platform.python_version()}"
    yield Finding("ok", "sslbench", f"{version_text}, {platform.platform(terse=True)}")
    yield Finding("ok", "libraries", ", ".join(f"{name} {version(name)}" for name in _LIBRARIES))
    wrong = dict(unmet())
    extras: dict[str, str] = {}
    for requirement, extra in declared():
        extras.setdefault(requirement.name, extra)  # two extras may bring one library
    for library, extra in extras.items():
        if library in wrong:
            yield Finding("wrong", library, wrong[library])
        elif extra:
            try:
                yield Finding("ok", library, version(library))
            except PackageNotFoundError:
                yield Finding("note", library, f"not installed: pip install 'sslbench[{extra}]'")


def _machine() -> Iterator[Finding]:
    import psutil

    from sslbench.experiment.identity import processor

    memory = psutil.virtual_memory()
    free = f"{memory.available / 2**30:.1f} of {memory.total / 2**30:.1f} GiB of memory free"
    allowed, there = processors(), os.cpu_count()
    of = "" if allowed == there else f" of {there}"
    state: Literal["ok", "wrong"] = "ok" if memory.available > _LEAST_FREE else "wrong"
    yield Finding(state, "machine", f"{allowed}{of} processors ({processor()}), {free}")
    from sslbench.isolation.restrict import is_available

    if is_available():
        yield Finding("ok", "isolation", "methods cannot read the files of datasets (Landlock)")
    else:
        text = "methods are only watched: no Landlock here (docs/architecture.md)"
        yield Finding("note", "isolation", text)


def _folders() -> Iterator[Finding]:
    folders = [
        ("data home", data_folder(), HOME_VARIABLE),
        ("cache", cache_folder(), CACHE_VARIABLE),
        ("temporary", Path(tempfile.gettempdir()), "TMPDIR"),
    ]
    for what, folder, variable in folders:
        problem = _problem(folder)
        if problem is None:
            free = shutil.disk_usage(_existing(folder)).free
            low = free < _LEAST_FREE
            text = f"{folder}, {free / 2**30:.1f} GiB free"
            yield Finding("wrong" if low else "ok", what, text)
        else:
            # A data home that is only read is in order.
            state: Literal["note", "wrong"] = "note" if what == "data home" else "wrong"
            yield Finding(state, what, f"{folder}: {problem} ({variable} names another one)")


def _existing(folder: Path) -> Path:
    return next(each for each in (folder, *folder.absolute().parents) if each.exists())


def _problem(folder: Path) -> str | None:
    """Why nothing can be written below a folder; None if it can. The folder need not exist."""
    try:
        tempfile.TemporaryFile(dir=_existing(folder)).close()
    except OSError as error:
        return error.strerror or str(error)
    return None


def _plugins() -> Iterator[Finding]:
    plugins = registry()
    others = ", ".join(f"{name} {of}" for name, of in plugins.loaded.items()) or "sslbench's own"
    yield Finding("ok", "plugins", f"{len(plugins.methods)} methods; from {others}")
    for problem in plugins.problems:
        yield Finding("wrong", "plugin", str(problem))


def _datasets() -> Finding:

    home, infos = DataHome(), registry().datasets.values()
    there = [
        info.name
        for info in infos
        if not info.own and all(home.locate(file).exists() for file in info.files)
    ]
    text = f"{len(there)} of {len(infos)} with all files: {', '.join(there)}"
    return Finding("ok", "datasets", text)
