"""Context templates of Subramanya et al. (2010), table 1.

The paper numbers the tokens x1 to x5, with the center x3 at offset 0, and prints "Center Word" as
x2.
"""

from __future__ import annotations

from sslbench.engine.graph.similarity import ContextSimilarity
from sslbench.engine.graph.templates import ContextTemplate, TemplateSet, atoms, words

TRIGRAM_CONTEXTS = (
    words("trigram + context", -2, -1, 0, 1, 2),
    words("trigram", -1, 0, 1),
    words("left context", -2, -1),
    words("right context", 1, 2),
    words("center word", 0),
    words("trigram - center", -1, 1),
    words("left word + right context", -1, 1, 2),
    words("left context + right word", -2, -1, 1),
)

SUBRAMANYA2010 = TemplateSet(
    (
        *TRIGRAM_CONTEXTS,
        # The paper does not define HasSuffix: here every ending of 1 to 3 characters of a longer
        # word.
        ContextTemplate("suffix of 1", atoms("ending1", 0)),
        ContextTemplate("suffix of 2", atoms("ending2", 0)),
        ContextTemplate("suffix of 3", atoms("ending3", 0)),
    )
)


# The other reading of HasSuffix: the longest suffix of a list, as He et al. (2013) use one.
LISTED = TemplateSet((*TRIGRAM_CONTEXTS, ContextTemplate("suffix", atoms("suffix", 0))))


def similarity() -> ContextSimilarity:
    """Return the similarity "subramanya2010"."""
    return ContextSimilarity(SUBRAMANYA2010)


def listed() -> ContextSimilarity:
    """Return the similarity "subramanya2010_listed"; an empty list has no feature of suffixes.

    A feature of all tokens has the weight 0.
    """
    return ContextSimilarity(LISTED)
