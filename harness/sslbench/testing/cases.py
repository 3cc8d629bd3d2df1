"""A method under test: trained through the harness on any dataset, and compared with itself."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from sslbench.engine.compilation.threads import using_threads
from sslbench.engine.corpus import Corpus
from sslbench.engine.crf import ChainModel, read_model
from sslbench.engine.lazy import lazy
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.data import DataHome, Dataset
from sslbench.experiment.inputs.problem import DecodedTagger, Problem, Tagger, without_labels
from sslbench.experiment.inputs.protocol import Sample, resolve_text
from sslbench.experiment.planning.task import RunTask, load_dataset
from sslbench.experiment.records.record import ProtocolSpec, RunSpec, jsonable
from sslbench.experiment.run.fitting import Session, Training
from sslbench.experiment.run.saved import load_tagger, save_tagger
from sslbench.experiment.run.scoring import predict
from sslbench.experiment.run.training import Trained
from sslbench.plugins import Registry, registry
from sslbench.plugins.registrations import (
    CAPABILITIES,
    DatasetInfo,
    FeaturizerInfo,
    MethodInfo,
    ModelInfo,
    Registration,
)

from .results import CheckSkipped, require
from .toys import toy_dataset, toy_featurizer, with_weak_sources

_TARGET = "sslbench.testing:toy"
_PREFERRED = ("tagging", "joint", "spans", "segmentation")
#: capabilities of the model of the generated problems: all that a CRF has
_TOY_HAS = tuple(name for name in CAPABILITIES if name != "masked_words")
LABELED = 12
"""Labeled sentences of most checks; the other sentences of train are unlabeled."""


_Info = TypeVar("_Info", bound=Registration)


def _given(kind: type[_Info], name: str, target: Any, **fields: Any) -> _Info:
    """A registration whose target is an object in memory."""
    in_memory = type(f"Given{kind.__name__}", (kind,), {"load": lambda self: target})
    made: _Info = in_memory(name=name, summary="", reference="", target=_TARGET, **fields)
    return made


@dataclass(frozen=True)
class FittedCase:
    """A trained method and the problem that it was trained on."""

    session: Session
    trained: Trained

    @property
    def dataset(self) -> Dataset:
        """That it was trained on."""
        return self.trained.sample.dataset

    @property
    def tagger(self) -> Tagger:
        """What predicts tags, as the harness uses it."""
        return self.trained.tagger

    @property
    def own_tagger(self) -> Any:
        """What `fit` of the method returned; under a label codec, its labels are the codec's."""
        return without_codec(self.tagger)

    @property
    def problem(self) -> Problem:
        return self.trained.problem

    def predicted(self, corpus: Corpus) -> list[str]:
        """A label per token, as text; the label column of the corpus is dropped first."""
        return predicted_labels(self.tagger, corpus)

    def texts(self) -> Iterator[tuple[str, Corpus]]:
        """(name, corpus) of all text of the problem and of the dataset's other splits."""
        yield "labeled", self.problem.labeled
        for number, shard in enumerate(self.problem.unlabeled):
            yield f"unlabeled[{number}]", shard
        for name, corpus in self.dataset.splits.items():
            if name != "train":
                yield name, corpus

    @lazy
    def evidence(self) -> dict[str, Any]:
        """All that a repeated training must reproduce bit for bit.

        Predictions on the splits that are scored, the trace, and the arrays of the saved tagger.
        """
        splits = self.dataset.splits
        evidence: dict[str, Any] = {
            f"the predictions for {name}": self.predicted(corpus)
            for name, corpus in splits.items()
            if name != "train"
        }
        evidence["run.trace"] = jsonable(self.trained.run.trace)
        arrays = self.saved_arrays()
        return evidence | {f"the saved array {name!r}": array for name, array in arrays.items()}

    def saved_arrays(self) -> dict[str, Any]:
        """The arrays that ``save`` of the tagger writes; {} when it cannot be saved.

        That is no failure here: the check save_restore is about it.
        """
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model")
            try:
                self.own_tagger.save(str(path))
                return read_model(path)[1]
            except Exception:  # no save, or one that raises anything
                return {}

    def restored(self) -> Tagger:
        """The tagger, saved as ``sslbench train`` does and read back.

        CheckSkipped when it has no ``save``, UserError when saving or restoring fails.
        """
        if not hasattr(self.own_tagger, "save"):
            raise CheckSkipped("what fit() returns has no save()")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model")
            save_tagger(path, self.trained, self.session.plugins)
            return load_tagger(path, self.session.plugins).tagger


@dataclass(frozen=True)
class MethodCase:
    """A method, the parameters to check it with, and all other plugins that it may ask for.

    Attributes
    ----------
    params: values that replace defaults of the method's `Params`.
    datasets: datasets for the checks, in addition to the generated ones.
    """

    info: MethodInfo
    cls: type[Any]
    plugins: Registry
    params: Mapping[str, Any] = field(default_factory=dict)
    datasets: Sequence[Dataset] = ()

    @property
    def task(self) -> str:
        """The task of most checks: tagging, or else the richest one that the method is for."""
        return next(task for task in _PREFERRED if task in self.info.tasks)

    def toy(self, **options: Any) -> Dataset:
        """The generated dataset of the task, with weak labels for a method that learns from them.

        options: see `toy_dataset`.
        """
        toy = toy_dataset(self.task, **options)
        return with_weak_sources(toy) if self.info.weak and not options.get("codec") else toy

    @lazy
    def base(self) -> FittedCase:
        """The method trained on the plain toy: trained once, for all checks that look at it."""
        return self.fit(self.toy())

    def fit(
        self,
        dataset: Dataset,
        *,
        labeled: int | str = LABELED,
        unlabeled: int | None = None,
        seed: int = 0,
        threads: int = 1,
        params: Mapping[str, Any] | None = None,
        cache: Path | None = None,
        inside: Callable[[], AbstractContextManager[Any]] = nullcontext,
        before: Callable[[Problem], object] = lambda problem: None,
    ) -> FittedCase:
        """Train as ``sslbench run`` does, in this process.

        CheckSkipped if the method needs more than the toy's model has.

        labeled, unlabeled, seed: the options of the command line.
        cache: folder for derived data; None: nothing is stored.
        inside: a context for `fit` of the method; before: is shown the problem first.
        """
        lacking = [name for name in self.info.needs_model if name not in _TOY_HAS]
        if lacking:
            raise CheckSkipped(f"the model of the generated problems has no {', '.join(lacking)}")
        text = resolve_text(dataset, labeled, unlabeled, None)
        protocol = ProtocolSpec(labeled=labeled, unlabeled=unlabeled, text=text, seed=seed)
        spec = RunSpec(self.info.name, dataset.name, "toy", "toy", {}, protocol)
        task = RunTask(spec, dataset.metric, threads=threads)
        session = Session.open(task, self._registry(dataset))
        sample = Sample.of(spec, load_dataset(task, session.plugins))
        problem = session.problem(sample, sample.drawn.labeled)
        before(problem)
        values = {**self.params, **(params or {})}
        run = RunContext(seed, threads=threads, cache=cache)
        with using_threads(threads), inside():
            fitted = session.fit(Training(problem, values), run)
        return FittedCase(session, Trained(sample, problem, fitted, run))

    def _registry(self, dataset: Dataset) -> Registry:
        """All plugins, with the method, the dataset, the toy's featurizer and a CRF among them."""
        about = {"task": dataset.task, "metric": dataset.metric, "licence": "", "protocol": ""}
        data = _given(DatasetInfo, dataset.name, lambda home: dataset, featurizer="toy", **about)
        featurizer = _given(FeaturizerInfo, "toy", toy_featurizer)
        model = _given(ModelInfo, "toy", ChainModel, provides=_TOY_HAS)
        plugins = self.plugins
        return replace(
            plugins,
            methods={**plugins.methods, self.info.name: self.info},
            datasets={**plugins.datasets, dataset.name: data},
            featurizers={**plugins.featurizers, "toy": featurizer},
            models={**plugins.models, "toy": model},
        )


def method_case(
    method: str | type[Any], params: Mapping[str, Any] | None, datasets: Sequence[str | Dataset]
) -> MethodCase:
    """The case of a registered method, or of a class that need not be registered.

    UserError for an unknown name of a method or dataset.
    """
    plugins = registry()
    info = plugins.method(method) if isinstance(method, str) else _info_of(method, plugins)
    loaded = [_dataset(each, plugins) for each in datasets]
    return MethodCase(info, info.load(), plugins, dict(params or {}), loaded)


def _info_of(cls: type[Any], plugins: Registry) -> MethodInfo:
    target = f"{cls.__module__}:{cls.__qualname__}"
    for info in plugins.methods.values():
        if info.target == target:
            return info
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower().strip("_")
    return _given(MethodInfo, name, cls)


def _dataset(dataset: str | Dataset, plugins: Registry) -> Dataset:
    if isinstance(dataset, Dataset):
        return dataset
    return cast(Dataset, plugins.dataset(dataset).load()(DataHome(dataset=dataset)))


def external_text(dataset: Dataset) -> Corpus:
    """The unlabeled text from outside that a toy was asked for."""
    assert dataset.external is not None
    return Corpus.concatenate(list(dataset.external()))


def without_codec(tagger: Tagger) -> Any:
    """The tagger over the labels of a codec, when there is one below a tagger over tags."""
    return tagger.tagger if isinstance(tagger, DecodedTagger) else tagger


def predicted_labels(tagger: Tagger, corpus: Corpus) -> list[str]:
    """A label per token, as text."""
    return [tagger.labels[code] for code in predict(tagger, corpus).tolist()]


def raw_prediction(tagger: Any, corpus: Corpus) -> Any:
    """What `predict` of a tagger returns for a corpus, unchecked."""
    return tagger.predict(without_labels(corpus))


def require_same(actual: Mapping[str, Any], expected: Mapping[str, Any], when: str) -> None:
    """CheckFailure naming the first thing that differs; when: e.g. "with 2 threads"."""
    missing = set(expected) ^ set(actual)
    require(not missing, f"{when}, {min(missing, default=None)} is there only once")
    for name, value in expected.items():
        difference = _difference(actual[name], value)
        require(not difference, f"{when}, {name}{difference}")


def _difference(a: Any, b: Any) -> str:
    """Where two values differ first, as the end of a sentence; "" when they are the same."""
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return next((f"[{key!r}]{d}" for key in a if (d := _difference(a[key], b[key]))), "")
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        same = a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
        return "" if same else " differs"
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        wrong = [i for i, (x, y) in enumerate(zip(a, b, strict=True)) if _difference(x, y)]
        if not wrong or len(a) == 1:
            return "".join(f"[0]{_difference(a[0], b[0])}" for _ in wrong)
        return f" differ at {len(wrong)} of {len(a)} places, first at {wrong[0]}"
    return "" if a == b else f" is {a!r} and not {b!r}"
