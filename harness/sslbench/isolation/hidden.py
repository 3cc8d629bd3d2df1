"""Files that the process of a run's plugins may not read: hidden labels are in them."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from sslbench.engine.errors import UserError
from sslbench.experiment.data.home import DataHome
from sslbench.experiment.data.userdata import data_files
from sslbench.experiment.planning.task import RunTask
from sslbench.experiment.records.catalog import SEGMENTS
from sslbench.plugins import Registry
from sslbench.plugins.hooks import KINDS

DEFAULT_STORE = "runs"
_RECORD = re.compile("[0-9a-f]{16}\\.json")
_MOST_ENTRIES = 200  # of a folder that are looked at


def hidden_files(run_task: RunTask, plugins: Registry, loader: Sequence[str]) -> list[Path]:
    """Files and folders: data, the store and those beside it, the loader of the dataset.

    loader: see `loader_modules`.
    """
    data = list(_data_files(run_task, plugins))
    hidden = [*data, *_other_names(data), *_sources(loader)]
    if run_task.store is not None:
        store = Path(run_task.store)
        hidden += [store, *_stores_beside(store.absolute()), Path(DEFAULT_STORE)]
    return [path for path in hidden if path.exists()]


def _stores_beside(store: Path) -> Iterator[Path]:
    """Folders beside a store that have records: those of the same data have its labels."""
    for folder in _entries(store.parent):
        if any(each.name == SEGMENTS or _RECORD.fullmatch(each.name) for each in _entries(folder)):
            yield folder


def _other_names(files: Iterable[Path]) -> Iterator[Path]:
    """Other names (hard links) of files, in the folders of these and beside them."""
    status = [(path, path.stat()) for path in files if path.is_file()]
    wanted = {(state.st_dev, state.st_ino) for _, state in status if state.st_nlink > 1}
    for folder in {path.absolute().parent for path, _ in status} if wanted else ():
        for beside in (folder, folder.parent, *_entries(folder.parent)):
            for each in _entries(beside):
                with suppress(OSError):
                    state = each.lstat()
                    if (state.st_dev, state.st_ino) in wanted:
                        yield each


def _entries(folder: Path) -> list[Path]:
    """The first ones of a folder; none of what is no folder, or a link to one."""
    if folder.is_symlink():
        return []
    try:
        with os.scandir(folder) as entries:
            return [folder / entry.name for entry in islice(entries, _MOST_ENTRIES)]
    except OSError:
        return []


def _data_files(run_task: RunTask, plugins: Registry) -> Iterator[Path]:
    """The user's files, or all folders of the data home that files of datasets are in."""
    if run_task.spec.data.columns is not None:
        with suppress(UserError):  # the run will fail with it
            yield from data_files(Path(run_task.data_path or ""))
        return
    root = DataHome(run_task.data_path).root
    for first in {Path(f.path).parts[0] for info in plugins.datasets.values() for f in info.files}:
        yield root / first


def loader_modules(run_task: RunTask, plugins: Registry) -> list[str]:
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


def _sources(modules: Sequence[str]) -> Iterator[Path]:
    """Files or folders of modules, their compiled copies among them."""
    for name in modules:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            continue
        if spec.submodule_search_locations:
            yield Path(spec.origin).parent
        else:
            yield from (Path(each) for each in (spec.origin, spec.cached) if each)
