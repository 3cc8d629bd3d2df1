"""Templates for taggers that are to be carried over to another kind of text.

Source: Subramanya et al. (2010): "word identity, suffixes and prefixes, and detectors of special
characters such as dashes and digits". The paper has no list; this one is ours.
"""

from __future__ import annotations

from sslbench.engine.features import TemplateFeaturizer

_LONGEST_AFFIX = 4
_TESTS = ("has_digit", "has_dash", "all_upper", "first_upper")


def pos_adapt() -> TemplateFeaturizer:
    """Part-of-speech tagging across domains: word, neighbors, affixes, four tests of spelling.

    17 state templates; a test gives an attribute for either outcome. The label bigram is the CRF's
    own.
    """
    sizes = range(1, _LONGEST_AFFIX + 1)
    affixes = [f"word.{kind}{n}[0]" for kind in ("prefix", "suffix") for n in sizes]
    window = [f"word[{k}]" for k in (-1, 0, 1)]
    tests = [f"word.{test}[0]" for test in _TESTS]
    return TemplateFeaturizer(["bias", *window, "word.lower[0]", *affixes, *tests])
