"""Weights of tags beside those of labels, for labels that stand for tags (a label codec).

Let each attribute have a weight w_l for every label l and another one, u_t, for every tag t, all
with the same Gaussian prior. A label of tag t is scored with v_l = w_l + u_t. Given v, the prior is
largest at u_t = S_t / (m_t + 1), with S_t the sum and m_t the number of the v_l of that tag, where

    sum_l w_l^2 + sum_t u_t^2 = sum_l v_l^2 - sum_t S_t^2 / (m_t + 1).

So the v_l alone are trained, with the right-hand side as their prior: the optimum is that of all
weights. Back-off features of the current tag are those of Sha & Pereira (2003).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sslbench.engine.crf.optim.vectors import dot
from sslbench.engine.crf.weights.layout import Layout
from sslbench.engine.types import F64, I64


@dataclass(frozen=True)
class BackOff:
    """The second term of the prior.

    group: int64[n], the attribute and tag of every state weight, as one number.
    size: float64, m + 1 of every group.
    """

    group: I64
    size: F64

    @classmethod
    def build(cls, layout: Layout, tags: Sequence[str]) -> BackOff:
        """Group the state weights by attribute and tag; tags: the tag of each label."""
        names = sorted(set(tags))
        tag = np.array([names.index(each) for each in tags], dtype=np.int64)
        attribute, label, _ = layout.state_weights(np.empty(layout.size))
        group = attribute.astype(np.int64) * len(names) + tag[label]
        count = np.bincount(group, minlength=layout.n_node * len(names))
        return cls(group, 1.0 + count.astype(np.float64))

    def add(self, precision: F64, weights: F64, gradient: F64) -> float:
        """gradient += p S / (m + 1); return the sum of p S^2 / (2 (m + 1)).  All float64[n].

        precision: of every state weight, the same for all labels of an attribute.
        """
        sums = np.bincount(self.group, weights, minlength=len(self.size))
        pull = precision * (sums / self.size)[self.group]
        gradient += pull
        return 0.5 * dot(pull, weights)
