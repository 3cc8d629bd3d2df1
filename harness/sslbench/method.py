"""What the author of a method builds on: a base class and the parameters that methods share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import msgspec

from sslbench.engine.crf.params import Sigma2, TrainingParams
from sslbench.experiment.context.context import RunContext
from sslbench.experiment.inputs.problem import FeaturesFrom, Problem, Tagger
from sslbench.experiment.inputs.problem_graph import (
    GraphColumn,
    GraphSimilarity,
    HasGraphParams,
    MaxDf,
    Neighbors,
    ProblemGraph,
    Suffixes,
    Symmetry,
    TextVertices,
    check_similarity,
)
from sslbench.experiment.planning.space import SearchAxis

__all__ = [
    "CRFMethod",
    "FeaturesFrom",
    "GraphCRFParams",
    "GraphColumn",
    "GraphParams",
    "GraphSimilarity",
    "HasGraphParams",
    "MaxDf",
    "Neighbors",
    "ProblemGraph",
    "RunContext",
    "SearchAxis",
    "Sigma2",
    "Suffixes",
    "Symmetry",
    "TextVertices",
    "TrainingParams",
    "check_similarity",
]


class CRFMethod(ABC):
    """A method that trains a CRF.

    A subclass must define `fit`. It may define

    - ``Params``: the parameters with their defaults and bounds, derived from `TrainingParams`;
      ``Params.search``, a tuple of `SearchAxis`, says what is tuned besides the parameters of
      `sslbench.experiment.planning.space.SHARED`; ``Params.presets``, a mapping of names to values
      of some parameters, what ``--preset NAME`` sets: "paper" has the values that the paper prints,
      "reproduced" those that give what the paper claims; ``Params.preset_notes``, a mapping of
      such names to a line that is printed when the preset is used; ``Params.task_defaults``, a
      mapping of tasks (`sslbench.plugins.registrations.TASKS`) to values of some parameters, which
      are the defaults there;
    - ``restore(arrays, metadata)``, a static method: the tagger that ``tagger.save(path)`` wrote.
      A method that returns a `sslbench.engine.crf.ChainCRF` needs neither;
    - the class attributes below.

    What a tagger must have and may declare: `sslbench.experiment.inputs.problem.Tagger`. For which
    tasks and models the method is: `sslbench.MethodInfo`.

    Attributes
    ----------
    uses_unlabeled: False for a method that never reads unlabeled text, which then is not prepared.
    order_invariant: True declares that the order of the unlabeled sentences does not matter;
        ``sslbench check`` tests it.
    """

    Params: ClassVar[type[TrainingParams]] = TrainingParams
    uses_unlabeled: ClassVar[bool] = True
    order_invariant: ClassVar[bool] = False

    @abstractmethod
    def fit(self, problem: Problem, params: Any, run: RunContext) -> Tagger:
        """Train on a problem; `params` is an instance of ``Params``."""


class GraphParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How the similarity graph is built; defaults of He et al. (2013).

    UserError for a similarity that is not registered.
    """

    column: GraphColumn = "word"
    similarity: GraphSimilarity = "he2013"
    neighbors: Neighbors = 60
    symmetry: Symmetry = "mutual"
    max_df: MaxDf = None
    suffixes: Suffixes = None

    def __post_init__(self) -> None:
        check_similarity(self)


class GraphCRFParams(TrainingParams, frozen=True, kw_only=True):
    """Parameters of a method with a graph and a CRF: those of `GraphParams` and `TrainingParams`.

    The fields stand here again because a Struct has one base class. UserError for a similarity that
    is not registered.
    """

    column: GraphColumn = "word"
    similarity: GraphSimilarity = "he2013"
    neighbors: Neighbors = 60
    symmetry: Symmetry = "mutual"
    max_df: MaxDf = None
    suffixes: Suffixes = None

    def __post_init__(self) -> None:
        check_similarity(self)
