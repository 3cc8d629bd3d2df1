"""Registration of ``ocr``, handwritten letters in words, and of the similarity of letters."""

from __future__ import annotations

from sslbench import DatasetInfo, SimilarityInfo
from sslbench_datasets import references
from sslbench_datasets.upstream import GITHUB, Upstream

LETTERS = Upstream(
    "shogun-data-ocr",
    f"{GITHUB}/shogun-toolbox/shogun-data/8b407372f396a95f4b8fafdbee5e7b7755fddef9/ocr",
    "none stated upstream; a public research data set",
).file("ocr_taskar.mat", 783375, "6cb63f47f6c0f6f5fc6754c6e45ae408115778a54d29ad9ea197a183d80af1cb")

# (words, letters) of the two parts of the file: fold 0 of the original, and folds 1 to 9.
COUNTS = {"train": (626, 4_617), "test": (6_251, 47_535)}
SPELLINGS = 55

DATASETS: tuple[DatasetInfo, ...] = (
    DatasetInfo(
        name="ocr",
        summary="handwritten letters in words, 16 x 8 binary pixels each (Kassel, Taskar)",
        reference=(
            f"{references.KASSEL_1995}; {references.TASKAR_2003}; set-up: {references.HE_2013}"
        ),
        target="sslbench_datasets.letters.load:load",
        licence=LETTERS.licence,
        task="tagging",
        family="letters",
        metric="accuracy",
        featurizer="pixels3",
        protocol=(
            "6,877 words (52,152 letters) with 55 spellings, shuffled once: train 5,502, test 1,375"
            " words, no development split; every spelling is in both. Transductive as in He et al.,"
            " with two copies of each spelling labeled and all other words as unlabeled text and"
            " test: --set ocr.draws=true with --labeled all and seeds 0 to 9, a set for each"
        ),
        files=(LETTERS,),
        options="sslbench_datasets.letters.load:Options",
        draws=True,
        graph={"column": "image", "similarity": "letters", "neighbors": 20},
    ),
)

SIMILARITIES: tuple[SimilarityInfo, ...] = (
    SimilarityInfo(
        name="letters",
        summary="images of handwritten letters and of those beside them in the word (column image)",
        reference=references.HE_2013,
        target="sslbench_datasets.letters.similarity:LetterSimilarity",
    ),
)
