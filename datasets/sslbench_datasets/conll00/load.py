"""``conll00``: the chunking task of CoNLL-2000.

Source: E. F. Tjong Kim Sang and S. Buchholz, Introduction to the CoNLL-2000 shared task: chunking,
2000. The part-of-speech column is the one of the shared task (Brill tagger), not the treebank's.
"""

from __future__ import annotations

from functools import partial

from sslbench.corpus import Corpus, Shards, Vocabulary, read_conll
from sslbench.experiment.data import DataHome, Dataset
from sslbench_datasets.checks import check_sizes
from sslbench_datasets.files import CONLL2000

# (sentences, tokens), as in the shared task's paper.
COUNTS = {"train": (8_936, 211_727), "test": (2_012, 47_377)}


def load(home: DataHome) -> Dataset:
    """Read the two splits; UserError when there is no file, or its counts are not the paper's."""
    path = home.path(CONLL2000)
    vocabularies: dict[str, Vocabulary] = {}
    splits = {
        name: read_conll((path, f"conll2000/{name}.txt"), vocabularies=vocabularies, scheme="IOB2")
        for name in COUNTS
    }
    check_sizes(splits, COUNTS, dict.fromkeys(COUNTS, path))
    return Dataset(
        name="conll00",
        task="spans",
        metric="f1",
        encoding="IOB2",
        splits=splits,
        external=partial(_external, home, splits["train"]),
        metadata={"sha256": CONLL2000.sha256},
    )


def _external(home: DataHome, train: Corpus) -> Shards:
    """Import the newswire's machinery only when its text is asked for."""
    from sslbench_datasets.newswire import external

    return external(home, train, CONLL2000.sha256)
