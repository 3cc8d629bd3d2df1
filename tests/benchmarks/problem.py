"""The problem that both sides get: CoNLL-2000, or generated text when it is not there.

Variables, which `sslbench bench` sets: SSLBENCH_BENCH_SENTENCES (0 = all; a plain run of the tests
takes few), SSLBENCH_BENCH_ROUNDS, and SSLBENCH_BENCH_OUT, a file that the figures are written to.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.sparse import coo_array, csr_array

from sslbench.engine.corpus import Column, Corpus, Vocabulary
from sslbench.engine.errors import UserError
from sslbench.experiment.data import DataHome
from sslbench.plugins import registry

SENTENCES = int(os.environ.get("SSLBENCH_BENCH_SENTENCES", "80"))
ROUNDS = int(os.environ.get("SSLBENCH_BENCH_ROUNDS", "1"))
OUT = os.environ.get("SSLBENCH_BENCH_OUT")
TEMPLATES = Path(__file__).parent / "tutorial.template"

Figure = Callable[..., None]


@dataclass(frozen=True)
class Text:
    """Columns word, pos, label; the same sentences as objects and as files."""

    source: str
    train: Corpus
    test: Corpus
    train_file: Path
    test_file: Path


def _conll00() -> tuple[Corpus, Corpus]:
    dataset = registry().dataset("conll00").load()(DataHome(offline=True))
    return dataset.splits["train"], dataset.splits["test"]


def _synthetic() -> tuple[Corpus, Corpus]:
    """About as much generated text; two letters of the word stand in for a part of speech."""
    from support.synth_text import synth_text

    text = synth_text(8_936 + 2_012, seed=0, lexicon=10_000)
    words = text.column("word")
    endings = Vocabulary()
    codes = endings.encode(word[-2:] for word in words.vocabulary.strings)
    text = text.with_column("pos", Column(endings, codes[words.codes]))
    text = Corpus({name: text.column(name) for name in ("word", "pos", "label")}, text.offsets)
    return text.between(0, 8_936), text.between(8_936, text.n_sentences)


def _head(corpus: Corpus, n: int) -> Corpus:
    return corpus.select(np.arange(min(n or corpus.n_sentences, corpus.n_sentences)))


def _write(path: Path, corpus: Corpus) -> Path:
    with path.open("w", encoding="utf-8") as file:
        for i in range(corpus.n_sentences):
            rows = zip(*(corpus.sentence(i, name) for name in corpus.columns), strict=True)
            file.write("\n".join(map(" ".join, rows)) + "\n\n")
    return path


def find_text(folder: Path) -> Text:
    """The sentences; files of them go to `folder`."""
    try:
        source, (train, test) = "CoNLL-2000", _conll00()
    except UserError:
        source, (train, test) = "generated text", _synthetic()
    train, test = _head(train, SENTENCES), _head(test, SENTENCES)
    return Text(
        f"{source}, {train.n_sentences} sentences",
        train,
        test,
        _write(folder / "train.txt", train),
        _write(folder / "test.txt", test),
    )


MEAN_DEGREE = 8


def five_nearest(V: int) -> csr_array:
    """As many edges as a union of five nearest neighbors has, near in number for the most part."""
    rng = np.random.default_rng(0)
    u = rng.integers(0, V, MEAN_DEGREE * V // 2)
    near = rng.geometric(1e-3, len(u))
    v = np.where(rng.random(len(u)) < 0.8, (u + near) % V, rng.integers(0, V, len(u)))
    kept = u != v
    half = coo_array((rng.uniform(0.1, 1, kept.sum()), (u[kept], v[kept])), shape=(V, V)).tocsr()
    return (half + half.T).tocsr()
