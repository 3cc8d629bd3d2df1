"""Registrations of the named-entity corpora of CoNLL-2003 (English) and CoNLL-2002 (Spanish)."""

from __future__ import annotations

from sslbench import DatasetInfo, RemoteFile
from sslbench_datasets.files import REUTERS

_ENGLISH = (
    "https://raw.githubusercontent.com/synalp/NER/c0ea07c81ec3512b5047dcd804b0ac2b10a3bdfc/"
    "corpus/CoNLL-2003/"
)
_ENGLISH_LICENCE = (
    "restricted: text is Reuters Corpus volume 1 (NIST/Reuters research agreement); annotation"
    " University of Antwerp, research use"
)
_SPANISH = (
    "https://raw.githubusercontent.com/teropa/nlp/f89bc5a15b516208de1cfe2abe9692b7ed9a43e2/"
    "resources/corpora/conll2002/"
)
_SPANISH_LICENCE = (
    "restricted: research applications in the context of the CoNLL-2002 shared task only, no"
    " commercial use"
)

# Split -> (ending of the file's name, length in bytes, sha256).
_Facts = dict[str, tuple[str, int, str]]
_ENGLISH_FACTS: _Facts = {
    "train": (
        "train",
        3281528,
        "eac0822f501353f265383ddf1edb0dcd42a1b6eefd3e383d7074db98c38eb41c",
    ),
    "dev": ("testa", 827012, "aedc4ccbd1ae9795feaa0e86fe72d195b0258abed9d705b630d1c889276fac1e"),
    "test": ("testb", 748096, "0632f32c090ef31c223135b7fee3187a7cf8e65c4015c7866bb7783428cdd9a6"),
}
_SPANISH_FACTS: _Facts = {
    "train": (
        "train",
        2970825,
        "a20d95cab7d88a19a86f8c1ad6329325c99fbd9529ed978cbd7e31d4b01b4008",
    ),
    "dev": ("testa", 594058, "85c17793b77881c53d19017d9d0f1e6fb98b7ddcab54a5f24b05ed1793103c87"),
    "test": ("testb", 575807, "1f8f7a392c6d4979a5592a5794eed43d7869b46da6851bbcde99714149f1d016"),
}


def _files(
    folder: str, language: str, url: str, licence: str, facts: _Facts
) -> dict[str, RemoteFile]:
    return {
        split: RemoteFile(
            path=f"{folder}/{language}.{ending}",
            urls=(f"{url}{language}.{ending}",),
            sha256=sha256,
            licence=licence,
            bytes=length,
            agreement=True,
        )
        for split, (ending, length, sha256) in facts.items()
    }


CONLL2003 = _files("conll2003", "eng", _ENGLISH, _ENGLISH_LICENCE, _ENGLISH_FACTS)
CONLL2002 = _files("conll2002-esp", "esp", _SPANISH, _SPANISH_LICENCE, _SPANISH_FACTS)

DATASETS: tuple[DatasetInfo, ...] = (
    DatasetInfo(
        name="conll03",
        summary="CoNLL-2003 named entities, English (Reuters newswire of 1996)",
        reference=(
            "E. F. Tjong Kim Sang, F. De Meulder: Introduction to the CoNLL-2003 shared task:"
            " language-independent named entity recognition. CoNLL 2003"
        ),
        target="sslbench_datasets.ner.load:load_conll03",
        licence=_ENGLISH_LICENCE,
        task="spans",
        metric="f1",
        featurizer="ner79",
        protocol=(
            "train (14,041 sentences, 203,621 tokens), dev = testa (3,250, 51,362), test = testb"
            " (3,453, 46,435), document marks left out; IOB1 in the files, rewritten as IOB2;"
            " models are trained on pairs of the type before and the tag, as in Suzuki & Isozaki"
            " 2008, scores are of tags; external text = 7 files of Reuters-21578, tagged by a"
            " tagger trained on train's POS column"
        ),
        files=(*CONLL2003.values(), *REUTERS),
        options="sslbench_datasets.ner.load:EnglishOptions",
        tune=4,  # as for conll00, the grid of the Gaussian prior; judged on dev
    ),
    DatasetInfo(
        name="conll02",
        summary="CoNLL-2002 named entities, Spanish (EFE newswire of May 2000)",
        reference=(
            "E. F. Tjong Kim Sang: Introduction to the CoNLL-2002 shared task:"
            " language-independent named entity recognition. CoNLL 2002"
        ),
        target="sslbench_datasets.ner.load:load_conll02",
        licence=_SPANISH_LICENCE,
        task="spans",
        metric="f1",
        featurizer="ner79",
        protocol=(
            "train (8,323 sentences, 264,715 tokens), dev = testa (1,915, 52,923), test = testb"
            " (1,517, 51,533); IOB2 as given, with one stray I- a file; no external text"
        ),
        files=tuple(CONLL2002.values()),
    ),
)
