"""From the identity of data to a dataset in memory, and to a hash of its content."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sslbench.engine.version import VERSION
from sslbench.experiment.data import DataHome, Dataset
from sslbench.experiment.data.userdata import load_user_data
from sslbench.experiment.identity.identity import external_hash, fingerprint
from sslbench.experiment.planning.task import RunTask
from sslbench.plugins import Registry
from sslbench.plugins.registrations import DatasetInfo


def load_dataset(run_task: RunTask, plugins: Registry) -> Dataset:
    """Load the registered dataset, or the user's files."""
    data, name = run_task.spec.data, run_task.spec.dataset
    if data.columns is not None:
        cut = run_task.cut and not run_task.spec.protocol.folds
        return load_user_data(Path(run_task.data_path or ""), data.columns, cut=cut)
    home = DataHome(run_task.data_path, dataset=name)
    seed = run_task.spec.protocol.seed
    return load_registered(plugins.dataset(name), home, data.options, seed)


def load_registered(
    info: DatasetInfo, home: DataHome, options: Mapping[str, Any], seed: int
) -> Dataset:
    """Load a registered dataset; one with draws gets the seed."""
    drawn = {"seed": seed} if info.draws else {}
    dataset = info.load()(home, **options, **drawn)
    if not isinstance(dataset, Dataset):
        raise RuntimeError(f"load() of dataset {info.name} returned a {type(dataset).__name__}")
    return dataset


def data_fingerprint(dataset: Dataset, run_task: RunTask, plugins: Registry) -> str:
    """`fingerprint` of the data of a run, with the external text if its protocol can use it."""
    spec = run_task.spec
    if dataset.external is None or spec.protocol.text == "rest":
        return fingerprint(dataset)
    known_as = None
    if run_task.files and spec.data.columns is None and run_task.data_path is None:
        # Verified files, read by code of one version, always give the same text.
        info = plugins.dataset(spec.dataset)
        known_as = {
            "dataset": spec.dataset,
            "options": spec.data.options,
            "facts": dict(dataset.metadata),  # a file that an option names may change
            "seed": spec.protocol.seed if info.draws else 0,
            "files": run_task.files,
            "code": [info.version, VERSION],
        }
    cache = DataHome().cache
    return fingerprint(dataset, lambda: external_hash(dataset, known_as, cache))
