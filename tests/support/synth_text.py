"""Text of the generated language for tests."""

from __future__ import annotations

from pathlib import Path

from sslbench.engine.corpus import Corpus
from sslbench.experiment.data import DataHome
from sslbench_datasets.synth.load import load

#: with attributes of every kind: of one slot, of two, of a bag, on nodes and on edges
TEMPLATES = (
    *("word[0]", "word[-1]|word[0]", "bag: word[-3..-1]", "word.suffix2[0]"),
    *("edge: word[0]", "edge: word.suffix1[-1]", "edge: word.suffix2[0]"),
)


def synth_text(n_sentences: int, seed: int, **options: float) -> Corpus:
    """Labeled sentences, columns word and label."""
    home = DataHome(Path("/nowhere"), Path("/nowhere"), offline=True)
    sizes = {"train": n_sentences, "dev": 0, "test": 1, "unlabeled": 0}
    return load(home, **sizes, seed=seed, **options).splits["train"]
