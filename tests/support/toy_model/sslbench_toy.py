"""A model plugin in numpy: a softmax per token over its word and suffix, and a chain on top."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec
import numpy as np

from sslbench import ModelInfo, SearchAxis, hookimpl
from sslbench.engine.crf import (
    ModelText,
    SequenceModel,
    TrainingResult,
    chain_potentials,
)  # fmt: skip


@hookimpl
def sslbench_models() -> list[ModelInfo]:
    return [
        ModelInfo(name="toy", summary="softmax and chain", reference="none",
                  target="sslbench_toy:ToyModel", provides=("first_order",))
    ]  # fmt: skip


def names(word: str) -> tuple[str, str]:
    return word.lower(), "-" + word[-2:]


@dataclass
class Toy(SequenceModel):
    labels: tuple[str, ...]
    numbers: dict[str, int]
    transitions: Any  # float64[L+1, L], given
    parameters: Any  # float64[names * L]
    transition_mask: Any
    label_constraint: Any
    steps: int
    kind = "toy"

    def encode(self, corpus: Any) -> ModelText:
        column, constraint = corpus.column("word"), self.label_constraint
        rows = [[self.numbers.get(x, 0) for x in names(word)] for word in column.vocabulary.strings]
        forced = None if constraint is None else constraint.forced_labels(corpus, self.labels)
        return ModelText((np.array(rows, int).reshape(-1, 2)[column.codes], forced), corpus.offsets)

    def open(self, text: Any, batch: Any, noise: Any = None) -> tuple[Any, Callable[..., None]]:
        rows, forced = text.content
        at = rows[batch.tokens]
        scores = self.parameters.reshape(-1, len(self.labels))[at].sum(axis=1)
        node = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        p = np.exp(node)

        def pull(by_potential: Any, gradient: Any) -> None:
            slope = by_potential.node - p * by_potential.node.sum(axis=1, keepdims=True)
            np.add.at(gradient.reshape(-1, len(self.labels)), at, slope[:, None])

        mask = self.transition_mask
        given = {"mask": mask, "forced_labels": forced}
        return chain_potentials(batch, node, self.transitions, **given), pull

    def train(self, parts: Any, params: Any, *, options: Any = None, callback: Any = None,
              progress: Any = None) -> TrainingResult:  # fmt: skip
        steps = min(
            self.steps, params.max_iterations if options is None else options.max_iterations
        )
        n = max(1.0, sum(term.n_tokens(text.lengths) for text, term in parts))
        squares, slope, value = 1e-8 * np.ones_like(self.parameters), self.parameters.copy(), 0.0
        for step in range(steps):
            value = self.gradient(parts, slope) - self.penalty(params)
            slope -= self.parameters / params.sigma2
            squares += slope**2
            self.parameters = self.parameters + 0.5 * slope / np.sqrt(squares)
            if callback is not None:
                callback(step + 1, -value / n, float(np.abs(slope).max() / n))
        size = float(np.abs(slope).max() / n)
        return TrainingResult(value, "max_iterations", False, steps, steps, size, len(slope))

    def arrays(self) -> Any:
        mask = self.transition_mask
        arrays = {"parameters": self.parameters, "transitions": self.transitions}
        arrays |= {} if mask is None else {"mask": mask}
        rule = msgspec.to_builtins(self.label_constraint)
        return arrays, {"labels": list(self.labels), "names": list(self.numbers), "rule": rule}


class ToyModel:
    class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
        steps: int = 40
        search: ClassVar[tuple[SearchAxis, ...]] = (SearchAxis("steps", (2, 40)),)

    def __init__(self, params: Params, seed: int) -> None:
        self.steps = params.steps

    def prepare(self, featurizer: Any, corpus: Any, label_codes: Any, labels: Any, *, text: Any,
                transition_mask: Any, label_constraint: Any, **_: Any) -> Toy:  # fmt: skip
        words = (w for c in (corpus, *text) for w in c.column("word").vocabulary.strings)
        known = dict.fromkeys(["?", *(name for word in words for name in names(word))])
        counts = np.ones((len(labels) + 1, len(labels)))
        before = np.roll(label_codes, 1)
        before[corpus.offsets[:-1]] = len(labels)
        np.add.at(counts, (before, label_codes), 1.0)
        given = np.log(counts / counts.sum(axis=1, keepdims=True))
        numbers = {name: i for i, name in enumerate(known)}
        start = np.zeros(len(numbers) * len(labels))
        return Toy(
            tuple(labels), numbers, given, start, transition_mask, label_constraint, self.steps
        )

    @staticmethod
    def restore(arrays: Any, metadata: Any) -> Toy:
        from sslbench.engine.corpus import LabelConstraint

        numbers = {name: i for i, name in enumerate(metadata["names"])}
        rule = msgspec.convert(metadata["rule"], LabelConstraint | None)
        given = arrays["transitions"], arrays["parameters"], arrays.get("mask"), rule
        return Toy(tuple(metadata["labels"]), numbers, *given, 40)
