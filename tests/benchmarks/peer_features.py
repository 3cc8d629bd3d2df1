"""Our training beside python-crfsuite's, on the node attributes of any featurizer.

    python tests/benchmarks/peer_features.py DATASET:SENTENCES[:FEATURIZER] ...

0 SENTENCES = all. Transitions have weights of label pairs alone, as the peer's. Wall seconds from
attributes to an objective within 1e-4 of the better of both; start it with NUMBA_NUM_THREADS.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice

import numpy as np
import ours
import peer

from sslbench.engine.corpus import Corpus
from sslbench.engine.crf import ChainCRF
from sslbench.engine.features import TemplateFeaturizer
from sslbench.experiment.data import DataHome, Dataset
from sslbench.plugins import registry

CLOSE = 1e-4


def problem(word: str) -> tuple[Corpus, TemplateFeaturizer]:
    """The sentences, drawn at random, and the featurizer without templates of transitions."""
    name, sentences, *features = word.split(":")
    info, train = registry().dataset(name), dataset(name).splits["train"]
    order = np.random.default_rng(0).permutation(train.n_sentences)
    chosen = registry().featurizer(features[0] if features else info.featurizer).load()()
    own = [template for template in chosen.templates if not template.edge]
    return train.select(order[: int(sentences) or None]), TemplateFeaturizer(own)


def dataset(name: str) -> Dataset:
    """A registered dataset."""
    found: Dataset = registry().dataset(name).load()(DataHome(offline=True))
    return found


def strings(crf: ChainCRF, corpus: Corpus, codes: np.ndarray) -> peer.Trainer:
    """A trainer that holds the same attributes as strings."""
    trainer, labels = peer.Trainer(), iter([crf.labels[code] for code in codes])
    for sentence in rows(crf, corpus):
        trainer.append(sentence, list(islice(labels, len(sentence))))
    return trainer


def rows(crf: ChainCRF, corpus: Corpus) -> Iterator[list[list[str]]]:
    """The known attributes of each token of each sentence, as strings."""
    names = [f"{i:x}" for i in range(crf.index.n_node)]
    node = crf.encode(corpus).attributes.node.T
    for first, last in zip(corpus.offsets[:-1], corpus.offsets[1:], strict=True):
        yield [[names[i] for i in row if i >= 0] for row in node[first:last].tolist()]


def main() -> None:
    """A line for each problem."""
    for word in sys.argv[1:]:
        corpus, featurizer = problem(word)
        ours.train(*warm_up(corpus, featurizer))
        crf, codes = ours.prepare(corpus, featurizer)
        trainer = strings(crf, corpus, codes)
        began = time.perf_counter()
        mine = ours.train(crf, corpus, codes)
        took = time.perf_counter() - began
        with tempfile.NamedTemporaryFile() as model:
            theirs = peer.train(trainer, model.name)
        assert mine.n_weights == theirs.n_weights, (mine.n_weights, theirs.n_weights)
        target = min(mine.final, theirs.final) * (1 + CLOSE)
        a, b = mine.time_to(target), theirs.time_to(target)
        print(
            f"{word}: {corpus.n_tokens:,} tokens, {len(crf.labels)} labels,"
            f" {len(featurizer.templates)} templates, {mine.n_weights:,} weights; ours {a:.2f} s"
            f" ({took:.2f} to its end), peer {b:.2f} s: {b / a:.1f} times as fast",
            flush=True,
        )


def warm_up(corpus: Corpus, featurizer: TemplateFeaturizer) -> tuple[ChainCRF, Corpus, np.ndarray]:
    """A small training, which compiles."""
    part = corpus.select(np.arange(min(corpus.n_sentences, 200)))
    crf, codes = ours.prepare(part, featurizer)
    return crf, part, codes


if __name__ == "__main__":
    main()
