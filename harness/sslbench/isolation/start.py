"""What the process of a run's plugins may read and write."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from sslbench.engine.files.folders import cache_folder, others_can_write, temporary_folder
from sslbench.experiment.context.checkpoints import checkpoint_folder
from sslbench.experiment.planning.task import RunTask
from sslbench.experiment.run.fitting import LocalMethod, RunMethod, training_context
from sslbench.isolation.hidden import hidden_files, loader_modules
from sslbench.isolation.process import MethodProcess
from sslbench.isolation.restrict import Restrictions
from sslbench.plugins import Registry
from sslbench.plugins.hooks import canonical, is_built_in

_DEVICES = (Path("/dev/null"),)
_LONGEST_NAME = 60  # characters


def isolated(
    run_task: RunTask, plugins: Registry, temporary: Path, memory: int | None
) -> MethodProcess:
    """The process that trains the method of a run.

    temporary: a folder for the temporary files of the run.
    memory: bytes that the process may allocate; None = all.
    """
    loader = loader_modules(run_task, plugins)
    hidden = hidden_files(run_task, plugins, loader)
    own, texts = (temporary / name for name in ("method", "texts"))
    for folder in (own, texts):
        folder.mkdir(exist_ok=True)
    cache = _cache(run_task, plugins) or own
    restrictions = Restrictions(
        hidden=hidden,
        writable=[cache, own, *_DEVICES],
        modules=loader,
        cache=cache,
        temporary=own,
        texts=texts,
        memory=memory,
        checkpoints=_checkpoints(run_task),
    )
    method = LocalMethod(run_task.spec, plugins)
    context = partial(training_context, run_task)
    return MethodProcess(method, context, restrictions, run_task.workers)


def compiling(
    run_task: RunTask, plugins: Registry, temporary: Path, memory: int | None
) -> RunMethod:
    """As `isolated`, but plugins of sslbench's own train in the process of the run.

    So their machine code goes into the cache that all processes read.
    """
    if _distributions(run_task, plugins):
        return isolated(run_task, plugins, temporary, memory)
    return LocalMethod(run_task.spec, plugins)


def _checkpoints(run_task: RunTask) -> Path | None:
    """The folder of this run's checkpoints, made now; None if there can be none."""
    folder = checkpoint_folder(run_task.store, run_task.spec.run_id)
    with suppress(OSError):
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            return folder
    return None


def _cache(run_task: RunTask, plugins: Registry) -> Path | None:
    """The folder of derived data of processes that run the same distributions' plugins.

    A process can damage what another one of these reads, and nothing else. None = no folder.
    """
    name = _name(_distributions(run_task, plugins))
    for parent in (cache_folder, temporary_folder):
        with suppress(OSError):
            folder = parent() / "plugins" / name
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if os.access(folder, os.W_OK) and others_can_write(folder) is None:
                return folder
    return None


def _name(distributions: Sequence[str]) -> str:
    """A name of a folder, another one for other distributions."""
    text = "+".join(distributions)
    plain = re.sub("[^a-z0-9]+", "-", text)[:_LONGEST_NAME]
    return f"{plain}-{hashlib.sha256(text.encode()).hexdigest()[:16]}" if text else "sslbench"


def _distributions(run_task: RunTask, plugins: Registry) -> list[str]:
    """Canonical names of the distributions, other than sslbench's, whose plugins the run names."""
    words = set(_strings(msgspec.to_builtins(run_task.spec)))
    return sorted(
        {
            canonical(origin.distribution) or "unnamed"
            for (_, name), origin in plugins.origins.items()
            if name in words and not is_built_in(origin.distribution)
        }
    )


def _strings(value: object) -> Iterator[str]:
    """All strings in a value of JSON, keys among them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.items():
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _strings(each)
