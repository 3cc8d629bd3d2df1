"""Templates for tagging with the 12 universal tags.

Source: He et al. (2013): words, suffixes and tests of spelling of a word and its two neighbors.
Where their release differs from ours: a suffix as long as the word is left out there, the test for
a capital also holds for digits, and a number is one as a whole.
"""

from __future__ import annotations

from sslbench.engine.features import TemplateFeaturizer

_FORMS = ("", ".lower", ".suffix2", ".suffix3", ".suffix4")
_TESTS = (".first_upper", ".all_punct", ".has_digit", ".has_dash", ".has_period")


def pos_window() -> TemplateFeaturizer:
    """Ten functions of the word at -1, 0 and +1, and a constant: 31 state templates."""
    window = [f"word{form}[{k}]" for k in (-1, 0, 1) for form in (*_FORMS, *_TESTS)]
    return TemplateFeaturizer(["bias", *window])
