"""A chain on top of a network: what is the same for all networks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec
import numpy as np

from sslbench import Corpus
from sslbench.engine.checked import Saved, table, vector
from sslbench.engine.corpus import LabelConstraint
from sslbench.engine.crf import (
    Batch,
    BatchPotentials,
    ModelText,
    Options,
    Parts,
    PotentialGradient,
    Progress,
    Pullback,
    Schedule,
    SequenceModel,
    TrainingParams,
    TrainingResult,
    chain_potentials,
    descend,
    transition_slopes,
)
from sslbench.engine.types import F32, F64, I32, Arrays, Bool

#: tokens of a batch: enough for full rows, and for many steps on a small sample
TOKENS = 256
Weights: TypeAlias = Mapping[str, Any]
"""float32 arrays by name."""


@dataclass(frozen=True)
class Text:
    """What a model reads of a text. forced: int32[N], see `LabelConstraint.forced_labels`."""

    content: Any
    forced: I32 | None


@dataclass
class NetworkModel(SequenceModel):
    """A network that scores labels, and transitions [L+1, L]; the parameters are in this order.

    A subclass says what the network reads, and computes scores and derivatives.
    """

    labels: tuple[str, ...]
    transition_mask: Bool | None = None
    label_constraint: LabelConstraint | None = None
    parameters: F64 = field(default_factory=lambda: np.empty(0), repr=False)

    @property
    @abstractmethod
    def of_network(self) -> Mapping[str, tuple[int, ...]]:
        """Shapes of the weights of the network by name, in the order of the parameters."""

    @property
    @abstractmethod
    def center(self) -> F32:
        """float32[P]: where the prior is largest."""

    @property
    @abstractmethod
    def rates(self) -> Mapping[str, float]:
        """The largest rate of the weights from each of these names on, see `Schedule`."""

    @abstractmethod
    def read(self, corpus: Corpus) -> Any:
        """Return what the network reads of a text."""

    @abstractmethod
    def scores(self, weights: Weights, content: Any, batch: Batch) -> F64:
        """Return float64[n, L], the scores of labels of a batch."""

    @abstractmethod
    def opened(
        self, weights: Weights, content: Any, batch: Batch, noise: np.random.Generator | None
    ) -> tuple[F64, Callable[[F64], Weights]]:
        """Return the scores, and what makes of derivatives by them ones by the weights."""

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of all weights by name."""
        L = len(self.labels)
        return {**self.of_network, "transitions": (L + 1, L)}

    def slices(self) -> Iterator[tuple[str, slice, tuple[int, ...]]]:
        """Yield name, place among the parameters, and shape of each weight."""
        begin = 0
        for name, shape in self.shapes.items():
            end = begin + int(np.prod(shape))
            yield name, slice(begin, end), shape
            begin = end

    def weights(self) -> dict[str, Any]:
        """Return the weights by name."""
        return {
            name: self.parameters[own].astype(np.float32).reshape(shape)
            for name, own, shape in self.slices()
        }

    def encode(self, corpus: Corpus) -> ModelText:
        rule = self.label_constraint
        forced = None if rule is None else rule.forced_labels(corpus, self.labels)
        return ModelText(Text(self.read(corpus), forced), corpus.offsets, TOKENS)

    def open(
        self, text: ModelText, batch: Batch, noise: np.random.Generator | None = None
    ) -> tuple[BatchPotentials, Pullback]:
        weights = self.weights()
        node, back = self.opened(_of_network(weights), text.content.content, batch, noise)

        def pull(by_potential: PotentialGradient, gradient: F64) -> None:
            slopes = {"transitions": transition_slopes(batch, by_potential)}
            slopes |= back(by_potential.node)
            for name, own, _ in self.slices():
                gradient[own] += np.ravel(slopes[name])

        return self._chain(weights, text, batch, node), pull

    def scorer(
        self, text: ModelText, parameters: F64 | None = None
    ) -> Callable[[Batch], BatchPotentials]:
        model = self if parameters is None else self.with_parameters(parameters)
        weights, content = model.weights(), text.content.content
        own = _of_network(weights)
        return lambda batch: self._chain(weights, text, batch, self.scores(own, content, batch))

    def _chain(self, weights: Weights, text: ModelText, batch: Batch, node: F64) -> BatchPotentials:
        transitions = weights["transitions"].astype(np.float64)
        given = {"mask": self.transition_mask, "forced_labels": text.content.forced}
        return chain_potentials(batch, node, transitions, **given)

    def train(
        self,
        parts: Parts,
        params: TrainingParams,
        *,
        options: Options | None = None,
        callback: Callable[[int, float, float], None] | None = None,
        progress: Progress | None = None,
    ) -> TrainingResult:
        given = params, self.steps_of(params, options), self.schedule(), self.center
        return descend(self, parts, *given, callback=callback, progress=progress)

    def steps_of(self, params: TrainingParams, options: Options | None) -> int:
        """Return the steps of a training."""
        steps = (options or params.options()).max_iterations
        return steps if self.steps is None else min(steps, self.steps)

    def schedule(self) -> Schedule:
        """Return how the rates change in a training."""
        begins = {name: own.start for name, own, _ in self.slices()}
        rates = [(begins[name], rate) for name, rate in self.rates.items()]
        return Schedule(rates, course=self.course)

    def penalty(self, params: TrainingParams) -> float:
        return from_center(self.parameters, self.center, params)

    def arrays(self) -> Saved:
        """Return the parameters, in single precision, and what `put_back` needs."""
        arrays: Arrays = {"parameters": self.parameters.astype(np.float32)}
        if self.transition_mask is not None:
            arrays["mask"] = self.transition_mask
        rule = msgspec.to_builtins(self.label_constraint)
        return arrays, {"labels": list(self.labels), "rule": rule}

    def put_back(self, arrays: Arrays, metadata: Mapping[str, Any]) -> None:
        """Take what `arrays` gave; ValueError if it does not fit the network."""
        L, size = len(self.labels), sum(int(np.prod(shape)) for shape in self.shapes.values())
        if "mask" in arrays:
            self.transition_mask = table(arrays, "mask", np.bool_, (L + 1, L))
        self.label_constraint = msgspec.convert(metadata["rule"], LabelConstraint | None)
        self.parameters = vector(arrays, "parameters", np.float32, size).astype(np.float64)


def _of_network(weights: Weights) -> Weights:
    return {name: value for name, value in weights.items() if name != "transitions"}


def from_center(parameters: F64, center: F32, params: TrainingParams) -> float:
    """Return the penalty of a Gaussian prior around the center."""
    distance = parameters - center
    return float(distance @ distance) / (2 * params.sigma2)
