"""Scores counted in sets and line by line: oracles of the scorer."""

from __future__ import annotations

import numpy as np

Spans = list[tuple[int, int]]  # first and last token in the sentence


def count_answers(gold: Spans, predicted: Spans, others: Spans) -> tuple[int, int]:
    """Names found and false positives of a sentence: upstream's scorer, in sets."""
    result = sum(
        any(p == g or (p in others and p[0] <= g[1] and g[0] <= p[1]) for p in predicted)
        for g in gold
    )
    return result, sum(p not in gold and p not in others for p in predicted)


Sentences = list[list[str]]


def parts(tag: str) -> tuple[str, str]:
    prefix, hyphen, kind = tag.partition("-")
    return (prefix, kind) if hyphen else (tag, "")


def chunk_ends(before: tuple[str, str], here: tuple[str, str]) -> bool:
    (p, p_type), (t, t_type) = before, here
    return (
        (p in "BI" and t in "BO")
        or (p == "E" and t in "EIO")
        or (p not in "O." and p_type != t_type)
        or p in "[]"
    )


def chunk_starts(before: tuple[str, str], here: tuple[str, str]) -> bool:
    (p, p_type), (t, t_type) = before, here
    return (
        (p in "BIO" and t == "B")
        or (p == "O" and t in "IE")
        or (p == "E" and t in "EI")
        or (t not in "O." and p_type != t_type)
        or t in "[]"
    )


def conlleval(gold: Sentences, predicted: Sentences) -> tuple[int, int, int, int]:
    """Chunks in gold, found, correct; correct tags."""
    n_gold = n_found = n_correct = tags = 0
    inside = False
    g_last = p_last = ("O", "")
    for g_tags, p_tags in zip(gold, predicted, strict=True):
        lines = [*zip(map(parts, g_tags), map(parts, p_tags), strict=True), (("O", ""), ("O", ""))]
        for position, (g, p) in enumerate(lines):
            g_ends, p_ends = chunk_ends(g_last, g), chunk_ends(p_last, p)
            if inside and g_ends and p_ends and g_last[1] == p_last[1]:
                inside = False
                n_correct += 1
            elif inside and (g_ends != p_ends or g[1] != p[1]):
                inside = False
            g_starts, p_starts = chunk_starts(g_last, g), chunk_starts(p_last, p)
            inside |= g_starts and p_starts and g[1] == p[1]
            n_gold += g_starts
            n_found += p_starts
            tags += g == p and position < len(g_tags)
            g_last, p_last = g, p
    return n_gold, n_found, n_correct + inside, tags


def coded(sentences: Sentences, order: int = 1) -> tuple[list[str], np.ndarray]:
    """Labels in sorted (or reversed) order, and codes."""
    flat = [tag for tags in sentences for tag in tags]
    names = sorted(set(flat))[::order]
    return names, np.array([names.index(tag) for tag in flat], dtype=np.int32)


def plain(text: str) -> Sentences:
    return [sentence.split() for sentence in text.split("/")]
