"""Template sets: the three of JESS-CM (Suzuki & Isozaki 2008, Table 3), Chinese, any words.

The paper counts [y_s] and [y_{s-1:s}] among its templates. [y_s] is the constant template here;
[y_{s-1:s}] is the CRF's own transition table and no template, so every set holds one template
fewer than the paper's total. In the paper's terms, word is ``wd``, word.lower ``lwd``, word.shape
``wtp``, prefixes and suffixes ``pf``, ``sf``.
"""

from __future__ import annotations

from collections.abc import Iterable

from sslbench.engine.features import TemplateFeaturizer

_WINDOW = range(-2, 3)


def _singles(column: str, offsets: Iterable[int] = _WINDOW) -> list[str]:
    return [f"{column}[{k}]" for k in offsets]


def _bigrams(column: str) -> list[str]:
    """Return neighboring pairs inside the window: (-2,-1), (-1,0), (0,1), (1,2)."""
    return [f"{column}[{k - 1}]|{column}[{k}]" for k in range(-1, 3)]


def _trigram(column: str) -> str:
    return f"{column}[-1]|{column}[0]|{column}[1]"


def _affixes(longest: int) -> list[str]:
    return [f"word.{kind}{n}[0]" for kind in ("prefix", "suffix") for n in range(1, longest + 1)]


def _edges(templates: Iterable[str]) -> list[str]:
    return [f"edge: {template}" for template in templates]


def pos47() -> TemplateFeaturizer:
    """Part-of-speech tagging from words: 37 state and 10 arc templates in the paper's count."""
    shapes = [*_singles("word.shape"), *_bigrams("word.shape")]
    state = ["bias", *_affixes(9), *_singles("word"), *_bigrams("word"), *shapes]
    return TemplateFeaturizer([*state, *_edges(shapes)])


def chunk39() -> TemplateFeaturizer:
    """Chunking from words and pos: 24 state and 15 arc templates in the paper's count."""
    arcs = [*_singles("word"), *_singles("pos"), *_bigrams("pos")]
    pairs = [f"word[{k}]|pos[{k}]" for k in _WINDOW]
    return TemplateFeaturizer(["bias", *pairs, *_bigrams("word"), *arcs, *_edges(arcs)])


def ner79() -> TemplateFeaturizer:
    """Named entities from words and pos: 45 state and 34 arc templates in the paper's count."""
    classes = ("pos", "word.shape")
    trigrams = [_trigram(column) for column in classes]
    singles = [t for column in ("word.lower", *classes) for t in _singles(column)]
    bigrams = [t for column in classes for t in _bigrams(column)]
    arcs = [*singles, *bigrams, *trigrams, *_affixes(4)]
    bags = ["bag: word[-4..-1]", "bag: word[1..4]"]
    state = ["bias", *_singles("word"), *_bigrams("word.lower"), *bags, *arcs]
    return TemplateFeaturizer([*state, *_edges(arcs)])


def basic() -> TemplateFeaturizer:
    """Any task with words alone: words, lower case, shapes, their bigrams, affixes up to 4."""
    return TemplateFeaturizer(
        [
            "bias",
            *_singles("word"),
            *_bigrams("word"),
            *_singles("word.lower", range(-1, 2)),
            *_singles("word.shape"),
            *_bigrams("word.shape"),
            *_affixes(4),
        ]
    )


def zh_char() -> TemplateFeaturizer:
    """Chinese characters: C_-2..C_2, neighboring pairs, C_-1 C_1, and the types T_-2..T_2 at once.

    Source: Zeng et al. 2013, table 1, and C_-1 C_1 of Ng & Low 2004. T is digit, letter with a
    case, punctuation or other (three tests, full-width forms included); their class of date
    characters is not told apart. The label bigram is the CRF's own.
    """
    tests = ("first_digit", "lower.first_lower", "first_punct")
    types = "|".join(f"word.{test}[{k}]" for k in _WINDOW for test in tests)
    return TemplateFeaturizer(
        ["bias", *_singles("word"), *_bigrams("word"), "word[-1]|word[1]", types]
    )
