"""Named entities: features that are known to help, all of them from public text.

Words, parts of speech and chunks in a window of two, affixes, spelling (E. F. Tjong Kim Sang and
F. De Meulder, Introduction to the CoNLL-2003 shared task, 2003, list what its systems used), and
how a word is written elsewhere in its document (H. L. Chieu and H. T. Ng, Named entity recognition
with a maximum entropy approach, 2003). No lists of names.
"""

from __future__ import annotations

from sslbench.engine.features import TemplateFeaturizer

_WINDOW = range(-2, 3)
_NEXT = range(-1, 2)
_AFFIXES = ("prefix", "suffix")


def ner_doc() -> TemplateFeaturizer:
    """State templates of `word` and `cased`, `pos`, `chunk` and `case`, without arc templates."""
    columns = ("cased", "cased.lower", "pos", "cased.shape", "cased.compressed")
    window = [f"{column}[{k}]" for column in columns for k in _WINDOW]
    pairs = [
        f"{column}[{k - 1}]|{column}[{k}]"
        for column in ("cased.lower", "pos", "cased.shape")
        for k in range(-1, 3)
    ]
    affixes = [f"cased.{kind}{n}[0]" for kind in _AFFIXES for n in range(1, 7)]
    affixes += [f"cased.{kind}{n}[{k}]" for k in (-1, 1) for kind in _AFFIXES for n in (3, 4)]
    with_shape = [f"cased.lower[{k}]|cased.shape[0]" for k in _NEXT]
    chunks = [f"chunk[{k}]" for k in _NEXT]
    document = [f"case[{k}]" for k in _NEXT]
    document += ["word[0]", "word.shape[0]", "case[0]|cased.shape[0]"]
    return TemplateFeaturizer(["bias", *window, *pairs, *affixes, *with_shape, *chunks, *document])
