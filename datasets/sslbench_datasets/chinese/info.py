"""Registrations of Chinese word segmentation, with part-of-speech tags where there are any."""

from __future__ import annotations

from dataclasses import replace

from sslbench import DatasetInfo
from sslbench_datasets import references
from sslbench_datasets.upstream import GITHUB, NLTK, Upstream, size

_MULTI_CRITERIA = Upstream(
    "multi-criteria-cws",
    f"{GITHUB}/hankcs/multi-criteria-cws/24be488d88617b1e226db745e23268c9a79bfc54/data/other",
    "CC BY-SA 4.0 (Universal Dependencies); the hosting repository is GPL-3.0 for code",
)
UDC = _MULTI_CRITERIA.splits("""
udc/train.conll 3282103 933252500861e43091920b43311ef8d806404beeabbaa52b30e215d250140e2e
udc/dev.conll 422116 f34a279d10f00921e1be0fe2d901a9fbab3cee11cd1eb4d5a2c46f55bb109765
udc/test.conll 400684 62fb3d087201a1d562ee91aeae14063551137ef0ee0ce33a141413b8b5c1fe33
""")
_ZX_LICENCE = "unknown: collected by hankcs/multi-criteria-cws from its authors' pages"
ZX = replace(_MULTI_CRITERIA, licence=_ZX_LICENCE).splits("""
zx/train.zhuxian.wordpos 559793 b11d389a4c73833c6a7dfd7b98ab7973ca417dbc1aba438958bd861f8234f444
zx/dev.zhuxian.wordpos 166113 59d54d5764972e4c7b679ee8c5bf2ab95d6f07786458491513c959e0949d9504
zx/test.zhuxian.wordpos 280885 85cdcab13ce448ee22be359c18b5c218275f49005fc0a521704f625a8df0c9ea
""")
_SXU_LICENCE = "unknown / restricted: SIGHAN 2008 bakeoff data, research use"
_SXU = replace(_MULTI_CRITERIA, licence=_SXU_LICENCE, agreement=True).files("""
sxu/train.txt 3600697 4eed0c4ad7f85f852744761b056d261cfbf9370c98f45dd930c1302d32be135d
sxu/test.txt 776035 dc326d786f8a41ec90f01544ac847f750a7c441a3be59e3edf25a6ba5530172b
""")
SXU = dict(zip(("train", "test"), _SXU, strict=True))
# Gold test texts: raw text here, the test sets of msr and pku (family sighan).
MSR, PKU = Upstream(
    "icwb2-data/gold",
    f"{GITHUB}/yuikns/icwb2-data/873a51fa6234c644126d2f2c5c603a97809d2e49/gold",
    "restricted: SIGHAN 2005 bakeoff data, non-commercial, research use",
    agreement=True,
).files(
    """
msr_test_gold.utf8 766786 cd1a8473841f1b2fcddd14d12599ad8872e6167feb64807af5bac2f6a32cb75d
pku_test_gold.utf8 718331 913f78b20b17ea1e154f6246644d7d624b2710641f109a15daee9d63c9fb88d4
""",
    extra=True,
)
SINICA = Upstream("nltk_data", NLTK, "CC BY-NC-SA 2.5", agreement=True).file(
    "sinica_treebank.zip",
    906706,
    "395958a28f06d92ce1de0f0cf1bb17dc4a5cc882d27487447252ad615641e9ba",
)
SINICA_MAP = Upstream(
    "universal-pos-tags",
    f"{GITHUB}/slavpetrov/universal-pos-tags/acc5220c6f63a7df2ad39d78753d64fed27dcc94",
    "CC BY-SA 4.0",
).file("zh-sinica.map", 3183, "953761a6bec2d79f00f123cf87b4ff2582466ec3db112cf9d804b616b6e50f7c")
SXU_TEXT = replace(SXU["train"], extra=True)
RAW_TEXT = (MSR, PKU, SXU_TEXT)

UNITS = ("sentences", "words", "characters")
# In UNITS. The words of zh_zx and sxu equal the published figures.
COUNTS = {
    "zh_gsd": {
        "train": (3_997, 98_608, 156_360),
        "dev": (500, 12_663, 20_014),
        "test": (500, 12_012, 19_212),
    },
    "zh_zx": {
        "train": (2_373, 67_648, 96_934),
        "dev": (788, 20_393, 28_309),
        "test": (1_394, 34_355, 48_075),
    },
    "sinica": {
        "train": (8_000, 72_302, 117_914),
        "dev": (1_000, 9_582, 15_888),
        "test": (1_000, 9_750, 15_849),
    },
    "sxu": {"train": (17_115, 528_238, 854_001), "test": (3_654, 113_527, 184_269)},
}

JOINT_LABELS = (
    "labels are BMES tags of characters joined with the part-of-speech tag of the word (B-NN)"
)
_RAW = "external text = SIGHAN 2005 MSR and PKU test texts"


def _sizes(name: str) -> str:
    return "; ".join(f"{split} = {size(counts, *UNITS)}" for split, counts in COUNTS[name].items())


DATASETS: tuple[DatasetInfo, ...] = (
    DatasetInfo(
        name="zh_gsd",
        summary="UD Chinese GSD, simplified characters: word borders and universal tags",
        reference="J. Nivre et al.: Universal Dependencies 1 (UD_Chinese), simplified by H. He",
        target="sslbench_datasets.chinese.load:load_zh_gsd",
        licence=UDC["train"].licence,
        task="joint",
        family="Chinese",
        metric="joint_f1",
        featurizer="zh_char",
        protocol=(
            f"{_sizes('zh_gsd')}; {JOINT_LABELS}; {_RAW} and SXU train without spaces, with"
            " full-width forms and the full stop in ASCII as in this corpus"
        ),
        files=(*UDC.values(), *RAW_TEXT),
        options="sslbench_datasets.chinese.load:JointOptions",
    ),
    DatasetInfo(
        name="zh_zx",
        summary="ZhuXian, a web novel: word borders and Chinese Treebank tags",
        reference=references.ZHANG_2014,
        target="sslbench_datasets.chinese.load:load_zh_zx",
        licence=_ZX_LICENCE,
        task="joint",
        family="Chinese",
        metric="joint_f1",
        featurizer="zh_char",
        protocol=f"{_sizes('zh_zx')}; {JOINT_LABELS}; {_RAW} and SXU train without spaces",
        files=(*ZX.values(), *RAW_TEXT),
        options="sslbench_datasets.chinese.load:JointOptions",
    ),
    DatasetInfo(
        name="sinica",
        summary="NLTK's sample of the Sinica Treebank: traditional characters, universal tags",
        reference=f"{references.CHEN_1999}; tags: {references.PETROV_2012}",
        target="sslbench_datasets.chinese.load:load_sinica",
        licence=SINICA.licence,
        task="joint",
        family="Chinese",
        metric="joint_f1",
        featurizer="zh_char",
        protocol=(
            f"{_sizes('sinica')}; {JOINT_LABELS}; no official split: of every 1,000 clauses in file"
            " order, the first 800 are train, the next 100 dev and the last 100 test; the"
            " punctuation after a clause is left out; 231 fine tags mapped to universal tags; no"
            " external text"
        ),
        files=(SINICA, SINICA_MAP),
    ),
    DatasetInfo(
        name="sxu",
        summary="SIGHAN 2008, Shanxi University: word segmentation of newswire",
        reference=references.JIN_2008,
        target="sslbench_datasets.chinese.load:load_sxu",
        licence=_SXU_LICENCE,
        task="segmentation",
        family="Chinese",
        metric="seg_f1",
        featurizer="zh_char",
        protocol=(
            f"{_sizes('sxu')}; the bakeoff's split, no development split; closed track; {_RAW}"
            " without spaces"
        ),
        files=(*SXU.values(), MSR, PKU),
    ),
)
