"""Data E1 of docs/specs/crf_engine.md, section 14: three tokens, two labels."""

from __future__ import annotations

import numpy as np

from support.crf_oracle import Model

U = np.array([[0.5, -0.2], [0.1, 0.3], [-0.4, 0.6]])
W = np.array([[0.2, -0.1], [-0.3, 0.4], [0.05, -0.05]])
E = np.array([0.1, -0.1])
V = np.zeros((3, 3, 2))
V[1, 0, 1], V[1, 1, 0] = 0.25, -0.15
E1 = Model(U, W, E, V)
PSI = Model(np.zeros((3, 2)), W, E)  # docs/specs/crf_engine.md, oracle 4
