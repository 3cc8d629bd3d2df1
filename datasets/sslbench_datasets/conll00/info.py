"""Registration of ``conll00``, the chunking task of CoNLL-2000."""

from __future__ import annotations

from dataclasses import replace

from sslbench import DatasetInfo
from sslbench_datasets import references
from sslbench_datasets.reuters.info import REUTERS, TEXT
from sslbench_datasets.upstream import GITHUB, NLTK, Upstream, size

_FILE = Upstream(
    "nltk_data",
    NLTK,
    "none stated upstream; the text is Wall Street Journal (Penn Treebank, LDC)",
    agreement=True,
).file("conll2000.zip", 756607, "01e65164f268366e7caa0db92332a1955d081908c87016e2c7640c3c5279b7cd")
_MIRROR = f"{GITHUB}/nltk/nltk_data/gh-pages/packages/corpora/conll2000.zip"
CONLL2000 = replace(_FILE, urls=(*_FILE.urls, _MIRROR))

# (sentences, tokens), as in the shared task's paper.
COUNTS = {"train": (8_936, 211_727), "test": (2_012, 47_377)}

DATASETS: tuple[DatasetInfo, ...] = (
    DatasetInfo(
        name="conll00",
        summary="CoNLL-2000 chunking (Wall Street Journal), with Reuters newswire as raw text",
        reference=references.TJONG_KIM_SANG_2000,
        target="sslbench_datasets.conll00.load:load",
        licence=CONLL2000.licence,
        task="spans",
        family="newswire chunks",
        metric="f1",
        featurizer="chunk39",
        protocol=(
            f"train = WSJ sections 15-18 ({size(COUNTS['train'], 'sentences', 'tokens')}), test ="
            f" WSJ section 20 ({size(COUNTS['test'], 'sentences', 'tokens')}); no official"
            f" development split; {TEXT}"
        ),
        files=(CONLL2000, *REUTERS),
        options="sslbench_datasets.loading:TextOptions",
    ),
)
