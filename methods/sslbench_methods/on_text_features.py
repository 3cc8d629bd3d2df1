"""The supervised CRF on features that are learned from the text of the problem."""

from __future__ import annotations

from typing import Any, ClassVar

from sslbench import CRFMethod, Problem, RunContext
from sslbench.experiment.inputs.text_features import FeaturedTagger, on_features
from sslbench_methods.supervised import Supervised


class OnTextFeatures(CRFMethod):
    """What ``--method supervised --with NAME`` computes, with one set of parameters.

    A subclass has ``Params`` with all fields of the learner's.  name: of the learner, a
    `sslbench.experiment.inputs.text_features.TextFeatures`, as it is registered.
    """

    name: ClassVar[str]
    learner: ClassVar[type[Any]]

    def fit(self, problem: Problem, params: Any, run: RunContext) -> FeaturedTagger:
        """Learn the features, then train."""
        with run.phase("text_features"):
            learned = self.learner().learn(problem, _part(params, self.learner.Params), run)
        rich = on_features(problem, [learned], text=False)
        tagger = Supervised().fit(rich, _part(params, Supervised.Params), run)
        return FeaturedTagger(tagger, {self.name: learned})


def _part(params: Any, cls: type[Any]) -> Any:
    """Return parameters of another class, as far as there are fields of the same names."""
    fields = [name for name in cls.__struct_fields__ if hasattr(params, name)]
    return cls(**{name: getattr(params, name) for name in fields})
