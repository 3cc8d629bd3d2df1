"""Registration of the built-in datasets."""

from __future__ import annotations

from sslbench import DatasetInfo, hookimpl
from sslbench_datasets.adaptation import info as adaptation
from sslbench_datasets.chinese import info as chinese
from sslbench_datasets.ctb import info as ctb
from sslbench_datasets.files import CONLL2000, REUTERS
from sslbench_datasets.genes import info as genes
from sslbench_datasets.letters import info as letters
from sslbench_datasets.ner import info as ner
from sslbench_datasets.sighan import info as sighan
from sslbench_datasets.treebank import info as treebank
from sslbench_datasets.ud import info as ud


@hookimpl
def sslbench_datasets() -> list[DatasetInfo]:
    """Return the built-in datasets."""
    return [
        DatasetInfo(
            name="synth",
            summary="a generated language with a known Bayes-optimal accuracy; needs no file",
            reference="sslbench's own generator (sslbench_datasets/synth/load.py)",
            target="sslbench_datasets.synth.load:load",
            licence="none needed: generated from a seed",
            task="tagging",
            metric="accuracy",
            featurizer="pos47",
            protocol=(
                "train 400, dev 200, test 400 sentences; 3,000 more without labels as external"
                " text; the accuracy of the true model's posterior decoding on the same test"
                " sentences is reported as bayes_accuracy"
            ),
            options="sslbench_datasets.synth.load:Options",
        ),
        DatasetInfo(
            name="conll00",
            summary="CoNLL-2000 chunking (Wall Street Journal), with Reuters newswire as raw text",
            reference=(
                "E. F. Tjong Kim Sang, S. Buchholz: Introduction to the CoNLL-2000 shared task:"
                " chunking. CoNLL 2000"
            ),
            target="sslbench_datasets.conll00.load:load",
            licence=CONLL2000.licence,
            task="spans",
            metric="f1",
            featurizer="chunk39",
            protocol=(
                "train = WSJ 15-18 (8,936 sentences, 211,727 tokens), test = WSJ 20 (2,012"
                " sentences, 47,377 tokens), no official development split; external text ="
                " 7 files of Reuters-21578, tagged by a tagger trained on train's POS column"
            ),
            files=(CONLL2000, *REUTERS),
            tune=4,  # the grid of the Gaussian prior, on a fifth of train as in Suzuki & Isozaki
        ),
        *ner.DATASETS,
        *ud.DATASETS,
        *chinese.DATASETS,
        *sighan.DATASETS,
        *ctb.DATASETS,
        *treebank.DATASETS,
        *genes.DATASETS,
        *letters.DATASETS,
        *adaptation.DATASETS,
    ]
