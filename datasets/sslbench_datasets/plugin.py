"""Registration of the built-in datasets and of the similarity of letters."""

from __future__ import annotations

from sslbench import DatasetInfo, SimilarityInfo, hookimpl
from sslbench_datasets.adaptation import info as adaptation
from sslbench_datasets.bond import info as bond
from sslbench_datasets.chat import info as chat
from sslbench_datasets.chinese import info as chinese
from sslbench_datasets.conll00 import info as conll00
from sslbench_datasets.ctb import info as ctb
from sslbench_datasets.genes import info as genes
from sslbench_datasets.genres import info as genres
from sslbench_datasets.letters import info as letters
from sslbench_datasets.months import info as months
from sslbench_datasets.mtl import info as mtl
from sslbench_datasets.ner import info as ner
from sslbench_datasets.pico import info as pico
from sslbench_datasets.sighan import info as sighan
from sslbench_datasets.synth import info as synth
from sslbench_datasets.treebank import info as treebank
from sslbench_datasets.ud import info as ud

FAMILIES = (
    synth,
    conll00,
    ner,
    months,
    ud,
    chinese,
    sighan,
    ctb,
    treebank,
    genes,
    letters,
    adaptation,
    bond,
    chat,
    genres,
    pico,
    mtl,
)


@hookimpl
def sslbench_datasets() -> list[DatasetInfo]:
    """The built-in datasets, in the order in which they are listed."""
    return [info for family in FAMILIES for info in family.DATASETS]


@hookimpl
def sslbench_similarities() -> list[SimilarityInfo]:
    """The similarities that belong to a dataset."""
    return list(letters.SIMILARITIES)
