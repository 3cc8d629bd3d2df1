"""Registrations of ``brown`` and ``masc``: part-of-speech tags of English texts of many genres."""

from __future__ import annotations

from sslbench import DatasetInfo
from sslbench_datasets import references
from sslbench_datasets.upstream import GITHUB, NLTK, Upstream, size

BROWN = Upstream("nltk_data", NLTK, "may be used for non-commercial purposes", agreement=True).file(
    "brown.zip", 3314357, "9b275f9b3b95d7bd66ccfb7cd259f445a13bbe5d1f4107aba09fd3e8364bafa6"
)
BROWN_MAP = Upstream(
    "universal-pos-tags",
    f"{GITHUB}/slavpetrov/universal-pos-tags/acc5220c6f63a7df2ad39d78753d64fed27dcc94",
    "CC BY-SA 4.0",
).file("en-brown.map", 4991, "572adfd9c6f3d2ddfc1051b284daac527eb5593a0854cc9f1486168bddd1cbd0")
MASC = Upstream(
    "nltk_data",
    NLTK,
    "may be used for linguistic education, research and development, including commercial"
    " development",
).file(
    "masc_tagged.zip", 1602143, "678a5141cf3381bedb1839c58a330507337be07c7c71603279c0ef5337032304"
)

# Letter of the file name -> genre.
BROWN_GENRES = {
    "a": "news",
    "b": "editorial",
    "c": "reviews",
    "d": "religion",
    "e": "hobbies",
    "f": "lore",
    "g": "belles_lettres",
    "h": "government",
    "j": "learned",
    "k": "fiction",
    "l": "mystery",
    "m": "science_fiction",
    "n": "adventure",
    "p": "romance",
    "r": "humor",
}
# (sentences, tokens) of all genres.
BROWN_COUNTS = {"train": (35_011, 714_765), "dev": (11_671, 230_796), "test": (10_658, 215_631)}
MASC_COUNTS = {"train": (25_484, 418_314), "dev": (4_739, 88_728), "test": (4_251, 83_739)}

_SPLIT = (
    "of each five files of a genre, by name, the first three are train, the fourth dev and the"
    " fifth test; no official split. With the option genre, dev, test and train are of that genre;"
    " with the option source too, train is of the genre source, and the unlabeled text is the train"
    " part of genre"
)


def _sizes(counts: dict[str, tuple[int, int]]) -> str:
    return ", ".join(
        f"{split} ({size(numbers, 'sentences', 'tokens')})" for split, numbers in counts.items()
    )


DATASETS: tuple[DatasetInfo, ...] = (
    DatasetInfo(
        name="brown",
        summary="part-of-speech tagging with 12 universal tags, Brown corpus (15 genres of 1961)",
        reference=f"{references.FRANCIS_1979}; tags: {references.PETROV_2012}",
        target="sslbench_datasets.genres.load:load_brown",
        licence=f"corpus: {BROWN.licence}; map of tags: {BROWN_MAP.licence}",
        task="tagging",
        metric="accuracy",
        featurizer="pos_window",
        protocol=f"{_sizes(BROWN_COUNTS)}; {_SPLIT}",
        files=(BROWN, BROWN_MAP),
        options="sslbench_datasets.genres.load:GenreOptions",
        family="Brown tags",
    ),
    DatasetInfo(
        name="masc",
        summary="part-of-speech tagging, 59 tags: MASC (20 genres of American English)",
        reference=references.IDE_2010,
        target="sslbench_datasets.genres.load:load_masc",
        licence=MASC.licence,
        task="tagging",
        metric="accuracy",
        featurizer="pos_adapt",
        protocol=(
            f"{_sizes(MASC_COUNTS)}; {_SPLIT}. 59 sentences with a token that lacks its word or its"
            " tag are left out; 3 files that have no genre upstream are of the genre unlisted; 36"
            " files are of the Wall Street Journal; 286 of their sentences are in wsj_sample, too"
        ),
        files=(MASC,),
        options="sslbench_datasets.genres.load:GenreOptions",
        family="MASC tags",
    ),
)
