"""A small problem of JESS-CM whose text has several units if these are small."""

from __future__ import annotations

import numpy as np

from sslbench.engine.corpus import Corpus, CorpusShards
from sslbench.engine.crf import ChainModel
from sslbench.engine.features import TemplateFeaturizer
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.inputs.problem import Problem
from sslbench_methods.jess_cm.method import JessCM
from sslbench_methods.jess_cm.tagger import JessCMTagger
from support.synth_text import synth_text

TEMPLATES = ["word[0]", "word[-1]|word[0]", "word.suffix2[1]", "edge: word[0]"]


def raw_text(sentences: int = 60) -> Corpus:
    text = synth_text(sentences, seed=1)
    return Corpus({"word": text.column("word")}, text.offsets)


def problem() -> Problem:
    text = synth_text(60, seed=1)
    labels = tuple(text.column("label").vocabulary.strings)
    featurizer = TemplateFeaturizer(TEMPLATES)
    labeled, shards = text.between(0, 12), CorpusShards(raw_text(), 90)
    return Problem("tagging", None, labels, labeled, shards, None, featurizer, ChainModel())


def trained() -> JessCMTagger:
    return JessCM().fit(problem(), JessCM.Params(rounds=3, max_iterations=20), RunContext())


def assert_same(found: JessCMTagger, expected: JessCMTagger) -> None:
    """The same bits."""
    np.testing.assert_array_equal(found.crf.weights, expected.crf.weights)
    for name, array in expected.models.tables.items():
        np.testing.assert_array_equal(found.models.tables[name], array)
