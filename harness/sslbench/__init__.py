"""sslbench: compare semi-supervised learning methods for sequence labeling on equal terms.

Everything here is imported on first use, so that ``import sslbench`` costs nothing and a plugin's
registration module (``from sslbench import hookimpl, MethodInfo``) never pulls in numpy or numba.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sslbench.api import compare, load_tagger, results, run, train
    from sslbench.corpus import Column, Corpus, Shards, Vocabulary
    from sslbench.errors import UserError
    from sslbench.experiment.context import RunContext
    from sslbench.experiment.data import DataHome, Dataset
    from sslbench.experiment.metrics import Alternatives
    from sslbench.experiment.problem import Problem, Tagger
    from sslbench.experiment.space import SearchAxis
    from sslbench.features import Atom, Template, TemplateFeaturizer
    from sslbench.hooks import hookimpl
    from sslbench.method import CRFMethod, GraphCRFParams, GraphParams, TrainingParams
    from sslbench.plugins import Registry, registry
    from sslbench.registrations import (
        DatasetInfo,
        FeaturizerInfo,
        MethodInfo,
        ModelInfo,
        RemoteFile,
        SimilarityInfo,
        TextFeaturesInfo,
    )

    __version__: str

_HOMES = {
    "sslbench.errors": ("UserError",),
    "sslbench.hooks": ("hookimpl",),
    "sslbench.plugins": ("Registry", "registry"),
    "sslbench.registrations": (
        "DatasetInfo",
        "FeaturizerInfo",
        "MethodInfo",
        "ModelInfo",
        "RemoteFile",
        "SimilarityInfo",
        "TextFeaturesInfo",
    ),
    # These import numpy.
    "sslbench.corpus": ("Column", "Corpus", "Shards", "Vocabulary"),
    "sslbench.features": ("Atom", "Template", "TemplateFeaturizer"),
    "sslbench.experiment.data": ("DataHome", "Dataset"),
    "sslbench.experiment.metrics": ("Alternatives",),
    "sslbench.experiment.context": ("RunContext",),
    "sslbench.experiment.problem": ("Problem", "Tagger"),
    "sslbench.experiment.space": ("SearchAxis",),
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
    "DataHome",
    "Dataset",
    "DatasetInfo",
    "FeaturizerInfo",
    "GraphCRFParams",
    "GraphParams",
    "MethodInfo",
    "ModelInfo",
    "Problem",
    "Registry",
    "RemoteFile",
    "RunContext",
    "SearchAxis",
    "Shards",
    "SimilarityInfo",
    "Tagger",
    "Template",
    "TemplateFeaturizer",
    "TextFeaturesInfo",
    "TrainingParams",
    "UserError",
    "Vocabulary",
    "__version__",
    "compare",
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
