"""Where the last lambda' step of JESS-CM may stop: iterations, L1 and accuracy on other sentences.

    python tests/benchmarks/last_step.py FIELD VALUE ...

FIELD: of `sslbench.engine.crf.optim.lbfgs.Options`, e.g. share or memory.  2,000 sentences of
`conll00` are labeled, 4,000 others unlabeled, the last 936 are for accuracy; three rounds, then the
last step from the same start with each value.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from ours import label_codes

from sslbench.engine.corpus import Corpus
from sslbench.engine.corpus.units import TextUnits
from sslbench.engine.crf import ChainModel, HardLabels, TrainingResult
from sslbench.engine.crf.optim.lbfgs import Options
from sslbench.engine.crf.params import TrainingParams
from sslbench.engine.types import I32
from sslbench.experiment.data import DataHome
from sslbench.plugins import registry
from sslbench_methods.jess_cm.method import SHARE
from sslbench_methods.jess_cm.models import EmbeddedModels

LABELED, UNLABELED, OTHERS = 2_000, 4_000, 8_000
PARAMS = TrainingParams(sigma2=100.0)


class Alternation:
    """The rounds of JESS-CM on a part of the training sentences."""

    def __init__(self, full: Corpus) -> None:
        featurizer = registry().featurizer("chunk39").load()()
        self.labels, self.full_codes = label_codes(full)
        self.labeled = full.between(0, LABELED)
        self.codes: I32 = self.full_codes[: self.labeled.n_tokens]
        unlabeled = full.between(LABELED, LABELED + UNLABELED)
        self.text = TextUnits([unlabeled])
        self.others = full.between(OTHERS, full.n_sentences)
        both = TextUnits([self.labeled, unlabeled])
        self.models = EmbeddedModels.build(featurizer.templates, len(self.labels), both, 2)
        self.crf = ChainModel().prepare(
            featurizer, self.labeled, self.codes, self.labels, n_factors=self.models.n_models
        )

    def fit(self, **options: Any) -> TrainingResult:
        """Train lambda' under stopping rules with these changes."""
        bound = None if self.models.uniform else self.models.bind(self.labeled).in_order()
        parts = [(self.crf.encode(self.labeled, bound), HardLabels(self.codes))]
        return self.crf.train(parts, PARAMS, options=PARAMS.options(**options))

    def round(self) -> None:
        """Make one round, as on much labeled text."""
        first = self.models.uniform
        self.fit(share=0.0 if first else SHARE)
        weights = self.crf.weights[self.crf.factor_indices]
        counts = self.models.expected_counts(self.crf, self.text)
        self.models.update(counts, 0.01, np.ones_like(weights) if first else weights, "plain")

    def accuracy(self) -> float:
        """Return the accuracy on sentences that are neither labeled nor unlabeled here."""
        found = self.crf.decode(self.crf.encode(self.others, self.models.bind(self.others)))
        return float(np.mean(found == self.full_codes[-self.others.n_tokens :]))


def main() -> None:
    name, values = sys.argv[1], [float(value) for value in sys.argv[2:]]
    kind = type(getattr(Options(), name))
    conll00 = registry().dataset("conll00").load()
    alternation = Alternation(conll00(DataHome(offline=True)).splits["train"])
    for _ in range(3):
        alternation.round()
    start = alternation.crf.weights.copy()
    for value in values:
        alternation.crf.weights = start.copy()
        end = alternation.fit(**{name: kind(value)})
        accuracy = 100 * alternation.accuracy()
        print(
            f"| {value:g} | {end.iterations} | {end.objective:.3f} | {accuracy:.2f} |", flush=True
        )


if __name__ == "__main__":
    main()
