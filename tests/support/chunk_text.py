"""Files of words and chunk tags."""

from __future__ import annotations

import numpy as np

from support.chunks import Span, from_spans


def chunks(n: int, scheme: str, separator: str = " ", seed: int = 0) -> str:
    """Sentences of words and chunk tags; the word nearly always determines the chunk."""
    rng = np.random.default_rng(seed)
    blocks = []
    for _ in range(n):
        words: list[str] = []
        spans = []
        for _ in range(rng.integers(1, 4)):
            words += ["out"] * int(rng.integers(0, 3))
            length = int(rng.integers(1, 4))
            spans.append(Span(len(words), len(words) + length, "NP"))
            words += ["the", *(f"n{k}" for k in rng.integers(0, 9, size=length - 1))]
        tags = from_spans(spans, len(words), scheme)
        blocks.append("\n".join(map(separator.join, zip(words, tags, strict=True))))
    return "\n\n".join(blocks) + "\n"
