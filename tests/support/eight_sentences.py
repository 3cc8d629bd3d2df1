"""A small problem of generated text for whole methods."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sslbench.engine.corpus import CorpusShards
from sslbench.engine.crf import ChainModel
from sslbench.engine.features import TemplateFeaturizer
from sslbench.experiment.data import DataHome
from sslbench.experiment.inputs.problem import Problem, relabeled, without_labels
from sslbench_datasets.synth.load import load

TEMPLATES = ("word[0]", "word.suffix2[0]", "word[-1]")


def eight_sentences(
    unlabeled: Sequence[int] = range(8, 24), templates: Sequence[str] = TEMPLATES
) -> Problem:
    """Eight labeled sentences, two shards of unlabeled ones, eight development sentences."""
    splits = load(DataHome(), train=24, dev=8, test=1).splits
    labeled = relabeled(splits["train"].select(np.arange(8)))
    text = without_labels(splits["train"].select(np.array(unlabeled)))
    shards = CorpusShards(text, text.n_tokens // 2 + 20)
    assert len(list(shards)) == 2
    labels = tuple(labeled.column("label").vocabulary.strings)
    featurizer = TemplateFeaturizer(templates)
    return Problem(
        "tagging", None, labels, labeled, shards, splits["dev"], featurizer, ChainModel()
    )
