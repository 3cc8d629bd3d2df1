"""Chunk and segmentation tags: IOB1, IOB2, IOBES and BMES, to spans, back, and into each other.

A tag is `O`, or a prefix alone (`B`), or a prefix, a hyphen and a type (`B-NP`; the type is all
text after the first hyphen and may hold hyphens, as in conlleval). All four schemes are read by one
rule, so any sequence of legal tags has exactly one reading, however ill-formed it is:

    a token continues the chunk of the token before it iff both are in the same sentence and of the
    same type, its prefix is I, M or E, and the prefix before it is B, I or M.
    Any other token with a prefix other than O starts a chunk.

On IOB1 and IOB2, also mixed, this is what conlleval does. On IOBES and BMES it is the repair rule:
a missing E is supplied where the chunk stops, a stray I, M or E starts a chunk, nothing is dropped;
so in a segmentation without O every token is in exactly one word.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal, NamedTuple, get_args

import numpy as np

from sslbench.corpus.columns import Column, Corpus, Vocabulary, first_tokens
from sslbench.errors import UserError
from sslbench.types import I8, I32, Bool

Scheme = Literal["IOB1", "IOB2", "IOBES", "BMES"]
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)
Task = Literal["tagging", "spans", "segmentation", "joint"]
TASKS: tuple[Task, ...] = get_args(Task)

PREFIXES = "OBIESM"  # their positions are the prefix codes
O, B, I, E, S, M = range(6)  # noqa: E741  (the names of the scheme)
_LEGAL: dict[Scheme, str] = {"IOB1": "OBI", "IOB2": "OBI", "IOBES": "OBIES", "BMES": "OBMES"}


class Span(NamedTuple):
    """Tokens start .. end - 1 of a sentence; `type` is "" for untyped tags."""

    start: int
    end: int
    type: str


def split_tag(tag: str) -> tuple[str, str]:
    """Prefix and type of a tag, split at the first hyphen; the type is "" if there is none."""
    prefix, _, kind = tag.partition("-")
    return prefix, kind


def tag_fits(tag: str, scheme: Scheme) -> bool:
    """Whether `tag` is legal in `scheme`: `O`, a prefix, or prefix-type with a nonempty type."""
    prefix, hyphen, kind = tag.partition("-")
    legal = len(prefix) == 1 and prefix in _LEGAL[scheme]
    return legal and (not hyphen if prefix == "O" else bool(kind) == bool(hyphen))


def describe(scheme: Scheme) -> str:
    """The legal tags of a scheme in words, for messages."""
    return f"{scheme} labels are O and " + ", ".join(f"{p}-TYPE" for p in _LEGAL[scheme][1:])


@dataclass(frozen=True, eq=False)
class TagTable:
    """A label vocabulary taken apart. `prefix`: int8[V]; `type`: int32[V], codes in `types`."""

    prefix: I8
    type: I32
    types: Vocabulary

    @staticmethod
    def of(labels: Sequence[str], scheme: Scheme, types: Vocabulary | None = None) -> TagTable:
        """Take `labels` apart; codes of types come from `types`, which grows (default: a new one).

        Labels that do not fit the scheme get prefix -1: it matters only if they are used.
        """
        _check_scheme(scheme)
        types = Vocabulary([""]) if types is None else types
        parts = [split_tag(label) for label in labels]
        fits = [tag_fits(label, scheme) for label in labels]
        prefix = [PREFIXES.index(p) if ok else -1 for (p, _), ok in zip(parts, fits, strict=True)]
        return TagTable(np.array(prefix, dtype=np.int8), types.encode(t for _, t in parts), types)


@dataclass(frozen=True, eq=False)
class Chunks:
    """Where chunks are, token by token: bool[N] each. `start` and `last` mark the same number."""

    inside: Bool
    start: Bool
    last: Bool


def mark_chunks(prefix: I8, kind: I32, first: Bool) -> Chunks:
    """Apply the reading rule of this module to N tokens.

    prefix: int8[N] prefix codes; kind: int32[N] types; first: bool[N], first token of a sentence.
    """
    inside = prefix != O
    joined = np.zeros(len(prefix), dtype=np.bool_)  # continues the chunk of the token before
    before, here = prefix[:-1], prefix[1:]
    joined[1:] = (
        ~first[1:]
        & (kind[1:] == kind[:-1])
        & ((here == I) | (here == M) | (here == E))
        & ((before == B) | (before == I) | (before == M))
    )
    last = inside.copy()
    last[:-1] &= ~joined[1:]
    return Chunks(inside, inside & ~joined, last)


def _write_prefixes(chunks: Chunks, kind: I32, first: Bool, scheme: Scheme) -> I8:
    """int8[N]: the prefix of each token of these chunks in `scheme`."""
    middle = M if scheme == "BMES" else I
    prefix = np.where(chunks.inside, middle, O).astype(np.int8)
    if scheme == "IOB1":  # B only where a chunk touches one of its own type
        touches = np.zeros_like(first)
        touches[1:] = chunks.inside[:-1] & ~first[1:] & (kind[1:] == kind[:-1])
        prefix[chunks.start & touches] = B
        return prefix
    prefix[chunks.start] = B
    if scheme != "IOB2":
        prefix[chunks.last] = E
        prefix[chunks.start & chunks.last] = S
    return prefix


def _check_scheme(scheme: str) -> None:
    if scheme not in SCHEMES:
        raise UserError(f"unknown chunk encoding {scheme!r}", hint=f"one of {', '.join(SCHEMES)}")


def _read(tags: Sequence[str], scheme: Scheme) -> tuple[TagTable, I32, Chunks]:
    """One sentence: its tags taken apart, the type of each token, its chunks."""
    table = TagTable.of(tags, scheme)
    wrong = np.flatnonzero(table.prefix < 0)
    if len(wrong):
        raise UserError(f"label {tags[wrong[0]]!r} does not fit {scheme}", hint=describe(scheme))
    first = np.zeros(len(tags), dtype=np.bool_)
    first[:1] = True
    return table, table.type, mark_chunks(table.prefix, table.type, first)


def spans_of(tags: Sequence[str], scheme: Scheme) -> list[Span]:
    """The chunks of one sentence, from left to right; UserError on a tag illegal in `scheme`."""
    table, kind, chunks = _read(tags, scheme)
    starts, ends = np.flatnonzero(chunks.start), np.flatnonzero(chunks.last) + 1
    return [
        Span(int(start), int(end), table.types.strings[kind[start]])
        for start, end in zip(starts, ends, strict=True)
    ]


def from_spans(spans: Iterable[Span], length: int, scheme: Scheme) -> list[str]:
    """Tags of a sentence of `length` tokens that holds `spans` (in any order).

    ValueError if a span is empty, reaches outside the sentence, or overlaps another.
    """
    _check_scheme(scheme)
    tags = ["O"] * length
    end_before, type_before = 0, None
    for start, end, kind in sorted(spans):
        if not end_before <= start < end <= length:
            raise ValueError(f"span {start}..{end} overlaps, is empty, or leaves 0..{length}")
        touches = start == end_before and kind == type_before
        prefixes = _span_prefixes(end - start, touches, scheme)
        tags[start:end] = [f"{prefix}-{kind}" if kind else prefix for prefix in prefixes]
        end_before, type_before = end, kind
    return tags


def _span_prefixes(length: int, touches: bool, scheme: Scheme) -> str:
    if scheme == "IOB1":
        return ("B" if touches else "I") + "I" * (length - 1)
    if scheme == "IOB2":
        return "B" + "I" * (length - 1)
    if length == 1:
        return "S"
    return "B" + ("M" if scheme == "BMES" else "I") * (length - 2) + "E"


def to_iob2(tags: Sequence[str], scheme: Scheme) -> list[str]:
    """One sentence in well-formed IOB2; UserError on a tag illegal in `scheme`."""
    return from_spans(spans_of(tags, scheme), len(tags), "IOB2")


def detect_scheme(sentences: Iterable[Sequence[str]]) -> Scheme | None:
    """Which scheme these tag sequences are written in; None if they are not chunk tags.

    None: some tag has a prefix outside O, B, I, E, S, M, or I beside M, or there is nothing but O.
    B and I alone: IOB1 if some chunk starts with I and no B stands where IOB1 would not write it,
    else IOB2 (sequences that are neither are read the same way under both names). E or S without
    I and M: BMES if there is no O, else IOBES.
    """
    sequences = [list(tags) for tags in sentences]
    distinct = set(chain.from_iterable(sequences))
    prefixes = {split_tag(tag)[0] for tag in distinct}
    for scheme in ("IOB2", "IOBES", "BMES"):
        if all(tag_fits(tag, scheme) for tag in distinct):
            break
    else:
        return None
    if not prefixes - {"O"}:
        return None
    if scheme == "IOB2":
        return _detect_iob(sequences)
    return "IOBES" if scheme == "IOBES" and prefixes & {"I", "O"} else "BMES"


def _detect_iob(sequences: Iterable[Sequence[str]]) -> Scheme:
    stray_i = False
    for tags in sequences:
        before, type_before = "O", ""
        for tag in tags:
            prefix, kind = split_tag(tag)
            touches = before != "O" and kind == type_before
            if prefix == "B" and not touches:
                return "IOB2"
            stray_i |= prefix == "I" and not touches
            before, type_before = prefix, kind
    return "IOB1" if stray_i else "IOB2"


def convert_labels(
    corpus: Corpus,
    source: Scheme,
    target: Scheme,
    *,
    column: str = "label",
    vocabulary: Vocabulary | None = None,
) -> Corpus:
    """The corpus with its label column rewritten from `source` into well-formed `target`.

    vocabulary: of the new column; grows; pass the same one for all splits of a dataset (default: a
        new one).
    UserError if a label that occurs does not fit `source`.
    """
    _check_scheme(target)
    old = corpus.column(column)
    table = TagTable.of(old.vocabulary.strings, source)
    prefix = table.prefix[old.codes]
    if len(prefix) and prefix.min() < 0:
        label = old.vocabulary.strings[old.codes[int(np.argmin(prefix))]]
        raise UserError(f"label {label!r} does not fit {source}", hint=describe(source))
    kind, first = table.type[old.codes], first_tokens(corpus.offsets)
    written = _write_prefixes(mark_chunks(prefix, kind, first), kind, first, target)
    # one integer per (type, prefix), and its string only once; the type of a legal O is always ""
    pair = kind * len(PREFIXES) + written
    new = Vocabulary() if vocabulary is None else vocabulary
    used = np.flatnonzero(np.bincount(pair))
    codes = np.zeros(used[-1] + 1 if len(used) else 0, dtype=np.int32)
    codes[used] = new.encode(_tag_text(int(p), table.types) for p in used)
    return corpus.with_column(column, Column(new, codes[pair]))


def _tag_text(pair: int, types: Vocabulary) -> str:
    kind, prefix = divmod(pair, len(PREFIXES))
    text = types.strings[kind]
    return f"{PREFIXES[prefix]}-{text}" if text else PREFIXES[prefix]
