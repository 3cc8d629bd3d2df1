"""A bidirectional LSTM over words and characters, trained from nothing, with a chain on top."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np

from sslbench import Corpus, SearchAxis, doc
from sslbench.engine.checked import Saved
from sslbench.engine.corpus import LabelConstraint
from sslbench.engine.crf import Batch
from sslbench.engine.lazy import lazy
from sslbench.engine.types import F32, F64, I32, I64, Arrays, Bool
from sslbench_methods.neural.chain import NetworkModel, Weights
from sslbench_methods.neural.pieces import in_rows
from sslbench_methods.neural.recurrent import Inputs, Recurrent

#: characters of a word that are read, from both of its ends; places of a row
CHARACTERS, LENGTH = 16, 64
#: a word of n occurrences is unknown in training with probability RARE / (RARE + n)
RARE = 0.25
NONE, UNKNOWN, FIRST = 0, 1, 2  # numbers of nothing, of what is unknown, of the first known one


class BiLSTMParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Size of the network, and how it is trained."""

    steps: Annotated[int, doc("of all trainings of a run together", ge=1, le=10**6)] = 600
    rate: Annotated[float, doc("largest step of a weight", gt=0, le=1)] = 3e-3
    dropout: Annotated[float, doc("share of numbers set to 0 in training", ge=0, le=0.9)] = 0.4
    units: Annotated[int, doc("of the LSTM, in each direction", ge=1, le=4096)] = 100
    column: Annotated[str, doc("whose words are read")] = "word"
    #: not the number of steps: it is the same for all methods
    search: ClassVar[tuple[SearchAxis, ...]] = (
        SearchAxis("rate", low=5e-4, high=2e-2, log=True),
        SearchAxis("dropout", low=0.0, high=0.7),
    )


@dataclass(frozen=True)
class Words:
    """What is known: words in small letters with their counts, and characters."""

    counts: dict[str, int]
    characters: str

    @classmethod
    def of(cls, corpora: Iterable[Corpus], column: str) -> Words:
        """Count those of texts; a character that occurs once is not known."""
        words: Counter[str] = Counter()
        characters: Counter[str] = Counter()
        for corpus in corpora:
            own = corpus.column(column)
            often = np.bincount(own.codes, minlength=len(own.vocabulary)).tolist()
            for word, n in zip(own.vocabulary.strings, often, strict=True):
                if n:
                    words[word.lower()] += n
                    for character in word:
                        characters[character] += n
        known = sorted(each for each, n in characters.items() if n > 1)
        return cls({word: words[word] for word in sorted(words)}, "".join(known))

    @lazy
    def numbers(self) -> dict[str, int]:
        """Of the words."""
        return {word: FIRST + i for i, word in enumerate(self.counts)}

    @lazy
    def often(self) -> F64:
        """float64[words]: the counts by number; what is unknown is never made so."""
        return np.array([np.inf, np.inf, *self.counts.values()])

    def spelling(self, word: str) -> list[int]:
        """Return the numbers of the characters of a word, CHARACTERS of them."""
        half = CHARACTERS // 2
        shown = word if len(word) <= CHARACTERS else word[:half] + word[-half:]
        numbers = [FIRST + i if (i := self.characters.find(c)) >= 0 else UNKNOWN for c in shown]
        return numbers + [NONE] * (CHARACTERS - len(numbers))


@dataclass(frozen=True)
class Numbers:
    """A text of N tokens: words int32[N], characters int32[N, CHARACTERS]."""

    words: I32
    characters: I32


@dataclass
class BiLSTM(NetworkModel):
    """The network, and what is known of words."""

    params: BiLSTMParams = field(kw_only=True)
    known: Words = field(kw_only=True)
    kind = "bilstm"

    @lazy
    def network(self) -> Recurrent:
        """The layers."""
        return Recurrent(self.params.units, self.params.dropout)

    @lazy
    def of_network(self) -> dict[str, tuple[int, ...]]:
        sizes = FIRST + len(self.known.counts), FIRST + len(self.known.characters)
        return self.network.shapes(*sizes, len(self.labels))

    @lazy
    def center(self) -> F32:
        return np.zeros(sum(int(np.prod(shape)) for shape in self.shapes.values()), np.float32)

    @property
    def rates(self) -> dict[str, float]:
        return {"word": self.params.rate}

    def read(self, corpus: Corpus) -> Numbers:
        column, numbers = corpus.column(self.params.column), self.known.numbers
        strings = column.vocabulary.strings
        words = np.array([numbers.get(word.lower(), UNKNOWN) for word in strings], np.int32)
        spelling = [self.known.spelling(word) for word in strings]
        characters = np.array(spelling, np.int32).reshape(-1, CHARACTERS)
        return Numbers(words[column.codes], characters[column.codes])

    def scores(self, weights: Weights, content: Numbers, batch: Batch) -> F64:
        inputs, places = _inputs(content, batch, content.words[batch.tokens])
        return self.network.scores(weights, inputs)[places].astype(np.float64)

    def opened(
        self, weights: Weights, content: Numbers, batch: Batch, noise: np.random.Generator | None
    ) -> tuple[F64, Callable[[F64], Weights]]:
        words = content.words[batch.tokens]
        if noise is not None:
            rare = RARE / (RARE + self.known.often[words])
            words = np.where(noise.random(len(words)) < rare, np.int32(UNKNOWN), words)
        inputs, places = _inputs(content, batch, words)
        scores, back = self.network.open(weights, inputs, noise)

        def by_weight(slopes: F64) -> Weights:
            of_rows = np.zeros(scores.shape, np.float32)
            of_rows[places] = slopes
            return back(of_rows)

        return scores[places].astype(np.float64), by_weight

    def arrays(self) -> Saved:
        arrays, metadata = super().arrays()
        params = msgspec.to_builtins(self.params)
        words = {"counts": self.known.counts, "characters": self.known.characters}
        return arrays, {**metadata, **words, "params": params}


def _inputs(content: Numbers, batch: Batch, words: I32) -> tuple[Inputs, tuple[I64, I64]]:
    """Return a batch in rows, and row and column of each token. words: int32[n], of the batch."""
    sizes = np.diff(batch.offsets)
    length = LENGTH * -(-int(sizes.max()) // LENGTH)
    row, column, part = in_rows(sizes, length)
    of_rows = np.full(part.shape, NONE, np.int32)
    spelling = np.full((*part.shape, CHARACTERS), NONE, np.int32)
    of_rows[row, column] = words
    spelling[row, column] = content.characters[batch.tokens]
    return Inputs(of_rows, spelling, part), (row, column)


class BiLSTMModel:
    """Makes the model of a problem."""

    Params = BiLSTMParams

    def __init__(self, params: BiLSTMParams, seed: int) -> None:
        self.params = params
        self.seed = seed

    def prepare(
        self,
        featurizer: Any,
        corpus: Corpus,
        label_codes: I32,
        labels: Sequence[str],
        *,
        text: Iterable[Corpus],
        transition_mask: Bool | None,
        label_constraint: LabelConstraint | None,
        **other: Any,
    ) -> BiLSTM:
        """Return a model with random weights, which knows the words of the corpus and the text."""
        known = Words.of((corpus, *text), self.params.column)
        rules = transition_mask, label_constraint
        model = BiLSTM(tuple(labels), *rules, params=self.params, known=known)
        start = model.network.start(dict(model.of_network), np.random.default_rng(self.seed))
        weights = [np.ravel(start[name]) for name in model.of_network]
        transitions = np.zeros(model.shapes["transitions"]).ravel()
        model.parameters = np.concatenate([*weights, transitions]).astype(np.float64)
        model.steps = self.params.steps
        return model

    @staticmethod
    def restore(arrays: Arrays, metadata: dict[str, Any]) -> BiLSTM:
        """Return a saved model; ValueError if arrays and metadata do not fit together."""
        params = msgspec.convert(metadata["params"], BiLSTMParams)
        known = Words(msgspec.convert(metadata["counts"], dict[str, int]), metadata["characters"])
        model = BiLSTM(tuple(map(str, metadata["labels"])), params=params, known=known)
        model.put_back(arrays, metadata)
        return model
