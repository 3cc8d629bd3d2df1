"""Write a saved tagger as a model of CRFsuite, and a text as attributes of that model."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sslbench.conversion.crfsuite_file import CRFsuiteModel
from sslbench.engine.corpus import Corpus
from sslbench.engine.crf import ChainCRF
from sslbench.engine.errors import UserError
from sslbench.engine.lazy import lazy
from sslbench.experiment.run.saved import SavedTagger

FIRST, LAST = "__BOS__", "__EOS__"
"""Attributes of the first and of the last token of a sentence, as in the templates of CRFsuite."""


@dataclass(frozen=True)
class Exported:
    """A CRF that CRFsuite can represent, with a name for each of its attributes.

    CRFsuite has no weights of START transitions and of the last label: those are weights of the
    attributes `FIRST` and `LAST`.
    """

    crf: ChainCRF

    @classmethod
    def of(cls, saved: SavedTagger) -> Exported:
        """UserError for a tagger that is more than CRFsuite can represent, with the reason."""
        crf = saved.tagger
        reason = _no_counterpart(crf)
        if reason is not None or not isinstance(crf, ChainCRF):
            raise UserError(
                f"the tagger cannot be a CRFsuite model: {reason}",
                hint="train a supervised tagger of model crf1 with features of labels only",
            )
        return cls(crf)

    @lazy
    def names(self) -> list[str]:
        """The text of each attribute; of equal ones, such as a|b, c and a, b|c, with a number."""
        names: dict[str, None] = dict.fromkeys((FIRST, LAST))
        for number in range(self.crf.index.n_node):
            name = self.crf.index.node_text(number)
            while name in names:
                name += f"#{number}"
            names[name] = None
        return list(names)[2:]

    def attributes(self, corpus: Corpus) -> list[list[str]]:
        """The names of the attributes of each token; those that the model lacks are left out."""
        encoded, names = self.crf.index.encode(corpus), self.names
        rows = [[names[i] for i in row if i >= 0] for row in encoded.node.T.tolist()]
        for first, end in pairwise(encoded.offsets.tolist()):
            rows[first].append(FIRST)
            rows[end - 1].append(LAST)
        return rows

    def model(self) -> CRFsuiteModel:
        """The weights."""
        crf, L = self.crf, len(self.crf.labels)
        transitions = crf.layout.part(crf.weights, "transitions")
        start = transitions[L * L :] if crf.layout.use_start else np.zeros(L)
        stop = crf.layout.part(crf.weights, "stop") if crf.layout.use_stop else np.zeros(L)
        source, target, weight = crf.layout.state_weights(crf.weights)
        ends = np.arange(L, dtype=np.int32)
        n = crf.index.n_node
        return CRFsuiteModel(
            crf.labels,
            [*self.names, FIRST, LAST],
            transitions[: L * L].reshape(L, L),
            np.concatenate([source, np.full(L, n, np.int32), np.full(L, n + 1, np.int32)]),
            np.concatenate([target, ends, ends]),
            np.concatenate([weight, start, stop]),
        )


def _no_counterpart(tagger: object) -> str | None:
    """What CRFsuite has no counterpart of; None = it has all."""
    if not isinstance(tagger, ChainCRF):
        return "it is more than a CRF, or its labels stand for others"
    layout = tagger.layout
    mask = tagger.transition_mask
    reasons = (
        (layout.order != 1, "it is of second order"),
        (layout.n_edge > 0, "transitions depend on the words ('edge:' templates)"),
        (layout.n_columns > 0, "it has dense columns"),
        (layout.n_factors > 0, "it has factor features"),
        (mask is not None and not mask.all(), "some transitions are forbidden"),
        (tagger.label_constraint is not None, "a rule gives the labels of some tokens"),
    )
    return next((reason for applies, reason in reasons if applies), None)
