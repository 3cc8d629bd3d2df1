"""`CRF`: the estimator of sklearn-crfsuite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, cast

import msgspec

from sslbench.engine.corpus import Scheme
from sslbench.engine.crf import ChainCRF, ChainModel
from sslbench.engine.errors import UserError
from sslbench.engine.features.dicts import TokenReader
from sslbench.engine.plain import plain
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.data import Dataset
from sslbench.experiment.inputs.problem import Problem
from sslbench.experiment.run.fitting import LocalMethod
from sslbench.method import CRFMethod, TrainingParams
from sslbench.sklearn.tagger import Labels, Sentences, SequenceTagger


class CRF(SequenceTagger):
    """A supervised CRF with the parameters of ``sklearn_crfsuite.CRF`` that L-BFGS has.

    Parameters
    ----------
    algorithm: "lbfgs", the only one.
    c1, c2: weights of the sum of absolute weights, and of the sum of their squares.
    max_iterations: None = 1000.
    min_freq: features that occur less often get no weight.
    all_possible_states: weights also for pairs of feature and label that never occur.
    all_possible_transitions: all transitions have a weight in any case; accepted and ignored.
    """

    def __init__(
        self,
        algorithm: str = "lbfgs",
        *,
        c1: float = 0.0,
        c2: float = 1.0,
        max_iterations: int | None = None,
        min_freq: int = 1,
        all_possible_states: bool = False,
        all_possible_transitions: bool = False,
        n_threads: int | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(n_threads=n_threads, verbose=verbose)
        self.algorithm = algorithm
        self.c1 = c1
        self.c2 = c2
        self.max_iterations = max_iterations
        self.min_freq = min_freq
        self.all_possible_states = all_possible_states
        self.all_possible_transitions = all_possible_transitions

    def score(self, X: Sentences, y: Labels) -> float:
        """Share of the tokens whose label is right, in [0, 1]."""
        return self._score(X, y, None)

    def _scheme(self, rows: Sequence[Sequence[str]]) -> Scheme | None:
        return None  # labels stay as they are

    def _params(self) -> dict[str, Any]:
        if self.algorithm != "lbfgs":
            raise UserError(f"algorithm {self.algorithm!r}", hint="only lbfgs is there")
        c1, c2 = plain(self.c1), plain(self.c2)
        if not (c1 >= 0 and c2 > 0):
            raise UserError(f"c1={c1}, c2={c2}", hint="c1 >= 0 and c2 > 0")
        return {
            "sigma2": 1 / (2 * c2),
            "l1": c1,
            "max_iterations": plain(self.max_iterations) or 1000,
            "ftol": 1e-5,
            "min_count": max(1, plain(self.min_freq)),
            "state_support": "all" if self.all_possible_states else "observed",
        }

    def _method(self, dataset: Dataset, reader: TokenReader) -> LocalMethod:
        method = super()._method(dataset, reader)
        method.cls = cast(Any, _ElasticNet)
        return method


class _ElasticNet(CRFMethod):
    """A CRF of labeled sentences with penalties of absolute weights and of squares."""

    uses_unlabeled = False

    class Params(TrainingParams, frozen=True, kw_only=True):
        l1: Annotated[float, msgspec.Meta(ge=0)] = 0.0

    def fit(self, problem: Problem, params: Params, run: RunContext) -> ChainCRF:
        model: ChainModel = cast(ChainModel, problem.model)
        crf = model.prepare(
            problem.featurizer,
            problem.labeled,
            problem.label_codes(problem.labeled),
            problem.labels,
            min_count=params.min_count,
            state_support=params.state_support,
            use_start=False,  # CRFsuite has no weights for the ends of a sentence
            use_stop=False,
        )
        run.record(crf.train([problem.encode(crf).labeled], params, l1=params.l1))
        return crf
