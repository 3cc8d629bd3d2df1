"""Text of the generated language for tests."""

from __future__ import annotations

from pathlib import Path

from sslbench.engine.corpus import Corpus
from sslbench.experiment.data import DataHome
from sslbench_datasets.synth.load import load


def synth_text(n_sentences: int, seed: int, **options: float) -> Corpus:
    """Labeled sentences, columns word and label."""
    home = DataHome(Path("/nowhere"), Path("/nowhere"), offline=True)
    sizes = {"train": n_sentences, "dev": 0, "test": 1, "unlabeled": 0}
    return load(home, **sizes, seed=seed, **options).splits["train"]
