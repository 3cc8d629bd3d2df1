"""Biomedical names of the collection MTL-Bioinformatics-2016 (Crichton et al., 2017).

All corpora have the same format: word and IOB2 label separated by a tab, and a blank line between
sentences. The published numbers of mentions that tests compare with are those of the corpora before
the conversion.
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

from sslbench.engine.corpus import read_conll
from sslbench.experiment.data import DataHome, Dataset
from sslbench_datasets.loading import MENTIONS, digests, read_splits
from sslbench_datasets.mtl.info import CORPORA, CollectedCorpus


def load_collected(corpus: CollectedCorpus, home: DataHome) -> Dataset:
    """Read the three splits; UserError for a missing or malformed file or unexpected counts."""
    read = partial(
        read_conll,
        columns=("word", "label"),
        vocabularies={},
        separator="\t",
        skip=(),
        scheme="IOB2",
    )
    return Dataset(
        name=corpus.name,
        task="spans",
        metric="f1",
        encoding="IOB2",
        splits=read_splits(home, corpus.files, read, corpus.counts, MENTIONS),
        metadata=digests(corpus.files),
    )


# ``load.bc5cdr(home)`` and so on: the loaders that the registrations name.
load = SimpleNamespace(**{corpus.name: partial(load_collected, corpus) for corpus in CORPORA})
