"""A start for supervised trainings: exponentiated gradient on the dual.

`ascent` is the algorithm and its source, `passes` its compiled loop over blocks of sentences,
`posterior` the distribution of a block, `weights` the weights that a change of it moves.
"""

from sslbench.engine.crf.dual.ascent import DualPoint, start

__all__ = ["DualPoint", "start"]
