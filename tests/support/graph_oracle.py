"""Vertices, context features and their weights, computed with strings and dictionaries.

The template sets are defined a second time, as functions of the five words around a token, so that
an error in either copy fails a test.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from math import log

import numpy as np

from sslbench.engine.graph.forms import form_of
from sslbench.engine.graph.words import ngram_offsets

PADS = ("<<s2>>", "<<s1>>", "<</s1>>", "<</s2>>")  # no word below has this form

WORDS = [
    *("the", "The", "THE", "of", "a", "<s1>", "</s1>", "<num>", "1996", "1.5", "1,200", "1.", "x1"),
    *(",", ".", "...", "--", "running", "walking", "sing", "ring", "king", "Sing", "ing", "is"),
]
#: docs/specs/graph.md, oracles G1 to G3: how often each of five types has each of five features
COUNTS = np.array(
    [[4, 0, 2, 0, 1], [3, 1, 2, 0, 0], [0, 5, 0, 1, 1], [0, 1, 0, 3, 0], [0, 0, 0, 0, 2]]
)
#: the cosines of the types
G2 = {
    (0, 1): 0.8782378917,
    (0, 2): 0.0057266415,
    (0, 4): -0.0758313316,
    (1, 2): -0.4332989965,
    (1, 3): 0.0203648306,
    (2, 3): -0.1218990555,
    (2, 4): -0.0755181452,
    (0, 3): 0.0,
    (1, 4): 0.0,
    (3, 4): 0.0,
}
CHARACTERS = [*"中文字人二十3，。a你我", chr(0xFF15), chr(0xFF21), "€"]  # full-width 5 and A


def random_sentences(seed: int, n: int = 40, words: list[str] = WORDS) -> list[list[str]]:
    """Sentences of 0 to 7 words, the first words of the list more often; many of one word."""
    rng = np.random.default_rng(seed)
    lengths = np.where(rng.random(n) < 0.3, 1, rng.integers(0, 8, n))
    share = 1 / np.arange(2, len(words) + 2)
    return [list(rng.choice(words, length, p=share / share.sum())) for length in lengths]


def number(word):
    return "<num>" if re.match(r"^([0-9]+|[0-9]+\.[0-9]+|[0-9]+[0-9,]+)$", word) else word


def suffix(word, suffixes):
    listed = [word[-n:] for n in range(2, len(word)) if word[-n:] in suffixes]
    return "" if word in PADS else max(listed, key=len, default="")


def kind(character):
    if character in PADS:
        return "pad"
    if character in "中文字人你我":
        return "other"
    if character in ("二", "十", "3", chr(0xFF15)):
        return "number"
    return "letter" if character in ("a", chr(0xFF21)) else "punctuation"


def table1(x1, x2, x3, x4, x5):
    yield from (("ctx", x1, x2, x3, x4, x5), ("tri", x2, x3, x4), ("left", x1, x2))
    yield from (("right", x4, x5), ("center", x3), ("around", x2, x4))
    yield from (("l+rc", x2, x4, x5), ("lc+r", x1, x2, x4))


def subramanya2010(x, _):
    yield from table1(*x)
    yield from (("has suffix", x[2][-n:]) for n in (1, 2, 3) if len(x[2]) > n)


def zeng2013(x, _):
    yield from table1(*x)
    yield ("type", kind(x[1]), kind(x[2]), kind(x[3]))


def he2013(x, suffixes):
    w = [word if word in PADS else number(word.lower()) for word in x]
    for places in HE2013_WORDS:
        yield (places, *(w[int(place)] for place in places))
    yield ("next", suffix(w[3], suffixes), w[2])
    yield ("previous", suffix(w[1], suffixes), w[2])


def plain(word):
    return word


def nothing(_):
    return False


def he2013_excludes(word):
    return all(c in ".,!?:;" for c in word)


#: positions of the words in the templates of he2013 without a suffix, from 0
HE2013_WORDS = (
    *("12", "13", "23", "2", "0134", "012", "023"),
    *("024", "124", "234", "01", "02", "24", "34"),
)

#: features of a window, form of the vertices, words that are none
SETS = {
    "subramanya2010": (subramanya2010, plain, nothing),
    "he2013": (he2013, number, he2013_excludes),
    "zeng2013": (zeng2013, plain, nothing),
}


def windows(sentences):
    """The five words around every token."""
    for sentence in sentences:
        padded = [*PADS[:2], *sentence, *PADS[2:]]
        yield from (padded[i : i + 5] for i in range(len(sentence)))


def firings(name, sentences, suffixes):
    """(trigram, features) of every token that is not excluded."""
    features, form, excludes = SETS[name]
    for x in windows(sentences):
        if not excludes(x[2]):
            trigram = tuple(w if w in PADS else form(w) for w in x[1:4])
            yield trigram, list(features(x, suffixes))


def weights(name, sentences, more=(), suffixes=frozenset()):
    """trigram -> feature -> pmi, for the trigrams of `sentences`; `more` is counted, too."""
    wanted = {trigram for trigram, _ in firings(name, sentences, suffixes)}
    types, marginal, joint, total = Counter(), Counter(), defaultdict(Counter), 0
    for trigram, features in firings(name, [*sentences, *more], suffixes):
        total += 1
        types[trigram] += 1
        for feature in features:
            marginal[feature] += 1
            joint[trigram][feature] += 1
    return {
        t: {f: log(total * c / (types[t] * marginal[f])) for f, c in joint[t].items()}
        for t in wanted
    }


def dense(vectors, order):
    """float64[V, F] of the vectors in that order of their types."""
    features = sorted({feature for vector in vectors.values() for feature in vector})
    return np.array([[vectors[t].get(f, np.nan) for f in features] for t in order])


def vertex_text(text, vertices, v):
    """The words of vertex v: ``("<s1>", "the", "cat")``."""
    token = int(vertices.first[v])
    sentence = int(np.searchsorted(text.offsets, token, "right")) - 1
    begin, end = text.offsets[sentence], text.offsets[sentence + 1]
    column, form = text.column(vertices.column), form_of(vertices.form)

    def at(place):
        if place < begin:
            return f"<s{begin - place}>"
        if place >= end:
            return f"</s{place - end + 1}>"
        return form(column.vocabulary.strings[column.codes[place]])

    return tuple(at(token + offset) for offset in ngram_offsets(vertices.n))


def trigram_names(text, vertices):
    """The trigram of every vertex as the oracle writes it."""
    pads = {"<s1>": PADS[1], "</s1>": PADS[2]}
    names = []
    for v, token in enumerate(vertices.first):
        words = list(vertex_text(text, vertices, v))
        border = np.searchsorted(text.offsets, token, "right")
        if token == text.offsets[border - 1]:
            words[0] = pads[words[0]]
        if token == text.offsets[border] - 1:
            words[2] = pads[words[2]]
        names.append(tuple(words))
    return names
