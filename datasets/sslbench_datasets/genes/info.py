"""Registrations of the gene mention corpora: BioCreative II (bc2gm), GENETAG, and their cuts."""

from __future__ import annotations

from sslbench import DatasetInfo, RemoteFile

_BC2GM = (
    "https://raw.githubusercontent.com/cambridgeltl/MTL-Bioinformatics-2016/"
    "df0df02fae6dbb87d88ffcf323b9096528f06f84/data/BC2GM-IOB/"
)
_BC2GM_LICENCE = "CC BY 4.0 (LICENSE.md of the converters' repository, materials other than code)"
_GENETAG = (
    "https://raw.githubusercontent.com/openbiocorpora/genetag/"
    "308185a4bac79537aac3c65b1428ef89b798db87/original-data/"
)
_GENETAG_LICENCE = "public domain (US Government work)"
_SMITH = (
    "L. Smith et al.: Overview of BioCreative II gene mention recognition. Genome Biology"
    " 9 (Suppl 2), 2008; converted by G. Crichton et al., BMC Bioinformatics 18, 2017"
)
_JIAO = (
    "F. Jiao, S. Wang, C.-H. Lee, R. Greiner, D. Schuurmans: Semi-supervised conditional random"
    " fields for improved sequence segmentation and labeling. ACL 2006"
)
_TANABE = (
    "L. Tanabe, N. Xie, L. H. Thom, W. Matten, W. J. Wilbur: GENETAG: a tagged corpus for"
    " gene/protein named entity recognition. BMC Bioinformatics 6 (Suppl 1), 2005"
)

# Split -> (name upstream, length in bytes, sha256).
_Facts = dict[str, tuple[str, int, str]]
_BC2GM_FACTS: _Facts = {
    "train": ("train", 2894167, "46e17f4e1509483b82c03f27d6f0214020f738fb71704356fb3445eb824ab38d"),
    "dev": ("devel", 577660, "33a94577aa22f1e70ec9e02781a05baa4e1390e866d28bf2b344888e4e3d4103"),
    "test": ("test", 1165057, "30d7a4f571ca8ed22a044528063ba5d0388d666d8b8b329733d6927e5fb30764"),
}
# Upstream's "test" is the development test, "round1" the test of BioCreative I.
_GENETAG_FACTS: _Facts = {
    "train": ("train", 1979042, "6c828d38e4ba8721632f1fd02000e239b978f3cbca3919651712834233864fb1"),
    "dev": ("test", 659235, "064a8dd9d7163fa6c65009dabde35d225431735c34d7d4ed5d71ec6295522780"),
    "test": ("round1", 1330500, "21756bcab8002ef43ad04f89e01a2563fe7c9a168ce4fb544c4d232528abeada"),
}

# Correct.Data of the same folders: the alternative answers.
_ALTERNATIVES_FACTS: _Facts = {
    "train": ("train", 243117, "077e460c0df06ae7666c800bc14a373bdc156a6de8a9f2bf9685ec1bf420308c"),
    "dev": ("test", 81154, "057afa45b11a389b002ad5cf43bc04d1e71f05c21b0b6c6fa150c123e16baed3"),
    "test": ("round1", 156138, "69045acfecb5b5e214497f5228cf23bc067656c06d41a24700fccc7d539b35a8"),
}

BC2GM = {
    split: RemoteFile(
        path=f"mtl-bioinformatics-2016/BC2GM-IOB/{name}.tsv",
        urls=(f"{_BC2GM}{name}.tsv",),
        sha256=sha256,
        licence=_BC2GM_LICENCE,
        bytes=length,
    )
    for split, (name, length, sha256) in _BC2GM_FACTS.items()
}


def _genetag(file: str, facts: _Facts) -> dict[str, RemoteFile]:
    return {
        split: RemoteFile(
            path=f"genetag/{name}/{file}",
            urls=(f"{_GENETAG}{name}/{file}",),
            sha256=sha256,
            licence=_GENETAG_LICENCE,
            bytes=length,
        )
        for split, (name, length, sha256) in facts.items()
    }


GENETAG = _genetag("TAGGED_GENE_CORPUS", _GENETAG_FACTS)
ALTERNATIVES = _genetag("Correct.Data", _ALTERNATIVES_FACTS)

DATASETS: tuple[DatasetInfo, ...] = (
    DatasetInfo(
        name="bc2gm",
        summary="gene mentions of BioCreative II (MEDLINE sentences)",
        reference=_SMITH,
        target="sslbench_datasets.genes.load:load_bc2gm",
        licence=_BC2GM_LICENCE,
        task="spans",
        metric="f1",
        featurizer="basic",
        protocol=(
            "train (12,574 sentences, 355,405 tokens, 15,197 mentions), dev (2,519, 71,042, 3,061),"
            " test (5,038, 143,465, 6,325); exact match, without the alternative answers of"
            " BioCreative; train and dev are GENETAG's text: never use the two as independent"
        ),
        files=tuple(BC2GM.values()),
    ),
    DatasetInfo(
        name="genetag",
        summary="GENETAG, the gene mentions of BioCreative I task 1A (MEDLINE sentences)",
        reference=_TANABE,
        target="sslbench_datasets.genes.load:load_genetag",
        licence=_GENETAG_LICENCE,
        task="spans",
        metric="alt_f1",
        featurizer="basic",
        protocol=(
            "train (7,500 sentences, 196,620 tokens, 8,881 mentions), dev = upstream's test"
            " (2,500, 65,519, 2,986), test = round1 (5,000, 132,522, 5,949); alt_f1 accepts the"
            " alternative answers, as the task did, f1 does not; most of it is also text of bc2gm"
        ),
        files=(*GENETAG.values(), *ALTERNATIVES.values()),
    ),
    *(
        DatasetInfo(
            name=f"{name}_jiao",
            summary=f"{source}'s train cut as in Jiao et al. 2006: few labels, little raw text",
            reference=f"{_JIAO}; {reference}",
            target=f"sslbench_datasets.genes.load:load_{name}_jiao",
            licence=licence,
            task="spans",
            metric="f1",
            featurizer="gene2005",
            protocol=(
                f"disjoint random sentences of {source}'s train, in the paper's numbers of words:"
                " train = A (5,448 words), external text = B (5,210), C (10,208) or D (25,145),"
                " test = E (138,892), transductive = the external text with its labels, which are"
                " hidden from methods; no development split. The paper's own corpus is another"
                " one: compare signs, not numbers"
            ),
            files=(file,),
            options="sslbench_datasets.genes.load:JiaoOptions",
        )
        for name, source, reference, licence, file in (
            ("genetag", "GENETAG", _TANABE, _GENETAG_LICENCE, GENETAG["train"]),
            ("bc2gm", "BC2GM", _SMITH, _BC2GM_LICENCE, BC2GM["train"]),
        )
    ),
)
