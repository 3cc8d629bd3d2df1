"""Handwritten letters: the lit pixels of each letter, and of its neighbors in the word.

Source: He et al. (2013). Their pixel-on indicators at offsets -1, 0 and +1 are dense columns here,
which get a weight for every label.
"""

from __future__ import annotations

import re

import numpy as np

from sslbench.engine.corpus import Corpus, first_tokens
from sslbench.engine.errors import UserError
from sslbench.engine.features import TemplateFeaturizer
from sslbench.engine.types import F64

N_PIXELS = 128
N_DIGITS = N_PIXELS // 4
#: what a lit pixel counts in `pixels3_discounted`. The paper's release divides the transition
#: features that fire in the labeled sample, seven for each letter and for the end of each word, by
#: the pixels that do: 0.1007 to 0.1048 in the ten samples of two copies of each spelling.
DISCOUNT = 0.103

_IMAGE = re.compile(f"[0-9a-f]{{{N_DIGITS}}}")


def pixels() -> TemplateFeaturizer:
    """Return a constant template, and the pixels of the column ``image`` as 128 dense columns."""
    return TemplateFeaturizer(["bias"], dense=images)


def pixels3() -> TemplateFeaturizer:
    """As `pixels`, with those of the letter before and of the letter after: 384 dense columns."""
    return TemplateFeaturizer(["bias"], dense=windows)


def pixels3_discounted() -> TemplateFeaturizer:
    """As `pixels3`, a lit pixel being `DISCOUNT`.

    A letter has some 77 lit pixels in its window, and seven transition features. Were they worth
    the same, the pixels of a small sample would explain everything, and the trainer would find no
    use for the order of the letters.
    """
    return TemplateFeaturizer(["bias"], dense=discounted)


def discounted(corpus: Corpus) -> F64:
    """Return float64[N, 384]: `windows` times `DISCOUNT`."""
    return DISCOUNT * windows(corpus)


def windows(corpus: Corpus) -> F64:
    """float64[N, 384]: `images` of the letter before, the letter and the one after; 0 outside."""
    here = images(corpus)
    first = np.append(first_tokens(corpus.offsets), True)
    both = np.zeros((len(here), 3, N_PIXELS))
    both[1:, 0] = here[:-1]
    both[:, 1] = here
    both[:-1, 2] = here[1:]
    both[first[:-1], 0] = 0.0
    both[first[1:], 2] = 0.0
    return both.reshape(len(here), 3 * N_PIXELS)


def images(corpus: Corpus) -> F64:
    """Return float64[N, 128] of 0 and 1: the pixels of the column ``image``, row by row.

    UserError when an image is not 32 lower-case hexadecimal digits, two for each row of 8 pixels.
    """
    column = corpus.column("image")
    # Once for each image that occurs: a vocabulary may be far larger than a piece of text.
    used, inverse = np.unique(column.codes, return_inverse=True)
    strings = [column.vocabulary.strings[code] for code in used.tolist()]
    for text in strings:
        if not _IMAGE.fullmatch(text):
            raise UserError(
                f"image {text!r} is not {N_DIGITS} lower-case hexadecimal digits",
                hint="write each of the 16 rows of 8 pixels as two digits",
            )
    packed = np.frombuffer(bytes.fromhex("".join(strings)), np.uint8)
    bits = np.unpackbits(packed).reshape(-1, N_PIXELS)
    return bits[inverse].astype(np.float64)
