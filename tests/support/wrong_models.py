"""Toy models, each of which breaks one rule of models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from sslbench.engine.crf import ChainModel, SequenceModel
from support.toy_model.sslbench_toy import Toy, ToyModel


def _of(toy: Toy, cls: type[Toy]) -> Toy:
    return cls(**vars(toy))


class _Wrong(ToyModel):
    toy: type[Toy]

    def prepare(self, *arguments: Any, **options: Any) -> Toy:
        return _of(super().prepare(*arguments, **options), self.toy)


def _model(toy: type[Toy]) -> type[ToyModel]:
    def restore(arrays: Any, metadata: Any) -> Toy:
        return _of(ToyModel.restore(arrays, metadata), toy)

    return type(toy.__name__, (_Wrong,), {"toy": toy, "restore": staticmethod(restore)})


class NoMask(Toy):
    def open(self, text: Any, batch: Any, noise: Any = None) -> Any:
        return _of(replace(self, transition_mask=None), Toy).open(text, batch)


class NoConstraint(Toy):
    def encode(self, corpus: Any) -> Any:
        return _of(replace(self, label_constraint=None), Toy).encode(corpus)


class HalfPullback(Toy):
    def open(self, text: Any, batch: Any, noise: Any = None) -> tuple[Any, Callable[..., None]]:
        potentials, pull = super().open(text, batch)

        def half(by_potential: Any, gradient: Any) -> None:
            own = np.zeros_like(gradient)
            pull(by_potential, own)
            gradient += 0.5 * own

        return potentials, half


class InPlace(Toy):
    def train(self, *arguments: Any, **options: Any) -> Any:
        start = self.parameters
        result = super().train(*arguments, **options)
        start[:] = self.parameters
        self.parameters = start
        return result


class Random(Toy):
    def train(self, *arguments: Any, **options: Any) -> Any:
        result = super().train(*arguments, **options)
        self.parameters = self.parameters + 1e-3 * np.random.default_rng().normal()
        return result


class Shifted(Toy):
    """Its marginals do not sum to one."""

    def marginals(self, text: Any, extra: Any = None) -> Any:
        return super().marginals(text, extra) * 0.9


class NoDense:
    """A CRF that says that it reads features, and leaves out dense columns."""

    def prepare(self, featurizer: Any, *arguments: Any, **options: Any) -> SequenceModel:
        from sslbench.engine.features import TemplateFeaturizer

        return ChainModel().prepare(TemplateFeaturizer(featurizer.templates), *arguments, **options)


class NoRestore:
    """It saves, and what it saved cannot be read."""

    Params = ToyModel.Params

    def __init__(self, params: Any, seed: int) -> None:
        self.inner = ToyModel(params, seed)

    def prepare(self, *arguments: Any, **options: Any) -> Toy:
        return self.inner.prepare(*arguments, **options)


NoMaskModel, NoConstraintModel = _model(NoMask), _model(NoConstraint)
HalfPullbackModel, InPlaceModel = _model(HalfPullback), _model(InPlace)
RandomModel, ShiftedModel = _model(Random), _model(Shifted)
