"""The data of a plan: what runs share on one dataset, and what only its content decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from sslbench.engine.errors import UserError
from sslbench.experiment.data import DataHome
from sslbench.experiment.data.layout import Reading
from sslbench.experiment.data.spelling import Spelling
from sslbench.experiment.data.template_file import (
    file_name,
    is_template_file,
    read_templates,
)
from sslbench.experiment.data.userdata import (
    all_files,
    columns_of,
    data_files,
    dataset_name,
    file_hashes,
    find_files,
    fitting_featurizers,
    load_user_data,
)
from sslbench.experiment.data.weak import source_names
from sslbench.experiment.inputs.folding import folds, kept_together
from sslbench.experiment.inputs.protocol import labeled_size, resolve_text
from sslbench.experiment.planning.settings import dataset_options, parse_settings
from sslbench.experiment.planning.task import (
    RunTask,
    data_fingerprint,
    load_dataset,
    load_registered,
)
from sslbench.experiment.records.record import DataSpec, FoldBy, content_id
from sslbench.experiment.request.request import RunRequest, TextSource
from sslbench.plugins import Registry


@dataclass(frozen=True)
class PlannedDataset:
    """A dataset of a plan.

    templates: those of a featurizer that is a file of the user; () for a registered one.
    tune: tuning trials by default.
    files: sha256 of its files by path.
    weak: names of the weak sources with labels in its text.
    graph: see `DatasetInfo`.
    """

    name: str
    task: str
    metric: str
    featurizer: str
    templates: tuple[str, ...]
    tune: int
    data: DataSpec
    files: dict[str, str]
    weak: tuple[str, ...]
    graph: Mapping[str, str | int]


def planned_datasets(
    request: RunRequest, plugins: Registry, cut: bool, notice: Callable[[str], None]
) -> list[PlannedDataset]:
    """The datasets of a request, or the user's own data; UserError for what does not fit.

    cut: see `RunTask`.  notice: called with what is recognized in the user's files.
    """
    if request.datasets:
        return [_registered(name, request, plugins) for name in request.datasets]
    return [_users_own(request, plugins, cut, notice)]


def _registered(name: str, request: RunRequest, plugins: Registry) -> PlannedDataset:
    info, path = plugins.dataset(name), request.data_path
    values = {s.key: s.value for s in parse_settings(request.settings) if s.owner == name}
    files = {file.path: file.sha256 for file in info.files}
    if path is not None and all(file.extra for file in info.files):
        files = file_hashes(path, all_files(path))
    data = DataSpec(options=dataset_options(info, values))

    def columns() -> tuple[str, ...]:
        home = DataHome(None if path is None else str(path.resolve()), dataset=name)
        dataset = load_registered(info, home, data.options, next(iter(request.seeds)))
        return tuple(dataset.splits["train"].columns)

    features = _features(request.featurizer or info.featurizer, plugins, columns)
    return PlannedDataset(
        name, info.task, info.metric, *features, info.tune, data, files, info.weak, info.graph
    )


def _users_own(
    request: RunRequest, plugins: Registry, cut: bool, notice: Callable[[str], None]
) -> PlannedDataset:
    """The user's own data; UserError, with file and line, if they cannot be read."""
    path = request.data_path
    if path is None:
        raise UserError("no data", hint="give --dataset NAME or --data PATH")
    # Loaded once here, so that a bad line is reported before any run starts.
    reading = reading_of(request)
    columns = columns_of(path, request.columns, reading)
    cut = cut and not request.folds
    dataset = load_user_data(path, columns, notice, cut=cut, reading=reading)
    featurizer = (
        request.featurizer or fitting_featurizers(plugins.featurizers, dataset.task, columns)[0]
    )
    scheme = str(dataset.metadata["source_scheme"])
    spelling = msgspec.convert(dataset.metadata.get("spelling", {}), Spelling)
    labels = "plain tags" if scheme == "none" else f"{spelling.renamed or scheme} chunk tags"
    if msgspec.structs.replace(spelling, renamed="") != Spelling():
        labels += f" written {spelling}"
    form = f"{dataset.metadata['form']}; " if "form" in dataset.metadata else ""
    notice(f"{path}: {form}the labels are {labels}; task {dataset.task}, featurizer {featurizer}")
    for file in data_files(path):
        if (names := file.stat().st_nlink) > 1:
            notice(f"{file}: has {names} names (hard links); methods may read it by another one")
    files = file_hashes(path, find_files(path).values())
    features = _features(featurizer, plugins, lambda: columns)
    data = DataSpec(columns=columns)
    name, weak = dataset_name(path), source_names(columns)
    return PlannedDataset(name, dataset.task, dataset.metric, *features, 0, data, files, weak, {})


def reading_of(request: RunRequest) -> Reading:
    """What a request says of the form of the user's files."""
    return Reading(**{name: getattr(request, name) for name in Reading.__struct_fields__})


def _features(
    featurizer: str, plugins: Registry, columns: Callable[[], tuple[str, ...]]
) -> tuple[str, tuple[str, ...]]:
    """The name and the templates of a featurizer; () = a registered one. columns: of the data."""
    if not is_template_file(featurizer, plugins):
        return featurizer, ()
    return file_name(featurizer), read_templates(featurizer, columns())


class _Content(NamedTuple):
    """What only loaded data show: their fingerprint, and where unlabeled text comes from.

    fingerprint: "" = that of the external text is not in the cache, and the text is not made.
    fold_by: what folds of them keep together, if there are folds.
    error: why they cannot be loaded, if the user can mend it; the fingerprint is "" then.
    """

    fingerprint: str
    text: TextSource
    error: str | None = None
    fold_by: FoldBy | None = None


class LoadedData:
    """Completes tasks by the content of their data, which is loaded once.

    make_text: see `data_fingerprint`.
    """

    def __init__(self, request: RunRequest, plugins: Registry, make_text: bool) -> None:
        self._request = request
        self._plugins = plugins
        self._make_text = make_text
        self._contents: dict[str, _Content] = {}

    def complete(self, task: RunTask) -> RunTask:
        """The task with the fingerprint of its data and the source of its text, or its error.

        UserError for text or folds that there cannot be.
        """
        fingerprint, text, error, together = self._content(task)
        if error is not None:
            return msgspec.structs.replace(task, load_error=error)
        data = msgspec.structs.replace(task.spec.data, fingerprint=fingerprint)
        if self._draws(task):
            first = self._content(_with_protocol(task, seed=0)).fingerprint
            data = msgspec.structs.replace(data, first_draw=first)
        guarded = task.spec.guard is not msgspec.UNSET
        if together is not None and (guarded or self._folded(task)):
            task = _with_protocol(task, fold_by=together)
        task = _with_protocol(task, text=text)
        return msgspec.structs.replace(task, spec=msgspec.structs.replace(task.spec, data=data))

    def _content(self, task: RunTask) -> _Content:
        protocol = task.spec.protocol
        seed = protocol.seed if self._draws(task) else 0
        shared = msgspec.structs.replace(protocol.without_tuning(), seed=seed)
        key = content_id([task.spec.dataset, task.spec.data, shared])
        if key not in self._contents:
            self._contents[key] = self._load(task)
        return self._contents[key]

    def _load(self, task: RunTask) -> _Content:
        request = self._request
        try:
            dataset = load_dataset(task, self._plugins)
        except UserError as error:
            return _Content("", request.text or "rest", str(error))
        except Exception:  # the process of the run will meet it again, and keep the traceback
            return _Content("", request.text or "rest")
        if request.folds:
            n_train = dataset.splits["train"].n_sentences
            folds(labeled_size(request.labeled, n_train), request.folds)
        text = resolve_text(dataset, request.labeled, request.unlabeled, request.text)
        task = _with_protocol(task, text=text)
        digest = data_fingerprint(dataset, task, self._plugins, make_text=self._make_text)
        # folds of registered datasets are of random sentences, as in their published records
        own = task.spec.data.columns is not None
        cut = request.guard or self._folded(task)
        together = kept_together(dataset.splits["train"]) if own and cut else None
        return _Content(digest, text, fold_by=together)

    def _folded(self, task: RunTask) -> bool:
        """Whether a run is tested or tuned on folds, as far as the request says."""
        return bool(self._request.folds) or task.spec.protocol.tuned

    def _draws(self, task: RunTask) -> bool:
        spec = task.spec
        return spec.data.columns is None and self._plugins.dataset(spec.dataset).draws


def _with_protocol(task: RunTask, **changes: object) -> RunTask:
    protocol = msgspec.structs.replace(task.spec.protocol, **changes)
    spec = msgspec.structs.replace(task.spec, protocol=protocol)
    return msgspec.structs.replace(task, spec=spec)
