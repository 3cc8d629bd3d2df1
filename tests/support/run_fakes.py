"""A plugin with a toy dataset, a correct method and misbehaving ones.

Child processes import it by name.

`install` puts a distribution with its entry point on the path, as pip would.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

import msgspec
import numpy as np
import pytest

from sslbench import (
    Column,
    Corpus,
    DataHome,
    Dataset,
    DatasetInfo,
    FeaturizerInfo,
    MethodInfo,
    ModelInfo,
    Problem,
    SearchAxis,
    Template,
    TemplateFeaturizer,
    UserError,
    Vocabulary,
    hookimpl,
    registry,
)
from sslbench.engine.compilation import compile_time
from sslbench.engine.corpus import CorpusShards, sentence_ids
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.identity import code_versions
from sslbench.experiment.inputs.protocol import Sample
from sslbench.experiment.planning.task import RunTask
from sslbench.experiment.records.record import ProtocolSpec, RunSpec
from sslbench.experiment.run.fitting import Session

LABELS = ("A", "B", "C")
#: of memory that the hostile method "large" takes: no compilation of kernels takes as much
LARGE_MB = 800
NAP = "import time; time.sleep(3600)"


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of the toy."""

    train: int = 60


def toy_splits(n_train: int = 60, seed: int = 0, *, dev: bool = False) -> dict[str, Corpus]:
    """Sentences whose labels mostly follow the word; "C" occurs in test alone."""
    rng = np.random.default_rng(seed)
    words, labels = Vocabulary(f"w{i}" for i in range(20)), Vocabulary(LABELS)

    def corpus(n: int) -> Corpus:
        lengths = rng.integers(1, 9, size=n)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        codes = rng.integers(0, 20, size=offsets[-1])
        gold = (codes % 2) ^ (rng.random(len(codes)) < 0.1)
        return Corpus({"word": Column(words, codes), "label": Column(labels, gold)}, offsets)

    splits = {"train": corpus(n_train), "test": corpus(30)}
    gold = splits["test"].column("label").codes.copy()
    gold[0] = 2
    splits["test"] = splits["test"].with_column("label", Column(labels, gold))
    if dev:
        splits["dev"] = corpus(20)
    return splits


def load(home: DataHome, **options: int) -> Dataset:
    """The toy dataset."""
    splits = toy_splits(options.get("train", 60))
    raw = splits["test"].drop("label")
    return Dataset(
        "toy", "tagging", "accuracy", None, splits, lambda: CorpusShards(raw), metadata={"fact": 1}
    )


def drawn(home: DataHome, *, seed: int = 0) -> Dataset:
    """A dataset with two draws of 20 sentences, of which the rest is text and test."""
    from sslbench import UserError

    if seed > 1:
        raise UserError(f"no draw for seed {seed}")
    pool = toy_splits()["train"]
    train = np.isin(np.arange(60), np.arange(20) + 20 * seed)
    splits = {"train": pool.select(train), "test": pool.select(~train)}
    raw = splits["test"].drop("label")
    ids = {"train": np.flatnonzero(train), "test": np.flatnonzero(~train)}
    text = partial(CorpusShards, raw)
    return Dataset("drawn", "tagging", "accuracy", None, splits, text, sentence_ids=ids)


def missing(home: DataHome) -> Dataset:
    """A dataset whose files are not there."""
    from sslbench import UserError

    raise UserError("no such corpus", file="/nowhere", hint="buy it")


def featurizer() -> TemplateFeaturizer:
    """A featurizer that is never used."""
    return TemplateFeaturizer((Template.parse("word[0]"),))


def scrambled(splits: Mapping[str, Corpus], hidden: np.ndarray) -> dict[str, Corpus]:
    """The splits with other gold labels where methods must not see them."""
    new = dict(splits)
    rng = np.random.default_rng(5)
    held_out = {name: np.arange(part.n_sentences) for name, part in new.items()}
    for name, ids in {**held_out, "train": hidden}.items():
        if name == "dev":  # labeled for methods too
            continue
        label = new[name].column("label")
        where = np.isin(sentence_ids(new[name].offsets), ids)
        codes = label.codes.copy()
        codes[where] = rng.permutation(codes[where])
        new[name] = new[name].with_column("label", Column(label.vocabulary, codes))
    return new


class Model:
    """A model that does nothing."""


class Majority:
    """The most frequent label of each word, smoothed by `weight` towards the overall counts."""

    class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
        weight: Annotated[float, msgspec.Meta(description="smoothing", ge=0)] = 1.0
        sleep: Annotated[float, msgspec.Meta(description="seconds", ge=0)] = 0.0
        search: ClassVar[tuple[SearchAxis, ...]] = (
            SearchAxis("weight", low=0.01, high=100, log=True),
        )

    def fit(self, problem: Problem, params: Params, run: RunContext) -> MajorityFit:
        time.sleep(params.sleep)
        words, gold = problem.labeled.column("word"), problem.label_codes(problem.labeled)
        counts = np.zeros((len(words.vocabulary), len(problem.labels)))
        np.add.at(counts, (words.codes, gold), 1.0)
        run.trace["unlabeled"] = problem.unlabeled.n_sentences
        run.trace["draw"] = float(run.rng.random())
        print("a method that chats on standard output", flush=True)
        with run.phase("count"):
            share = counts.sum(axis=0) / counts.sum()
        return MajorityFit(problem.labels, (counts + params.weight * share).argmax(axis=1))


class MajorityFit:
    """Labels words by a table."""

    def __init__(self, labels: tuple[str, ...], table: np.ndarray) -> None:
        self.labels = labels
        self.table = table

    def predict(self, corpus: Corpus) -> np.ndarray:
        assert "label" not in corpus.columns
        return self.table[corpus.column("word").codes].astype(np.int32)


class Peeking(Majority):
    """Reads the development sentences, and may leave them alone."""

    class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
        weight: float = 1.0
        peek: bool = True
        sleep: ClassVar[float] = 0.0

    def fit(self, problem: Problem, params: Params, run: RunContext) -> MajorityFit:
        if params.peek and problem.dev is not None:
            run.trace["dev"] = problem.dev.n_sentences
        return super().fit(problem, params, run)


class Hostile:
    """Misbehaves in the way that its parameter names."""

    class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
        how: str = "raise"

    def fit(self, problem: Problem, params: Params, run: RunContext) -> MajorityFit:
        if params.how == "raise":
            raise ValueError("a bug\nover two lines")
        if params.how == "hang":
            subprocess.Popen([sys.executable, "-c", NAP, os.environ["RUN_FAKES_MARK"]])
            while True:
                time.sleep(0.01)
        if params.how == "spin":  # in compiled code, which hears of no signal
            print("spinning", os.getpid(), file=sys.stderr, flush=True)
            sum(range(10**12))
        if params.how == "exit":
            os._exit(3)
        if params.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if params.how == "allocate":
            np.ones(2**60)
        if params.how == "large":
            np.ones(LARGE_MB * 2**17).sum()
        if params.how == "compile":  # says that it has, for an hour
            compile_time._spent = compile_time.Seconds(3600.0, 3600.0)
        table = np.zeros(len(problem.labeled.column("word").vocabulary), dtype=np.int64)
        return MajorityFit(problem.labels, table - (params.how == "negative"))


@hookimpl
def sslbench_datasets() -> list[DatasetInfo]:
    common = {"summary": "", "reference": "", "licence": "", "task": "tagging"}
    common |= {"metric": "accuracy", "featurizer": "none", "protocol": ""}
    return [
        DatasetInfo(
            name="toy",
            target="support.run_fakes:load",
            options="support.run_fakes:Options",
            tune=5,
            **common,
        ),
        DatasetInfo(name="drawn", target="support.run_fakes:drawn", draws=True, **common),
        DatasetInfo(name="missing", target="support.run_fakes:missing", **common),
    ]


@hookimpl
def sslbench_featurizers() -> list[FeaturizerInfo]:
    return [
        FeaturizerInfo(name="none", summary="", reference="", target="support.run_fakes:featurizer")
    ]


@hookimpl
def sslbench_models() -> list[ModelInfo]:
    return [ModelInfo(name="nothing", summary="", reference="", target="support.run_fakes:Model")]


@hookimpl
def sslbench_methods() -> list[MethodInfo]:
    common = {"summary": "", "reference": ""}
    majority = {"target": "support.run_fakes:Majority", **common}
    return [
        *(
            MethodInfo(name=name.lower(), target=f"support.run_fakes:{name}", **common)
            for name in ("Majority", "Peeking", "Hostile")
        ),
        MethodInfo(name="segmenter", tasks=("segmentation", "joint"), **majority),
        MethodInfo(name="crf1_only", models=("crf1",), **majority),
    ]


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this module a distribution that the registry finds, here and in children."""
    info = folder / "run_fakes-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: run-fakes\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[sslbench]\nfakes = support.run_fakes\n")
    monkeypatch.syspath_prepend(str(folder))
    here = str(Path(__file__).parents[1])
    paths = [str(folder), here, *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    monkeypatch.setenv("RUN_FAKES_MARK", str(folder))  # marks grandchildren of this process
    registry.cache_clear()


def opened_run(data: Dataset, **changes: object) -> tuple[Session, Sample]:
    """A run on a dataset in this process, and its draw; changes: see `task`."""
    asked = task(**changes)
    return Session.open(asked, registry()), Sample.of(asked.spec, data)


def task(method: str = "majority", store: Path | None = None, **changes: object) -> RunTask:
    """A task on the toy dataset; `changes` go to the spec or to its protocol."""
    protocol = {k: changes.pop(k) for k in list(changes) if k in ProtocolSpec.__struct_fields__}
    fields = {"method": method, "dataset": "toy", "featurizer": "none", "model": "nothing"}
    spec = RunSpec(**{**fields, **changes, "protocol": ProtocolSpec(**protocol)})
    code: dict[str, str] = {}
    with suppress(UserError):  # it is of plugins that are not installed
        code = code_versions(spec, registry())
    return RunTask(spec, "accuracy", store=None if store is None else str(store), code=code)
