"""Checks of datasets: splits, labels, files, options and unlabeled text."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Unpack

import msgspec
import numpy as np

from sslbench.engine.corpus import Corpus, Scheme, tag_fits
from sslbench.engine.errors import UserError
from sslbench.engine.lazy import lazy
from sslbench.engine.types import I32
from sslbench.experiment.data import DataHome, Dataset
from sslbench.experiment.identity import corpus_hash
from sslbench.experiment.records.record import jsonable
from sslbench.experiment.run.scoring import score_labels
from sslbench.plugins import Registry, registry
from sslbench.plugins.registrations import DatasetInfo, load_target

from .guard import Watch, watched
from .method_outputs import forbidden
from .results import (
    Check,
    CheckFailure,
    CheckResult,
    CheckSkipped,
    Selection,
    checks_in,
    checks_of,
    require,
    run_checks,
)

HEAD = 200
"""Sentences of a split that the more costly checks look at."""


@dataclass(frozen=True)
class DatasetCase:
    """A dataset under test. options: of ``load``, instead of the defaults."""

    info: DatasetInfo
    home: DataHome
    plugins: Registry
    options: Mapping[str, Any] = field(default_factory=dict)

    def load(self, home: DataHome | None = None, **options: Any) -> Dataset:
        """Load anew. CheckSkipped when the data home has not the files."""
        if home is None:
            self._require_files()
        loaded: Dataset = self.info.load()(home or self.home, **{**self.options, **options})
        return loaded

    @lazy
    def loaded(self) -> Dataset:
        """The dataset, loaded once for all checks that look at it."""
        return self.load()

    def _require_files(self) -> None:
        missing = [file.path for file in self.info.files if not self.home.locate(file).is_file()]
        if missing:
            advice = f"; sslbench data fetch {self.info.name}"
            raise CheckSkipped(f"not in the data home: {missing[0]}{advice}")
        if self.info.own and self.home.root == DataHome().root and not self.options:
            raise CheckSkipped(f"needs {self.info.own}")

    def require_same(self, again: Dataset, when: str) -> None:
        """CheckFailure unless another load gave the same splits."""
        splits = self.loaded.splits
        require(splits.keys() == again.splits.keys(), f"{when}, it has other splits")
        for name, corpus in splits.items():
            same = corpus_hash(corpus) == corpus_hash(again.splits[name])
            require(same, f"{when}, the split {name!r} differs")


def check_registration(case: DatasetCase) -> None:
    """The registration has a summary, a reference, a licence, a protocol and a known featurizer."""
    require_texts(case.info, ("summary", "reference", "licence", "protocol"))
    for file in case.info.files:
        require(file.licence.strip(), f"the file {file.path} has no licence")
    try:
        case.plugins.featurizer(case.info.featurizer)
    except UserError as error:
        raise CheckFailure(f"default featurizer: {error}") from error


def check_load(case: DatasetCase) -> None:
    """`load` gives a Dataset with the name, the task and the metric of the registration."""
    dataset = case.loaded
    require(
        isinstance(dataset, Dataset), f"load() gives {type(dataset).__name__} and not a Dataset"
    )
    for name in ("name", "task", "metric"):
        value, expected = getattr(dataset, name), getattr(case.info, name)
        require(value == expected, f"{name} is {value!r}, but the registration says {expected!r}")
    json.dumps(jsonable(dataset.metadata))


def check_splits(case: DatasetCase) -> None:
    """There are train and test; no split and no sentence is empty."""
    splits = case.loaded.splits
    for name in ("train", "test"):
        require(name in splits, f"there is no split {name!r}; there are {', '.join(splits)}")
    for name, corpus in case.loaded.splits.items():
        require(corpus.n_tokens, f"the split {name!r} is empty")
        empty = int((corpus.lengths == 0).sum())
        require(not empty, f"{empty} sentences of {name!r} have no token")


def check_columns(case: DatasetCase) -> None:
    """Every split has a label column, the same columns, and shares their vocabularies."""
    train = case.loaded.splits["train"]
    for name, corpus in case.loaded.splits.items():
        require("label" in corpus.columns, f"the split {name!r} has no column 'label'")
        require(
            corpus.columns.keys() == train.columns.keys(),
            f"the columns of {name!r} are not those of 'train'",
        )
        for key, column in corpus.columns.items():
            require(
                column.vocabulary is train.columns[key].vocabulary,
                f"the column {key!r} of {name!r} has a separate vocabulary",
            )
            _require_in_range(f"the column {key!r} of {name!r}", column.codes, column.vocabulary)


def check_labels(case: DatasetCase) -> None:
    """Every label fits the encoding of the task."""
    dataset = case.loaded
    fits = (dataset.encoding is None) == (dataset.task == "tagging")
    require(fits, f"task {dataset.task!r} with encoding {dataset.encoding!r}")
    for name, corpus in case.loaded.splits.items():
        column = corpus.column("label")
        for code in np.unique(column.codes).tolist():
            label = column.vocabulary.strings[code]
            fits = label and (not dataset.encoding or tag_fits(label, _scheme(dataset)))
            require(fits, f"label {label!r} of {name!r} does not fit {dataset.encoding}")


def check_metric(case: DatasetCase) -> None:
    """The gold labels have the score 1 in the primary metric."""
    dataset = case.loaded
    for name, corpus in case.loaded.splits.items():
        if name == "train":
            continue
        gold = corpus.column("label")
        tagger = _Gold(tuple(gold.vocabulary.strings), gold.codes)
        scores = score_labels(
            *(dataset.task, dataset.encoding, corpus, tagger, gold.codes),
            alternatives=dataset.alternatives.get(name),
        )
        value = scores.metrics.get(dataset.metric)
        require(value == 1.0, f"the gold labels of {name!r} have {dataset.metric} {value}")


def check_same_again(case: DatasetCase) -> None:
    """The same options give the same text and labels again."""
    case.require_same(case.load(), "loaded again")


def check_files(case: DatasetCase) -> None:
    """`load` reads its registered files, the files of its package and the cache, nothing else."""
    _ = case.loaded  # modules are imported and caches filled before the watch begins
    watch = Watch.of_module(case.info.target.partition(":")[0], case.home)
    watch.allow(case.home.cache, *map(case.home.locate, case.info.files))
    if case.info.own:
        raise CheckSkipped("its files are those of the user")
    _load_watched(case, watch)


def check_offline(case: DatasetCase) -> None:
    """With an empty data home and no network, it loads or says in one line which file to fetch."""
    with tempfile.TemporaryDirectory() as folder:
        home = DataHome(Path(folder, "home"), Path(folder, "cache"), offline=True)
        watch = Watch(allowed=["/"], denied=os.devnull)  # the check files is about files
        try:
            _load_watched(case, watch, home)
        except UserError as error:
            one_line = "\n" not in str(error)
            require(one_line, "the message about missing files has several lines")


def _load_watched(case: DatasetCase, watch: Watch, home: DataHome | None = None) -> None:
    """Load the dataset; CheckFailure if it does what the watch refuses."""
    try:
        with watched(watch):
            case.load(home)
    except PermissionError:
        if not watch.refused:
            raise
    finally:
        require(not watch.refused, f"load() {'; '.join(watch.refused)}")


def check_options(case: DatasetCase) -> None:
    """Unknown options are refused; options at their defaults change nothing."""
    try:
        case.load(no_such_option=1)
    except (UserError, TypeError):
        pass
    else:
        raise CheckFailure("load() accepts the unknown option no_such_option=1")
    if not case.info.options:
        return
    struct = load_target(case.info.options, f"options of {case.info.name}")
    try:
        msgspec.convert({"no_such_option": 1}, struct)
    except msgspec.ValidationError:
        pass
    else:
        raise CheckFailure(f"{struct.__name__} accepts unknown options: forbid_unknown_fields=True")
    again = case.load(**{**msgspec.to_builtins(struct()), **case.options})
    case.require_same(again, "with all options at their defaults")


def check_external_text(case: DatasetCase) -> None:
    """The unlabeled text has no labels, counts right, and is the same in each pass."""
    dataset = case.loaded
    if dataset.external is None:
        raise CheckSkipped("it has no external unlabeled text")
    try:
        shards = dataset.external()
    except UserError as error:
        if not any(file.extra for file in case.info.files):
            raise
        raise CheckSkipped(str(error)) from error
    train = dataset.splits["train"]
    digests = []
    sentences = tokens = 0
    for shard in shards:
        require("label" not in shard.columns, "the unlabeled text has a column 'label'")
        for name, column in shard.columns.items():
            if name in train.columns and column.vocabulary is not train.columns[name].vocabulary:
                raise CheckFailure(f"its column {name!r} does not share the vocabulary of train")
            _require_in_range(f"its column {name!r}", column.codes, column.vocabulary)
        sentences, tokens = sentences + shard.n_sentences, tokens + shard.n_tokens
        digests.append(corpus_hash(shard))
    require(
        (sentences, tokens) == (shards.n_sentences, shards.n_tokens),
        f"it counts {shards.n_sentences} sentences and {shards.n_tokens} tokens,"
        f" but has {sentences} and {tokens}",
    )
    again = [corpus_hash(shard) for shard in shards]
    require(again == digests, "the second pass over the unlabeled text gives other shards")


def check_featurizer(case: DatasetCase) -> None:
    """The default featurizer finds its columns in every split and in the unlabeled text."""
    info = case.plugins.featurizer(case.info.featurizer)
    train = case.loaded.splits["train"]
    for name in info.columns:
        require(name in train.columns, f"the featurizer {info.name} needs the column {name!r}")
    index = info.load()().index(train.between(0, min(HEAD, train.n_sentences)))
    for corpus in case.loaded.splits.values():
        index.encode(corpus.drop("label").between(0, min(HEAD, corpus.n_sentences)))


def check_codec(case: DatasetCase) -> None:
    """The label codec decodes what it encodes, and obeys its transition mask."""
    dataset = case.loaded
    if dataset.codec is None:
        raise CheckSkipped("it has no label codec")
    train = dataset.splits["train"]
    column = train.column("label")
    used = sorted({column.vocabulary.strings[code] for code in np.unique(column.codes).tolist()})
    codec = dataset.codec(used)
    number = {label: code for code, label in enumerate(codec.labels)}
    encoded = codec.encode(train).column("label").strings()
    require(
        number.keys() >= set(encoded), "encode() gives labels that are not among the codec's labels"
    )
    codes = np.array([number[label] for label in encoded], np.int32)
    require(
        [codec.tags[code] for code in codes.tolist()] == column.strings(),
        "tags that are encoded and decoded are not the same",
    )
    bad = forbidden(codes, train, codec.transition_mask)
    require(not bad, f"{bad} transitions in train are forbidden by the codec's mask")


def check_label_constraint(case: DatasetCase) -> None:
    """The label of the constraint occurs in train, and tokens of train are subject to it."""
    dataset = case.loaded
    if dataset.label_constraint is None:
        raise CheckSkipped("it has no label constraint")
    train = dataset.splits["train"]
    require(
        dataset.label_constraint.label in train.column("label").strings(),
        f"its label {dataset.label_constraint.label!r} does not occur in train",
    )
    require(dataset.label_constraint.applies(train).any(), "it applies to no token of train")


DATASET_CHECKS = checks_in(vars())


def dataset_checks(
    dataset: str | DatasetInfo,
    *,
    data: str | Path | None = None,
    options: Mapping[str, Any] | None = None,
    **selection: Unpack[Selection],
) -> list[Check]:
    """Return the checks of a dataset, to run one by one. Nothing is downloaded.

    dataset: its registered name, or a registration.
    data: folder of its files, instead of the data home.
    options: arguments of ``load`` in place of its defaults.
    selection: see `Selection`.

    UserError for an unknown name.
    """
    plugins = registry()
    info = plugins.dataset(dataset) if isinstance(dataset, str) else dataset
    home = DataHome(data, offline=True, dataset=info.name)
    case = DatasetCase(info, home, plugins, dict(options or {}))
    return checks_of(DATASET_CHECKS, case, **selection)


def check_dataset(dataset: str | DatasetInfo, **options: Any) -> list[CheckResult]:
    """Run all checks of a dataset; options: see `dataset_checks`.

    CheckFailure, with a line per failed check, if a check fails.
    """
    return run_checks(dataset_checks(dataset, **options), dataset)


def require_texts(info: Any, names: Iterable[str]) -> None:
    """CheckFailure unless these fields of a registration hold text of one line."""
    for name in names:
        text = getattr(info, name)
        one_line = text.strip() and "\n" not in text
        require(one_line, f"{name} of the registration must be one line of text")
    info.load()


@dataclass(frozen=True)
class _Gold:
    """A tagger with the gold labels of one corpus."""

    labels: tuple[str, ...]
    codes: I32

    def predict(self, corpus: Corpus) -> I32:
        return self.codes


def _scheme(dataset: Dataset) -> Scheme:
    return dataset.encoding  # type: ignore[return-value]  # it is text in a Dataset


def _require_in_range(what: str, codes: I32, vocabulary: Any) -> None:
    inside = not codes.size or 0 <= codes.min() <= codes.max() < len(vocabulary)
    require(inside, f"{what} has codes outside its vocabulary")
