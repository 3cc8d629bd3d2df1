"""Label codecs: models are trained on labels that encode more than the tags of the corpus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from sslbench.engine.corpus.columns import Column, Corpus, Vocabulary, first_tokens
from sslbench.engine.corpus.encodings import split_tag, tag_fits
from sslbench.engine.errors import UserError
from sslbench.engine.types import Bool

_OUTSIDE = "O"
_BAR = "|"


class LabelCodec(Protocol):
    """Maps tags to labels and back.

    The constructor takes the tags of the labeled sample.

    Attributes
    ----------
    labels: the labels that models are trained on.
    tags: the tag of each label.
    transition_mask: bool[L + 1, L], which label may follow which; row L: which may begin a
        sentence.

    Optional: ``backoff``, whether attributes have a weight for each tag beside that of each label.
    """

    labels: tuple[str, ...]
    tags: tuple[str, ...]
    transition_mask: Bool

    def encode(self, corpus: Corpus) -> Corpus:
        """A copy with labels in place of tags; unseen tags become labels outside `labels`."""


class PreviousType:
    """The second-order encoding of named entities: pairs (type of the previous tag, tag).

    A first-order chain over these labels knows the entity type of the previous token when it scores
    a transition. Sha & Pereira (2003) encode the whole previous tag. The type of O, and before a
    sentence, is O. Four types give the 29 labels of Suzuki & Isozaki (2008): 5 pairs (p, O), 20
    pairs (p, B-X) and 4 pairs (X, I-X).

    Parameters
    ----------
    tags: IOB2 tags; UserError for others. There are labels for all pairs of these tags, so every
        legal tag sequence is one label sequence.
    backoff: see `LabelCodec`; Sha & Pereira have features of the tag beside those of the pair.
    """

    def __init__(self, tags: Sequence[str], backoff: bool = False) -> None:
        self.backoff = backoff
        for tag in tags:
            kind = split_tag(tag)[1]
            if not tag_fits(tag, "IOB2") or (kind in ("", _OUTSIDE) and tag != _OUTSIDE):
                raise UserError(
                    f"label {tag!r} cannot be paired with the type before it",
                    hint="labels must be IOB2 tags with types, and no type may be O",
                )
        inside = [tag for tag in sorted(tags) if tag.startswith("I")]
        begin = sorted({f"B{tag[1:]}" for tag in tags if tag != _OUTSIDE})
        before = [_OUTSIDE, *(_type(tag) for tag in begin)]
        pairs = [(p, tag) for tag in [_OUTSIDE, *begin] for p in before]
        pairs += [(_type(tag), tag) for tag in inside]
        self.labels = tuple(_BAR.join(pair) for pair in pairs)
        self.tags = tuple(tag for _, tag in pairs)
        previous, own = np.array([p for p, _ in pairs]), np.array([_type(t) for _, t in pairs])
        self.transition_mask = np.vstack(
            [own[:, None] == previous[None, :], previous[None, :] == _OUTSIDE]
        )

    def encode(self, corpus: Corpus) -> Corpus:
        """See `LabelCodec`."""
        tag = corpus.column("label")
        n_tags = len(tag.vocabulary)
        types = Vocabulary([_OUTSIDE])
        type_of = types.encode([_type(text) for text in tag.vocabulary.strings])
        previous = np.zeros(corpus.n_tokens, dtype=np.int64)
        previous[1:] = type_of[tag.codes[:-1]]
        previous[first_tokens(corpus.offsets)] = 0
        pairs, codes = np.unique(previous * n_tags + tag.codes, return_inverse=True)
        labels = [
            _BAR.join((types.strings[pair // n_tags], tag.vocabulary.strings[pair % n_tags]))
            for pair in pairs.tolist()
        ]
        return corpus.with_column("label", Column(Vocabulary(labels), codes.astype(np.int32)))


def _type(tag: str) -> str:
    return split_tag(tag)[1] or _OUTSIDE
