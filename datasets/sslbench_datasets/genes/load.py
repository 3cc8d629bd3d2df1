"""Gene and protein names in MEDLINE sentences: ``bc2gm`` and ``genetag``, and samples of them.

Sources: L. Smith et al., Overview of BioCreative II gene mention recognition, 2008 (IOB2 files of
G. Crichton et al., 2017); L. Tanabe et al., GENETAG, 2005. ``bc2gm_jiao`` and ``genetag_jiao`` are
sampled as in Jiao et al. (2006).

``genetag`` is scored with the alternative answers (Correct.Data) that BioCreative I task 1A accepts
for many names: see `genetag.read_alternatives`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Literal

import msgspec
import numpy as np
from msgspec import Meta

from sslbench.engine.corpus import Corpus, CorpusShards, Shards, read_conll
from sslbench.engine.types import I64
from sslbench.experiment.data import DataHome, Dataset, Metadata
from sslbench.experiment.metrics import Alternatives
from sslbench_datasets.genes.genetag import read_alternatives, read_tagged, sentence_names
from sslbench_datasets.genes.info import (
    ALTERNATIVES,
    ALTERNATIVES_COUNTS,
    BC2GM,
    BC2GM_COUNTS,
    GENETAG,
    GENETAG_COUNTS,
    JIAO_WORDS,
)
from sslbench_datasets.loading import MENTIONS, Measure, digests, parse_options, read_splits
from sslbench_datasets.upstream import SPLITS

_JIAO_STREAM = 0x6A69616F  # second seed of the draw: other uses of the seed give other numbers


class JiaoOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of genetag_jiao and of bc2gm_jiao."""

    unlabeled: Annotated[
        Literal["B", "C", "D"], Meta(description="the set that is the external text")
    ] = "B"


ANSWERS = Measure[Alternatives](("alternative answers",), lambda spans: (len(spans.first),))


def load_bc2gm(home: DataHome) -> Dataset:
    """Read the three splits; UserError for a missing or malformed file or unexpected counts."""
    return _dataset("bc2gm", _read_bc2gm(home), digests(BC2GM))


def load_genetag(home: DataHome) -> Dataset:
    """Read the three splits and their alternative answers.

    UserError for a missing or malformed file or unexpected counts.
    """
    splits = _read_genetag(home)
    paths = {split: home.path(file) for split, file in ALTERNATIVES.items()}
    alternatives = {
        split: read_alternatives(
            path, sentence_names(home.path(GENETAG[split])), splits[split].offsets
        )
        for split, path in paths.items()
    }
    ANSWERS.check(alternatives, ALTERNATIVES_COUNTS, paths)
    metadata = {**digests(GENETAG), **digests(ALTERNATIVES, "alternatives_")}
    return _dataset("genetag", splits, metadata, alternatives=alternatives)


def load_genetag_jiao(home: DataHome, *, seed: int = 0, **options: object) -> Dataset:
    """Sample GENETAG's train; seed: seed of the sets A to E; `options` are those of `JiaoOptions`.

    UserError for a bad option, a missing or malformed file, or unexpected counts.
    """
    settings = parse_options("genetag_jiao", options, JiaoOptions)
    train = _read_genetag(home, ["train"])["train"]
    return _sample("genetag_jiao", train, seed, settings.unlabeled, GENETAG["train"].sha256)


def load_bc2gm_jiao(home: DataHome, *, seed: int = 0, **options: object) -> Dataset:
    """Sample BC2GM's train; seed: seed of the sets A to E; `options` are those of `JiaoOptions`.

    UserError for a bad option, a missing or malformed file, or unexpected counts.
    """
    settings = parse_options("bc2gm_jiao", options, JiaoOptions)
    train = _read_bc2gm(home, ["train"])["train"]
    return _sample("bc2gm_jiao", train, seed, settings.unlabeled, BC2GM["train"].sha256)


def _read_bc2gm(home: DataHome, splits: Sequence[str] = SPLITS) -> dict[str, Corpus]:
    files = {split: BC2GM[split] for split in splits}
    read = partial(
        read_conll,
        columns=("word", "label"),
        vocabularies={},
        separator="\t",
        skip=(),
        scheme="IOB2",
    )
    return read_splits(home, files, read, BC2GM_COUNTS, MENTIONS)


def _read_genetag(home: DataHome, splits: Sequence[str] = SPLITS) -> dict[str, Corpus]:
    files = {split: GENETAG[split] for split in splits}
    return read_splits(home, files, partial(read_tagged, vocabularies={}), GENETAG_COUNTS, MENTIONS)


def _sample(name: str, corpus: Corpus, seed: int, unlabeled: str, sha256: str) -> Dataset:
    """The sets of Jiao et al.: A is train, `unlabeled` (B, C or D) the external text, E test.

    The split "transductive" is the external text with its labels (the paper's table 1), which only
    the scorer sees; "test" is E (table 2).
    """
    ids = jiao_sets(corpus, seed)
    sets = {part: corpus.select(numbers) for part, numbers in ids.items()}
    text = sets[unlabeled]
    splits = {"train": sets["A"], "test": sets["E"], "transductive": text}
    metadata: dict[str, float | int | str] = {"sha256": sha256}
    metadata |= {f"{part}_words": sample.n_tokens for part, sample in sets.items()}
    metadata |= {f"{part}_sentences": sample.n_sentences for part, sample in sets.items()}
    return _dataset(
        name,
        splits,
        metadata,
        external=partial(CorpusShards, text.drop("label")),
        sentence_ids={"train": ids["A"], "test": ids["E"], "transductive": ids[unlabeled]},
    )


def _dataset(
    name: str,
    splits: Mapping[str, Corpus],
    metadata: Metadata,
    *,
    external: Callable[[], Shards] | None = None,
    alternatives: Mapping[str, Alternatives] | None = None,
    sentence_ids: Mapping[str, I64] | None = None,
) -> Dataset:
    return Dataset(
        name=name,
        task="spans",
        metric="alt_f1" if alternatives else "f1",
        encoding="IOB2",
        splits=splits,
        external=external,
        metadata=metadata,
        alternatives=alternatives or {},
        sentence_ids=sentence_ids or {},
    )


def jiao_sets(corpus: Corpus, seed: int) -> dict[str, I64]:
    """Sentence numbers of the sets A to E, each ascending: disjoint, drawn without replacement.

    The sets follow each other in a random permutation of the sentences. Each ends with the sentence
    whose end is nearest to the sum of the sizes JIAO_WORDS so far.
    ValueError if the corpus has fewer words than the sets together.
    """
    if corpus.n_tokens < sum(JIAO_WORDS.values()):
        raise ValueError(f"{corpus.n_tokens} words are not enough for the sets {JIAO_WORDS}")
    order = np.random.default_rng([seed, _JIAO_STREAM]).permutation(corpus.n_sentences)
    ends = np.cumsum(corpus.lengths[order])
    sets, first, words = {}, 0, 0
    for name, n_words in JIAO_WORDS.items():
        words += n_words
        last = int(np.abs(ends - words).argmin()) + 1
        sets[name] = np.sort(order[first:last]).astype(np.int64)
        first = last
    return sets
