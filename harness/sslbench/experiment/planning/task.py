"""A planned run, and its dataset in memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from sslbench.engine.version import VERSION
from sslbench.experiment.data import DataHome, Dataset
from sslbench.experiment.data.layout import Reading
from sslbench.experiment.data.template_file import with_templates
from sslbench.experiment.data.userdata import load_user_data
from sslbench.experiment.identity import external_hash, fingerprint
from sslbench.experiment.records.record import RunSpec
from sslbench.plugins import Registry
from sslbench.plugins.registrations import DatasetInfo


class RunTask(msgspec.Struct, frozen=True):
    """A run to execute: its identity, and what does not affect its result.

    Attributes
    ----------
    metric: primary metric of the dataset, for the record of a run that fails before loading it.
    data_path: file or folder of the data; None = the data home.
    store: folder where tuning trials are shared between runs; None = they are not stored.
    threads: number of threads; results do not depend on their number.
    quiet: no progress messages of the method.
    skip_reason: why the run is skipped (its method does not fit the task or model); None = it runs.
    load_error: why the data could not be loaded when the run was planned: it fails; None = it runs.
    cut: hold out a fifth of train if the user's own data have no test file and there are no folds.
    code: versions of the code by component, for the record.
    reading: what the user says of the form of these files.
    files: sha256 of the files of the data when the run was planned, by path, for the record.
    workers: address of a dask scheduler over whose workers the run spreads its passes; None = none.
    templates: those of a featurizer that is a file of the user; () for a registered one.
    """

    spec: RunSpec
    metric: str
    data_path: str | None = None
    store: str | None = None
    threads: int = 1
    quiet: bool = True
    skip_reason: str | None = None
    load_error: str | None = None
    cut: bool = True
    code: dict[str, str] = {}
    files: dict[str, str] = {}
    reading: Reading = Reading()
    templates: tuple[str, ...] = ()
    workers: str | None = None

    @property
    def lacks_text(self) -> bool:
        """Whether the fingerprint of the data is unknown, since external text was not made."""
        planned = self.skip_reason is None and self.load_error is None
        return planned and not self.spec.data.fingerprint

    def registry(self, plugins: Registry) -> Registry:
        """The plugins of the run: with the user's templates, if it has any."""
        return with_templates(plugins, self.spec.featurizer, self.templates)


def load_dataset(run_task: RunTask, plugins: Registry) -> Dataset:
    """Load the registered dataset, or the user's files."""
    data, name = run_task.spec.data, run_task.spec.dataset
    if data.columns is not None:
        cut = run_task.cut and not run_task.spec.protocol.folds
        path = Path(run_task.data_path or "")
        return load_user_data(path, data.columns, cut=cut, reading=run_task.reading)
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


def data_fingerprint(
    dataset: Dataset, run_task: RunTask, plugins: Registry, *, make_text: bool = True
) -> str:
    """Return `fingerprint` of the data of a run, with external text if its protocol can use it.

    make_text: False = return "" where the external text would have to be made.
    """
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
    digest = external_hash(dataset, known_as, DataHome().cache, make=make_text)
    return "" if digest is None else fingerprint(dataset, digest)
