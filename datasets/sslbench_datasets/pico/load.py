"""``ebm_nlp``: spans of participants, interventions and outcomes (PICO) in clinical trials.

Sources: B. Nye et al., A corpus with multi-level annotations of patients, interventions and
outcomes, 2018; file: I. Beltagy et al., SciBERT, 2019. The file says for each token only of which
type it is, so two mentions of a type that touch are one.
"""

from __future__ import annotations

import numpy as np

from sslbench.engine.corpus import convert_labels, read_conll
from sslbench.experiment.data import DataHome, Dataset
from sslbench_datasets.loading import (
    MENTIONS,
    DocumentOptions,
    check_counts,
    parse_options,
)
from sslbench_datasets.pico.info import COUNTS, DOCUMENTS, EBM, N_DOCUMENTS


def load(home: DataHome, **options: object) -> Dataset:
    """Read the file; options are those of `DocumentOptions`.

    UserError for a bad option, a missing or malformed file or unexpected counts.
    """
    settings = parse_options("ebm_nlp", options, DocumentOptions)
    path = home.path(EBM)
    columns = ("word", "_", "_", "label")
    corpus = read_conll(path, columns, {}, scheme="IOB1", documents="document")
    corpus = convert_labels(corpus, "IOB1", "IOB2")
    document = corpus.column("document")
    numbers = np.unique(document.codes, return_inverse=True)[1][corpus.offsets[:-1]]
    n_documents = int(numbers[-1]) + 1
    check_counts("the file", (n_documents,), (N_DOCUMENTS,), ("abstracts",), path)
    if not settings.documents:
        corpus = corpus.drop("document")
    splits = {
        split: corpus.select((numbers >= first) & (numbers <= last))
        for split, (first, last) in DOCUMENTS.items()
    }
    MENTIONS.check(splits, COUNTS, dict.fromkeys(splits, path))
    return Dataset(
        name="ebm_nlp",
        task="spans",
        metric="f1",
        encoding="IOB2",
        splits=splits,
        metadata={"sha256": EBM.sha256},
    )
