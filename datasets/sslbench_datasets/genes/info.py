"""Registrations of the gene mention corpora BC2GM and GENETAG, and of samples of them."""

from __future__ import annotations

from collections.abc import Mapping

from sslbench import DatasetInfo
from sslbench_datasets import references
from sslbench_datasets.upstream import GITHUB, Upstream, size

MTL = f"{GITHUB}/cambridgeltl/MTL-Bioinformatics-2016/df0df02fae6dbb87d88ffcf323b9096528f06f84/data"
_BC2GM = Upstream(
    "mtl-bioinformatics-2016/BC2GM-IOB",
    f"{MTL}/BC2GM-IOB",
    "CC BY 4.0 (LICENSE.md of the converters' repository, materials other than code)",
)
_GENETAG = Upstream(
    "genetag",
    f"{GITHUB}/openbiocorpora/genetag/308185a4bac79537aac3c65b1428ef89b798db87/original-data",
    "public domain (US Government work)",
)
BC2GM = _BC2GM.splits("""
train.tsv 2894167 46e17f4e1509483b82c03f27d6f0214020f738fb71704356fb3445eb824ab38d
devel.tsv 577660 33a94577aa22f1e70ec9e02781a05baa4e1390e866d28bf2b344888e4e3d4103
test.tsv 1165057 30d7a4f571ca8ed22a044528063ba5d0388d666d8b8b329733d6927e5fb30764
""")
# Upstream's "test" is the development test, "round1" the test of BioCreative I.
GENETAG = _GENETAG.splits("""
train/TAGGED_GENE_CORPUS 1979042 6c828d38e4ba8721632f1fd02000e239b978f3cbca3919651712834233864fb1
test/TAGGED_GENE_CORPUS 659235 064a8dd9d7163fa6c65009dabde35d225431735c34d7d4ed5d71ec6295522780
round1/TAGGED_GENE_CORPUS 1330500 21756bcab8002ef43ad04f89e01a2563fe7c9a168ce4fb544c4d232528abeada
""")
ALTERNATIVES = _GENETAG.splits("""
train/Correct.Data 243117 077e460c0df06ae7666c800bc14a373bdc156a6de8a9f2bf9685ec1bf420308c
test/Correct.Data 81154 057afa45b11a389b002ad5cf43bc04d1e71f05c21b0b6c6fa150c123e16baed3
round1/Correct.Data 156138 69045acfecb5b5e214497f5228cf23bc067656c06d41a24700fccc7d539b35a8
""")

UNITS = ("sentences", "tokens", "mentions")
# In UNITS.
BC2GM_COUNTS = {
    "train": (12_574, 355_405, 15_197),
    "dev": (2_519, 71_042, 3_061),
    "test": (5_038, 143_465, 6_325),
}
GENETAG_COUNTS = {
    "train": (7_500, 196_620, 8_881),
    "dev": (2_500, 65_519, 2_986),
    "test": (5_000, 132_522, 5_949),
}
# Distinct spans of Correct.Data.
ALTERNATIVES_COUNTS = {"train": (6_591,), "dev": (2_158,), "test": (4_275,)}
# Words of the five sets of Jiao et al. (2006).
JIAO_WORDS = {"A": 5_448, "B": 5_210, "C": 10_208, "D": 25_145, "E": 138_892}

_BC2GM_PAPERS = f"{references.SMITH_2008}; converted by {references.CRICHTON_2017}"


def _sizes(counts: Mapping[str, tuple[int, int, int]], **upstream: str) -> str:
    return ", ".join(
        f"{split}{f' = upstream {upstream[split]}' if split in upstream else ''}"
        f" ({size(numbers, *UNITS)})"
        for split, numbers in counts.items()
    )


def _jiao(name: str, source: DatasetInfo, corpus: str) -> DatasetInfo:
    words = {part: f"{part} ({count:,} words)" for part, count in JIAO_WORDS.items()}
    return DatasetInfo(
        name=name,
        summary=f"{corpus} train sampled as in Jiao et al. 2006: few labels, little raw text",
        reference=f"{references.JIAO_2006}; {source.reference}",
        target=f"sslbench_datasets.genes.load:load_{name}",
        licence=source.licence,
        task="spans",
        family="genes",
        metric="f1",
        featurizer="gene2005",
        protocol=(
            f"disjoint random sentences of {corpus}'s train, drawn by --seed, with the paper's"
            f" numbers of words: train = {words['A']}, external text = {words['B']}, {words['C']}"
            f" or {words['D']}, test = {words['E']}, transductive = the external text with its"
            " labels, which methods do not see; no development split. The paper uses another"
            " corpus: compare the signs of differences, not the scores"
        ),
        files=source.files[:1],
        options="sslbench_datasets.genes.load:JiaoOptions",
        draws=True,
    )


_BC2GM_INFO = DatasetInfo(
    name="bc2gm",
    summary="gene mentions of BioCreative II (MEDLINE sentences)",
    reference=_BC2GM_PAPERS,
    target="sslbench_datasets.genes.load:load_bc2gm",
    licence=_BC2GM.licence,
    task="spans",
    family="genes",
    metric="f1",
    featurizer="basic",
    protocol=(
        f"{_sizes(BC2GM_COUNTS)}; exact match, without the alternative answers of BioCreative;"
        " train and dev are GENETAG's text: never treat the two corpora as independent; no"
        " external text"
    ),
    files=tuple(BC2GM.values()),
)
_GENETAG_INFO = DatasetInfo(
    name="genetag",
    summary="GENETAG, the gene mentions of BioCreative I task 1A (MEDLINE sentences)",
    reference=references.TANABE_2005,
    target="sslbench_datasets.genes.load:load_genetag",
    licence=_GENETAG.licence,
    task="spans",
    family="genes",
    metric="alt_f1",
    featurizer="basic",
    protocol=(
        f"{_sizes(GENETAG_COUNTS, dev='test', test='round1')}; alt_f1 accepts the alternative"
        " answers, as the shared task did, f1 does not; most of the text is in bc2gm too; no"
        " external text"
    ),
    files=(*GENETAG.values(), *ALTERNATIVES.values()),
)
DATASETS: tuple[DatasetInfo, ...] = (
    _BC2GM_INFO,
    _GENETAG_INFO,
    _jiao("genetag_jiao", _GENETAG_INFO, "GENETAG"),
    _jiao("bc2gm_jiao", _BC2GM_INFO, "BC2GM"),
)
