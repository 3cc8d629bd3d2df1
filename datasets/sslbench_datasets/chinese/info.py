"""Chinese word segmentation, with part-of-speech tags where the corpus has them."""

from __future__ import annotations

from dataclasses import replace

from sslbench import DatasetInfo, RemoteFile

_HANKCS = (
    "https://raw.githubusercontent.com/hankcs/multi-criteria-cws/"
    "24be488d88617b1e226db745e23268c9a79bfc54/data/other/"
)
_ICWB2 = (
    "https://raw.githubusercontent.com/yuikns/icwb2-data/"
    "873a51fa6234c644126d2f2c5c603a97809d2e49/gold/"
)
_NLTK = "https://raw.githubusercontent.com/nltk/nltk_data/5db857e6f7df11eabb5e5665836db9ec8df07e28/"
_UNIVERSAL = (
    "https://raw.githubusercontent.com/slavpetrov/universal-pos-tags/"
    "acc5220c6f63a7df2ad39d78753d64fed27dcc94/"
)

_UD_LICENCE = "CC BY-SA 4.0 (Universal Dependencies); the hosting repository is GPL-3.0 for code"
_ZX_LICENCE = "unknown: collected by hankcs/multi-criteria-cws from its authors' pages"
_SXU_LICENCE = "unknown / restricted: SIGHAN 2008 bakeoff data, research use"
_ICWB2_LICENCE = "restricted: SIGHAN 2005 bakeoff data, non-commercial, research use"
_SINICA_LICENCE = "CC BY-NC-SA 2.5"

# file below data/other/, bytes, sha256
_HANKCS_FACTS = (
    (
        "udc/train.conll",
        3282103,
        "933252500861e43091920b43311ef8d806404beeabbaa52b30e215d250140e2e",
    ),
    ("udc/dev.conll", 422116, "f34a279d10f00921e1be0fe2d901a9fbab3cee11cd1eb4d5a2c46f55bb109765"),
    ("udc/test.conll", 400684, "62fb3d087201a1d562ee91aeae14063551137ef0ee0ce33a141413b8b5c1fe33"),
    (
        "zx/train.zhuxian.wordpos",
        559793,
        "b11d389a4c73833c6a7dfd7b98ab7973ca417dbc1aba438958bd861f8234f444",
    ),
    (
        "zx/dev.zhuxian.wordpos",
        166113,
        "59d54d5764972e4c7b679ee8c5bf2ab95d6f07786458491513c959e0949d9504",
    ),
    (
        "zx/test.zhuxian.wordpos",
        280885,
        "85cdcab13ce448ee22be359c18b5c218275f49005fc0a521704f625a8df0c9ea",
    ),
    ("sxu/train.txt", 3600697, "4eed0c4ad7f85f852744761b056d261cfbf9370c98f45dd930c1302d32be135d"),
    ("sxu/test.txt", 776035, "dc326d786f8a41ec90f01544ac847f750a7c441a3be59e3edf25a6ba5530172b"),
)
_ICWB2_FACTS = (
    (
        "msr_test_gold.utf8",
        766786,
        "cd1a8473841f1b2fcddd14d12599ad8872e6167feb64807af5bac2f6a32cb75d",
    ),
    (
        "pku_test_gold.utf8",
        718331,
        "913f78b20b17ea1e154f6246644d7d624b2710641f109a15daee9d63c9fb88d4",
    ),
)


def _splits(folder: str, licence: str, *, agreement: bool = False) -> dict[str, RemoteFile]:
    """The files of one folder of multi-criteria-cws, by split."""
    return {
        name.partition("/")[2].partition(".")[0]: RemoteFile(
            path=f"multi-criteria-cws/{name}",
            urls=(_HANKCS + name,),
            sha256=sha256,
            licence=licence,
            bytes=length,
            agreement=agreement,
        )
        for name, length, sha256 in _HANKCS_FACTS
        if name.startswith(f"{folder}/")
    }


UDC = _splits("udc", _UD_LICENCE)
ZX = _splits("zx", _ZX_LICENCE)
SXU = _splits("sxu", _SXU_LICENCE, agreement=True)
# Gold test texts: raw text here, the test of msr and pku (sighan.py).
MSR, PKU = (
    RemoteFile(
        path=f"icwb2-data/gold/{name}",
        urls=(_ICWB2 + name,),
        sha256=sha256,
        licence=_ICWB2_LICENCE,
        bytes=length,
        extra=True,
        agreement=True,
    )
    for name, length, sha256 in _ICWB2_FACTS
)
SINICA = RemoteFile(
    path="nltk_data/sinica_treebank.zip",
    urls=(f"{_NLTK}packages/corpora/sinica_treebank.zip",),
    sha256="395958a28f06d92ce1de0f0cf1bb17dc4a5cc882d27487447252ad615641e9ba",
    licence=_SINICA_LICENCE,
    bytes=906706,
    agreement=True,
)
SINICA_MAP = RemoteFile(
    path="universal-pos-tags/zh-sinica.map",
    urls=(f"{_UNIVERSAL}zh-sinica.map",),
    sha256="953761a6bec2d79f00f123cf87b4ff2582466ec3db112cf9d804b616b6e50f7c",
    licence="CC BY-SA 4.0",
    bytes=3183,
)
RAW_TEXT = (MSR, PKU, replace(SXU["train"], extra=True))

_JOINT = "label = word border B, M, E or S and the word's tag on each character; "
_RAW = "external text = SIGHAN 2005 MSR and PKU test texts"

DATASETS: tuple[DatasetInfo, ...] = (
    DatasetInfo(
        name="zh_gsd",
        summary="UD Chinese GSD, simplified: word borders and universal tags, by characters",
        reference="J. Nivre et al.: Universal Dependencies 1 (UD_Chinese), simplified by H. He",
        target="sslbench_datasets.chinese.load:load_zh_gsd",
        licence=_UD_LICENCE,
        task="joint",
        metric="joint_f1",
        featurizer="zh_char",
        protocol=(
            f"{_JOINT}train 3,997, dev 500, test 500 sentences (98,608, 12,663, 12,012 words);"
            f" {_RAW} and SXU train without spaces, full-width forms and full stop made ASCII"
            " as in this corpus"
        ),
        files=(*UDC.values(), *RAW_TEXT),
        options="sslbench_datasets.chinese.load:JointOptions",
    ),
    DatasetInfo(
        name="zh_zx",
        summary="ZhuXian, a web novel: word borders and Chinese Treebank tags, by characters",
        reference=(
            "M. Zhang, Y. Zhang, W. Che, T. Liu: Type-supervised domain adaptation for joint"
            " segmentation and POS-tagging. EACL 2014"
        ),
        target="sslbench_datasets.chinese.load:load_zh_zx",
        licence=_ZX_LICENCE,
        task="joint",
        metric="joint_f1",
        featurizer="zh_char",
        protocol=(
            f"{_JOINT}train 2,373, dev 788, test 1,394 sentences (67,648, 20,393, 34,355 words);"
            f" {_RAW} and SXU train without spaces"
        ),
        files=(*ZX.values(), *RAW_TEXT),
        options="sslbench_datasets.chinese.load:JointOptions",
    ),
    DatasetInfo(
        name="sinica",
        summary="NLTK's sample of the Sinica Treebank: traditional characters, universal tags",
        reference=(
            "F.-Y. Chen, P.-F. Tsai, K.-J. Chen, C.-R. Huang: The construction of Sinica Treebank."
            " CLCLP 4 (1999); tags: S. Petrov, D. Das, R. McDonald: A universal part-of-speech"
            " tagset. LREC 2012"
        ),
        target="sslbench_datasets.chinese.load:load_sinica",
        licence=_SINICA_LICENCE,
        task="joint",
        metric="joint_f1",
        featurizer="zh_char",
        protocol=(
            f"{_JOINT}no official split: of 10,000 clauses in file order (final punctuation is no"
            " part of them) blocks of 100 go eight times to train, then to dev, then to test; 231"
            " fine tags mapped to universal ones"
        ),
        files=(SINICA, SINICA_MAP),
    ),
    DatasetInfo(
        name="sxu",
        summary="SIGHAN 2008, Shanxi University: word segmentation of newswire",
        reference=(
            "G. Jin, X. Chen: The fourth international Chinese language processing bakeoff."
            " SIGHAN 2008"
        ),
        target="sslbench_datasets.chinese.load:load_sxu",
        licence=_SXU_LICENCE,
        task="segmentation",
        metric="seg_f1",
        featurizer="zh_char",
        protocol=(
            "train 17,115, test 3,654 sentences (528,238, 113,527 words) of the bakeoff, no"
            f" development split; closed track; {_RAW} without spaces"
        ),
        files=(*SXU.values(), MSR, PKU),
    ),
)
