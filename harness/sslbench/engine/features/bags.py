"""Attributes that are the texts of columns: a token has a set of them.

The columns of a bag share a vocabulary, whose first text stands for none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from sslbench.engine.corpus import Corpus, Vocabulary
from sslbench.engine.errors import UserError
from sslbench.engine.features.index import AttributeIndex, Attributes, TemplateFeaturizer
from sslbench.engine.features.templates import Atom, Template
from sslbench.engine.types import F64, I32, I64, Arrays

_FIRST = itemgetter(0)


@dataclass(frozen=True)
class Bag:
    """Attributes of which a token has several.

    width: number of columns: the most attributes of a token in the training text.
    """

    name: str
    width: int = 1

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return [self.column(i) for i in range(self.width)]

    def column(self, place: int) -> str:
        """Return the name of the column of one more attribute, which may be beyond the width."""
        return f"{self.name}.{place}" if place else self.name

    def codes(self, corpus: Corpus) -> list[I32]:
        """Return the columns of a corpus, int32[N] each; a token may have more than `width`."""
        codes, place = [], 0
        while self.column(place) in corpus.columns:
            codes.append(corpus.column(self.column(place)).codes)
            place += 1
        return codes

    @property
    def template(self) -> Template:
        """What stands for the bag for methods that read templates."""
        return Template((Atom(self.name, 0),))


class BagFeaturizer(TemplateFeaturizer):
    """Featurizer of the attributes of bags.

    numbers: names of further attributes, whose numbers are the columns `number_column`.
    """

    def __init__(self, bags: Sequence[Bag], numbers: Sequence[str] = ()) -> None:
        dense = partial(_numbers, len(numbers)) if numbers else None
        super().__init__([bag.template for bag in bags], dense)
        self.bags, self.numbers = tuple(bags), tuple(numbers)

    def index(self, corpus: Corpus | Iterable[Corpus], min_count: int = 1) -> BagIndex:
        """Number the attributes of a corpus, or of shards; see `AttributeIndex.fit`."""
        counts: list[I64] = []
        for shard in [corpus] if isinstance(corpus, Corpus) else corpus:
            own = [self._counts(shard, bag) for bag in self.bags]
            counts = [a + b for a, b in zip(counts, own, strict=True)] if counts else own
            vocabularies = [shard.column(bag.name).vocabulary for bag in self.bags]
        used = [np.flatnonzero(count >= min_count).astype(np.int32) for count in counts]
        return BagIndex(self, vocabularies, used)

    @staticmethod
    def _counts(corpus: Corpus, bag: Bag) -> I64:
        size = len(corpus.column(bag.name).vocabulary)
        count = sum(np.bincount(codes, minlength=size) for codes in bag.codes(corpus))
        total: I64 = np.asarray(count, np.int64)
        total[0] = 0
        return total


class BagIndex(AttributeIndex):
    """The numbering of the attributes of bags.

    vocabularies: of the bags.  used: int32[n] by bag, the codes of the attributes with an id.
    """

    def __init__(
        self, featurizer: BagFeaturizer, vocabularies: Sequence[Vocabulary], used: Sequence[I32]
    ) -> None:
        self.dense, self._numbers = featurizer.dense, featurizer.numbers
        self._bags = bags = featurizer.bags
        self.node_templates = tuple(bag.template for bag in bags)
        self.node_start = np.cumsum([0, *map(len, used)], dtype=np.int64)
        widths = [bag.width for bag in bags]
        self.node_slots = np.repeat(np.arange(len(bags), dtype=np.int32), widths)
        self.edge_templates, self.edge_start = (), np.zeros(1, np.int64)
        self.edge_slots = np.empty(0, np.int32)
        self.names: list[str] = [
            vocabulary.strings[code]
            for vocabulary, codes in zip(vocabularies, used, strict=True)
            for code in codes
        ]
        self._tables = []
        for vocabulary, codes, first in zip(vocabularies, used, self.node_start, strict=False):
            table = np.full(len(vocabulary), -1, np.int32)
            table[codes] = np.arange(first, first + len(codes))
            self._tables.append(table)

    @property
    def n_node(self) -> int:
        return len(self.names)

    @property
    def n_edge(self) -> int:
        return 0

    def encode(self, corpus: Corpus) -> Attributes:
        """Return the attributes of a corpus; see `AttributeIndex.encode`."""
        rows = [
            table[codes]
            for bag, table in zip(self._bags, self._tables, strict=True)
            for codes in bag.codes(corpus)
        ]
        edge = np.empty((0, corpus.n_tokens), np.int32)
        return Attributes(np.stack(rows), edge, self._dense(corpus), corpus.offsets)

    def quick(self, columns: Sequence[str]) -> QuickBags:
        """Return what encodes a few tokens that are dicts of attributes."""
        bag_of = np.repeat(np.arange(len(self._bags)), np.diff(self.node_start)).tolist()
        places = {
            name: (bag, i) for i, (name, bag) in enumerate(zip(self.names, bag_of, strict=True))
        }
        return QuickBags(places, self._numbers)

    def node_text(self, attribute: int) -> str:
        """Return the attribute as text."""
        return self.names[attribute]

    def arrays(self) -> tuple[Arrays, dict[str, Any]]:
        """UserError: files of taggers have templates."""
        raise UserError("a tagger of dicts of features cannot be saved", hint="pickle it")


@dataclass(frozen=True)
class QuickBags:
    """Encodes a few tokens that are dicts of attributes.

    places: bag and id of each attribute.  numbers: as of `BagFeaturizer`.
    """

    places: Mapping[str, tuple[int, int]]
    numbers: Sequence[str]

    def attributes(self, tokens: Sequence[Any], offsets: I64) -> tuple[I32, F64 | None]:
        """See `QuickEncoder`."""
        places = self.places
        # the order of a token's attributes in a bag stays, as in a corpus
        rows = [
            [i for _, i in sorted((places[a] for a in token if a in places), key=_FIRST)]
            for token in tokens
        ]
        width = max(map(len, rows))
        ids = np.array([row + [-1] * (width - len(row)) for row in rows], np.int32)
        if not self.numbers:
            return ids, None
        return ids, np.array([[token.get(name, 0.0) for name in self.numbers] for token in tokens])


def number_column(number: int) -> str:
    """Return the name of the column with the numbers of an attribute."""
    return f"n{number}"


def _numbers(count: int, corpus: Corpus) -> F64:
    """Return float64[N, count]: the numbers of a corpus."""
    values = np.empty((corpus.n_tokens, count))
    for i in range(count):
        column = corpus.column(number_column(i))
        values[:, i] = np.array(list(map(float, column.vocabulary.strings)))[column.codes]
    return values
