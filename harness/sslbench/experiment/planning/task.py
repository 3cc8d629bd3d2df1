"""A planned run."""

from __future__ import annotations

import msgspec

from sslbench.experiment.data.template_file import with_templates
from sslbench.experiment.records.record import RunSpec
from sslbench.plugins import Registry


class RunTask(msgspec.Struct, frozen=True):
    """A run to execute: its identity, and what does not affect its result.

    Attributes
    ----------
    metric: primary metric of the dataset, for the record of a run that fails before loading it.
    data_path: file or folder of the data; None = the data home.
    store: folder where tuning trials are shared between runs; None = they are not kept.
    threads: of the run; results do not depend on their number.
    quiet: no progress messages of the method.
    skip_reason: why the run is skipped (its method does not fit the task or model); None = it runs.
    load_error: why the data could not be loaded when the run was planned: it fails; None = it runs.
    cut: hold out a fifth of train if the user's own data have no test file and there are no folds.
    code: versions of the code by component, for the record.
    files: sha256 of the files of the data when the run was planned, by path, for the record.
    workers: address of a dask scheduler over whose workers the run spreads its passes; None = none.
    templates: of the featurizer, if it is a file of the user; () for a registered one.
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
    templates: tuple[str, ...] = ()
    workers: str | None = None

    def registry(self, plugins: Registry) -> Registry:
        """The plugins of the run: with the user's templates, if it has any."""
        return with_templates(plugins, self.spec.featurizer, self.templates)
