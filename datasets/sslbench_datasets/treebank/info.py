"""Registrations of Wall Street Journal part-of-speech tagging: NLTK's sample, Penn Treebank III."""

from __future__ import annotations

from collections.abc import Mapping

from sslbench import DatasetInfo
from sslbench_datasets import references
from sslbench_datasets.reuters.info import REUTERS, WORDS
from sslbench_datasets.upstream import NLTK, Upstream, size

SAMPLE = Upstream(
    "nltk_data",
    NLTK,
    "restricted: fragment of the Penn Treebank (C) LDC 1995, non-commercial use only",
    agreement=True,
).file("treebank.zip", 1740034, "9da92d76c3666cfb6cddeaed0f7e86b344cce0f0928a286d439e555f19c37399")

# Split -> first and last: files wsj_0001 to wsj_0199; sections 00 to 24.
SAMPLE_FILES = {"train": (1, 139), "dev": (140, 159), "test": (160, 199)}
PTB_SECTIONS = {"train": (0, 18), "dev": (19, 21), "test": (22, 24)}

# Split -> (sentences, tokens). PTB_COUNTS are published, for instance by K. Toutanova et al.,
# Feature-rich part-of-speech tagging with a cyclic dependency network, 2003.
SAMPLE_COUNTS = {"train": (3_068, 73_842), "dev": (328, 7_951), "test": (518, 12_291)}
PTB_COUNTS = {"train": (38_219, 912_344), "dev": (5_527, 131_768), "test": (5_462, 129_654)}

_LEAVES = "words and tags are the leaves of the trees except -NONE-"


def _sizes(
    unit: str, ranges: Mapping[str, tuple[int, int]], counts: Mapping[str, tuple[int, int]]
) -> str:
    return ", ".join(
        f"{split} = {unit} {first} to {last} ({size(counts[split], 'sentences', 'tokens')})"
        for split, (first, last) in ranges.items()
    )


DATASETS: tuple[DatasetInfo, ...] = (
    DatasetInfo(
        name="wsj_sample",
        summary="part-of-speech tagging, 45 tags: NLTK's sample of the Penn Treebank (WSJ)",
        reference=references.MARCUS_1993,
        target="sslbench_datasets.treebank.load:load_sample",
        licence=SAMPLE.licence,
        task="tagging",
        family="WSJ tags",
        metric="accuracy",
        featurizer="pos47",
        protocol=(
            f"{_sizes('files', SAMPLE_FILES, SAMPLE_COUNTS)}; no official split, this one is"
            f" that of sslbench; {_LEAVES}; {WORDS}"
        ),
        files=(SAMPLE, *REUTERS),
        options="sslbench_datasets.loading:TextOptions",
    ),
    DatasetInfo(
        name="ptb",
        summary="part-of-speech tagging, 45 tags: Penn Treebank III (WSJ), from your own folder",
        reference=f"{references.MARCUS_1993}; split: {references.SUZUKI_2008}",
        target="sslbench_datasets.treebank.load:load_ptb",
        licence="LDC99T42, available from the Linguistic Data Consortium only",
        task="tagging",
        family="WSJ tags",
        metric="accuracy",
        featurizer="pos47",
        protocol=(
            f"{_sizes('sections', PTB_SECTIONS, PTB_COUNTS)}; {_LEAVES}, with the first of"
            " ambiguous tags (JJ|NN); give the folder with --data FOLDER or --set ptb.path=FOLDER;"
            f" {WORDS}"
        ),
        files=REUTERS,
        own="your copy of LDC99T42",
        options="sslbench_datasets.treebank.load:Options",
    ),
)
