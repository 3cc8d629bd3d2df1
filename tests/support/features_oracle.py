"""The features spelled out, one token and one string at a time: written for clarity, not speed."""

from __future__ import annotations

from collections import Counter

import numpy as np

from sslbench.engine.corpus import Column, Corpus, Vocabulary
from sslbench.engine.features import Template, word_type

Value = tuple[object, ...]

# words that look like pads, separators and markers must not be mistaken for them
WORDS = ["the", "The", "of", "a", "_B-1", "_E+1", "|", "<short>", "1996", "U.S.", "éÉ", "bias"]
POS = ["DT", "NN", "_B-1", "."]


def corpus_of(sentences: list[list[tuple[str, str]]], vocabularies=None) -> Corpus:
    """A corpus with columns word and pos."""
    vocabularies = vocabularies or {"word": Vocabulary(), "pos": Vocabulary()}
    tokens = [token for sentence in sentences for token in sentence]
    columns = {
        name: Column(vocabularies[name], vocabularies[name].encode(token[i] for token in tokens))
        for i, name in enumerate(("word", "pos"))
    }
    return Corpus(columns, np.cumsum([0, *map(len, sentences)]))


def random_sentences(seed: int, n: int = 30, words: list[str] = WORDS) -> list:
    """Sentences of 1 to 7 tokens; about a third hold a single token."""
    rng = np.random.default_rng(seed)
    lengths = np.where(rng.random(n) < 0.33, 1, rng.integers(1, 8, n))
    return [
        [(words[rng.integers(len(words))], POS[rng.integers(len(POS))]) for _ in range(length)]
        for length in lengths
    ]


def derive(value: str, name: str) -> str:
    for operation in name.split(".")[1:]:
        if operation == "lower":
            value = value.lower()
        elif operation == "shape":
            value = word_type(value)
        else:
            n = int(operation[6:])
            affix = value[:n] if operation.startswith("prefix") else value[len(value) - n :]
            value = affix if len(value) >= n else "<short>"
    return value


def read(sentence: list[tuple[str, str]], column: str, t: int) -> tuple[str, object]:
    """('in', value), ('pad', -1) one position left of the sentence, ('pad', 1) one right of it."""
    if t < 0:
        return ("pad", t)
    if t >= len(sentence):
        return ("pad", t - len(sentence) + 1)
    return ("in", derive(sentence[t][0 if column.split(".")[0] == "word" else 1], column))


def slots(template: Template, sentence: list[tuple[str, str]], t: int) -> list[Value | None]:
    """What the template sees at token t: one value, or one per bag position (None outside)."""
    if template.bag is None:
        return [tuple(read(sentence, a.column, t + a.offset) for a in template.atoms)]
    window = range(template.bag[0], template.bag[1] + 1)
    values = [read(sentence, template.atoms[0].column, t + k) for k in window]
    return [(value,) if value[0] == "in" else None for value in values]


def fired(template: Template, sentence: list[tuple[str, str]], t: int) -> list[Value | None]:
    """As `slots`, a value that was already there replaced by None: the attributes of a CRF."""
    values = slots(template, sentence, t)
    return [v if v not in values[:i] else None for i, v in enumerate(values)]


def counts(template: Template, sentences: list) -> Counter[Value]:
    """Occurrences of the template's attributes."""
    return Counter(
        value
        for sentence in sentences
        for t in range(len(sentence))
        for value in fired(template, sentence, t)
        if value is not None
    )


def text(value: Value) -> str:
    """A value as the alphabet shows it."""
    parts = []
    for kind, what in value:
        parts.append(what if kind == "in" else f"_B{what}" if what < 0 else f"_E+{what}")
    return "|".join(parts)
