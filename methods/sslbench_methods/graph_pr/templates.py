"""Context templates of He et al. (2013).

The names are the paper's: w0 to w4 are the tokens at offsets -2 to 2.
"""

from __future__ import annotations

from sslbench.engine.graph.forms import PUNCTUATION
from sslbench.engine.graph.similarity import ContextSimilarity
from sslbench.engine.graph.templates import ContextTemplate, TemplateSet, atoms, words

HE2013 = TemplateSet(
    (
        words("w12", -1, 0),
        words("w13", -1, 1),
        words("w23", 0, 1),
        words("w2", 0),
        ContextTemplate("suffix(w3) w2", atoms("suffix", 1) + atoms("form", 0)),
        ContextTemplate("suffix(w1) w2", atoms("suffix", -1) + atoms("form", 0)),
        words("w0134", -2, -1, 1, 2),
        words("w012", -2, -1, 0),
        words("w023", -2, 0, 1),
        words("w024", -2, 0, 2),
        words("w124", -1, 0, 2),
        words("w234", 0, 1, 2),
        words("w01", -2, -1),
        words("w02", -2, 0),
        words("w24", 0, 2),
        words("w34", 1, 2),
    ),
    vertex_form="number",
    feature_form="lower_number",
    excluded_characters=PUNCTUATION,
)


def similarity() -> ContextSimilarity:
    """Return the similarity "he2013"."""
    return ContextSimilarity(HE2013)
