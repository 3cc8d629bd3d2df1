"""The gene tagger's features of McDonald & Pereira (2005), without their word lists.

Several of their expressions are only partly legible in the available copies; these follow the usual
definitions.
"""

from __future__ import annotations

import re

import numpy as np

from sslbench.engine.corpus import Corpus, first_tokens
from sslbench.engine.features import TemplateFeaturizer
from sslbench.engine.types import F64

#: tests of a whole word, by the names of their table
PREDICATES: dict[str, re.Pattern[str]] = {
    name: re.compile(expression, re.DOTALL)
    for name, expression in {
        "InitCaps": r"[A-Z].*",
        "InitCapsAlpha": r"[A-Z][a-z]*",
        "AllCaps": r"[A-Z]+",
        "CapsMix": r"[A-Za-z]+",
        "HasDigit": r".*[0-9].*",
        "SingleDigit": r"[0-9]",
        "DoubleDigit": r"[0-9][0-9]",
        "NaturalNumber": r"[0-9]+",
        "RealNumber": r"[-0-9]+[.,]+[0-9.,]+",
        "AlphaNum": r"[A-Za-z0-9]+",
        "Roman": r"[ivxdlcm]+|[IVXDLCM]+",
        "HasDash": r".*-.*",
        "InitDash": r"-.*",
        "EndDash": r".*-",
        "Punctuation": r"[,.;:?!\-+\"']",
    }.items()
}
_OFFSETS = (-1, 0, 1)
_AFFIXES = tuple(f".{kind}{size}" for kind in ("prefix", "suffix") for size in (2, 3, 4))


def gene2005() -> TemplateFeaturizer:
    """Words, affixes of 2 to 4 characters and 15 predicates at -1, 0 and +1, and pairs of words.

    24 state templates, of which one is a constant, and `spelling`; the label bigram is the CRF's
    own.
    """
    window = [f"word{form}[{k}]" for k in _OFFSETS for form in ("", *_AFFIXES)]
    pairs = ["word[-1]|word[0]", "word[0]|word[1]"]
    return TemplateFeaturizer(["bias", *window, *pairs], dense=spelling)


def spelling(corpus: Corpus) -> F64:
    """float64[N, 45] of 0 and 1: `PREDICATES` of the word before, of the word and of the one after.

    Outside of the sentence none holds.
    """
    word = corpus.column("word")
    derived = word.vocabulary.derived("gene2005 spelling", _holding)
    kinds = derived.codes()[word.codes]
    rows = [[int(bit) for bit in text] for text in derived.vocabulary.strings]
    table = np.array([*rows, [0] * len(PREDICATES)], dtype=np.float64)  # the last row: no word
    first = first_tokens(corpus.offsets)
    before = np.where(first, -1, np.roll(kinds, 1))
    after = np.where(np.roll(first, -1), -1, np.roll(kinds, -1))
    windows: F64 = table[np.stack([before, kinds, after], axis=1)]
    return windows.reshape(len(kinds), 3 * len(PREDICATES))


def _holding(word: str) -> str:
    """Return a digit for each predicate: whether it is true."""
    return "".join(str(int(test.fullmatch(word) is not None)) for test in PREDICATES.values())
