"""Context templates of Zeng et al. (2013), table 2.

They are the trigram contexts of Subramanya et al. (2010) over characters, and the types of the
three characters. "Right Word + Left Context" is printed x1 x2 x3.
"""

from __future__ import annotations

from sslbench.engine.graph.similarity import ContextSimilarity
from sslbench.engine.graph.templates import ContextTemplate, TemplateSet, atoms
from sslbench_methods.graph_self_training.templates import TRIGRAM_CONTEXTS

ZENG2013 = TemplateSet(
    (*TRIGRAM_CONTEXTS, ContextTemplate("type of trigram", atoms("type", -1, 0, 1)))
)


def similarity() -> ContextSimilarity:
    """Return the similarity "zeng2013"."""
    return ContextSimilarity(ZENG2013)
