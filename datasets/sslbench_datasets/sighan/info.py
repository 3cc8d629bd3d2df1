"""SIGHAN 2005 word segmentation: the test texts are fetched, the training texts are the user's."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sslbench import DatasetInfo, RemoteFile
from sslbench_datasets.chinese.info import MSR, PKU, SXU

BAKEOFF = "http://sighan.cs.uchicago.edu/bakeoff2005/"


@dataclass(frozen=True)
class Bakeoff:
    """One corpus of the bakeoff.

    Attributes
    ----------
    files: the gold test text, then segmented texts that serve as raw ones (never its own test).
    train: the training text, below the data home; distributed by the bakeoff in icwb2-data.zip.
    train_words: in it, of the bakeoff's instructions (doc/instructions.txt).
    test_counts: (sentences, words, characters).
    """

    name: str
    corpus: str
    files: tuple[RemoteFile, ...]
    train: str
    train_words: int
    test_counts: tuple[int, int, int]


_SXU_TEXT = replace(SXU["train"], extra=True)

BAKEOFFS = (
    Bakeoff(
        name="msr",
        corpus="Microsoft Research",
        files=(replace(MSR, extra=False), PKU, _SXU_TEXT),
        train="icwb2-data/training/msr_training.utf8",
        train_words=2_368_391,
        test_counts=(3_985, 106_873, 184_355),
    ),
    Bakeoff(
        name="pku",
        corpus="Peking University",
        files=(replace(PKU, extra=False), MSR, _SXU_TEXT),
        train="icwb2-data/training/pku_training.utf8",
        train_words=1_109_947,
        test_counts=(1_944, 104_372, 172_733),
    ),
)
_SENTENCES = {"msr": 86_924, "pku": 19_056}
_OTHER = {"msr": "PKU", "pku": "MSR"}

DATASETS: tuple[DatasetInfo, ...] = tuple(
    DatasetInfo(
        name=bakeoff.name,
        summary=f"SIGHAN 2005, {bakeoff.corpus}: word segmentation; train is your own file",
        reference="T. Emerson: The second international Chinese word segmentation bakeoff. 2005",
        target=f"sslbench_datasets.sighan.load:load.{bakeoff.name}",
        licence=bakeoff.files[0].licence,
        task="segmentation",
        metric="seg_f1",
        featurizer="zh_char",
        protocol=(
            f"train = {bakeoff.train} of icwb2-data.zip ({BAKEOFF}), which is not fetched: put it"
            f" below the data home or give --set {bakeoff.name}.train=FILE"
            f" ({_SENTENCES[bakeoff.name]:,} sentences, {bakeoff.train_words:,} words); test ="
            f" gold test text ({bakeoff.test_counts[0]:,} sentences, {bakeoff.test_counts[1]:,}"
            f" words); no official development split; external text = {_OTHER[bakeoff.name]} test"
            " text and SXU train without spaces"
        ),
        files=bakeoff.files,
        own=f"your copy of {bakeoff.train}",
        options="sslbench_datasets.sighan.load:Options",
    )
    for bakeoff in BAKEOFFS
)
