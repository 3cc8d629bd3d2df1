"""Spellings of chunk tags: B-PER is also written B_PER, B/PER, B:PER, b-per or PER-B."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import cast

import msgspec

from sslbench.engine.corpus import SCHEMES, Column, Corpus, Scheme, Vocabulary, tag_fits
from sslbench.engine.lazy import lazy

SEPARATORS = "-_/:|.+="
OUTSIDE = ("O", "o", "0")
#: letters in place of those of IOBES and BMES, by the name of the scheme
RENAMED: Mapping[str, Mapping[str, str]] = {"BILOU": {"L": "E", "U": "S"}, "BMEWO": {"W": "S"}}
_FAMILIES = tuple(map(frozenset, ("BIES", "BMES", "BILU", "BMEW")))
_LETTERS = frozenset("BIESMLUW")


class Spelling(msgspec.Struct, frozen=True, dict=True, omit_defaults=True):
    """How a file writes chunk tags. The default is that of the rest of the program.

    Attributes
    ----------
    separator: between prefix and type.
    outside: the label of a token outside of chunks.
    lower: the prefix is a small letter.
    last: the prefix follows the type.
    renamed: a key of `RENAMED`; "" = the letters of IOBES and BMES.
    """

    separator: str = "-"
    outside: str = "O"
    lower: bool = False
    last: bool = False
    renamed: str = ""

    def split(self, label: str) -> tuple[str, str] | None:
        """Prefix and type as the file writes them; None for a label that is not spelled so."""
        if label == self.outside:
            return "O", ""
        parts = label.rpartition(self.separator) if self.last else label.partition(self.separator)
        prefix, _, kind = reversed(parts) if self.last else parts
        if not parts[1]:
            prefix, kind = label, ""
        elif not kind:
            return None
        if prefix != (prefix.lower() if self.lower else prefix.upper()):
            return None
        return (prefix.upper(), kind) if prefix.upper() in _LETTERS else None

    def read(self, label: str) -> str:
        """The tag of a label, as the program writes it; other labels are unchanged."""
        parts = self.split(label)
        if parts is None:
            return label
        prefix, kind = RENAMED.get(self.renamed, {}).get(parts[0], parts[0]), parts[1]
        return f"{prefix}-{kind}" if kind else prefix

    def write(self, tag: str) -> str:
        """The label of a tag: the inverse of `read`."""
        prefix, _, kind = tag.partition("-")
        if prefix == "O":
            return self.outside
        prefix = self._written.get(prefix, prefix)
        prefix = prefix.lower() if self.lower else prefix
        parts = [prefix, kind] if kind else [prefix]
        return self.separator.join(reversed(parts) if self.last else parts)

    @lazy
    def _written(self) -> dict[str, str]:
        return {plain: letter for letter, plain in RENAMED.get(self.renamed, {}).items()}

    def read_column(self, corpus: Corpus, vocabulary: Vocabulary) -> Corpus:
        """The corpus with the label column as the program writes it, coded by `vocabulary`."""
        column = corpus.column("label")
        used = Vocabulary()  # labels of the text in the order of their first use
        codes = used.encode(column.strings())
        table = vocabulary.encode(map(self.read, used.strings))
        return corpus.with_column("label", Column(vocabulary, table[codes]))

    def __str__(self) -> str:
        second = {"BILOU": "S", "BMEWO": "E"}.get(self.renamed, "I")
        return f"{self.write('B-X')}, {self.write(f'{second}-X')}, {self.outside}"


def find_spelling(labels: Mapping[str, int]) -> tuple[Spelling, frozenset[str]]:
    """The spelling of most labels, and the labels that are not spelled so.

    labels: number of tokens of each label. The default spelling is returned for plain tags, and for
        labels without types.
    """
    best, strange, most = Spelling(), frozenset[str](), 0.5
    for spelling, family in product(_spellings(labels), _FAMILIES):
        split = {label: spelling.split(label) for label in labels if label != spelling.outside}
        fit = {label for label, parts in split.items() if parts and parts[0] in family and parts[1]}
        prefixes = {parts[0] for label, parts in split.items() if parts and label in fit}
        share = sum(labels[label] for label in fit) / max(1, sum(labels[label] for label in split))
        if share > most and prefixes & {"B", "I"}:
            renamed = next((n for n, new in RENAMED.items() if prefixes & new.keys()), "")
            best = msgspec.structs.replace(spelling, renamed=renamed)
            strange, most = frozenset(split.keys() - fit), share
    return best, strange


def _spellings(labels: Iterable[str]) -> Iterator[Spelling]:
    """The default first: the first of equals is taken."""
    outside = [each for each in OUTSIDE if each in labels] or ["O"]
    for last, lower, separator, out in product((False, True), (False, True), SEPARATORS, outside):
        yield Spelling(separator, out, lower, last)


def in_known_spelling(corpus: Corpus, known: Spelling, scheme: str) -> tuple[Corpus, Scheme]:
    """A corpus with labels as the program writes them, and their scheme.

    known, scheme: of the labels, if all of them fit; others are seen.
    """
    usual = cast(Scheme, scheme)
    labels = Counter(corpus.column("label").strings())
    if all(known.split(label) is not None for label in labels):
        corpus = known.read_column(corpus, Vocabulary())
    else:
        corpus = find_spelling(labels)[0].read_column(corpus, Vocabulary())
    present = corpus.column("label").vocabulary.strings
    fitting = [each for each in (usual, *SCHEMES) if all(tag_fits(tag, each) for tag in present)]
    return corpus, fitting[0] if fitting else usual
