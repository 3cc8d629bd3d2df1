"""Text in shards: cut, chained, capped, stored."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sslbench.engine.corpus import (
    ChainedShards,
    Corpus,
    CorpusShards,
    HeadShards,
    Shards,
    StoredShards,
    Vocabulary,
    write_shards,
)
from sslbench.engine.errors import UserError
from support.texts import corpus_of

Sentences = list[list[str]]


def text_of(shards: Shards) -> Sentences:
    return [shard.sentence(i, "word") for shard in shards for i in range(shard.n_sentences)]


def check(shards: Shards, sentences: Sentences) -> None:
    assert isinstance(shards, Shards)
    assert text_of(shards) == sentences == text_of(shards)  # twice: it is re-iterable
    assert shards.n_sentences == len(sentences)
    assert shards.n_tokens == sum(map(len, sentences))


sentence_lists = st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=5), max_size=9)


@given(sentence_lists, st.integers(1, 12))
def test_cut_at_sentence_borders(sentences: Sentences, size: int) -> None:
    shards = CorpusShards(corpus_of(sentences), size)
    check(shards, sentences)
    for shard in shards:
        assert shard.n_tokens <= size or shard.n_sentences == 1
    sizes = [shard.n_tokens for shard in shards]
    # no shard could have been joined with the next
    firsts = [int(shard.lengths[0]) for shard in shards]
    assert all(n + first > size for n, first in zip(sizes, firsts[1:], strict=False))


@given(sentence_lists, sentence_lists, st.integers(0, 20), st.integers(1, 6))
def test_chain_and_head(left: Sentences, right: Sentences, n: int, size: int) -> None:
    chained = ChainedShards([CorpusShards(corpus_of(part), size) for part in (left, right)])
    check(chained, left + right)
    check(HeadShards(chained, n), (left + right)[:n])


def test_empty_corpora_have_no_shards() -> None:
    check(CorpusShards(corpus_of([])), [])
    check(ChainedShards([]), [])
    assert list(CorpusShards(corpus_of([]))) == []


def test_head_reads_no_further_than_it_must() -> None:
    class Endless:
        n_sentences = n_tokens = 10**9

        def __iter__(self) -> Iterator[Corpus]:
            yield corpus_of([["a"], ["b"]])
            raise AssertionError("read on")

    check(HeadShards(Endless(), 2), [["a"], ["b"]])
    check(HeadShards(Endless(), 0), [])


def test_bad_sizes() -> None:
    with pytest.raises(ValueError, match="positive"):
        CorpusShards(corpus_of([]), 0)
    with pytest.raises(ValueError, match="negative"):
        HeadShards(CorpusShards(corpus_of([])), -1)


TEXT = [["ä\n", "b"], ["b", "c", "d"], ["ä\n"], ["\u2028", ""]]


def test_stored_shards_are_memory_maps(tmp_path: Path) -> None:
    stored = write_shards(tmp_path / "new" / "s", CorpusShards(corpus_of(TEXT), 3))
    check(stored, TEXT)
    check(StoredShards(tmp_path / "new" / "s"), TEXT)
    shard = next(iter(stored))
    codes = shard.column("word").codes  # a read-only view of a map
    assert codes.base is not None
    assert isinstance(codes.base.base, np.memmap)
    assert not list((tmp_path / "new").glob(".*"))
    assert (tmp_path / "new" / "s").stat().st_mode & 0o777 == 0o755


def test_stored_shards_join_other_vocabularies(tmp_path: Path) -> None:
    write_shards(tmp_path / "s", CorpusShards(corpus_of(TEXT), 3))
    word = Vocabulary(["x", "c", "b"])
    stored = StoredShards(tmp_path / "s", {"word": word})
    check(stored, TEXT)
    assert all(shard.column("word").vocabulary is word for shard in stored)
    assert word.strings == ["x", "c", "b", "ä\n", "d", "\u2028", ""]
    shared: dict[str, Vocabulary] = {}
    StoredShards(tmp_path / "s", shared)
    assert list(shared) == ["word"]


def test_no_text_at_all_can_be_stored(tmp_path: Path) -> None:
    check(write_shards(tmp_path / "s", CorpusShards(corpus_of([]))), [])


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    class Failing:
        n_sentences = n_tokens = 1

        def __iter__(self) -> Iterator[Corpus]:
            yield corpus_of([["a"]])
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError):
        write_shards(tmp_path / "s", Failing())
    strangers = ChainedShards([CorpusShards(corpus_of([["a"]])), CorpusShards(corpus_of([["a"]]))])
    with pytest.raises(ValueError, match="share"):
        write_shards(tmp_path / "s", strangers)
    assert list(tmp_path.iterdir()) == []


def test_two_writers_of_one_cache(tmp_path: Path) -> None:
    class Late:
        n_sentences = n_tokens = 1

        def __iter__(self) -> Iterator[Corpus]:
            write_shards(tmp_path / "s", CorpusShards(corpus_of([["first"]])))
            yield corpus_of([["second"]])

    check(write_shards(tmp_path / "s", Late()), [["first"]])
    assert [path.name for path in tmp_path.iterdir()] == ["s"]
    with pytest.raises(UserError, match="exists already"):
        write_shards(tmp_path / "s", CorpusShards(corpus_of([])))


def test_damage_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    with pytest.raises(UserError, match="no shards here"):
        StoredShards(folder)
    stored = write_shards(folder, CorpusShards(corpus_of(TEXT), 3))
    column = folder / "000001.column0.npy"
    column.write_bytes(column.read_bytes()[:-4])
    with pytest.raises(UserError, match=r"000001.*damaged shard"):
        list(stored)
    np.save(folder / "000000.offsets.npy", np.array([0, 2]))
    np.save(folder / "000000.column0.npy", np.array([0, 1], dtype=np.int32))
    np.save(folder / "000000.offsets.npy", np.array([0, 1, 2]))
    with pytest.raises(UserError, match="not that of the index"):
        list(stored)
    (folder / "shards.json").write_text('{"format": 99}')
    with pytest.raises(UserError, match="another format"):
        StoredShards(folder)
    (folder / "shards.json").write_text("{")
    with pytest.raises(UserError, match="damaged"):
        StoredShards(folder)
