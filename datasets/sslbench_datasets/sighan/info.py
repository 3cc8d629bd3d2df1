"""Registrations of SIGHAN 2005 word segmentation; users bring the training texts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sslbench import DatasetInfo, RemoteFile
from sslbench_datasets import references
from sslbench_datasets.chinese.info import MSR, PKU, SXU_TEXT, UNITS
from sslbench_datasets.upstream import size

URL = "http://sighan.cs.uchicago.edu/bakeoff2005/"


@dataclass(frozen=True)
class Bakeoff:
    """One corpus of the bakeoff.

    Attributes
    ----------
    source: who segmented it.
    test: gold test text.
    raw: segmented texts of other corpora, the external text.
    train: path of the training text below the data home; it is part of the bakeoff's
        icwb2-data.zip.
    train_words: its length according to the bakeoff's doc/instructions.txt.
    test_counts: (sentences, words, characters).
    """

    name: str
    source: str
    test: RemoteFile
    raw: tuple[RemoteFile, ...]
    train: str
    train_words: int
    test_counts: tuple[int, int, int]


BAKEOFFS = (
    Bakeoff(
        name="msr",
        source="Microsoft Research",
        test=replace(MSR, extra=False),
        raw=(PKU, SXU_TEXT),
        train="icwb2-data/training/msr_training.utf8",
        train_words=2_368_391,
        test_counts=(3_985, 106_873, 184_355),
    ),
    Bakeoff(
        name="pku",
        source="Peking University",
        test=replace(PKU, extra=False),
        raw=(MSR, SXU_TEXT),
        train="icwb2-data/training/pku_training.utf8",
        train_words=1_109_947,
        test_counts=(1_944, 104_372, 172_733),
    ),
)
_TRAIN_SENTENCES = {"msr": 86_924, "pku": 19_056}
_OTHER = {"msr": "PKU", "pku": "MSR"}

DATASETS: tuple[DatasetInfo, ...] = tuple(
    DatasetInfo(
        name=bakeoff.name,
        summary=f"SIGHAN 2005, {bakeoff.source}: word segmentation; train is your own file",
        reference=references.EMERSON_2005,
        target=f"sslbench_datasets.sighan.load:load.{bakeoff.name}",
        licence=bakeoff.test.licence,
        task="segmentation",
        family="Chinese",
        metric="seg_f1",
        featurizer="zh_char",
        protocol=(
            f"train = {bakeoff.train} of icwb2-data.zip ({URL}),"
            f" {_TRAIN_SENTENCES[bakeoff.name]:,} sentences, {bakeoff.train_words:,} words; it is"
            f" not downloaded: copy it below the data home or give --set {bakeoff.name}.train=FILE;"
            f" test = gold test text ({size(bakeoff.test_counts, *UNITS)}); no official"
            f" development split; external text = {_OTHER[bakeoff.name]} test text and SXU train"
            " without spaces"
        ),
        files=(bakeoff.test, *bakeoff.raw),
        own=f"your copy of {bakeoff.train}",
        options="sslbench_datasets.sighan.load:Options",
    )
    for bakeoff in BAKEOFFS
)
