"""Segmented text, from characters to words and back.

A text of characters has one token per character in the column "word", and labels B, M, E, S, with
"-tag" where words have tags ("B-NN").  A text of words has one token per word, in the same
sentences.  Ill-formed labels are read by the rule of `sslbench.engine.corpus.encodings`: a word
starts at B and S, after E and S, where the tag changes and where a sentence begins; its tag is that
of its first character.  No Python string is made per token: only of distinct words.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from sslbench.engine.corpus import Column, Corpus, Vocabulary
from sslbench.engine.errors import UserError
from sslbench.engine.graph.words import packed
from sslbench.engine.types import I32, I64, Bool
from sslbench.experiment.inputs.problem import Problem
from sslbench.experiment.metrics.chunks import ChunkList, find_chunks

#: places of a character in its word, and their codes: begin, middle, end, single
BORDERS = ("B", "M", "E", "S")
_BEGIN, _MIDDLE, _END, _SINGLE = range(4)
#: words of this many characters and more are of one length
LONGEST = 4
_DATE = frozenset("年月日时分秒")


def border_mask() -> Bool:
    """Return bool[5, 4], which border may follow which (last row: START), for `BORDERS`.

    The end of a sentence cannot be masked: what ends in B or M is repaired.
    """
    opening = np.array([True, False, False, True])
    inside = np.array([True, True, False, False])
    return np.vstack([np.where(inside[:, None], ~opening, opening), opening])


def character_class(character: str) -> str:
    """N number (Chinese numerals too), D date, L letter with a case, P punctuation, O other.

    Source: Ng & Low 2004 (as Zeng et al. 2013 use them), who have no class for punctuation; the
    featurizer zh_char has one, and what is compared should know the same.
    """
    if character in _DATE:
        return "D"
    if character.isnumeric():
        return "N"
    if character.lower() != character.upper():
        return "L"
    return "P" if unicodedata.category(character[:1] or " ").startswith("P") else "O"


def length_class(word: str) -> str:
    """1, 2, 3 or 4+ characters."""
    return str(len(word)) if len(word) < LONGEST else f"{LONGEST}+"


def class_pattern(word: str) -> str:
    """Return classes of the characters, runs of one class written once: "1998年" is ND."""
    return "".join(kind for kind, _ in groupby(map(character_class, word)))


def with_derived(text: Corpus, name: str, fn: Callable[[str], str]) -> Corpus:
    """The text with a column `name` more, `fn` of the column "word", called once per distinct
    word.
    """
    word = text.column("word")
    derived = word.vocabulary.derived(name, fn)
    return text.with_column(name, Column(derived.vocabulary, derived.codes()[word.codes]))


def borders_of(words: ChunkList, n_characters: int) -> I32:
    """Return int32[n_characters]: the well-formed borders of words that cover a text."""
    borders = np.full(n_characters, _MIDDLE, np.int32)
    borders[words.start] = _BEGIN
    borders[words.last] = _END
    borders[words.start[words.start == words.last]] = _SINGLE
    return borders


def read_borders(borders: I32, offsets: I64) -> ChunkList:
    """Return the words of any sequence of borders int32[N], well-formed or not, all of kind 0."""
    return find_chunks((BORDERS, borders), offsets, "BMES", Vocabulary([""]))


def word_labels(tags: Sequence[str]) -> tuple[str, ...]:
    """Labels of characters in the order of their codes, 4 tag + border; the tag "" is none."""
    return tuple(f"{border}-{tag}" if tag else border for tag in tags for border in BORDERS)


def word_text(text: Corpus, words: ChunkList, vocabulary: Vocabulary) -> Corpus:
    """Return the text of words (column "word") for words that cover a text of characters.

    vocabulary: takes up the words.
    """
    codes = _word_codes(text.column("word"), words, vocabulary)
    offsets = np.concatenate([[0], np.cumsum(words.per_sentence(text.offsets))])
    return Corpus({"word": Column(vocabulary, codes)}, offsets)


def _word_codes(characters: Column, words: ChunkList, vocabulary: Vocabulary) -> I32:
    """Return codes of words, int32[W]; they are compared as tuples of codes, length by length."""
    codes = np.empty(len(words.start), np.int32)
    strings, size = characters.vocabulary.strings, len(characters.vocabulary)
    lengths = words.last - words.start + 1
    for length in np.unique(lengths).tolist():
        chosen = np.flatnonzero(lengths == length)
        places = [words.start[chosen] + i for i in range(length)]
        number, n_distinct = packed([(characters.codes[at], size) for at in places])
        one = np.empty(n_distinct, np.int64)  # some occurrence of each
        one[number] = np.arange(len(chosen))
        spelled = np.stack([characters.codes[at[one]] for at in places], axis=1).tolist()
        distinct = vocabulary.encode("".join(strings[c] for c in word) for word in spelled)
        codes[chosen] = distinct[number]
    return codes


@dataclass(frozen=True)
class GoldWords:
    """The labeled sentences of a problem as words.

    words: their kinds are codes into `tags`, sorted; ("",) when words have none.
    """

    words: ChunkList
    tags: tuple[str, ...]

    @classmethod
    def of(cls, problem: Problem) -> GoldWords:
        """UserError when a label is none of BMES, a character is in no word, or labels are fixed.

        A label constraint is on the joint labels of characters, which no step predicts.
        """
        if problem.label_constraint is not None:
            raise UserError("this method cannot obey a label constraint")
        text = problem.labeled
        kinds = Vocabulary(sorted({label.partition("-")[2] for label in problem.labels}))
        labels = problem.labels, problem.label_codes(text)
        words = find_chunks(labels, text.offsets, "BMES", kinds)
        if int((words.last - words.start + 1).sum()) != text.n_tokens:
            raise UserError("a labeled character is in no word", hint="its label is O")
        return cls(words, tuple(kinds.strings))
