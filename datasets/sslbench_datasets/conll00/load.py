"""``conll00``: the chunking task of CoNLL-2000.

Source: E. F. Tjong Kim Sang and S. Buchholz, Introduction to the CoNLL-2000 shared task: chunking,
2000. The part-of-speech column is the shared task's (Brill tagger), not the treebank's.
"""

from __future__ import annotations

from functools import partial

from sslbench.engine.corpus import Vocabulary, read_conll
from sslbench.experiment.data import DataHome, Dataset
from sslbench_datasets.conll00.info import CONLL2000, COUNTS
from sslbench_datasets.loading import SIZE, TextOptions, parse_options, text_metadata
from sslbench_datasets.reuters.load import tagged_text


def load(home: DataHome, **options: object) -> Dataset:
    """Read the two splits; options are those of `TextOptions`.

    UserError for a bad option, a missing or malformed file or unexpected counts.
    """
    settings = parse_options("conll00", options, TextOptions)
    path = home.path(CONLL2000)
    vocabularies: dict[str, Vocabulary] = {}
    splits = {
        split: read_conll(
            (path, f"conll2000/{split}.txt"), vocabularies=vocabularies, scheme="IOB2"
        )
        for split in COUNTS
    }
    SIZE.check(splits, COUNTS, dict.fromkeys(COUNTS, path))
    return Dataset(
        name="conll00",
        task="spans",
        metric="f1",
        encoding="IOB2",
        splits=splits,
        external=partial(tagged_text, home, splits["train"], CONLL2000.sha256, settings.unlabeled),
        metadata={"sha256": CONLL2000.sha256, **text_metadata(settings.unlabeled, home)},
    )
