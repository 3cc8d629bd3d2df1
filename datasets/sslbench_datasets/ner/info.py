"""Registrations of the named-entity corpora of CoNLL-2003 (English) and CoNLL-2002 (Spanish)."""

from __future__ import annotations

from sslbench import DatasetInfo
from sslbench_datasets import references
from sslbench_datasets.reuters.info import REUTERS, TEXT
from sslbench_datasets.upstream import GITHUB, Upstream, size

_ENGLISH = Upstream(
    "conll2003",
    f"{GITHUB}/synalp/NER/c0ea07c81ec3512b5047dcd804b0ac2b10a3bdfc/corpus/CoNLL-2003",
    "restricted: text is Reuters Corpus volume 1 (NIST/Reuters research agreement); annotation"
    " University of Antwerp, research use",
    agreement=True,
)
_SPANISH = Upstream(
    "conll2002-esp",
    f"{GITHUB}/teropa/nlp/f89bc5a15b516208de1cfe2abe9692b7ed9a43e2/resources/corpora/conll2002",
    "restricted: research applications in the context of the CoNLL-2002 shared task only, no"
    " commercial use",
    agreement=True,
)
CONLL2003 = _ENGLISH.splits("""
eng.train 3281528 eac0822f501353f265383ddf1edb0dcd42a1b6eefd3e383d7074db98c38eb41c
eng.testa 827012 aedc4ccbd1ae9795feaa0e86fe72d195b0258abed9d705b630d1c889276fac1e
eng.testb 748096 0632f32c090ef31c223135b7fee3187a7cf8e65c4015c7866bb7783428cdd9a6
""")
CONLL2002 = _SPANISH.splits("""
esp.train 2970825 a20d95cab7d88a19a86f8c1ad6329325c99fbd9529ed978cbd7e31d4b01b4008
esp.testa 594058 85c17793b77881c53d19017d9d0f1e6fb98b7ddcab54a5f24b05ed1793103c87
esp.testb 575807 1f8f7a392c6d4979a5592a5794eed43d7869b46da6851bbcde99714149f1d016
""")

# (sentences, tokens), document marks not counted.
CONLL2003_COUNTS = {"train": (14_041, 203_621), "dev": (3_250, 51_362), "test": (3_453, 46_435)}
CONLL2002_COUNTS = {"train": (8_323, 264_715), "dev": (1_915, 52_923), "test": (1_517, 51_533)}


def _sizes(counts: dict[str, tuple[int, int]]) -> str:
    train, dev, test = (size(pair, "sentences", "tokens") for pair in counts.values())
    return f"train ({train}), dev = testa ({dev}), test = testb ({test})"


DATASETS: tuple[DatasetInfo, ...] = (
    DatasetInfo(
        name="conll03",
        summary="CoNLL-2003 named entities, English (Reuters newswire of 1996)",
        reference=references.TJONG_KIM_SANG_2003,
        target="sslbench_datasets.ner.load:load_conll03",
        licence=_ENGLISH.licence,
        task="spans",
        family="newswire names",
        metric="f1",
        featurizer="ner79",
        protocol=(
            f"{_sizes(CONLL2003_COUNTS)}, without document marks; labels converted from IOB1 to"
            " IOB2; models are trained on pairs of the previous entity type and the tag (Suzuki &"
            f" Isozaki 2008) and scored on tags; with the option documents, columns about the"
            f" document of a word (featurizer ner_doc); {TEXT}"
        ),
        files=(*CONLL2003.values(), *REUTERS),
        options="sslbench_datasets.ner.load:EnglishOptions",
    ),
    DatasetInfo(
        name="conll02",
        summary="CoNLL-2002 named entities, Spanish (EFE newswire of May 2000)",
        reference=references.TJONG_KIM_SANG_2002,
        target="sslbench_datasets.ner.load:load_conll02",
        licence=_SPANISH.licence,
        task="spans",
        family="newswire names",
        metric="f1",
        featurizer="ner79",
        protocol=(
            f"{_sizes(CONLL2002_COUNTS)}; labels are IOB2 except for one stray I- tag per file; no"
            " external text"
        ),
        files=tuple(CONLL2002.values()),
    ),
)
