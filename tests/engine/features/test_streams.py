"""Symbol streams: layout, dictionaries, cut-offs, streaming over shards."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from sslbench.engine.corpus import CorpusShards
from sslbench.engine.features import Streams, Template, kernels
from sslbench_methods.featurizers.suzuki2008 import chunk39, ner79, pos47
from support.features_oracle import corpus_of, random_sentences, slots, text

CHAIN = tuple(map(Template.parse, ["word[-1]|word[0]", "word[0]|word[1]|pos[1]", "pos[-2]"]))


def values_as_text(streams, corpus, template):
    p, _ = streams.pattern_of(template)
    found = streams.values(streams.encode(corpus), template)
    return [[streams.symbol_text(p, c) if c >= 0 else None for c in column] for column in found.T]


@pytest.mark.parametrize("make", [pos47, chunk39, ner79])
def test_values_equal_strings(make):
    sentences = random_sentences(11)
    corpus, templates = corpus_of(sentences), make().templates
    streams = Streams.fit(templates, [corpus])
    tokens = [(s, t) for s in sentences for t in range(len(s))]
    for template in templates:
        want = [
            [None if v is None else text(v) or "bias" for v in slots(template, s, t)]
            for s, t in tokens
        ]
        assert values_as_text(streams, corpus, template) == want


@pytest.mark.parametrize(("make", "n"), [(pos47, 22), (chunk39, 5), (ner79, 17)])
def test_window_offsets_share_streams(make, n):
    streams = Streams(make().templates)
    assert streams.count == n + 1  # and the constant's
    assert streams.count == len(streams.patterns)


@pytest.mark.parametrize("min_count", [1, 2, 5])
def test_shards_give_the_streams_of_the_whole(min_count):
    """Bit for bit, however the text is cut and whatever vocabularies the pieces come with."""
    sentences = random_sentences(12, 60)
    corpus, templates = corpus_of(sentences), ner79().templates
    whole = Streams.fit(templates, [corpus], min_count)
    pieces = [corpus_of(sentences[i : i + 7]) for i in range(0, 60, 7)]
    for shards in (CorpusShards(corpus, shard_tokens=5), pieces, [*pieces, corpus_of([])]):
        other = Streams.fit(templates, shards, min_count)
        assert other.n_symbols == whole.n_symbols
        for p in range(whole.count):
            np.testing.assert_array_equal(other.symbol_counts(p), whole.symbol_counts(p))
            texts = [[s.symbol_text(p, c) for c in range(s.n_symbols[p])] for s in (other, whole)]
            assert texts[0] == texts[1]
        np.testing.assert_array_equal(other.encode(corpus).codes, whole.encode(corpus).codes)


@pytest.mark.parametrize("source", ["word[0]", "word[-1]|word[0]", "pos[-1]|word[0]|pos[1]"])
@pytest.mark.parametrize("least", [1, 3])
def test_counts_and_cut_off(source, least):
    sentences = [*random_sentences(13, 60), [("rare", "X"), ("rare", "X")]]
    corpus = corpus_of(sentences)
    template = Template.parse(source)
    seen = Counter(slots(template, s, t)[0] for s in sentences for t in range(len(s)))
    assert min(seen.values()) <= 2
    streams = Streams.fit([template], [corpus], least)
    # an in-sentence word may look like a pad, so texts are compared as a multiset
    kept = sorted((text(v), c) for v, c in seen.items() if c >= least)
    texts = [streams.symbol_text(0, c) for c in range(streams.n_symbols[0])]
    assert sorted(zip(texts, streams.symbol_counts(0).tolist(), strict=True)) == kept
    unknown = (streams.values(streams.encode(corpus), template) < 0).sum()
    assert unknown == sum(c for c in seen.values() if c < least)


def test_positions_no_template_reads_are_absent():
    sentences = random_sentences(14, 5)
    streams = Streams.fit(CHAIN, [corpus_of(sentences)])
    assert streams.padding == 2
    codes = streams.encode(corpus_of(sentences))
    n = sum(map(len, sentences)) + 4 * len(sentences)
    assert codes.codes.shape == (3, n)
    start = codes.position[codes.offsets[:-1]]
    last = codes.position[codes.offsets[1:] - 1]
    bigram, triple, pos = codes.codes
    assert (bigram[start - 1] < 0).all()
    assert (bigram[last + 1] >= 0).all()  # the triple begins with it
    assert (bigram[last + 2] < 0).all()
    assert (triple[start] < 0).all()  # read at offset 1 only
    assert (triple[last + 1] >= 0).all()
    assert (pos[start - 2] >= 0).all()
    assert (codes.codes[:, last + 2] < 0).all()
    assert streams.pattern_of(CHAIN[1]) == (1, 1)
    assert streams.pattern_of(CHAIN[2]) == (2, -2)


def test_keys_do_not_overflow():
    """Six words of a vocabulary of 300,000 (109 bits as a mixed radix) stay apart."""
    words = [str(i) for i in range(300_000)]
    sentences = [[(word, "x") for word in words[i::50000]] for i in range(50000)]
    template = Template.parse("|".join(f"word[{k}]" for k in range(-5, 1)))
    corpus = corpus_of(sentences)
    streams = Streams.fit([template], [corpus])
    assert streams.n_symbols == (300_000,)
    codes = streams.values(streams.encode(corpus), template)[0]
    assert len(set(codes.tolist())) == 300_000
    assert streams.symbol_text(0, codes[5]) == "0|50000|100000|150000|200000|250000"


def test_large_ids_in_both_halves_of_a_key():
    left = np.array([2**31 - 1, 0, 2**31 - 1], np.int32)
    right = np.array([2**31 - 1, 2**31 - 1, 0], np.int32)
    offsets = np.array([0, 3])
    keys = kernels.pair_keys(left, 0, right, offsets, 0, 0, 0)
    assert (keys >> 32).tolist() == left.tolist()
    assert (keys & 0x7FFFFFFF).tolist() == right.tolist()


def test_dictionary_of_pairs_grows_and_finds():
    rng = np.random.default_rng(15)
    wanted = rng.integers(0, 2**62, 5000)[rng.integers(0, 5000, 20000)]
    out = np.empty(len(wanted), np.int32)
    start = np.empty(1, np.int64), np.zeros(1, np.int64), 0, np.full(2, -1, np.int32)
    keys, counts, size, table = kernels.learn(wanted, *start, out)
    firsts = list(dict.fromkeys(wanted.tolist()))
    assert keys[:size].tolist() == firsts  # in order of first sight
    assert counts[:size].tolist() == list(Counter(wanted.tolist()).values())
    np.testing.assert_array_equal(keys[out], wanted)
    again = np.empty(3, np.int32)
    kernels.look_up(np.array([firsts[7], 2**62 + 1, -1]), keys[:size], table, again)
    assert again.tolist() == [7, -1, -1]


def test_save_and_load():
    corpus = corpus_of(random_sentences(16))
    streams = Streams.fit(ner79().templates, [corpus], 2)
    loaded = Streams.from_arrays(*streams.arrays())
    np.testing.assert_array_equal(loaded.encode(corpus).codes, streams.encode(corpus).codes)
    assert loaded.n_symbols == streams.n_symbols
    for p in range(streams.count):
        np.testing.assert_array_equal(loaded.symbol_counts(p), streams.symbol_counts(p))
    assert all(array.dtype != object for array in streams.arrays()[0].values())
