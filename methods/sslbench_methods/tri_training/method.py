"""Tri-training: three taggers, of which two teach the third where they agree.

Zhou & Li (2005), figure 1, with sentences or tokens as examples; Sogaard (2010) adds that the third
tagger must disagree. Tagger i is retrained on the labeled sentences and the examples L_i on which
the other two agree, if that can lower its error: with e_i the error of the other two where they
agree on labeled text, and e'_i, l'_i the error and the number of examples of its last retraining,

    e_i < e'_i  and  e_i |L_i| < e'_i l'_i,  where L_i may be cut to ceil(e'_i l'_i / e_i - 1).

Examples of a token are partial labels: the tokens around it are summed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

import numpy as np

from sslbench import (
    CRFMethod,
    Positive,
    Problem,
    Rounds,
    RunContext,
    SearchAxis,
    Share,
    TrainingParams,
    doc,
)
from sslbench.engine.crf import (
    EncodedProblem,
    EncodedText,
    HardLabels,
    PartialLabels,
    SequenceModel,
)
from sslbench.engine.types import I32, Bool
from sslbench_methods.self_labeled import WeightScale, sentence_weight
from sslbench_methods.shared import WIDE, Presets, TaskDefaults, WeightsFrom, by_task, encoded
from sslbench_methods.tri_training.tagger import Combine, ThreeTaggers

THREE = range(3)


class TriTraining(CRFMethod):
    """Three taggers from bootstrap samples that teach each other."""

    class Params(TrainingParams, frozen=True, kw_only=True):
        """Parameters of tri-training."""

        rounds: Annotated[Rounds, doc("most rounds")] = 10
        unit: Annotated[
            Literal["sentence", "token"],
            doc("an example: a sentence on which two agree, or a token"),
        ] = "sentence"
        disagreement: Annotated[
            bool, doc("only examples that the third tagger labels otherwise")
        ] = False
        conditions: Annotated[
            Literal["printed", "none"], doc("on error rates: those of Zhou & Li, or always retrain")
        ] = "printed"
        weight: Annotated[Positive, doc("weight of self-labeled sentences")] = 0.003
        weight_scale: WeightScale = "ratio"
        combine: Annotated[
            Combine, doc("labels of the result: mean of the marginals, or majority")
        ] = "mean"
        share: Annotated[
            Share,
            doc(
                "a retraining stops when 5 iterations add at most this share to its"
                " gain: labels settle long before weights do; 0 = only by ftol"
            ),
        ] = 5e-3
        features_from: WeightsFrom = "labeled"
        presets: ClassVar[Presets] = {
            "paper": {"weight": 1.0, "weight_scale": "sentence", "share": 0.0}
        }
        task_defaults: ClassVar[TaskDefaults] = by_task(WIDE, WIDE, WIDE, WIDE)
        search: ClassVar[tuple[SearchAxis, ...]] = (
            SearchAxis("unit", ("sentence", "token")),
            SearchAxis("disagreement", (False, True)),
            SearchAxis("weight", low=1e-3, high=10, log=True),
        )

    def fit(self, problem: Problem, params: Params, run: RunContext) -> ThreeTaggers:
        """Train until no tagger changes; the trace has the examples and errors of each round."""
        crf, text = encoded(problem, params, run, params.features_from)
        crfs = [crf.with_parameters(crf.parameters.copy()) for _ in THREE]
        trainer = Trainer(crfs, text, params, run)
        with run.phase("train"):
            trainer.bootstrap()
        rounds = run.rounds(params.rounds)
        for _ in rounds:
            with run.phase("decode"):
                chosen = trainer.choose()
            with run.phase("train"):
                trainer.retrain(chosen)
            sizes = [0 if each is None else count(each) for each in chosen]
            rounds.record(f"added {sizes}", added=sizes, errors=list(trainer.errors))
            if not any(sizes):
                rounds.stop("converged")
        first, *others = trainer.crfs
        return ThreeTaggers(first, (others[0].parameters, others[1].parameters), params.combine)

    restore = ThreeTaggers.from_arrays


#: of each shard, whether an example is in: bool[sentences] or bool[tokens]
Chosen = list[Bool]


def count(chosen: Chosen) -> int:
    """Return the number of examples."""
    return sum(int(part.sum()) for part in chosen)


@dataclass
class Trainer:
    """The taggers, and of the last retraining of each: errors e', numbers of examples l'.

    labels: of each tagger, int32[N] by shard of the unlabeled text.
    """

    crfs: list[SequenceModel]
    text: EncodedProblem
    params: TriTraining.Params
    run: RunContext
    errors: list[float] = field(default_factory=lambda: [0.5] * 3)
    sizes: list[int] = field(default_factory=lambda: [0] * 3)
    labels: list[list[I32]] = field(default_factory=list)

    def bootstrap(self) -> None:
        """Train each on as many labeled sentences as there are, drawn with replacement."""
        data, gold = self.text.labeled
        n = len(data.lengths)
        for crf in self.crfs:
            drawn = self.run.rng.integers(0, n, n)
            often = np.bincount(drawn, minlength=n).astype(np.float64)
            self.run.train(crf, [(data, HardLabels(gold.labels, often))], self.params)

    def choose(self) -> list[Chosen | None]:
        """Choose the examples that each tagger is retrained on; None = it is not."""
        guesses = [crf.decode(self.text.labeled[0]) for crf in self.crfs]
        self.labels = [[crf.decode(x) for x in self.text.unlabeled] for crf in self.crfs]
        return [self._choose(i, guesses) for i in THREE]

    def _choose(self, i: int, guesses: list[I32]) -> Chosen | None:
        """guesses: of each tagger, its labels of the labeled text."""
        j, k = (other for other in THREE if other != i)
        error = self._error(guesses[j], guesses[k])
        if self.params.conditions == "printed" and error >= self.errors[i]:
            return None
        examples = [self._examples(s, i, j, k) for s in range(len(self.text.unlabeled))]
        size = count(examples)
        if self.params.conditions == "printed":
            size = allowed_size(error, self.errors[i], self.sizes[i], size)
            examples = subsample(examples, size, self.run.rng)
        if not size:
            return None
        self.errors[i], self.sizes[i] = error, size
        return examples

    def _error(self, one: I32, two: I32) -> float:
        """Return the share of wrong labels among labeled examples on which two taggers agree."""
        data, gold = self.text.labeled
        agree = self._by_unit(one == two, data)
        wrong = agree & ~self._by_unit((one == two) & (one == gold.labels), data)
        return float(wrong.sum()) / max(1, int(agree.sum()))

    def _examples(self, shard: int, i: int, j: int, k: int) -> Bool:
        third, one, two = (self.labels[t][shard] for t in (i, j, k))
        data = self.text.unlabeled[shard]
        agree = self._by_unit(one == two, data)
        if self.params.disagreement:
            agree &= ~self._by_unit(one == third, data)
        return agree

    def _by_unit(self, tokens: Bool, data: EncodedText) -> Bool:
        """Return bool[N], or bool[S]: whether it is true of all tokens of a sentence."""
        if self.params.unit == "token" or not len(tokens):
            return tokens
        return np.logical_and.reduceat(tokens, data.offsets[:-1])

    def retrain(self, chosen: Sequence[Chosen | None]) -> None:
        """Train on the labeled sentences and the examples, from the current weights."""
        for i, examples in enumerate(chosen):
            if examples is not None:
                teacher = self.labels[(i + 1) % 3]  # one of the two that agree
                parts = [
                    (data, self._term(data, labels, examples))
                    for data, labels, examples in zip(
                        self.text.unlabeled, teacher, examples, strict=True
                    )
                ]
                options = self.params.options(share=self.params.share)
                parts = [self.text.labeled, *parts]
                self.run.train(self.crfs[i], parts, self.params, options=options)

    def _term(self, data: EncodedText, labels: I32, examples: Bool) -> HardLabels | PartialLabels:
        weight = sentence_weight(self.params.weight, self.params.weight_scale, self.text)
        if self.params.unit == "sentence":
            return HardLabels(labels, weight * examples.astype(np.float64))
        allowed = np.repeat(~examples[:, None], len(self.crfs[0].labels), axis=1)
        allowed[np.arange(len(labels)), labels] = True
        used = np.logical_or.reduceat(examples, data.offsets[:-1])
        return PartialLabels(allowed, weights=weight * used.astype(np.float64))


def allowed_size(error: float, last_error: float, last_size: int, size: int) -> int:
    """Return how many of `size` examples may be added by the conditions of figure 1; 0 = none."""
    least = error / (last_error - error)
    last_size = last_size or int(least + 1)
    if last_size >= size:
        return 0
    if error * size < last_error * last_size:
        return size
    if last_size > least:
        return int(np.ceil(last_error * last_size / error - 1))
    return 0


def subsample(chosen: Chosen, size: int, rng: np.random.Generator) -> Chosen:
    """`size` of the examples, drawn without replacement."""
    if size >= count(chosen):
        return chosen
    flat = np.concatenate(chosen)
    drawn = np.zeros(len(flat), np.bool_)
    drawn[rng.choice(np.flatnonzero(flat), size, replace=False)] = True
    ends = np.cumsum([len(part) for part in chosen])
    return np.split(drawn, ends)[:-1]
