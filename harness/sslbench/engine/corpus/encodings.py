"""Chunk and segmentation tags in IOB1, IOB2, IOBES and BMES: reading, conversion, detection.

A tag is `O`, or a prefix alone (`B`), or a prefix, a hyphen and a type (`B-NP`). The type is the
text after the first hyphen and may contain hyphens, as in conlleval. One definition covers all four
schemes and gives every sequence of legal tags, well-formed or not, one sequence of chunks:

    A token continues the chunk of the previous token iff both are in the same sentence and have the
    same type, its prefix is I, M or E, and the previous prefix is B, I or M.
    Any other token with a prefix other than O starts a chunk.

For IOB1 and IOB2, also mixed, this agrees with conlleval. In IOBES and BMES, a chunk without E ends
where it stops, and an I, M or E without a chunk before it starts one. So in a segmentation without
O every token is in exactly one word.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal, get_args

import numpy as np

from sslbench.engine.corpus.columns import Column, Corpus, Vocabulary, first_tokens
from sslbench.engine.errors import UserError
from sslbench.engine.types import I8, I32, Bool

Scheme = Literal["IOB1", "IOB2", "IOBES", "BMES"]
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)
Task = Literal["tagging", "spans", "segmentation", "joint"]

PREFIXES = "OBIESM"  # a prefix code is an index into this string
O, B, I, E, S, M = range(6)  # noqa: E741
_LEGAL: dict[Scheme, str] = {"IOB1": "OBI", "IOB2": "OBI", "IOBES": "OBIES", "BMES": "OBMES"}


def split_tag(tag: str) -> tuple[str, str]:
    """Prefix and type of a tag, split at the first hyphen; the type is "" if there is none."""
    prefix, _, chunk_type = tag.partition("-")
    return prefix, chunk_type


def tag_fits(tag: str, scheme: Scheme) -> bool:
    """Whether `tag` is legal in `scheme`: `O`, a prefix, or prefix-type with a nonempty type."""
    prefix, hyphen, chunk_type = tag.partition("-")
    legal = len(prefix) == 1 and prefix in _LEGAL[scheme]
    return legal and (not hyphen if prefix == "O" else bool(chunk_type) == bool(hyphen))


def describe(scheme: Scheme) -> str:
    """Return the legal tags of a scheme, for messages."""
    return f"{scheme} labels are O and " + ", ".join(f"{p}-TYPE" for p in _LEGAL[scheme][1:])


@dataclass(frozen=True, eq=False)
class TagTable:
    """Prefixes and types of a vocabulary of V tags.

    Attributes
    ----------
    prefix: int8[V], index into PREFIXES; -1 for a tag that is not legal in the scheme.
    type: int32[V], code in `types`.
    """

    prefix: I8
    type: I32
    types: Vocabulary

    @classmethod
    def from_tags(
        cls, tags: Sequence[str], scheme: Scheme, types: Vocabulary | None = None
    ) -> TagTable:
        """Split `tags`.

        types: used and extended. Default: a new vocabulary.
        Raises UserError for an unknown scheme.
        """
        _check_scheme(scheme)
        types = Vocabulary([""]) if types is None else types
        parts = [split_tag(tag) for tag in tags]
        legal = [tag_fits(tag, scheme) for tag in tags]
        prefix = [PREFIXES.index(p) if ok else -1 for (p, _), ok in zip(parts, legal, strict=True)]
        return cls(np.array(prefix, dtype=np.int8), types.encode(t for _, t in parts), types)


@dataclass(frozen=True, eq=False)
class Chunks:
    """Which of N tokens are inside, first and last in a chunk: bool[N] each."""

    inside: Bool
    start: Bool
    last: Bool


def mark_chunks(prefix: I8, types: I32, first: Bool) -> Chunks:
    """Return the chunks of N tokens, by the definition of this module.

    prefix: int8[N], prefix codes.
    types: int32[N], codes of types.
    first: bool[N], whether a token is the first of its sentence.
    """
    inside = prefix != O
    continues = np.zeros(len(prefix), dtype=np.bool_)
    previous, own = prefix[:-1], prefix[1:]
    continues[1:] = (
        ~first[1:]
        & (types[1:] == types[:-1])
        & ((own == I) | (own == M) | (own == E))
        & ((previous == B) | (previous == I) | (previous == M))
    )
    last = inside.copy()
    last[:-1] &= ~continues[1:]
    return Chunks(inside, inside & ~continues, last)


def _write_prefixes(chunks: Chunks, types: I32, first: Bool, scheme: Scheme) -> I8:
    """Return int8[N]: the prefix of each token of these chunks in `scheme`."""
    middle = M if scheme == "BMES" else I
    prefix = np.where(chunks.inside, middle, O).astype(np.int8)
    if scheme == "IOB1":  # B only directly after a chunk of the same type
        adjacent = np.zeros_like(first)
        adjacent[1:] = chunks.inside[:-1] & ~first[1:] & (types[1:] == types[:-1])
        prefix[chunks.start & adjacent] = B
        return prefix
    prefix[chunks.start] = B
    if scheme != "IOB2":
        prefix[chunks.last] = E
        prefix[chunks.start & chunks.last] = S
    return prefix


def _check_scheme(scheme: str) -> None:
    if scheme not in SCHEMES:
        raise UserError(f"unknown chunk encoding {scheme!r}", hint=f"one of {', '.join(SCHEMES)}")


def detect_scheme(sentences: Iterable[Sequence[str]]) -> Scheme | None:
    """Return the scheme of tag sequences, None if they are not chunk tags.

    None: some tag is illegal in all schemes, I and M are mixed, or all tags are O.
    Prefixes B and I only: IOB1 if some chunk starts with I and every B is one that IOB1 writes,
    else IOB2. (Both have the same chunks.)
    E or S without I and M: BMES if there is no O, else IOBES.
    """
    sequences = [list(tags) for tags in sentences]
    tags = set(chain.from_iterable(sequences))
    prefixes = {split_tag(tag)[0] for tag in tags}
    for scheme in ("IOB2", "IOBES", "BMES"):
        if all(tag_fits(tag, scheme) for tag in tags):
            break
    else:
        return None
    if not prefixes - {"O"}:
        return None
    if scheme == "IOB2":
        return _detect_iob(sequences)
    return "IOBES" if scheme == "IOBES" and prefixes & {"I", "O"} else "BMES"


def _detect_iob(sequences: Iterable[Sequence[str]]) -> Scheme:
    chunk_starts_with_i = False
    for tags in sequences:
        previous, previous_type = "O", ""
        for tag in tags:
            prefix, chunk_type = split_tag(tag)
            adjacent = previous != "O" and chunk_type == previous_type
            if prefix == "B" and not adjacent:
                return "IOB2"
            chunk_starts_with_i |= prefix == "I" and not adjacent
            previous, previous_type = prefix, chunk_type
    return "IOB1" if chunk_starts_with_i else "IOB2"


def convert_labels(
    corpus: Corpus,
    source: Scheme,
    target: Scheme,
    *,
    column: str = "label",
    vocabulary: Vocabulary | None = None,
) -> Corpus:
    """Return the corpus with its labels converted from `source` into well-formed `target`.

    vocabulary: of the new column; used and extended, for splits to share. Default: a new one.
    Raises UserError for an unknown scheme and for a label that is not legal in `source`.
    """
    _check_scheme(target)
    old = corpus.column(column)
    table = TagTable.from_tags(old.vocabulary.strings, source)
    prefix = table.prefix[old.codes]
    if len(prefix) and prefix.min() < 0:
        label = old.vocabulary.strings[old.codes[int(np.argmin(prefix))]]
        raise UserError(f"label {label!r} does not fit {source}", hint=describe(source))
    types, first = table.type[old.codes], first_tokens(corpus.offsets)
    written = _write_prefixes(mark_chunks(prefix, types, first), types, first, target)
    # one integer per (type, prefix), written as a string once; the type of O is always ""
    pair = types * len(PREFIXES) + written
    new = Vocabulary() if vocabulary is None else vocabulary
    used = np.flatnonzero(np.bincount(pair))
    codes = np.zeros(used[-1] + 1 if len(used) else 0, dtype=np.int32)
    codes[used] = new.encode(_tag_text(int(code), table.types) for code in used)
    return corpus.with_column(column, Column(new, codes[pair]))


def _tag_text(pair: int, types: Vocabulary) -> str:
    chunk_type, prefix = divmod(pair, len(PREFIXES))
    text = types.strings[chunk_type]
    return f"{PREFIXES[prefix]}-{text}" if text else PREFIXES[prefix]
