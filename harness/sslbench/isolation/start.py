"""What the process of a run's plugins may read and write."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from platformdirs import user_cache_path

from sslbench.engine.errors import UserError
from sslbench.engine.files.folders import others_can_write, temporary_folder
from sslbench.experiment.context.checkpoints import checkpoint_folder
from sslbench.experiment.data.home import DataHome
from sslbench.experiment.data.userdata import find_files
from sslbench.experiment.planning.task import RunTask
from sslbench.experiment.run.fitting import LocalMethod, training_context
from sslbench.isolation.process import MethodProcess
from sslbench.isolation.restrict import Restrictions
from sslbench.plugins import Registry
from sslbench.plugins.hooks import KINDS

_DEVICES = (Path("/dev/null"), Path("/dev/shm"))


def isolated(
    run_task: RunTask, plugins: Registry, temporary: Path, memory: int | None
) -> MethodProcess:
    """The process that trains the method of a run.

    temporary: a folder for its temporary files.  memory: bytes it may allocate; None = all.
    """
    loader = _loader_modules(run_task, plugins)
    hidden = [*_data_files(run_task, plugins), *_sources(loader)]
    if run_task.store is not None:
        hidden.append(Path(run_task.store))
    restrictions = Restrictions(
        hidden=[path for path in hidden if path.exists()],
        writable=[*_derived(), user_cache_path("numba"), temporary, *_DEVICES],
        modules=loader,
        temporary=temporary,
        memory=memory,
        checkpoints=_checkpoints(run_task),
    )
    method = LocalMethod(run_task.spec, plugins)
    context = partial(training_context, run_task)
    return MethodProcess(method, context, restrictions, run_task.workers)


def _checkpoints(run_task: RunTask) -> Path | None:
    """The folder of this run's checkpoints, made now; None if there can be none."""
    folder = checkpoint_folder(run_task.store, run_task.spec.run_id)
    with suppress(OSError):
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            return folder
    return None


def _derived() -> Iterator[Path]:
    """The folder of derived data, and the one that takes its place where it cannot be used."""
    cache = DataHome().cache
    with suppress(OSError):
        cache.mkdir(parents=True, exist_ok=True)
        yield cache
        if os.access(cache, os.W_OK) and others_can_write(cache) is None:
            return
    with suppress(OSError):
        yield temporary_folder()


def _data_files(run_task: RunTask, plugins: Registry) -> Iterator[Path]:
    """The user's files, or all folders of the data home that files of datasets are in."""
    if run_task.spec.data.columns is not None:
        with suppress(UserError):  # the run will fail with it
            yield from find_files(Path(run_task.data_path or "")).values()
        return
    root = DataHome(run_task.data_path).root
    for first in {Path(f.path).parts[0] for info in plugins.datasets.values() for f in info.files}:
        yield root / first


def _loader_modules(run_task: RunTask, plugins: Registry) -> list[str]:
    """The package of the dataset's loader, or its module if the package has other plugins too.

    An empty list if that module also has other plugins, and for the user's own data.
    """
    if run_task.spec.data.columns is not None:
        return []
    module = plugins.dataset(run_task.spec.dataset).target.partition(":")[0]
    others = {
        info.target.partition(":")[0]
        for kind in map(plugins.of_kind, set(KINDS) - {"datasets"})
        for info in kind.values()
    }
    package, dot, _ = module.rpartition(".")
    if "." in package and not any(other.startswith(package + dot) for other in others):
        return [package]
    return [] if module in others else [module]


def _sources(modules: list[str]) -> Iterator[Path]:
    """Files or folders of modules, their compiled copies among them."""
    for name in modules:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            continue
        if spec.submodule_search_locations:
            yield Path(spec.origin).parent
        else:
            yield from (Path(each) for each in (spec.origin, spec.cached) if each)
