"""sslbench: compare semi-supervised learning methods for sequence labeling on equal terms.

Everything here is imported on first use, so that ``import sslbench`` costs nothing and a plugin's
registration module (``from sslbench import hookimpl, MethodInfo``) never pulls in numpy or numba.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sslbench.api import compare, load_tagger, results, run, train
    from sslbench.engine.corpus import Column, Corpus, Shards, Vocabulary
    from sslbench.engine.errors import UserError
    from sslbench.engine.features import Atom, Template, TemplateFeaturizer
    from sslbench.engine.parameters import (
        Count,
        Iterations,
        Positive,
        Rounds,
        Share,
        Tolerance,
        Variance,
        Weight,
        doc,
    )
    from sslbench.experiment.context.context import RunContext
    from sslbench.experiment.data import DataHome, Dataset
    from sslbench.experiment.inputs.problem import Problem, Tagger
    from sslbench.experiment.metrics import Alternatives
    from sslbench.experiment.planning.space import SearchAxis
    from sslbench.method import CRFMethod, GraphCRFParams, GraphParams, TrainingParams
    from sslbench.plugins import Registry, registry
    from sslbench.plugins.hooks import hookimpl
    from sslbench.plugins.registrations import (
        DatasetInfo,
        FeaturizerInfo,
        MethodInfo,
        ModelInfo,
        RemoteFile,
        SimilarityInfo,
        TextFeaturesInfo,
        WeakSourceInfo,
    )

    __version__: str

_HOMES = {
    "sslbench.engine.errors": ("UserError",),
    "sslbench.plugins.hooks": ("hookimpl",),
    "sslbench.plugins": ("Registry", "registry"),
    "sslbench.plugins.registrations": (
        "DatasetInfo",
        "FeaturizerInfo",
        "MethodInfo",
        "ModelInfo",
        "RemoteFile",
        "SimilarityInfo",
        "TextFeaturesInfo",
        "WeakSourceInfo",
    ),
    # These import numpy.
    "sslbench.engine.parameters": (
        "Count",
        "Iterations",
        "Positive",
        "Rounds",
        "Share",
        "Tolerance",
        "Variance",
        "Weight",
        "doc",
    ),
    "sslbench.engine.corpus": ("Column", "Corpus", "Shards", "Vocabulary"),
    "sslbench.engine.features": ("Atom", "Template", "TemplateFeaturizer"),
    "sslbench.experiment.data": ("DataHome", "Dataset"),
    "sslbench.experiment.metrics": ("Alternatives",),
    "sslbench.experiment.context.context": ("RunContext",),
    "sslbench.experiment.inputs.problem": ("Problem", "Tagger"),
    "sslbench.experiment.planning.space": ("SearchAxis",),
    # These import numba.
    "sslbench.api": ("compare", "load_tagger", "results", "run", "train"),
    "sslbench.method": ("CRFMethod", "GraphCRFParams", "GraphParams", "TrainingParams"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Alternatives",
    "Atom",
    "CRFMethod",
    "Column",
    "Corpus",
    "Count",
    "DataHome",
    "Dataset",
    "DatasetInfo",
    "FeaturizerInfo",
    "GraphCRFParams",
    "GraphParams",
    "Iterations",
    "MethodInfo",
    "ModelInfo",
    "Positive",
    "Problem",
    "Registry",
    "RemoteFile",
    "Rounds",
    "RunContext",
    "SearchAxis",
    "Shards",
    "Share",
    "SimilarityInfo",
    "Tagger",
    "Template",
    "TemplateFeaturizer",
    "TextFeaturesInfo",
    "Tolerance",
    "TrainingParams",
    "UserError",
    "Variance",
    "Vocabulary",
    "WeakSourceInfo",
    "Weight",
    "__version__",
    "compare",
    "doc",
    "hookimpl",
    "load_tagger",
    "registry",
    "results",
    "run",
    "train",
]


def __getattr__(name: str) -> object:
    """Import the module that holds ``name`` on first use (PEP 562)."""
    if name == "__version__":
        from importlib.metadata import version

        value: object = version("sslbench")
    elif name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name]), name)
    else:
        raise AttributeError(f"module 'sslbench' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
