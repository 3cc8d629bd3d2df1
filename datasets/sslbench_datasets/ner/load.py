"""``conll03`` and ``conll02``: named entities of the CoNLL shared tasks, English and Spanish.

Sources: E. F. Tjong Kim Sang and F. De Meulder, Introduction to the CoNLL-2003 shared task, 2003;
E. F. Tjong Kim Sang, Introduction to the CoNLL-2002 shared task, 2002. The Spanish files are the
UTF-8 ones with a part-of-speech column (NLTK's), not the Latin-1 ones of the organizers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from sslbench import RemoteFile
from sslbench.corpus import (
    Corpus,
    PreviousType,
    Scheme,
    Shards,
    Vocabulary,
    convert_labels,
    read_conll,
)
from sslbench.experiment.data import DataHome, Dataset
from sslbench_datasets.checks import check_sizes, chosen
from sslbench_datasets.ner.info import CONLL2002, CONLL2003

WORKING_SCHEME: Scheme = "IOB2"


@dataclass(frozen=True)
class Task:
    """One shared task.

    Attributes
    ----------
    columns: of the files.
    scheme: of the label column of the files.
    files: by split.
    counts: (sentences, tokens) by split, document marks not counted.
    """

    name: str
    columns: tuple[str, ...]
    scheme: Scheme
    files: Mapping[str, RemoteFile]
    counts: Mapping[str, tuple[int, int]]


ENGLISH = Task(
    name="conll03",
    columns=("word", "pos", "chunk", "label"),
    scheme="IOB1",
    files=CONLL2003,
    counts={"train": (14_041, 203_621), "dev": (3_250, 51_362), "test": (3_453, 46_435)},
)
SPANISH = Task(
    name="conll02",
    columns=("word", "pos", "label"),
    scheme="IOB2",
    files=CONLL2002,
    counts={"train": (8_323, 264_715), "dev": (1_915, 52_923), "test": (1_517, 51_533)},
)


class EnglishOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of conll03."""

    labels: Annotated[
        Literal["second_order", "tags"],
        Meta(description="models are trained on pairs of the type before and the tag, or on tags"),
    ] = "second_order"


def load_conll03(home: DataHome, **options: object) -> Dataset:
    """Read English; `options` are those of `EnglishOptions`.

    UserError for a bad option, or when a file is missing, malformed or of other counts.
    """
    paired = chosen("conll03", options, EnglishOptions).labels == "second_order"
    data = load(home, ENGLISH)
    external = partial(_newswire, home, data.splits["train"])
    return replace(data, codec=PreviousType if paired else None, external=external)


def _newswire(home: DataHome, train: Corpus) -> Shards:
    """Import the newswire's machinery only when its text is asked for."""
    from sslbench_datasets.newswire import external

    return external(home, train, CONLL2003["train"].sha256)


def load_conll02(home: DataHome) -> Dataset:
    """Read Spanish; UserError when a file is missing, malformed or of other counts."""
    return load(home, SPANISH)


def load(home: DataHome, task: Task) -> Dataset:
    """Read the three splits of a task, labels in WORKING_SCHEME.

    ``metadata["source_scheme"]`` is the scheme of the files, so that a saved tagger writes it again.
    UserError when a file is missing or malformed, or its counts are not those of ``task``.
    """
    vocabularies: dict[str, Vocabulary] = {}
    paths = {split: home.path(file) for split, file in task.files.items()}
    splits = {
        split: read_conll(path, task.columns, vocabularies, scheme=task.scheme)
        for split, path in paths.items()
    }
    check_sizes(splits, task.counts, paths)
    if task.scheme != WORKING_SCHEME:
        # IOB1 has B- only where two entities of a type touch: in CoNLL-2003 no B-PER is in train,
        # so that two neighboring names of persons could be neither learned nor predicted.
        labels = Vocabulary()
        splits = {
            split: convert_labels(corpus, task.scheme, WORKING_SCHEME, vocabulary=labels)
            for split, corpus in splits.items()
        }
    digests = {f"sha256_{split}": file.sha256 for split, file in task.files.items()}
    return Dataset(
        name=task.name,
        task="spans",
        metric="f1",
        encoding=WORKING_SCHEME,
        splits=splits,
        metadata={"source_scheme": task.scheme, **digests},
    )
