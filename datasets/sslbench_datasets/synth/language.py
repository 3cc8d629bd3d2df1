"""A generated language: a hidden Markov model of tags over a Zipfian, inflected vocabulary.

All probabilities are known, so the best accuracy that a tagger can reach is known too: posterior
decoding under the generating model maximizes the expected number of correct tokens.

A word is one of
- a closed-class word: a short list per tag; some words are in two lists;
- a lexicon word: a unique stem plus a suffix that its main tag prefers. Frequencies are
  Zipfian, and a share of the words has a second tag. Rare words do not occur in a small sample:
  their tag follows from morphology and context, or from unlabeled text;
- a nonce word: a stem that no other word has, plus a suffix drawn from the suffix distribution of
  the tag. The stem is uniform, so only suffix and context are informative.
Stems have five letters, so a word splits into stem and suffix in one way only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sslbench.engine.types import F64, I64

TAGS = ("DET", "PRON", "ADP", "CONJ", "NOUN", "VERB", "ADJ", "ADV")
N_TAGS = len(TAGS)
_OPEN = (4, 5, 6, 7)

_CLOSED_WORDS: tuple[tuple[str, ...], ...] = (
    ("le", "un", "ta", "mi", "su", "quo", "tel"),  # DET
    ("il", "ta", "nos", "su", "qui", "vo", "ek", "tel", "ona"),  # PRON
    ("de", "en", "por", "sub", "an", "ad", "trans", "con", "ob", "ver"),  # ADP
    ("e", "o", "ma", "quo", "si", "por", "ver", "dum"),  # CONJ
)

# Relative weights. Row 0: first tag of a sentence; row 1 + t: tag after tag t. Columns: TAGS.
_TRANSITIONS = (
    (30, 20, 8, 4, 15, 5, 8, 10),
    (0, 0, 0, 0, 60, 2, 32, 6),
    (2, 2, 6, 4, 4, 68, 4, 10),
    (42, 10, 0, 0, 32, 2, 12, 2),
    (20, 20, 6, 0, 22, 16, 8, 8),
    (3, 3, 26, 14, 14, 28, 3, 9),
    (30, 8, 16, 5, 14, 5, 8, 14),
    (1, 1, 6, 8, 66, 6, 8, 4),
    (8, 6, 12, 6, 8, 26, 22, 12),
)

_SUFFIXES = ("", "a", "or", "ix", "ion", "en", "at", "as", "ir", "al", "ous", "is", "ely", "o")
# Suffixes that a tag prefers, with their weights; some are shared by several tags.
_PREFERRED: dict[int, dict[str, int]] = {
    4: {"": 4, "a": 3, "or": 2, "ion": 2, "ix": 1, "as": 2},
    5: {"": 2, "en": 3, "at": 3, "as": 2, "ir": 2, "o": 1},
    6: {"": 3, "al": 3, "ous": 2, "is": 2, "a": 2, "en": 1},
    7: {"ely": 3, "o": 2, "is": 2, "al": 1},
}
_LEXICON_SHARES = {4: 0.5, 5: 0.25, 6: 0.18, 7: 0.07}

_CONSONANTS = "bdfgklmnprstvzcj"
_VOWELS = "aeiou"
_N_STEMS = len(_CONSONANTS) ** 3 * len(_VOWELS) ** 2
# Coprime to the number of stems (odd, not a multiple of 5): adjacent stems have different letters.
_STRIDE, _START = 38_183, 4_711
MAX_LEXICON = 20_000
_MAX_LENGTH = 60


@dataclass(frozen=True)
class Chain:
    """A Markov chain of tags: `start` float64[T], `transition` float64[T, T]; rows sum to 1."""

    start: F64
    transition: F64


@dataclass(frozen=True)
class Sample:
    """Sentences: `tags` int64[N], `words` int64[N] (word ids), `offsets` int64[S + 1]."""

    tags: I64
    words: I64
    offsets: I64


@dataclass(frozen=True)
class Language:
    """All probabilities of the language, in one domain.

    Attributes
    ----------
    chain: the Markov chain of the tags.
    closed: float64[C, T], P(closed-class word | tag).
    lexicon: float64[L, T], P(lexicon word | tag); columns of open tags sum to 1 - `rare`.
    lexicon_suffix: int64[L], index of the suffix of each lexicon word.
    suffix: float64[n_suffixes, T], P(suffix | tag) of nonce words; 0 for closed tags.
    rare: probability that an open tag emits a nonce word.
    """

    chain: Chain
    closed: F64
    lexicon: F64
    lexicon_suffix: I64
    suffix: F64
    rare: float

    def sample(self, n_sentences: int, rng: np.random.Generator) -> Sample:
        """Draw sentences."""
        lengths = draw_lengths(n_sentences, rng)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        tags = _draw_tags(self.chain, lengths, rng)
        words = np.empty(len(tags), dtype=np.int64)
        for tag in range(N_TAGS):
            at = np.flatnonzero(tags == tag)
            draw = self._draw_open if tag in _OPEN else self._draw_closed
            words[at] = draw(tag, len(at), rng)
        return Sample(tags, words, offsets)

    def _draw_closed(self, tag: int, count: int, rng: np.random.Generator) -> I64:
        return _draw(self.closed[:, tag], count, rng)

    def _draw_open(self, tag: int, count: int, rng: np.random.Generator) -> I64:
        """Word ids: those of closed words, then C + stem * n_suffixes + suffix."""
        stem = _draw(self.lexicon[:, tag], count, rng)
        suffix = self.lexicon_suffix[stem]
        nonce = rng.random(count) < self.rare
        stem = np.where(nonce, rng.integers(len(self.lexicon), _N_STEMS, count), stem)
        suffix = np.where(nonce, _draw(self.suffix[:, tag], count, rng), suffix)
        return len(self.closed) + stem * len(_SUFFIXES) + suffix

    def emissions(self, words: I64) -> F64:
        """P(word | tag), float64[N, T], of word ids int64[N]."""
        scores = np.empty((len(words), N_TAGS))
        closed = words < len(self.closed)
        scores[closed] = self.closed[words[closed]]
        stem, suffix = np.divmod(words - len(self.closed), len(_SUFFIXES))
        known = ~closed & (stem < len(self.lexicon))
        scores[known] = self.lexicon[stem[known]]
        nonce = ~closed & ~known
        stem_probability = self.rare / (_N_STEMS - len(self.lexicon))
        scores[nonce] = self.suffix[suffix[nonce]] * stem_probability
        return scores

    def text(self, word: int) -> str:
        """The spelling of a word id."""
        if word < len(self.closed):
            return CLOSED[word]
        stem, suffix = divmod(word - len(self.closed), len(_SUFFIXES))
        return _spell(stem) + _SUFFIXES[suffix]


CLOSED = tuple(dict.fromkeys(word for words in _CLOSED_WORDS for word in words))


def build_language(
    seed: int, shift: float, *, lexicon: int, ambiguity: float, noise: float, rare: float
) -> Language:
    """The language of `seed` in one domain.

    Parameters
    ----------
    shift: distance of the domain. 0 is the source domain; at 1 all lexicon words are other words
        and the tag chain differs.
    lexicon: open-class words per domain.
    ambiguity: share of them with a second tag.
    noise: share of suffixes drawn at random.
    rare: share of open-class tokens that are nonce words.
    """
    rng = np.random.default_rng([seed, 0])
    suffix = _suffix_table(noise)
    own, own_suffix = _lexicon(lexicon, ambiguity, suffix, rng)
    other, other_suffix = _lexicon(lexicon, ambiguity, suffix, rng)
    chain = _chain(rng.lognormal(0.0, 0.7, (N_TAGS + 1, N_TAGS)), shift / 2)
    return Language(
        chain=chain,
        closed=_closed_table(),
        lexicon=(1 - rare) * np.concatenate([(1 - shift) * own, shift * other]),
        lexicon_suffix=np.concatenate([own_suffix, other_suffix]),
        suffix=suffix,
        rare=rare,
    )


def draw_lengths(n_sentences: int, rng: np.random.Generator) -> I64:
    """Sentence lengths in tokens, int64[n_sentences]: 3 to 60, about 10 on average."""
    lengths: I64 = 3 + rng.negative_binomial(3, 0.3, n_sentences).astype(np.int64)
    return np.minimum(lengths, _MAX_LENGTH)


def posteriors(chain: Chain, emissions: F64, offsets: I64) -> F64:
    """P(tag of token | its sentence), float64[N, T], by the forward-backward recursions.

    All sentences are processed in parallel, one position per step. The sums are rescaled at each
    position, which does not change the posterior (Rabiner 1989, section V.A).

    Parameters
    ----------
    emissions: float64[N, T], P(word | tag). Each sentence must have a positive probability.
    offsets: int64[S + 1], sentence borders in tokens.
    """
    lengths = np.diff(offsets)
    n_steps = int(lengths.max(initial=0))
    forward = np.zeros_like(emissions)
    backward = np.ones_like(emissions)
    for step in range(n_steps):
        at = offsets[:-1][lengths > step] + step
        ahead = chain.start if step == 0 else forward[at - 1] @ chain.transition
        forward[at] = _normalized(ahead * emissions[at])
    for step in range(n_steps - 2, -1, -1):
        at = offsets[:-1][lengths > step + 1] + step
        following = emissions[at + 1] * backward[at + 1]
        backward[at] = _normalized(following @ chain.transition.T)
    return _normalized(forward * backward)


def _normalized(weights: F64) -> F64:
    result: F64 = weights / weights.sum(axis=-1, keepdims=True)
    return result


def _draw(weights: F64, count: int, rng: np.random.Generator) -> I64:
    """int64[count]: indices drawn in proportion to `weights`."""
    cumulative = np.cumsum(weights)
    indices: I64 = np.searchsorted(cumulative, rng.random(count) * cumulative[-1], side="right")
    # Rounding may give an index beyond the last positive weight.
    last: int = np.flatnonzero(weights)[-1]
    return np.minimum(indices, last)


def _draw_tags(chain: Chain, lengths: I64, rng: np.random.Generator) -> I64:
    """Tags, int64[N], of sentences of these lengths, one position of all sentences per step."""
    ends = np.cumsum(lengths)
    starts = ends - lengths
    tags = np.empty(int(lengths.sum()), dtype=np.int64)
    chances = rng.random(len(tags))
    start, following = np.cumsum(chain.start), np.cumsum(chain.transition, axis=1)
    for step in range(int(lengths.max(initial=0))):
        at = starts[lengths > step] + step
        borders = start[None, :] if step == 0 else following[tags[at - 1]]
        tags[at] = (chances[at, None] >= borders[:, :-1]).sum(axis=1)
    return tags


def _chain(factors: F64, share: float) -> Chain:
    """The transition table, mixed with a `share` of one with weights multiplied by `factors`."""
    plain = np.array(_TRANSITIONS, dtype=np.float64)
    rows = (1 - share) * _normalized(plain) + share * _normalized(plain * factors)
    return Chain(rows[0], rows[1:])


def _closed_table() -> F64:
    """P(word | tag), float64[C, T], of the closed classes; Zipfian in the order of each list."""
    table = np.zeros((len(CLOSED), N_TAGS))
    for tag, words in enumerate(_CLOSED_WORDS):
        weights = 1.0 / np.arange(1, len(words) + 1)
        table[[CLOSED.index(word) for word in words], tag] = weights / weights.sum()
    return table


def _suffix_table(noise: float) -> F64:
    """P(suffix | tag), float64[n_suffixes, T]."""
    table = np.zeros((len(_SUFFIXES), N_TAGS))
    for tag, preferred in _PREFERRED.items():
        shares = np.array([preferred.get(suffix, 0) for suffix in _SUFFIXES], dtype=np.float64)
        table[:, tag] = (1 - noise) * shares / shares.sum() + noise / len(_SUFFIXES)
    return table


def _lexicon(size: int, ambiguity: float, suffix: F64, rng: np.random.Generator) -> tuple[F64, I64]:
    """P(word | tag), float64[size, T], 1 in sum for open tags; suffix of each word, int64[size]."""
    shares = np.array(list(_LEXICON_SHARES.values()))
    # At least one word of each tag.
    main = np.concatenate([_OPEN, rng.choice(_OPEN, size - len(_OPEN), p=shares)])
    other = rng.choice(_OPEN, size)
    double = rng.random(size) < ambiguity
    # Zipf-Mandelbrot; words are in the order of their rank.
    weight = 1.0 / (np.arange(size) + 2.7)
    table = np.zeros((size, N_TAGS))
    table[np.arange(size), main] = weight
    table[double, other[double]] += weight[double] * rng.uniform(0.2, 1.0, size)[double]
    suffixes = np.empty(size, dtype=np.int64)
    for tag in _OPEN:
        at = main == tag
        suffixes[at] = _draw(suffix[:, tag], int(at.sum()), rng)
    table[:, list(_OPEN)] /= table[:, list(_OPEN)].sum(axis=0)
    return table, suffixes


def _spell(stem: int) -> str:
    """The five letters (consonant, vowel, consonant, vowel, consonant) of a stem number."""
    rest = (stem * _STRIDE + _START) % _N_STEMS
    letters = []
    for alphabet in (_CONSONANTS, _VOWELS, _CONSONANTS, _VOWELS, _CONSONANTS):
        rest, letter = divmod(rest, len(alphabet))
        letters.append(alphabet[letter])
    return "".join(letters)
