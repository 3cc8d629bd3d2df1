"""Registrations of the biomedical names of the collection MTL-Bioinformatics-2016, one per corpus.

Crichton et al. (2017) converted the corpora; their "Additional file 1" says what each conversion
changed. BC2GM and GENIA's tags are of the collection too: see the packages genes and adaptation.
"""

from __future__ import annotations

from dataclasses import dataclass

from sslbench import DatasetInfo, RemoteFile
from sslbench_datasets import references
from sslbench_datasets.genes.info import MTL, UNITS
from sslbench_datasets.upstream import Upstream, size

# Folder upstream without -IOB: what is annotated. Then split, bytes, sentences, tokens, mentions,
# sha256 of each file at the commit of MTL.
_CORPORA = """
BC5CDR: chemicals and diseases
train 1039940 4560 118170 9385 b731361c0ed73afd04cc5fdad39afcdfd8f325d6e46c282339185a91d1af4c14
dev 1031781 4581 117453 9593 b909de65c4f7e3c23bb09ad52d654cdc92e96db941abe1a5dcf6f6010c03cff5
test 1080717 4797 124750 9809 e41a2843a5fff0cd8d1a88cb147968d61ae29336ca70cddc3d7fb8ff21dfa1e8
linnaeus: species
train 2088795 11935 280960 2119 74c8612944a4de87665680989a3d589c843562d3ec175e3b512295691b221d9a
dev 696409 4078 93815 711 042b5676d4f541995d617f43e2926afdf6653ed60ad9010c2f45b78ae869f2b6
test 1228864 7142 164653 1433 1792b82f7cf9159fd71de38b139a457dbc5ca126c13ac9e355a5fad3e65930ad
AnatEM: anatomical entities
train 1280190 5861 153823 6946 bd4235e9673f7c67667c1eb321903a51544a94cf481ba265b527b3104d6ba806
dev 480960 2118 58785 2139 0758bb2f26ec12fc717c1054b64ea00a40c7aae26b21a7541b86fbfba66119ec
test 833816 3830 99976 4616 a3d6555f6f5b7809fc014bee975be0db93c012d770ab60c190cf37d589e97fc9
BioNLP13CG: 16 types of cancer genetics
train 943120 3033 83467 10826 016ee311428431433c46ceeebeba5fce9c3da9bfd05fafcc484e57a736ea91e7
dev 316312 1003 27599 3616 6c834f3a16ed080940e7e12d831ca8f79458d08db5d6f0c1fdbfe85c3c7a072c
test 593469 1906 52771 6881 9ee374ba1b93af177ba3d39dfda4c7e1602bd703d8011bae46a34f3d719cd338
BC5CDR-chem: chemicals
train 983140 4560 118170 5203 165c4cd2efadd0caf1bb8f3c6bcd3acca199446bb3d55eb06d9137114c9a0b2d
dev 976029 4581 117453 5347 3f1df5cfcff95735663ffc37121fd3687e82b1e9a019bec0480491502652721b
test 1023429 4797 124750 5385 6fce42139a9d819151eff3ab8cb0eda6fbf861fd17d4cfe6be2123f010a3b6c5
BC5CDR-disease: diseases
train 976013 4560 118170 4182 d630dafe7dd67e21350cc3278dbdcfadcccbb2b63d0fda83b2427853988e5ad9
dev 967926 4581 117453 4246 8c3af95475029c2100c2b7c0108b2715bc700ac198c7a21d587f11f1d06b17bd
test 1017600 4797 124750 4424 a530bf9e17a4122b101b09cedd5f3cf8e6307d6a0093146c33b8de2e69ec0fa3
BioNLP09: proteins
train 1898574 7462 227742 9296 abf9a6242bbd932e725f85d6ceb0ece41aae3c96775e45d18364868a1ad7bfe1
dev 371410 1448 44185 2078 9cfebba60ecb0db64ce9153c3500f2e7e995c6c5e827f0d7f3e7a9dc5422aada
test 627309 2446 74624 3589 b4e2acba0863bbd9ed27264adafc3e1d0b1cd764334366a622d662eeb5c310f4
BioNLP11EPI: proteins
train 1363908 5698 161576 7586 96c531c78b76b7e1f7d38547e6f6a321c6781a6f199c151f443855765996d34f
dev 463908 1955 54760 2495 522435a7f9e8fb22d2a0575493b3e8dbbe6bafedae944c7d346c7fffd55e06d5
test 986053 4122 116105 5730 fa4aa96d5f318cafa741fffa5e3fa542f29f0b67320f0b8ba7e1f8780848490b
BioNLP11ID: 4 types of infectious diseases
train 694919 2496 81856 5674 0ec273b9fbf05d15d347a06d67fe084afc18a1738c574b0b4f544d756ad280f7
dev 186697 721 22917 1598 cc48d04e83a22adcb2a7071c0beb956fff444dd5f40efe4b09f8b04dafeccc43
test 518107 1961 61643 3810 94cc21cf0b86a5af059c7d93f7f3a7c717c413004a291b7edc70efc3b5dc4591
BioNLP11ID-chem: chemicals
train 629202 2496 81856 594 c3061cb3ee267ed90b7a60e3b585f8ba35a909e0fa347274634491e81fea6eb4
dev 171624 721 22917 131 1d49e2be6821b1972e43565ed329513a758cd1cbe4549c5156100daae4c14fa1
test 475421 1961 61643 248 1c9f2a575be46a52bfad6fb0876ff8ee8eddaef5515ebfb4bf06652608c0453e
BioNLP11ID-ggp: genes and proteins
train 650851 2496 81856 3198 77f770192e8cff59eba86667e0da19ace90341555b9ea3ee0b9d6deb197a2fef
dev 178578 721 22917 1056 40292fd71358feb11910c65c39f8ac69973d20d4b98ac5d2f2e82c9cd226478b
test 491989 1961 61643 2301 dfd9a1170a5d9681d513e88bfa15a306488d5869139a4821ac413522911c1293
BioNLP11ID-species: species
train 657003 2496 81856 1873 6c7f109b70c232443db517dee1a622e537684ffbcd7c4104183453e2267940fe
dev 175746 721 22917 385 2356ea17bf507d278f1415c84a80c0dcf6b8802416c53414a3f26cd861129137
test 492620 1961 61643 1213 13d84c91619139209de14c08a75026178a7a150cb1411b697a0c37d50771e0be
BioNLP13CG-cc: cellular components
train 661410 3033 83467 294 2751018339c78b3e78e95f99042415d9a9e2b72d50d60be5dfc5a877ec6029be
dev 217965 1003 27599 95 e8fb22259d2960f17e7b7aeb2b576a9dd5161817715ff674ca7e67d2ba39e6ff
test 419408 1906 52771 180 4d9694d1f75be10a5987c352b943af5cefe5593fddf83f0586b44db56dd07f5d
BioNLP13CG-cell: cells
train 673079 3033 83467 1939 622b6f6d177d5ee44924d3d3b54b444cd21e863c1c261f0f6c1a272fa1678d01
dev 220978 1003 27599 540 6611f43ad4680e6b29a3097b451cf53f5a5c63addb66ac7b9ce1ebd8bf57f738
test 425197 1906 52771 1013 88c40be1314fd801a7413b779c0c00758cd08d60f27357fecb73afaf0a1e2f0c
BioNLP13CG-chem: chemicals
train 688421 3033 83467 1097 efc0513f346e46dc8699bf87ed69ed21acac350d323d655b9e7ed67428d3b8c5
dev 227598 1003 27599 446 2d7c6ad64d6ad1102d97afc0ded1939c66d22e2aca61ef7a12553edc1d9a5a7b
test 436261 1906 52771 727 45df8f868329fd504fc29f1aff5bce7be60382d8be21539d8f2264b22f395007
BioNLP13CG-ggp: genes and proteins
train 825105 3033 83467 4028 eae03b77052f057aec0bb9d5f5eff60584ac008d1743d2ffac5a5a6114425b8c
dev 276821 1003 27599 1360 97f59ef34444fe40eea3efde6637dc3b3bfe53232a51ae50dab0be373897b102
test 517031 1906 52771 2520 44489463c00ff75a2f3868ba4c9950b8a1ad13c8e9524d968a0e50dda93669e4
BioNLP13CG-species: species
train 664917 3033 83467 901 848fe7fd814eda8df96481151e3aba7a994d8a1a5a8a6368f0618fa8bfed5ebb
dev 218966 1003 27599 296 3b909b9fda5896ceea3f2a847efcee608faf02fe31c3c4d3aa7b0558b4ea97c2
test 420419 1906 52771 518 fc051ee7ae9e1a77ce74a6c9c029a2e1023d3fb8c5145d5c003ab8e4498633ef
BioNLP13GE: proteins
train 587490 2449 75068 3566 6961abede2a0a14cd984674435accf6f4bbb201361bf04a796a248c2ffce3759
dev 636590 2737 81071 4132 b09afafc63fc4fcc2ddc3a5a0a9711c973bc1aecee48e3e5afec6364e39b83b4
test 813448 3391 104643 4359 812fdb078ad257d3b87a6f9ff62a37cf622225cf3763bdaed9c897169b528cfa
BioNLP13PC: 4 types of pathways
train 801157 2499 69244 7853 3bba35afa15be3048240154c9b529e0e4f011f53ed7200b15762f00236e2ab02
dev 267181 857 23646 2734 e04545457858133fd5c80bef67f7904fc51fa099d119346400477f6bf1d30957
test 532249 1695 46196 5306 61bc26bf06a3481adc8ac7032a59e3c71c1ff16ceb81a039b43b4d3e8ae3c06a
BioNLP13PC-cc: cellular components
train 545206 2499 69244 478 910fc63236345f1c7fdc429915fe59da5cf2aedaa69ae0b1892fa9c9892698db
dev 188485 857 23646 203 0cc8a739347fd6073c4e471fd155abd29c53371acafe30e8aa5ef996ca3b25da
test 365196 1695 46196 332 57e8f48d7b6777c3ea09e18393b28a1f7e7a9c6a5283cd2897f8abdb5c285651
BioNLP13PC-chem: chemicals
train 570704 2499 69244 1178 a3586c7d35e2027fefed5e25276219c96fc5f3898cce7d445778f8fee9130968
dev 195917 857 23646 451 58081382558640838cbd4beec5786cd2c9954c5b84e88468c34e5f3421685bcb
test 383882 1695 46196 858 53799fd4e87f47fa653f43f2ea8a850e4c9e3b963ef2102ca426dcbbdaa0f11d
BioNLP13PC-ggp: genes and proteins
train 735719 2499 69244 5468 9b0739ffbba0dd8ec76e54af66d7251da5c56f95e68de588f2f734c0237ea753
dev 244589 857 23646 1836 5c96f8f768901fda2ab7f9c47cbedbdae9072da7376b933c23ccfbf1c08351fb
test 486191 1695 46196 3587 9a7992ac6efdd534ee7c489ac9d1a61e036f56762c946e5c78d84f8096f8a6d2
CRAFT: 6 types in full articles
train 2176552 10875 278226 29026 3c49de4dba0a490459d2f7c8c0d1ae7659e2efeff8b1afec610226902f525979
dev 789180 3730 100166 9727 95960d9a2fe97e437ca864c3e4c3f2c77c29a3bf8d3483c5e52a7e1a0f46b4ce
test 1538241 7425 196904 18881 f4d105baa2ad0db0aab6348ec9f90af00ce8175bc47282ddb5079d01d884b90c
CRAFT-cc: cellular components
train 2037719 10875 278226 2251 d781fdaceb0938ccac5c2303fb0a6dc19c96f90fb46331882bca8866fbd0c53c
dev 742700 3730 100166 457 02c54aa52c1ed40a4d7c8746d588c262b7ac34f4debfc5351c782092c375bda1
test 1445735 7425 196904 1472 77253536393d456ea5f0c19fbb4737f4b64d10faaa8c67cc5511b48d1a2b1339
CRAFT-cell: cells
train 2040509 10875 278226 2894 9c30fb152552b03ed84d9e39fb256d2a9e79f81706268d83e2b574cb821d2634
dev 744038 3730 100166 832 d7bef14d255bc6ec3a69382ef566c900040875743c13602bc92971d3d937ef43
test 1446923 7425 196904 1769 b72e50a0e4994ee7d4fe1b96d382052572cf6de293915064303334a85add29a1
CRAFT-chem: chemicals
train 2052668 10875 278226 3377 b5f6d646d9abe1ae041b2124a7dd9a925cb704e0fb4ddb3d4f8339b36aa3ec13
dev 748250 3730 100166 1044 b2fd7d38a552d3ae9c8d7ab01348f7d77ed7b303885313a973c728eee6c77853
test 1456052 7425 196904 2381 452ac0dc9fadaec94722012350ee3f9fdfb7cc5b943919721e2d3b1f308912d3
CRAFT-ggp: genes and proteins
train 2080160 10875 278226 8531 43957478a2af18cf6d7833fc65a8191d54fc70764fb2298832db62a30de0f94f
dev 753824 3730 100166 2301 1f13e2b4f2be5f4a414652aa98d062c27349de8d74240d9a2a73f3a76fb06d0d
test 1474176 7425 196904 5282 f2b8b1cec54b15eb64abff17f16d696552ee46ae890095a0ccb8c854533df69d
CRAFT-species: species
train 2063140 10875 278226 3361 408b2057a88f6043720e731bc9a2ce322b86492793e4cb222203fa28b486c9ba
dev 758276 3730 100166 1548 f702529e903a1f2cb79c1ca2657ff7e8413e6a3278b34507c0f2afaac71a34b1
test 1465200 7425 196904 2485 63f9164ccb91c842323788299d29d4fdad0a04e90063dd2a96d17850bbc39791
Ex-PTM: proteins
train 337937 1377 39888 1787 93633cfd1b3722960f17c632a92d0cc403168fbaddef5d4e7027761cdbb13ac6
dev 107908 437 12664 603 488bb9fc78dd439473158753a87bc341016835bc4698b0756bcd52cd80e4de1e
test 447408 1839 53020 2308 f4da237c2caced544a20ce7567835e840a410fa329f9ef33f62cb343e7481e0d
NCBI-disease: diseases
train 1137445 5424 135701 5134 58379baf4614b8d757d93dd7a21b202849ca99f9b9d71b49185523ff5443300c
dev 200352 923 23969 787 b4e1e7efcc2a35047bf2f3d281648357470e674f555d4a26a0049ac37d59cc61
test 205664 940 24497 960 8f088ce45dc4746592188f9e69de3d89d87f3bb8f0ed8c4a287d018123fa148d
"""

_LICENCE = "CC BY 4.0 (LICENSE.md of the converters' repository, materials other than code)"
# Terms that are beside the files upstream.
_TERMS = {
    "BioNLP11ID": "annotations CC BY 3.0 (GENIA Project), articles: terms of each publication",
    "BioNLP13CG": "annotations CC BY-SA 3.0 (NaCTeM)",
    "BioNLP13PC": "annotations CC BY-SA 3.0 (NaCTeM, KISTI)",
}
_PAPERS = {
    "AnatEM": references.PYYSALO_2014,
    "BC5CDR": references.LI_2016,
    "BioNLP13CG": references.PYYSALO_2013,
    "linnaeus": references.GERNER_2010,
}
# Corpora of which a part by type is a corpus too, e.g. BC5CDR-chem.
_DIVIDED = ("BC5CDR", "BioNLP11ID", "BioNLP13CG", "BioNLP13PC", "CRAFT")
_GENES = ("BioNLP09", "BioNLP11EPI", "BioNLP13GE", "Ex-PTM")


@dataclass(frozen=True)
class CollectedCorpus:
    """One corpus of the collection.

    Attributes
    ----------
    folder: upstream, without -IOB.
    annotated: what its names are, in words.
    files: by split.
    counts: (sentences, tokens, mentions) by split.
    """

    folder: str
    annotated: str
    files: dict[str, RemoteFile]
    counts: dict[str, tuple[int, int, int]]

    @property
    def name(self) -> str:
        """The name of the dataset."""
        return self.folder.lower().replace("-", "_")

    @property
    def source(self) -> str:
        """The corpus that this one is, or that it has the names of some types of."""
        whole = self.folder.partition("-")[0]
        return whole if whole in _DIVIDED else self.folder

    @property
    def family(self) -> str:
        """The family of the dataset.

        Corpora of several kinds of names are one family: BioNLP13CG extends abstracts that AnatEM
        has too, and AnatEM, BC5CDR and others annotate abstracts of the same kind.
        """
        if self.folder in _GENES:
            return "genes"
        return "species" if self.folder == "linnaeus" else "biomedical concepts"


def _upstream(folder: str) -> Upstream:
    terms = [text for source, text in _TERMS.items() if folder.startswith(source)]
    licence = "; ".join([_LICENCE, *terms])
    return Upstream(f"mtl-bioinformatics-2016/{folder}-IOB", f"{MTL}/{folder}-IOB", licence)


def _read(table: str) -> tuple[CollectedCorpus, ...]:
    corpora: list[CollectedCorpus] = []
    for line in table.strip().split("\n"):
        folder, colon, annotated = line.partition(": ")
        if colon:
            corpora.append(CollectedCorpus(folder, annotated, {}, {}))
            continue
        split, length, sentences, tokens, mentions, sha256 = line.split()
        corpus = corpora[-1]
        name = "devel.tsv" if split == "dev" else f"{split}.tsv"
        corpus.files[split] = _upstream(corpus.folder).file(name, int(length), sha256)
        corpus.counts[split] = (int(sentences), int(tokens), int(mentions))
    return tuple(corpora)


CORPORA = _read(_CORPORA)


def _registration(corpus: CollectedCorpus) -> DatasetInfo:
    sizes = ", ".join(
        f"{split} ({size(counts, *UNITS)})" for split, counts in corpus.counts.items()
    )
    paper = _PAPERS.get(corpus.source)
    converted = f"converted by {references.CRICHTON_2017}"
    return DatasetInfo(
        name=corpus.name,
        summary=f"biomedical names, {corpus.annotated} ({corpus.folder})",
        reference=f"{paper}; {converted}" if paper else f"{corpus.source}, {converted}",
        target=f"sslbench_datasets.mtl.load:load.{corpus.name}",
        licence=next(iter(corpus.files.values())).licence,
        task="spans",
        metric="f1",
        featurizer="basic",
        protocol=(
            f"{sizes}; exact match; the files do not mark documents, whose sentences are adjacent;"
            " no external text"
        ),
        files=tuple(corpus.files.values()),
        family=corpus.family,
    )


DATASETS: tuple[DatasetInfo, ...] = tuple(map(_registration, CORPORA))
