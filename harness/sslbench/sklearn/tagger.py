"""`SequenceTagger`: any registered method as an estimator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import msgspec

from sslbench.engine.corpus import Scheme, detect_scheme
from sslbench.engine.errors import UserError
from sslbench.engine.features.dicts import TokenReader
from sslbench.engine.plain import plain
from sslbench.experiment.data import Dataset
from sslbench.experiment.planning.description import has_task_defaults, method_description
from sslbench.experiment.records.record import ProtocolSpec, RunSpec
from sslbench.experiment.run.fitting import LocalMethod
from sslbench.plugins import registry
from sslbench.sklearn.base import Labels, Sentences, TaggerBase, first_featurizer

_INNER = "params__"


class SequenceTagger(TaggerBase):
    """A method of sslbench as an estimator.

    Parameters
    ----------
    method: name of a registered method; "supervised" does not use unlabeled sentences.
    columns: what the texts of a token are; the names decide which featurizer fits.
    featurizer: name of a registered one; None = the first that fits task and columns. Dicts of
        features need none.
    model: name of a registered model; None = a first-order CRF.
    params: parameters of the method by name; see ``sslbench show METHOD``.
    tune: tuning trials by cross-validation of the labeled sentences; 0 = none.
    random_state: seed of the method.
    n_threads: None = all cores. Results do not depend on it.
    verbose: show messages of the training on standard error.

    Attributes
    ----------
    classes_: the labels as given, in the order of `predict_proba`.
    tagger_: the trained tagger.
    """

    def __init__(
        self,
        method: str = "supervised",
        *,
        columns: Sequence[str] = ("word",),
        featurizer: str | None = None,
        model: str | None = None,
        params: Mapping[str, Any] | None = None,
        tune: int = 0,
        random_state: int = 0,
        n_threads: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.method = method
        self.columns = columns
        self.featurizer = featurizer
        self.model = model
        self.params = params
        self.tune = tune
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    def fit(self, X: Sentences, y: Labels | None = None, unlabeled: Sentences = ()) -> Self:
        """Train.

        X: sentences; y: their labels, or None or -1 for a sentence without labels. Chunk tags are
            recognized by their scheme.
        unlabeled: further sentences, for semi-supervised methods.
        All are read once. UserError for tokens, labels or parameters that do not fit.
        """
        self._fit(X, y, unlabeled)
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; deep: also those in `params`, as ``params__KEY``."""
        own: dict[str, Any] = super().get_params(deep=False)
        inner = self.params if deep and isinstance(self.params, Mapping) else {}
        return own | {f"{_INNER}{name}": value for name, value in inner.items()}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; ``params__KEY`` sets one of the method, and keeps the others."""
        inner = {
            name.removeprefix(_INNER): value
            for name, value in params.items()
            if name.startswith(_INNER)
        }
        super().set_params(**{n: v for n, v in params.items() if not n.startswith(_INNER)})
        if inner:
            self.params = {**(self.params or {}), **inner}
        return self

    def _columns(self) -> tuple[str, ...]:
        return tuple(plain(self.columns))

    def _scheme(self, rows: Sequence[Sequence[str]]) -> Scheme | None:
        return detect_scheme(rows)

    def _params(self) -> dict[str, Any]:
        return dict(plain(self.params or {}))

    def _method(self, dataset: Dataset, reader: TokenReader) -> LocalMethod:
        plugins = registry()
        info = plugins.method(self.method)
        model = self.model or next(iter(plugins.models))
        misfit = info.misfit(dataset.task, plugins.model(model))
        if misfit is not None:
            raise UserError(f"{self.method} does not fit: it is {misfit}")
        protocol = ProtocolSpec(
            text="external" if dataset.external else "rest",
            seed=self._integer("random_state") or 0,
            tune=self._integer("tune") or 0,
        )
        given = self._params()
        described = method_description(plugins, self.method, given)
        fixed, first = dict[str, Any](), dict[str, Any]()
        if has_task_defaults(plugins.model(model)):
            fixed, first = described.on_task(dataset.task, given, tuned=protocol.tuned)
        spec = RunSpec(
            method=self.method,
            dataset=dataset.name,
            featurizer=self.featurizer or first_featurizer(dataset.task, reader),
            model=model,
            params=given | fixed,
            protocol=protocol,
            first=first or msgspec.UNSET,
        )
        return self._local_method(spec, reader)
