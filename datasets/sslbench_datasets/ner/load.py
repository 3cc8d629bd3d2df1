"""``conll03`` and ``conll02``: named entities of the CoNLL shared tasks, English and Spanish.

Sources: E. F. Tjong Kim Sang and F. De Meulder, Introduction to the CoNLL-2003 shared task, 2003;
E. F. Tjong Kim Sang, Introduction to the CoNLL-2002 shared task, 2002. The Spanish files are
NLTK's: UTF-8 with a part-of-speech column, where the organizers' are Latin-1 without one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Literal

from msgspec import Meta

from sslbench import RemoteFile
from sslbench.engine.corpus import PreviousType, Scheme, Vocabulary, convert_labels, read_conll
from sslbench.experiment.data import DataHome, Dataset
from sslbench_datasets.loading import (
    SIZE,
    TextOptions,
    digests,
    parse_options,
    read_splits,
    text_metadata,
)
from sslbench_datasets.ner.case import with_case
from sslbench_datasets.ner.info import CONLL2002, CONLL2002_COUNTS, CONLL2003, CONLL2003_COUNTS
from sslbench_datasets.reuters.load import tagged_text

WORKING_SCHEME: Scheme = "IOB2"


@dataclass(frozen=True)
class SharedTask:
    """One shared task.

    Attributes
    ----------
    columns: names of the columns of the files.
    scheme: scheme of their label column.
    files: files by split.
    counts: (sentences, tokens) by split, without document marks.
    """

    name: str
    columns: tuple[str, ...]
    scheme: Scheme
    files: Mapping[str, RemoteFile]
    counts: Mapping[str, tuple[int, int]]


ENGLISH = SharedTask(
    "conll03", ("word", "pos", "chunk", "label"), "IOB1", CONLL2003, CONLL2003_COUNTS
)
SPANISH = SharedTask("conll02", ("word", "pos", "label"), "IOB2", CONLL2002, CONLL2002_COUNTS)


class EnglishOptions(TextOptions, frozen=True, forbid_unknown_fields=True):
    """Options of conll03."""

    labels: Annotated[
        Literal["second_order", "tags"],
        Meta(
            description="what models are trained on: second_order, pairs of the previous entity"
            " type and the tag; tags, the tags alone"
        ),
    ] = "second_order"
    backoff: Annotated[
        bool,
        Meta(
            description="with labels=second_order: attributes have a weight for the tag beside that"
            " of the pair"
        ),
    ] = False
    documents: Annotated[
        bool,
        Meta(
            description="add the columns document (its number), case and cased (how a word is"
            " written elsewhere in its document), for the featurizer ner_doc; a saved tagger then"
            " reads them, too"
        ),
    ] = False


def load_conll03(home: DataHome, **options: object) -> Dataset:
    """Read English; `options` are those of `EnglishOptions`.

    UserError for a bad option, a missing or malformed file, or unexpected counts.
    """
    settings = parse_options("conll03", options, EnglishOptions)
    dataset = load(home, ENGLISH, "document" if settings.documents else None)
    train, splits = dataset.splits["train"], dataset.splits
    if settings.documents:
        made: dict[str, Vocabulary] = {}
        splits = {split: with_case(corpus, made) for split, corpus in splits.items()}
    sha256 = CONLL2003["train"].sha256
    codec = partial(PreviousType, backoff=settings.backoff)
    return replace(
        dataset,
        splits=splits,
        codec=codec if settings.labels == "second_order" else None,
        external=partial(tagged_text, home, train.drop("document"), sha256, settings.unlabeled),
        metadata={**dataset.metadata, **text_metadata(settings.unlabeled, home)},
    )


def load_conll02(home: DataHome) -> Dataset:
    """Read Spanish; UserError for a missing or malformed file or unexpected counts."""
    return load(home, SPANISH)


def load(home: DataHome, task: SharedTask, documents: str | None = None) -> Dataset:
    """Read the three splits of a shared task, labels in WORKING_SCHEME.

    documents: name of a column to add, see `read_conll`.
    ``metadata["source_scheme"]`` is the scheme of the files, in which a saved tagger writes its
    labels. UserError for a missing or malformed file or unexpected counts.
    """
    read = partial(
        read_conll,
        columns=task.columns,
        vocabularies={},
        scheme=task.scheme,
        documents=documents,
    )
    splits = read_splits(home, task.files, read, task.counts, SIZE)
    if task.scheme != WORKING_SCHEME:
        # IOB1 writes B- only where two entities of a type touch. Train of CoNLL-2003 has no B-PER,
        # so a model could not predict two adjacent names of persons.
        labels = Vocabulary()
        splits = {
            split: convert_labels(corpus, task.scheme, WORKING_SCHEME, vocabulary=labels)
            for split, corpus in splits.items()
        }
    return Dataset(
        name=task.name,
        task="spans",
        metric="f1",
        encoding=WORKING_SCHEME,
        splits=splits,
        metadata={"source_scheme": task.scheme, **digests(task.files)},
    )
