"""Data sets of the canaries, generated from `synth`: chunks, letters with pixels, words to segment.

They are registered beside the datasets of the project, for the canaries alone.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np

from sslbench.engine.corpus import Column, Corpus, CorpusShards, Vocabulary
from sslbench.experiment.data import DataHome, Dataset
from sslbench.plugins import Registry, registry
from sslbench.plugins.registrations import DatasetInfo
from sslbench.testing.toys import with_weak_sources
from sslbench_datasets.chinese.text import SegmentedText, segmentation_dataset
from sslbench_datasets.synth.load import load

SIZES = {"train": 160, "dev": 30, "test": 80, "unlabeled": 120, "lexicon": 300}
_CHUNKS = {"DET": "NP", "ADJ": "NP", "NOUN": "NP", "PRON": "NP", "VERB": "VP", "ADV": "VP"}
_LETTERS = 5


@cache
def _synth() -> Dataset:
    return load(DataHome(), **SIZES)


def _text(data: Dataset) -> Corpus:
    assert data.external is not None
    (shard,) = data.external()
    return shard


def chunks(home: DataHome) -> Dataset:
    """The tags of synth as column pos, runs of them as chunks in IOB2; a tenth are cut."""
    data, names = _synth(), Vocabulary(("O", "B-NP", "I-NP", "B-VP", "I-VP"))

    def labeled(corpus: Corpus) -> Corpus:
        cut = np.random.default_rng(corpus.n_tokens).random(corpus.n_tokens) < 0.1
        first, labels, last = set(corpus.offsets.tolist()), [], ""
        for place, tag in enumerate(corpus.column("label").strings()):
            chunk = _CHUNKS.get(tag, "")
            inside = chunk == last and place not in first and not cut[place]
            labels.append("O" if not chunk else f"{'I' if inside else 'B'}-{chunk}")
            last = chunk
        pos = corpus.column("label")
        codes = names.encode(labels)
        return Corpus(
            {"word": corpus.column("word"), "pos": pos, "label": Column(names, codes)},
            corpus.offsets,
        )

    splits = {name: labeled(part) for name, part in data.splits.items()}
    return Dataset("canary_chunks", "spans", "f1", "IOB2", splits)


def weak(home: DataHome) -> Dataset:
    """`chunks` with weak labels."""
    return replace(with_weak_sources(chunks(home)), name="canary_weak")


def letters(home: DataHome) -> Dataset:
    """Noisy images of five letters, in an order that the letter before predicts."""
    rng = np.random.default_rng(7)
    shapes = rng.random((_LETTERS, 128)) < 0.5
    names = Vocabulary("abcde")

    def corpus(n: int) -> Corpus:
        lengths = rng.integers(2, 7, size=n)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        steps = rng.choice([1, 2, 3], p=[0.8, 0.15, 0.05], size=int(offsets[-1]))
        gold = (np.cumsum(steps) % _LETTERS).astype(np.int32)
        pixels = shapes[gold] ^ (rng.random((len(gold), 128)) < 0.4)
        images = [bytes(row).hex() for row in np.packbits(pixels, axis=1)]
        vocabulary = Vocabulary(sorted(set(images)))
        column = Column(vocabulary, vocabulary.encode(images))
        return Corpus({"image": column, "label": Column(names, gold)}, offsets)

    splits = {name: corpus(n) for name, n in {"train": 60, "dev": 20, "test": 60}.items()}
    return Dataset("canary_letters", "tagging", "accuracy", None, splits)


def joint(home: DataHome, *, tags: bool = True) -> Dataset:
    """The words of synth as characters to segment, with the tags of the words or without."""
    data = _synth()

    def words(corpus: Corpus) -> SegmentedText:
        gold = corpus.column("label").strings() if tags else [""] * corpus.n_tokens
        return SegmentedText(corpus.column("word").strings(), gold, corpus.lengths.tolist())

    texts = {name: words(part) for name, part in data.splits.items()}
    found = segmentation_dataset("canary_joint", texts)
    vocabulary = found.splits["train"].column("word").vocabulary
    plain = segmentation_dataset("text", {"train": words(_with_tags(_text(data)))})
    text = plain.splits["train"].drop("label")
    codes = vocabulary.encode(text.column("word").strings())
    text = text.with_column("word", Column(vocabulary, codes))
    return replace(found, external=partial(CorpusShards, text))


def segmented(home: DataHome) -> Dataset:
    """`joint` without tags."""
    return joint(home, tags=False)


def _with_tags(corpus: Corpus) -> Corpus:
    tags = Vocabulary(("X",))
    return corpus.with_column("label", Column(tags, np.zeros(corpus.n_tokens, np.int32)))


def plugins() -> Registry:
    """The plugins of the project and the datasets of this module."""
    common = {"summary": "", "reference": "", "licence": "", "protocol": ""}
    kinds = {
        "chunks": ("spans", "f1", "chunk39"),
        "weak": ("spans", "f1", "chunk39"),
        "letters": ("tagging", "accuracy", "pixels3"),
        "joint": ("joint", "joint_f1", "zh_char"),
        "segmented": ("segmentation", "seg_f1", "zh_char"),
    }
    own = {
        f"canary_{name}": DatasetInfo(
            name=f"canary_{name}",
            target=f"{__name__}:{name}",
            task=task,
            metric=metric,
            featurizer=featurizer,
            weak=("careful", "hasty") if name == "weak" else (),
            **common,
        )
        for name, (task, metric, featurizer) in kinds.items()
    }
    return replace(registry(), datasets={**registry().datasets, **own})


def user_file(folder: Path) -> Path:
    """A CoNLL file of a user: the words and tags of the train split of synth."""
    train = _synth().splits["train"]
    lines = [
        "\n".join(
            map(" ".join, zip(train.sentence(i, "word"), train.sentence(i, "label"), strict=True))
        )
        for i in range(train.n_sentences)
    ]
    path = folder / "train.conll"
    path.write_text("\n\n".join(lines) + "\n", encoding="utf-8")
    return path
