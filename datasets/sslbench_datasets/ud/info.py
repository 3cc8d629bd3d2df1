"""Registrations of ten Universal Dependencies treebanks, tagged with 12 universal tags.

The languages are those of He, Gillenwater & Taskar (2013); their treebanks (CoNLL-X,
CoNLL-2007, Penn) are licensed.
"""

from __future__ import annotations

from dataclasses import dataclass

from sslbench import DatasetInfo, RemoteFile
from sslbench_datasets import references
from sslbench_datasets.upstream import GITHUB, Upstream, size

# Language code, language, treebank, commit.
_BANKS = (
    ("da", "Danish", "DDT", "85faf86dc39f735722925fb1e822070d83649068"),
    ("de", "German", "GSD", "297fcf350481058d0737a27f0f8fd03b2eadd67a"),
    ("el", "Greek", "GDT", "1485f849d5ac7fcafa092a75804b41dbb1a3f194"),
    ("en", "English", "EWT", "15d613d8447b3478787d4c278730a1e48a945efb"),
    ("es", "Spanish", "GSD", "57c045644664e5c1e169263cc4e3b95e40c078ba"),
    ("it", "Italian", "ISDT", "689c1bf3c7d132903d2196ac69b76a0933c90997"),
    ("nl", "Dutch", "Alpino", "95e374a608d114ec6c6b32f0fbd5f324d29ef286"),
    ("pt", "Portuguese", "Bosque", "5de7ac34028ff6d1718031a4b0ae895717ed8dbe"),
    ("sl", "Slovenian", "SSJ", "17011b12eae4e522da4d1eeeffd439085466623c"),
    ("sv", "Swedish", "Talbanken", "30067217d275233ed460d0c0abafeaf22d63a3d2"),
)
_NON_COMMERCIAL = ("el", "it")

# Language code, split, bytes, sentences, syntactic words, sha256.
_FILES = """
da dev 660002 564 10332 d714b22776ad60fbdb6e4ffc15a5c3ffc162705617567d3cf2b09cc6b51e800a
da test 639330 565 10023 2232ee43dcd35dba32b476534d230edf1aa26d4bd830813f452fd829c276f737
de dev 904804 799 12480 00431f2624cbbf66796c097a9303bbc8f8e8ca88ef35c4c5664aa396b2d674c9
de test 1207783 977 16499 bceb8e867ba3ee7f1449d44fb31538d63a514f07e6763e7d9a5ffe794407bed4
el train 3883203 1662 42326 892cd36cd47372ec0d7ccdbc874af9a6994651cdb0cf2cee6ba93bb01ee83794
el dev 962466 403 10443 53de54735051eecef04aa8c0f5f0fbf2466e0e0d4fd9dfd3d313560c394ddf41
el test 979881 456 10672 30cb5881ce6f8ba628de88853a4c105e716a365e8fcd9024a85befe41165c260
en dev 1805545 2001 25147 531a54ff90d6ab12201c5a50c3e78e6ddac4de69abc4bce5d275d3cd29efe2b6
en test 1804515 2077 25094 e266e515a0a7547657ed3d90d9ba46487d6bd251f27ad4269d4e8a427c8555cd
es dev 2314519 1400 37154 d5018974cb6a4adb03435f76ac4914a388f4fc763b35b6c4a6a2dc27874b0dff
es test 755576 427 12002 37612cb7cc13eab62e6f95b06504a31f252ecc56acb52a06d142bf872318b872
it dev 833985 564 11907 1bc7dda04c58a4d87e2e6607a0e612462b87e7da6dde56be610d3749521af744
it test 735446 482 10417 cea8ca0e8d1ddf7ce509f10afff426d00e058982f49473e0744cd0ee477129e3
nl dev 997933 718 11541 3d6ad878d8b7b362fd756da22ae230951233be1e5596743af772150c89ba346d
nl test 951318 596 11046 f5b5000fcbb6745d42f7cccf3986bb2550f9b56a171b0d4808fb45d2df7972a2
pt dev 1873903 1172 28447 f8a67abae12fbab85a3995204a6459d1958c11065062d4ea5349d6b914e78f81
pt test 1819980 1167 27604 9a824650b7a02cf411f6e09b39e8fb423c85e1a5fb3a55b87e7f4c0c2ea5b3bb
sl dev 2106277 1250 26500 2999a1ac8261df77e71c4e824c8e036e4845f84748f36d04bc7b730d7daf9d9a
sl test 2042228 1282 25442 c14d5d2f4f20a7ad43e0f598a2e18c5e41f08364ab36be1c87d6d9eae7f5c8b0
sv dev 863506 504 9797 31917fc04cfe9ef7ce8c11ed8570b739a0cefdcda5e06ff93207e6d84f37117b
sv test 1802467 1219 20377 b8909c4f5f2c64b3cee251de7004fa293717d309e54ca59d149a61d75e8571d7
"""


@dataclass(frozen=True)
class Treebank:
    """One treebank at a fixed commit.

    Attributes
    ----------
    code: code of the language.
    files: files by split, in the order in which `ud.load.load_treebank` pools them.
    counts: (sentences, syntactic words) by split.
    """

    code: str
    language: str
    name: str
    commit: str
    licence: str
    files: dict[str, RemoteFile]
    counts: dict[str, tuple[int, int]]

    def size(self, *splits: str) -> str:
        """Sentences and tokens of some splits together, as text."""
        totals = map(sum, zip(*(self.counts[split] for split in splits), strict=True))
        return size(list(totals), "sentences", "tokens")


def _treebank(code: str, language: str, name: str, commit: str) -> Treebank:
    restricted = code in _NON_COMMERCIAL
    licence = "CC BY-NC-SA 3.0" if restricted else "CC BY-SA 4.0"
    folder, stem = f"UD_{language}-{name}", f"{code}_{name.lower()}-ud"
    url = f"{GITHUB}/UniversalDependencies/{folder}/{commit}"
    upstream = Upstream(folder, url, licence, agreement=restricted)
    files, counts = {}, {}
    for row in map(str.split, _FILES.strip().split("\n")):
        language_code, split, length, sentences, words, sha256 = row
        if language_code == code:
            files[split] = upstream.file(f"{stem}-{split}.conllu", int(length), sha256)
            counts[split] = (int(sentences), int(words))
    return Treebank(code, language, name, commit, licence, files, counts)


TREEBANKS = tuple(_treebank(*bank) for bank in _BANKS)


def _registration(bank: Treebank) -> DatasetInfo:
    train = [split for split in bank.files if split != "test"]
    return DatasetInfo(
        name=f"ud_{bank.code}",
        summary=f"part-of-speech tagging with 12 universal tags, {bank.language} (UD {bank.name})",
        reference=f"{references.NIVRE_2020}; set-up: {references.HE_2013}",
        target=f"sslbench_datasets.ud.load:load.{bank.code}",
        licence=bank.licence,
        task="tagging",
        family="UD treebanks",
        metric="accuracy",
        # The nearest to the paper's features: words, lower case, suffixes up to 4, shapes.
        featurizer="pos_window",
        protocol=(
            f"train = upstream's {' and '.join(train)} ({bank.size(*train)}), test = upstream's"
            f" test ({bank.size('test')}), no development split. Ten labeled samples as in He et"
            " al.: --labeled 100 with seeds 0 to 9. Transductive as in He et al.: --set"
            f" ud_{bank.code}.draws=true with --labeled all and seeds 0 to 9, a sample for each"
        ),
        files=tuple(bank.files.values()),
        options="sslbench_datasets.ud.load:Options",
        draws=True,
    )


DATASETS: tuple[DatasetInfo, ...] = tuple(map(_registration, TREEBANKS))
