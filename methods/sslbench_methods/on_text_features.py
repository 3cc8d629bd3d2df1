"""The supervised CRF on features that are learned from the text of the problem."""

from __future__ import annotations

from typing import Any, ClassVar

from sslbench import CRFMethod, Problem, RunContext
from sslbench.experiment.text_features import FeaturedTagger, on_features
from sslbench_methods.supervised import Supervised


class OnTextFeatures(CRFMethod):
    """What ``--method supervised --with NAME`` computes, with one set of parameters.

    A subclass has ``Params`` with all fields of the learner's.  name: of the learner, a
    `sslbench.experiment.text_features.TextFeatures`, as it is registered.
    """

    name: ClassVar[str]
    learner: ClassVar[type[Any]]

    def fit(self, problem: Problem, params: Any, run: RunContext) -> FeaturedTagger:
        """Learn the features, then train."""
        own = self.learner.Params
        with run.phase("text_features"):
            values = {field: getattr(params, field) for field in own.__struct_fields__}
            learned = self.learner().learn(problem, own(**values), run)
        rich = on_features(problem, [learned], text=False)
        crf = Supervised().fit(rich, params, run)
        return FeaturedTagger(crf, {self.name: learned})
