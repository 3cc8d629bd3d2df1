"""Label codecs: labels that a model is trained on in place of the tags of a corpus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from sslbench.corpus.columns import Column, Corpus, Vocabulary, first_tokens
from sslbench.corpus.encodings import split_tag, tag_fits
from sslbench.errors import UserError
from sslbench.types import Bool

_OUTSIDE = "O"
_BAR = "|"


class LabelCodec(Protocol):
    """Maps tags to labels and back; made from the tags of the labeled sample.

    Attributes
    ----------
    labels: that a model is trained on.
    tags: the tag that each of `labels` stands for.
    transition_mask: bool[L + 1, L], which label may follow which (row L: which may begin a
    sentence).
    """

    labels: tuple[str, ...]
    tags: tuple[str, ...]
    transition_mask: Bool

    def encode(self, corpus: Corpus) -> Corpus:
        """Put labels in the place of tags; a tag not seen before gives a label not in `labels`."""


class PreviousType:
    """The second-order encoding of named entities: (type of the tag before, tag).

    A first-order chain over these labels knows which type of entity the token before was in when
    it scores an arc, as a second-order chain would; Sha and Pereira (2003) have the whole tag
    before. The type before a sentence, and of O, is O. Four types give the 29 labels of Suzuki
    and Isozaki (2008): (p, O) 5 times, (p, B-X) 20 times, (X, I-X) 4 times.

    Parameters
    ----------
    tags: IOB2 tags; UserError for others. All labels over them exist, realised or not, so that
        every legal path over tags has one path over labels and none ends early.
    """

    def __init__(self, tags: Sequence[str]) -> None:
        for tag in tags:
            kind = split_tag(tag)[1]
            if not tag_fits(tag, "IOB2") or (kind in ("", _OUTSIDE) and tag != _OUTSIDE):
                raise UserError(
                    f"label {tag!r} cannot be paired with the type before it",
                    hint="the labels have to be IOB2 with types, none of them called O",
                )
        inside = [tag for tag in sorted(tags) if tag.startswith("I")]
        begin = sorted({f"B{tag[1:]}" for tag in tags if tag != _OUTSIDE})
        before = [_OUTSIDE, *(_type(tag) for tag in begin)]
        pairs = [(p, tag) for tag in [_OUTSIDE, *begin] for p in before]
        pairs += [(_type(tag), tag) for tag in inside]
        self.labels = tuple(_BAR.join(pair) for pair in pairs)
        self.tags = tuple(tag for _, tag in pairs)
        left, here = np.array([p for p, _ in pairs]), np.array([_type(t) for _, t in pairs])
        self.transition_mask = np.vstack(
            [here[:, None] == left[None, :], left[None, :] == _OUTSIDE]
        )

    def encode(self, corpus: Corpus) -> Corpus:
        """See `LabelCodec`."""
        old = corpus.column("label")
        kinds = Vocabulary([_OUTSIDE])
        table = kinds.encode([_type(tag) for tag in old.vocabulary.strings])
        before = np.zeros(corpus.n_tokens, dtype=np.int64)
        before[1:] = table[old.codes[:-1]]
        before[first_tokens(corpus.offsets)] = 0
        pairs, codes = np.unique(before * len(old.vocabulary) + old.codes, return_inverse=True)
        names = [
            _BAR.join((kinds.strings[pair // len(old.vocabulary)], old.vocabulary.strings[tag]))
            for pair in pairs.tolist()
            for tag in [pair % len(old.vocabulary)]
        ]
        return corpus.with_column("label", Column(Vocabulary(names), codes.astype(np.int32)))


def _type(tag: str) -> str:
    return split_tag(tag)[1] or _OUTSIDE
