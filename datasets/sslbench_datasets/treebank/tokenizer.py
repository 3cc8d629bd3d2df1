"""English sentence splitting and tokenization with the conventions of the Penn Treebank.

The conventions are those of the CoNLL-2000 text: `` and '' for quotation marks, -LRB- and -RRB- for
brackets, ``do n't``, ``company 's``, ``$ 300-a-share``, ``7 1\\/2``, and at the end of a sentence
``U.S. .`` but ``Inc .``
"""

from __future__ import annotations

import re
from functools import lru_cache

# Part of cache keys: raise it with any change that alters the output.
VERSION = 1

_MONTHS = "jan feb mar apr jun jul aug sep sept oct nov dec"
_TITLES = "mr mrs ms messrs dr prof gen col lt capt sen rep gov sgt rev hon st mt ft no nos vs art"
_PLACES = "ala ariz ark calif colo conn del fla ga ill ind kan ky la mass md mich minn miss mo"
_MORE_PLACES = "mont neb nev okla ont ore pa penn que tenn tex va vt wash wis wyo"
# A full stop after one of these never ends a sentence.
_NEVER_LAST = frozenset(f"{_MONTHS} {_TITLES} {_PLACES} {_MORE_PLACES} e.g i.e".split())
# A full stop after one of these ends a sentence only if the next word is one of _BEGINNINGS.
_COMPANIES = "inc corp co cos ltd bros plc"
_MAY_BE_LAST = frozenset(f"{_COMPANIES} jr sr etc est dept div n.a a.m p.m".split())
_STARTERS = "a after although an analysts and as at but but, earlier for he however however, if in"
_MORE_STARTERS = "it its last most mr. no one other sales she since some that the there these they"
_BEGINNINGS = frozenset(
    f"{_STARTERS} {_MORE_STARTERS} this those under we what when while with".split()
)

_CANDIDATE = re.compile(r"[.?!][\"')\]]*\s+(?=[\"'(\[`]*[A-Z0-9$])")
_ACRONYM = re.compile(r"(?:[A-Za-z]\.)+[A-Za-z]?\.?|[A-Z]\.")

_OPENING = {'"': "``", "(": "-LRB-", "[": "-LRB-", "{": "-LCB-", "<": "", "$": "$", "#": "#"}
_CLOSING = {'"': "''", ")": "-RRB-", "]": "-RRB-", "}": "-RCB-", ">": "", "%": "%"}
_PUNCTUATION = ",;:?!"
_MONEY = re.compile(r"([A-Z]{1,2}\$)(\d.*)")
_INNER = re.compile(r"(--+|\.\.\.+|(?<=[A-Za-z])[,;](?=[A-Za-z])|(?<=[A-Za-z)])\"(?=[A-Za-z]))")
_MIXED_NUMBER = re.compile(r"(-?\d[\d,]*)-(\d+/\d+)")
_NOT = re.compile(r"(.+)(n't)", re.IGNORECASE)
_CLITIC = re.compile(r"(.+)('(?:s|re|ve|ll|d|m))", re.IGNORECASE)


def split_sentences(text: str) -> list[str]:
    """The sentences of one paragraph of running text, white space collapsed."""
    text = " ".join(text.split())
    sentences, first = [], 0
    for candidate in _CANDIDATE.finditer(text):
        if _is_border(text, candidate):
            sentences.append(text[first : candidate.end()].strip())
            first = candidate.end()
    rest = text[first:].strip()
    return [*sentences, rest] if rest else sentences


def _is_border(text: str, candidate: re.Match[str]) -> bool:
    if text[candidate.start()] != ".":
        return True
    # Slice the adjacent words only: a paragraph may have thousands of candidates.
    first = text.rfind(" ", 0, candidate.start()) + 1
    before = text[first : candidate.start()].lstrip("\"'(`[<").lower()
    if before in _NEVER_LAST or (len(before) == 1 and before.isalpha()):
        return False
    if before in _MAY_BE_LAST or "." in before.rstrip("."):
        last = text.find(" ", candidate.end())
        following = text[candidate.end() : last if last >= 0 else len(text)]
        return following.strip("\"'(`[").lower() in _BEGINNINGS
    return True


def tokenize(sentence: str) -> list[str]:
    """The tokens of one sentence, which need not end with a full stop."""
    *chunks, last = sentence.split() or [""]
    tokens = [token for chunk in chunks for token in _tokens_of(chunk, False)]
    tokens.extend(_tokens_of(last, True))
    return tokens


@lru_cache(maxsize=1 << 17)  # most chunks of a text are repeated
def _tokens_of(chunk: str, is_last: bool) -> tuple[str, ...]:
    """The tokens of the text between two white spaces."""
    before, chunk = _peel_opening(chunk)
    chunk, after = _peel_closing(chunk, is_last)
    inner: list[str] = []
    for piece in _INNER.split(chunk):
        if piece == '"':
            inner.append("''")
        elif piece.startswith("..."):
            inner.append("...")
        elif piece.startswith("--"):
            inner.append("--")
        elif piece:
            inner.extend(_split_word(piece))
    return tuple(token.replace("/", r"\/") for token in (*before, *inner, *after) if token)


def _peel_opening(chunk: str) -> tuple[list[str], str]:
    tokens = []
    while chunk:
        if chunk[0] in _OPENING:
            tokens.append(_OPENING[chunk[0]])
        elif chunk[0] == "`" or (chunk[0] == "'" and _opens_quotation(chunk)):
            tokens.append("`")
        else:
            break
        chunk = chunk[1:]
    return tokens, chunk


def _opens_quotation(chunk: str) -> bool:
    """Whether a leading apostrophe opens a quotation, unlike that of '80s or of a lone 's."""
    return len(chunk) > 1 and not chunk[1].isdigit() and not _CLITIC.fullmatch("x" + chunk)


def _peel_closing(chunk: str, is_last: bool) -> tuple[str, list[str]]:
    tokens: list[str] = []
    while chunk and not re.fullmatch(r"\.\.\.+|--+", chunk):
        end = chunk[-1]
        if end in _CLOSING:
            tokens.append(_CLOSING[end])
        elif end in _PUNCTUATION:
            tokens.append(end)
        elif end == "'" and not chunk.endswith("''"):
            tokens.append("'")
        elif end == "." and _stop_is_token(chunk, is_last or bool(tokens), is_last):
            tokens.append(".")
            if _ACRONYM.fullmatch(chunk):
                break  # U.S. keeps its full stop in addition to that of the sentence
            chunk = chunk.rstrip(".") if chunk.endswith("....") else chunk[:-1]
            continue
        else:
            break
        chunk = chunk[:-1]
    return chunk, tokens[::-1]


def _stop_is_token(chunk: str, at_end: bool, is_last: bool) -> bool:
    """Whether a final full stop ends the sentence, rather than belonging to an abbreviation."""
    if chunk.endswith("..") or not at_end:
        return False
    if _ACRONYM.fullmatch(chunk):
        return is_last
    word = chunk[:-1].lower()
    return is_last or (word not in _NEVER_LAST and word not in _MAY_BE_LAST)


def _split_word(word: str) -> list[str]:
    """Split contractions, amounts of money and mixed numbers."""
    if word.lower() == "cannot":
        return [word[:3], word[3:]]
    for pattern in (_NOT, _CLITIC, _MONEY, _MIXED_NUMBER):
        if match := pattern.fullmatch(word):
            return [match[1], match[2]]
    return [word]
