"""The toy of docs/specs/jess_cm.md, section 13, with its printed tables."""

from __future__ import annotations

import numpy as np

from sslbench.engine.corpus import Column, Corpus, Vocabulary
from sslbench.engine.crf import ChainCRF, HardLabels, Objective
from sslbench.engine.crf.weights.layout import Layout
from sslbench.engine.features import Template, TemplateFeaturizer
from sslbench.engine.types import F64
from sslbench_methods.jess_cm.counts import SymbolCounts
from sslbench_methods.jess_cm.models import EmbeddedModels
from sslbench_methods.jess_cm.tagger import JessCMTagger

STATE, ARC, CONSTANT = Template.parse("x[0]"), Template.parse("edge: x[0]"), Template(())
LAMBDA0 = np.array([0.3, -0.2, 0.1, 0.4, -0.5, 0.25, 0.2, -0.1, -0.3, 0.15, 0.05, -0.05, 0.1, -0.1])
LAMBDA_H = np.array([0.7, 0.4])
A1 = [[0.7, 0.3], [0.4, 0.6], [0.55, 0.45]]
B1 = [[0.5, 0.3, 0.2], [0.1, 0.3, 0.6]]
A2 = [[0.6, 0.4], [0.2, 0.8], [0.5, 0.5]]
B2 = [
    [[0.2, 0.5, 0.3], [0.4, 0.4, 0.2]],
    [[0.3, 0.3, 0.4], [0.25, 0.25, 0.5]],
    [[0.6, 0.2, 0.2], [0.1, 0.7, 0.2]],
]
VOCABULARY = Vocabulary(["0", "1", "2"])


def corpus(*sentences: list[int]) -> Corpus:
    codes = np.array([x for s in sentences for x in s], np.int32)
    offsets = np.cumsum([0, *map(len, sentences)]).astype(np.int64)
    return Corpus({"x": Column(VOCABULARY, codes)}, offsets)


LABELED, Y = corpus([0, 1, 2], [1, 0]), np.array([0, 1, 1, 1, 0], np.int32)
UNLABELED = corpus([2, 2, 0, 1], [1], [0, 2])


class Toy(JessCMTagger):
    """A tagger whose weights of the embedded models can be set."""

    @property
    def weights(self) -> F64:
        """float64[J], a view."""
        return self.crf.weights[-self.models.n_models :]


def toy(templates: tuple[Template, ...] = (STATE, ARC), **options: object) -> Toy:
    """The toy of docs/specs/jess_cm.md, section 13.

    The CRF has state weights, w and e; there is one model per template.
    """
    options = {"dtype": np.float64, "unknown": 0, "bare_chain": False, **options}
    # the dictionary in the order 0, 1, 2, as the tables are printed
    models = EmbeddedModels.build(templates, 2, [corpus([0, 1, 2])], 1, **options)
    index = TemplateFeaturizer([STATE]).index(corpus([0, 1, 2]))
    layout = Layout(
        2, 3, 0, 0, None, None, np.zeros(1, np.int64), np.zeros(0, np.int32), models.n_models
    )
    return Toy(ChainCRF(("a", "b"), index, layout, np.zeros(layout.size)), models)


def printed_tables(tagger: Toy) -> Toy:
    tagger.crf.weights[:14] = LAMBDA0
    tagger.weights[:] = LAMBDA_H
    m = tagger.models
    m.chain[:] = np.log([np.ravel(A1), np.ravel(A2)])
    m.state[:] = np.log(np.transpose(B1))
    m.arc[:] = np.log(np.reshape(B2, (6, 3)).T)
    m.uniform = False
    return tagger


def counts_of(tagger: Toy, text: Corpus = UNLABELED, **sizes: int) -> SymbolCounts:
    return tagger.models.expected_counts(tagger.crf, [text], **sizes)


def log_prior(models: EmbeddedModels, eta: float, weights: F64 | None = None) -> float:
    """eta * sum of log theta over all rows (times the model's weight if given: tempered)."""
    factor = np.ones(models.n_models) if weights is None else weights
    total = float((factor[:, None] * models.chain).sum())
    for rows, table in ((models.state_rows, models.state), (models.arc_rows, models.arc)):
        for i, j in enumerate(rows.tables):
            total += float(factor[j] * table[rows.borders[i] : rows.borders[i + 1]].sum())
    return eta * total


def l1(tagger: Toy, sigma2: float = 10.0) -> Objective:
    data = tagger.crf.encode(LABELED, tagger.models.bind(LABELED))
    return Objective(tagger.crf.layout, [(data, HardLabels(Y))], sigma2)
