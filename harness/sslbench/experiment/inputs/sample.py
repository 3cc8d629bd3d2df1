"""The data of a training: a dataset, and what a protocol draws from it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sslbench.engine.corpus import Shards
from sslbench.engine.types import I64
from sslbench.experiment.data import Dataset
from sslbench.experiment.inputs.problem import Problem, labeled_part, relabeled
from sslbench.experiment.inputs.protocol import Draw, draw, fold_draws, unlabeled_text
from sslbench.experiment.records.record import RunSpec


@dataclass(frozen=True)
class Sample:
    """A dataset, and the sentences of train that a run draws.

    spec: of the run; its protocol is that of the draw.
    held_out: int64, the sentences of train that a fold is tested on; else none.
    """

    spec: RunSpec
    dataset: Dataset
    drawn: Draw
    held_out: I64 = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @staticmethod
    def of(spec: RunSpec, dataset: Dataset) -> Sample:
        """The draw of a run from its dataset."""
        return Sample(spec, dataset, draw(dataset, spec.protocol))

    def folds(self) -> list[Sample]:
        """The samples of cross-validation: each has the sentences of its fold as split "test"."""
        return [
            replace(self, dataset=self._tested_on(held_out), drawn=drawn, held_out=held_out)
            for drawn, held_out in fold_draws(self.dataset, self.spec.protocol)
        ]

    def _tested_on(self, held_out: I64) -> Dataset:
        """The dataset with sentences of train as its test, and without further splits."""
        train, stay = self.dataset.splits["train"], ("train", "dev")
        splits = {name: part for name, part in self.dataset.splits.items() if name in stay}
        alternatives = dict(self.dataset.alternatives)
        if "train" in alternatives:
            alternatives["test"] = alternatives["train"].select(train.offsets, held_out)
        splits["test"] = train.select(held_out)
        return replace(self.dataset, splits=splits, alternatives=alternatives, sentence_ids={})

    def text(self, sentences: I64) -> Shards:
        """The unlabeled text of a training on these sentences of train, int64[n]."""
        tested = np.union1d(self.drawn.labeled, self.held_out)
        return unlabeled_text(self.dataset, self.spec.protocol, np.setdiff1d(tested, sentences))

    def problem(self, sentences: I64, text: Shards, featurizer: Any, model: Any) -> Problem:
        """The input of a method.

        sentences: int64[n], the labeled sentences of train; all others lose their labels.
        """
        dataset = self.dataset
        labeled = labeled_part(dataset.splits["train"], sentences)
        if dataset.label_constraint is not None:
            labeled = relabeled(dataset.label_constraint.impose(labeled))
        labels = tuple(labeled.column("label").vocabulary.strings)
        dev = dataset.splits.get("dev")
        problem = Problem(
            task=dataset.task,
            encoding=dataset.encoding,
            labels=labels,
            labeled=labeled,
            unlabeled=text,
            dev=None if dev is None else relabeled(dev.select(np.arange(dev.n_sentences)), labels),
            featurizer=featurizer,
            model=model,
            label_constraint=dataset.label_constraint,
        )
        return problem if dataset.codec is None else problem.coded(dataset.codec(labels))
