"""Registration of ``ebm_nlp``: participants, interventions and outcomes of clinical trials."""

from __future__ import annotations

from dataclasses import replace

from sslbench import DatasetInfo
from sslbench_datasets import references
from sslbench_datasets.adaptation.info import EBM as TEXT
from sslbench_datasets.genes.info import UNITS
from sslbench_datasets.upstream import size

EBM = replace(TEXT, extra=False)
N_DOCUMENTS = 960
# Split -> first and last abstract of the file, from 0; (sentences, tokens, mentions).
DOCUMENTS = {"train": (0, 639), "dev": (640, 799), "test": (800, 959)}
COUNTS = {
    "train": (4_852, 182_424, 11_515),
    "dev": (1_182, 42_293, 2_593),
    "test": (1_015, 37_410, 2_453),
}


def _sizes() -> str:
    return ", ".join(
        f"{split} = abstracts {first + 1} to {last + 1} ({size(COUNTS[split], *UNITS)})"
        for split, (first, last) in DOCUMENTS.items()
    )


DATASETS: tuple[DatasetInfo, ...] = (
    DatasetInfo(
        name="ebm_nlp",
        summary="participants, interventions and outcomes in abstracts of clinical trials",
        reference=f"{references.NYE_2018}; file: {references.BELTAGY_2019}",
        target="sslbench_datasets.pico.load:load",
        licence=EBM.licence,
        task="spans",
        metric="f1",
        featurizer="basic",
        protocol=(
            f"{_sizes()}; all {N_DOCUMENTS} abstracts are of SciBERT's dev file, a fifth of the"
            " published training data, labeled by crowd workers: SciBERT's train and the experts'"
            " test are not available, so published scores do not compare; a run of tokens of one"
            " type is a mention; SciBERT scores tokens, f1 here is of exact mentions; the text is"
            " also unlabeled text of bio; no external text"
        ),
        files=(EBM,),
        options="sslbench_datasets.loading:DocumentOptions",
        family="PICO",
    ),
)
